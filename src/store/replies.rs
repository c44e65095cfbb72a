//! The store's side of the reply cache.
//!
//! A reply is on disk before it is returned to whoever counts it, and only whole replies are
//! kept: never a failure.

use std::sync::{Mutex, PoisonError};

use futures::future::BoxFuture;

use super::claims::Claims;
use super::sqlite::ReplyReader;
use super::writer::Writer;
use crate::provider::{ChatReply, Claim, KeepError, ReplyKey, ReplyStore};

/// Replies kept in a store.
#[derive(Debug)]
pub struct Replies {
    /// Held for one point look-up at a time, never across an await.
    reader: Mutex<ReplyReader>,
    writer: Writer,
    scope: Option<String>,
    claims: Claims,
}

impl Replies {
    pub(super) fn new(
        reader: ReplyReader,
        writer: Writer,
        scope: Option<&str>,
        claims: Claims,
    ) -> Self {
        let scope = scope.map(str::to_owned);
        Self { reader: Mutex::new(reader), writer, scope, claims }
    }

    /// A scope has keys of its own, so nothing recorded outside it is ever found.
    fn key(&self, key: &ReplyKey) -> [u8; 32] {
        match &self.scope {
            None => key.0,
            Some(scope) => {
                *blake3::Hasher::new().update(&key.0).update(scope.as_bytes()).finalize().as_bytes()
            }
        }
    }
}

impl ReplyStore for Replies {
    fn claim(&self, key: &ReplyKey) -> Option<Claim> {
        let claim = self.claims.claim(&self.key(key));
        if claim.is_none() {
            // Its reply will come from outside.
            self.writer.others_ask();
        }
        claim
    }

    fn lookup<'a>(&'a self, key: &'a ReplyKey) -> BoxFuture<'a, Option<ChatReply>> {
        let key = self.key(key);
        if !self.writer.may_hold(&key) {
            return Box::pin(std::future::ready(None));
        }
        let found = {
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            reader.reply(&key)
        };
        // A reply that can't be read is asked for again; the new one replaces it.
        let reply = match found {
            Ok(body) => body.and_then(|body| serde_json::from_str(&body).ok()),
            Err(error) => {
                tracing::warn!("failed to look up a reply: {error}");
                None
            }
        };
        Box::pin(std::future::ready(reply))
    }

    fn record<'a>(
        &'a self,
        key: &'a ReplyKey,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<(), KeepError>> {
        Box::pin(async move {
            let body = serde_json::to_string(reply)
                .map_err(|error| KeepError { reason: error.to_string() })?;
            self.writer
                .reply(self.key(key), body)
                .await
                .map_err(|error| KeepError { reason: error.to_string() })
        })
    }
}
