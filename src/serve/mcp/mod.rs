//! The Model Context Protocol: a panel as tools of a model's host.
//!
//! [`Tools`] is what the tools do, without a word of the protocol; `wire` speaks it, over
//! stdio and streamable HTTP, and is the only file that names its crate. A tool advises: the
//! model decides whether to call it, and may stop with a rejected answer. An answer that could
//! not be judged is `undecided`, and its score is null.

mod definition;
mod explain;
mod http;
mod record;
mod score;
mod status;
mod stdio;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

pub use self::definition::Definition;
pub use self::http::{Access, Address, HttpError, serve_http};
pub use self::record::Recorder;
pub use self::wire::{StdioError, serve_stdio};
use crate::case::Case;
use crate::panel::Panel;
use crate::provider::{CallContext, Ledger, ReplyStore};

/// How long one answer may be judged: the judges' own limits end it long before.
const JUDGING: Duration = Duration::from_secs(3600);

/// What a tool call came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// What the tool's output schema describes.
    Structured(Value),
    /// Why there is none, and what helps.
    Refused(String),
}

/// A panel's tools: `score`, `gate_status` and `explain`.
#[derive(Debug)]
pub struct Tools {
    panel: Panel,
    recorder: Recorder,
    replies: Arc<dyn ReplyStore>,
    ledger: Arc<Ledger>,
    /// The folder in which the folders of loops, of hooks and of gates are.
    folder: PathBuf,
}

impl Tools {
    /// Tools of a panel, whose rulings `recorder` keeps, whose judges' replies are kept in
    /// `replies`, and whose money is counted in `ledger`. `folder` is where loops, hooks
    /// and gates keep theirs (`.venire`); it need not be there.
    #[must_use]
    pub fn new(
        panel: Panel,
        recorder: Recorder,
        replies: Arc<dyn ReplyStore>,
        ledger: Arc<Ledger>,
        folder: PathBuf,
    ) -> Self {
        Self { panel, recorder, replies, ledger, folder }
    }

    /// The tools, in the order in which they are listed.
    #[must_use]
    pub fn definitions(&self) -> Vec<Definition> {
        vec![score::definition(&self.panel), status::definition(), explain::definition()]
    }

    /// Calls the tool `name`; `None` where there is no such tool. `cancel` ends the judging.
    pub async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        cancel: CancellationToken,
    ) -> Option<Answer> {
        let answer = match name {
            score::NAME => self.score(arguments, cancel).await,
            status::NAME => self.gate_status(arguments).await,
            explain::NAME => self.explain(arguments).await,
            _ => return None,
        };
        Some(answer.unwrap_or_else(Answer::Refused))
    }

    /// Forgets nothing and keeps what was judged: the run's record says that it has ended.
    pub async fn close(&self) {
        self.recorder.close().await;
    }

    async fn score(
        &self,
        arguments: Map<String, Value>,
        cancel: CancellationToken,
    ) -> Result<Answer, String> {
        let mut case: Case = score::Arguments::read(arguments)?.into();
        let context = CallContext {
            replies: self.replies.clone(),
            ledger: self.ledger.clone(),
            cancel: cancel.clone(),
            ..CallContext::standalone(JUDGING)
        };
        let mut ruling = self.panel.judge(&case, &context).await;
        if cancel.is_cancelled() {
            return Err("cancelled before the judges were done: nothing was decided".into());
        }
        score::log(&ruling);
        let run = match self.recorder.keep(&self.panel, &mut case, &mut ruling).await {
            Ok(run) => Some(run),
            Err(error) => {
                tracing::error!("the ruling is not kept, `explain` won't find it: {error}");
                None
            }
        };
        structured(&score::Scored::of(&ruling, run))
    }

    async fn gate_status(&self, arguments: Map<String, Value>) -> Result<Answer, String> {
        let arguments = definition::read::<status::Arguments>(status::NAME, arguments)?;
        let (store, folder) = (self.recorder.path().to_owned(), self.folder.clone());
        structured(&blocking(move || status::look(&arguments, &store, &folder)).await?)
    }

    async fn explain(&self, arguments: Map<String, Value>) -> Result<Answer, String> {
        let arguments = definition::read::<explain::Arguments>(explain::NAME, arguments)?;
        let (store, own) = (self.recorder.path().to_owned(), self.recorder.run().await);
        structured(&blocking(move || explain::look(&arguments, &store, own.as_deref())).await?)
    }
}

fn structured<T: serde::Serialize>(value: &T) -> Result<Answer, String> {
    match serde_json::to_value(value) {
        Ok(value) => Ok(Answer::Structured(value)),
        Err(error) => Err(format!("the answer can't be written as JSON: {error}")),
    }
}

/// Work on files, off the threads that answer.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(format!("the look into the store broke off: {error}")),
    }
}
