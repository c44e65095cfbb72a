//! Where replies are kept: the interface that the store implements.

use std::fmt;

use futures::future::BoxFuture;

use super::chat::ChatReply;
use super::key::ReplyKey;

/// The right to ask a question, held while it is asked; given back when dropped.
pub type Claim = Box<dyn fmt::Debug + Send + Sync>;

/// Where replies are kept. The store implements it; [`NoReplies`] keeps nothing.
pub trait ReplyStore: fmt::Debug + Send + Sync {
    /// Claims the question under this key for this process, so that no other one with the
    /// same store asks it at the same time; `None` while another holds it. Must not block.
    fn claim(&self, _: &ReplyKey) -> Option<Claim> {
        Some(Box::new(()))
    }

    /// The reply kept under this key.
    fn lookup<'a>(&'a self, key: &'a ReplyKey) -> BoxFuture<'a, Option<ChatReply>>;

    /// Keeps a reply. When this returns, the reply survives the death of the process.
    ///
    /// # Errors
    /// When it could not be kept: the caller then reports the reply as failed, since an
    /// answer that is not on disk must not be counted.
    fn record<'a>(
        &'a self,
        key: &'a ReplyKey,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<(), KeepError>>;
}

/// A reply that could not be kept.
#[derive(Clone, Debug, thiserror::Error)]
#[error("failed to keep a reply in the store: {reason}")]
pub struct KeepError {
    /// Why.
    pub reason: String,
}

/// Keeps nothing, finds nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoReplies;

impl ReplyStore for NoReplies {
    fn lookup<'a>(&'a self, _: &'a ReplyKey) -> BoxFuture<'a, Option<ChatReply>> {
        Box::pin(std::future::ready(None))
    }

    fn record<'a>(
        &'a self,
        _: &'a ReplyKey,
        _: &'a ChatReply,
    ) -> BoxFuture<'a, Result<(), KeepError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
