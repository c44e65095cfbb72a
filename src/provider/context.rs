//! What surrounds one measurement.

use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::ledger::Ledger;
use super::replies::{NoReplies, ReplyStore};

/// What surrounds one measurement: which sample it is, until when, and what it may spend.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// Which of the judge's samples this is, from 0; part of the key of a reply.
    pub sample: u32,
    /// No work goes on after this.
    pub deadline: Instant,
    /// Fires when the user stops the run or the answer is not needed any more.
    pub cancel: CancellationToken,
    /// True to ask again even where a reply is kept (`--retry-errors`); the new one replaces
    /// it.
    pub fresh: bool,
    /// Where replies are kept.
    pub replies: Arc<dyn ReplyStore>,
    /// Money and tokens of the whole run.
    pub ledger: Arc<Ledger>,
}

impl CallContext {
    /// A context that keeps nothing and has no limit but a deadline `timeout` from now.
    #[must_use]
    pub fn standalone(timeout: std::time::Duration) -> Self {
        Self {
            sample: 0,
            deadline: Instant::now() + timeout,
            cancel: CancellationToken::new(),
            fresh: false,
            replies: Arc::new(NoReplies),
            ledger: Arc::new(Ledger::default()),
        }
    }
}
