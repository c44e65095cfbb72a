//! Judges: anything that gives a verdict on a case.
//!
//! Each kind lives in its own module with its own configuration type and a `build` that
//! turns it into a [`Judge`]. A judge measures; it does not know its panel, its weight, or
//! what other judges say. A failed measurement is a verdict with a status, never an error
//! and never a score.

pub mod command;
pub mod http;
pub mod human;
pub mod llm;
pub mod observe;
pub mod process;
pub mod replay;
mod reported;
pub mod rule;
pub mod script;
pub mod sources;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::case::Case;
use crate::provider::{CallContext, Client, EndpointError, ProviderError};
use crate::verdict::{Fingerprint, Verdict};

/// Samples of one judge on one case at most, those of `--repeat` included. At a thousand the
/// error of a vote is a thirtieth of the judge's own noise; more is a slip of the pen, and a
/// case's verdicts are held in memory together.
pub const MOST_SAMPLES: u32 = 1000;

/// Gives a verdict on a case.
pub trait Judge: fmt::Debug + Send + Sync {
    /// The kind in configuration: `llm`, `rule`, `command`, ...
    fn kind(&self) -> &'static str;

    /// What makes this judge this judge.
    fn fingerprint(&self) -> &Fingerprint;

    /// How many samples make one vote; at least 1.
    fn samples(&self) -> u32 {
        1
    }

    /// The model behind it, as `provider/model`, where there is one.
    fn model(&self) -> Option<&str> {
        None
    }

    /// Whether it looks at the case's output; a recording, for one, does not.
    fn needs_output(&self) -> bool {
        true
    }

    /// Whether a `required` criterion of its own can turn an accept into a reject.
    fn may_fail_criterion(&self) -> bool {
        false
    }

    /// The criteria that it scores with their weights in its score; empty where it scores none,
    /// or they are not known before it is asked.
    fn criterion_weights(&self) -> Vec<(String, f64)> {
        Vec::new()
    }

    /// Whether what it costs is known only from its answers, so that no plan holds it.
    fn reports_cost(&self) -> bool {
        false
    }

    /// What to know before it is asked, such as a file it names that is not there.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Judges one sample of one case. Dropping the future cancels the work.
    fn judge<'a>(&'a self, case: &'a Case, context: &'a CallContext) -> BoxFuture<'a, Verdict>;

    /// What judging this case will take at most, without asking anyone.
    fn plan(&self, _case: &Case) -> Plan {
        Plan::default()
    }

    /// What comes on top of [`Judge::plan`] at most where every reply has to be asked for once
    /// more, since it can't be read.
    fn plan_again(&self, _case: &Case) -> Plan {
        Plan::default()
    }

    /// Whether the judge can be reached: a short answer for a person. `None` where there is
    /// nothing to reach.
    fn ping<'a>(
        &'a self,
        _context: &'a CallContext,
    ) -> Option<BoxFuture<'a, Result<String, ProviderError>>> {
        None
    }
}

/// What one sample will take at most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Plan {
    /// Requests to a model.
    pub calls: u32,
    /// Prompt tokens, estimated from bytes.
    pub tokens_in: u64,
    /// Completion tokens at most.
    pub tokens_out: u64,
    /// US dollars at most; `None` where calls are made and the model has no price.
    pub cost_usd: Option<f64>,
}

/// What a judge is built with.
#[derive(Clone, Debug)]
pub struct BuildContext {
    /// The folder that relative paths in the configuration start from.
    pub base: PathBuf,
    /// Sends requests to model servers.
    pub client: Client,
}

impl Plan {
    /// Adds another plan, so many times. A cost that is not known makes the sum unknown; a
    /// plan without calls costs nothing.
    pub fn add(&mut self, other: &Self, times: u32) {
        self.calls = self.calls.saturating_add(other.calls.saturating_mul(times));
        let whole = |tokens: u64| tokens.saturating_mul(u64::from(times));
        self.tokens_in = self.tokens_in.saturating_add(whole(other.tokens_in));
        self.tokens_out = self.tokens_out.saturating_add(whole(other.tokens_out));
        if other.calls > 0 {
            let cost = other.cost_usd.map(|cost| cost * f64::from(times));
            self.cost_usd = self.cost_usd.zip(cost).map(|(a, b)| a + b);
        }
    }
}

impl BuildContext {
    /// A context for a panel file in `base`; the empty path, which is the parent of a bare
    /// file name, is the current folder.
    #[must_use]
    pub fn new(base: impl Into<PathBuf>, client: Client) -> Self {
        let base = base.into();
        // The empty path can be joined to, but neither opened nor resolved nor run in.
        let base = if base.as_os_str().is_empty() { PathBuf::from(".") } else { base };
        Self { base, client }
    }

    /// A path of the configuration, from where the configuration stands.
    #[must_use]
    pub fn resolve(&self, path: &Path) -> PathBuf {
        // Messages then name `rubric.toml`, as it is written, and not `./rubric.toml`.
        if self.base == Path::new(".") && !path.as_os_str().is_empty() {
            return path.to_owned();
        }
        self.base.join(path)
    }
}

/// Why a judge can't be seated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A key of the configuration holds something that can't work.
    #[error("`{field}`: {reason}")]
    Invalid {
        /// The key.
        field: String,
        /// What was expected.
        reason: String,
    },
    /// The model server can't be used as configured.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// A file that the configuration names can't be read.
    #[error("failed to read `{path}` (named by `{field}`)")]
    File {
        /// The key.
        field: String,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// This build lacks a feature.
    #[error(
        "`{field}` needs a build with the feature `{feature}`: `cargo install --features {feature}`"
    )]
    Feature {
        /// The key.
        field: String,
        /// The cargo feature.
        feature: &'static str,
    },
}

impl BuildError {
    /// A key of the configuration that can't work, and what was expected.
    pub fn invalid(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), reason: reason.into() }
    }
}

/// A judge ready to be seated.
pub type BoxedJudge = Arc<dyn Judge>;
