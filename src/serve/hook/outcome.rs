//! The outcome: what was really found, whatever a host reports.
//!
//! A host that gave up, crashed its hook or ran out of patience ends with success. This record
//! is written before the host is answered, and says `accepted` only where the panel accepted.

use std::io::Write as _;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::OnUndecided;
use crate::ruling::{Decision, Ruling};

/// Why an answer is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Judging began, and has not ended: a process that was killed leaves this behind.
    Judging,
    /// The panel accepts.
    Accepted,
    /// The panel rejects.
    Rejected,
    /// No decision: no quorum, an outage, no time left.
    Undecided,
    /// The panel, the workspace or the payload can't be used.
    Error,
    /// There was nothing to judge yet, or any more.
    Unfinished,
    /// The turn's forced continuations are spent.
    BlocksSpent,
    /// The session's forced continuations are spent.
    SessionBlocksSpent,
    /// The turn's time is spent.
    TimeSpent,
    /// Nothing changed between rejections.
    NoProgress,
    /// The counters can't be kept on disk, so nothing may be forced.
    NoLedger,
}

impl Cause {
    /// The name in outcomes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Judging => "judging",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Undecided => "undecided",
            Self::Error => "error",
            Self::Unfinished => "unfinished",
            Self::BlocksSpent => "blocks_spent",
            Self::SessionBlocksSpent => "session_blocks_spent",
            Self::TimeSpent => "time_spent",
            Self::NoProgress => "no_progress",
            Self::NoLedger => "no_ledger",
        }
    }
}

/// What was found, and what was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// When, in UTC by RFC 3339.
    pub time: String,
    /// Whether the panel accepted what was judged. False whenever it did not say so.
    pub accepted: bool,
    /// What the panel decided; `None` where nothing was judged.
    pub decision: Option<Decision>,
    /// Why the answer is what it is.
    pub cause: Cause,
    /// What the caller was told: `allow`, `block` or `end` for hooks, `exit` for a gate.
    pub answer: String,
    /// The exit code.
    pub exit_code: u8,
    /// What is done without a decision.
    pub on_undecided: OnUndecided,
    /// More about the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The panel's score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The score that an accepted output must reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Whether a vote was missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub degraded: bool,
    /// The panel's fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel: Option<String>,
    /// Whether the panel is another one than at the session's first judgement.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub panel_changed: bool,
    /// What was judged: `changes` or `answer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The tree of the workspace, untracked files included; `None` without git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Whether the ruling is that of an earlier judgement of the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// US dollars that this judgement is known to have taken; null where it asked models and
    /// none of them has a price.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// The host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The host's event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The host's session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Forced continuations of this turn, this one included.
    #[serde(default)]
    pub blocks: u32,
    /// Forced continuations of the session, this one included.
    #[serde(default)]
    pub session_blocks: u32,
    /// What the host said of `stop_hook_active`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_hook_active: Option<bool>,
    /// What the judges found, one entry a finding.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feedback: Vec<String>,
    /// What to know before trusting it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Outcome {
    /// An outcome of nothing judged.
    #[must_use]
    pub fn new(cause: Cause) -> Self {
        Self {
            time: jiff::Timestamp::now().to_string(),
            accepted: false,
            decision: None,
            cause,
            answer: "none".to_owned(),
            exit_code: 0,
            on_undecided: OnUndecided::default(),
            detail: None,
            score: None,
            threshold: None,
            degraded: false,
            panel: None,
            panel_changed: false,
            output: None,
            workspace: None,
            cached: false,
            cost_usd: Some(0.0),
            host: None,
            event: None,
            session: None,
            agent: None,
            blocks: 0,
            session_blocks: 0,
            stop_hook_active: None,
            feedback: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Takes over what a ruling says.
    pub fn rule(&mut self, ruling: &Ruling) {
        self.decision = Some(ruling.decision);
        self.accepted = ruling.decision == Decision::Accept;
        self.score = ruling.score.map(crate::score::Score::get);
        self.threshold = Some(ruling.threshold);
        self.degraded = ruling.degraded;
        self.feedback = ruling.feedback.iter().map(crate::report::words::finding).collect();
        self.warnings.extend(crate::report::words::degraded(ruling));
        if ruling.decision == Decision::Undecided {
            self.detail = Some(crate::report::words::reason(ruling));
        }
    }

    /// Writes it in place of an earlier one, all or nothing.
    ///
    /// # Errors
    /// When the file can't be written, and where it is there and holds something else.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        match std::fs::read_to_string(path) {
            Ok(text) if !text.trim().is_empty() && serde_json::from_str::<Self>(&text).is_err() => {
                return Err(std::io::Error::other("it is there and is no outcome: name another"));
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        write_whole(path, &serde_json::to_string_pretty(self)?)
    }
}

/// Replaces a file's content so that no reader ever sees half of it.
pub(super) fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
