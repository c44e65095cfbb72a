//! What a host is told, in its own words.
//!
//! Silence and exit code 0 let the agent stop. Every answer that makes it go on is in the form
//! that was seen to work on that host; no answer ends in exit code 1, which every host takes
//! for a success with a warning.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::event::EventKind;
use super::host::Host;

/// What the agent may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It may stop, and nothing is said.
    Allow,
    /// It may stop, and the person is told something.
    Note(String),
    /// It has to go on, with this text.
    Block(String),
    /// The session ends here, and this is why; where the host can't be told to end, as a note.
    End(String),
}

/// What the process does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The exit code: 0, or 2 for the hosts that are told so to go on.
    pub exit_code: u8,
    /// All of standard output.
    pub stdout: String,
    /// All of standard error.
    pub stderr: String,
}

impl Answer {
    /// The name in outcomes: `allow`, `block` or `end`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Allow | Self::Note(_) => "allow",
            Self::Block(_) => "block",
            Self::End(_) => "end",
        }
    }

    /// The answer in the words of a host.
    #[must_use]
    pub fn encode(&self, host: Host, kind: EventKind) -> Reply {
        if matches!(kind, EventKind::Prompt | EventKind::Other) {
            // Words at the start of a turn would become a part of the prompt.
            return Reply::default();
        }
        match host {
            Host::ClaudeCode | Host::Codex => self.claude(),
            Host::GeminiCli => self.gemini(),
            Host::OpenHands => self.openhands(),
            Host::Cursor => self.cursor(),
            Host::Generic => self.generic(),
        }
    }

    fn claude(&self) -> Reply {
        match self {
            Self::Allow => Reply::default(),
            Self::Note(text) => says(&json!({ "systemMessage": text })),
            Self::Block(text) => says(&json!({ "decision": "block", "reason": text })),
            Self::End(text) => says(&json!({ "continue": false, "stopReason": text })),
        }
    }

    fn gemini(&self) -> Reply {
        match self {
            Self::Block(text) => says(&json!({ "decision": "deny", "reason": text })),
            other => other.claude(),
        }
    }

    fn openhands(&self) -> Reply {
        match self {
            Self::Allow => Reply::default(),
            Self::Block(text) => says(&json!({ "decision": "deny", "reason": text })),
            Self::Note(text) | Self::End(text) => tells(0, text),
        }
    }

    fn cursor(&self) -> Reply {
        match self {
            Self::Allow => Reply::default(),
            Self::Block(text) => says(&json!({ "followup_message": text })),
            Self::Note(text) | Self::End(text) => tells(0, text),
        }
    }

    fn generic(&self) -> Reply {
        match self {
            Self::Allow => Reply::default(),
            Self::Block(text) => tells(2, text),
            Self::Note(text) | Self::End(text) => tells(0, text),
        }
    }
}

fn says(value: &serde_json::Value) -> Reply {
    Reply { stdout: value.to_string(), ..Reply::default() }
}

/// Text on standard error, which must not be empty: an empty one is a failed hook to some.
fn tells(exit_code: u8, text: &str) -> Reply {
    let stderr = if text.trim().is_empty() { "venire: no reason given" } else { text };
    Reply { exit_code, stderr: stderr.to_owned(), ..Reply::default() }
}
