//! The hosts whose hooks are understood, and how they differ.

use std::time::Duration;

/// A program that asks by hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    GeminiCli,
    /// OpenHands.
    OpenHands,
    /// Cursor.
    Cursor,
    /// Any other: exit code 2 and text on standard error to go on.
    Generic,
}

impl Host {
    /// Every host.
    pub const ALL: [Self; 6] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::GeminiCli,
        Self::OpenHands,
        Self::Cursor,
        Self::Generic,
    ];

    /// The name on the command line, in ledgers and in outcomes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::OpenHands => "openhands",
            Self::Cursor => "cursor",
            Self::Generic => "generic",
        }
    }

    /// The host with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|host| host.name() == name)
    }

    /// How long the host waits for a hook when its settings say nothing: its own default where
    /// that is known, else a minute, the shortest of those known.
    #[must_use]
    pub fn default_timeout(self) -> Duration {
        match self {
            Self::ClaudeCode | Self::Codex => Duration::from_secs(600),
            Self::GeminiCli | Self::OpenHands | Self::Cursor | Self::Generic => {
                Duration::from_secs(60)
            }
        }
    }

    /// How many forced continuations in a row the host allows before it goes on without its
    /// hook, as a success; `None` where it has no such limit that is known.
    #[must_use]
    pub fn own_cap(self) -> Option<u32> {
        (self == Self::ClaudeCode).then_some(8)
    }

    /// Whether the host can be told to end a session, so that its own record does not read as
    /// a success.
    #[must_use]
    pub fn can_end(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::Codex | Self::GeminiCli)
    }
}
