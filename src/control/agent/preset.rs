//! Known coding agents in batch mode: how each is called and what it must see.
//!
//! A preset fills in what a file leaves out: the program and its arguments, how the prompt is
//! handed over, and the environment variables that the client reads. It takes no decision
//! for the user that widens what the client may do: permissions go no further than editing
//! files in the folder.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A coding agent that venire knows how to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// `claude -p`, which reports tokens and US dollars.
    ClaudeCode,
    /// `codex exec`, which reports tokens.
    Codex,
    /// `gemini`, which reports tokens.
    GeminiCli,
    /// `aider`, which reports rounded tokens and, for models that it knows, US dollars.
    Aider,
}

/// What every client may need to reach its server.
const NETWORK: [&str; 7] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
];

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 4] = [Self::ClaudeCode, Self::Codex, Self::GeminiCli, Self::Aider];

    /// The name in configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::Aider => "aider",
        }
    }

    /// The program and its arguments; `edits` for an agent that works on a folder. Without it
    /// the client may read and not write.
    #[must_use]
    pub fn argv(self, edits: bool) -> Vec<String> {
        let words: &[&str] = match (self, edits) {
            (Self::ClaudeCode, false) => {
                &["claude", "-p", "--output-format", "json", "--no-session-persistence"]
            }
            (Self::ClaudeCode, true) => &[
                "claude",
                "-p",
                "--output-format",
                "json",
                "--no-session-persistence",
                "--permission-mode",
                "acceptEdits",
            ],
            (Self::Codex, false) => &[
                "codex",
                "exec",
                "--json",
                "--ephemeral",
                "--skip-git-repo-check",
                "--sandbox",
                "read-only",
            ],
            (Self::Codex, true) => &[
                "codex",
                "exec",
                "--json",
                "--ephemeral",
                "--skip-git-repo-check",
                "--sandbox",
                "workspace-write",
            ],
            (Self::GeminiCli, false) => {
                &["gemini", "--output-format", "json", "--skip-trust", "--approval-mode", "plan"]
            }
            (Self::GeminiCli, true) => &[
                "gemini",
                "--output-format",
                "json",
                "--skip-trust",
                "--approval-mode",
                "auto_edit",
            ],
            // It always edits: a `command` agent of it is refused.
            (Self::Aider, _) => &[
                "aider",
                "--yes-always",
                "--no-auto-commits",
                "--no-dirty-commits",
                "--no-gitignore",
                "--no-stream",
                "--no-pretty",
                "--no-fancy-input",
                "--no-suggest-shell-commands",
                "--no-detect-urls",
                "--no-check-update",
                "--no-show-release-notes",
                "--no-show-model-warnings",
                "--no-analytics",
                "--chat-history-file",
                "/dev/null",
                "--input-history-file",
                "/dev/null",
                "--message-file",
                "{prompt_file}",
            ],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// Environment variables that the client reads: keys, servers, where it keeps its login.
    #[must_use]
    pub fn environment(self) -> Vec<&'static str> {
        let own: &[&str] = match self {
            Self::ClaudeCode => &[
                "ANTHROPIC_API_KEY",
                "ANTHROPIC_AUTH_TOKEN",
                "ANTHROPIC_BASE_URL",
                "ANTHROPIC_MODEL",
                "CLAUDE_CODE_OAUTH_TOKEN",
                "CLAUDE_CODE_USE_BEDROCK",
                "CLAUDE_CODE_USE_VERTEX",
                "CLAUDE_CONFIG_DIR",
            ],
            Self::Codex => &["CODEX_API_KEY", "CODEX_HOME", "OPENAI_API_KEY", "OPENAI_BASE_URL"],
            Self::GeminiCli => &[
                "GEMINI_API_KEY",
                "GEMINI_MODEL",
                "GOOGLE_API_KEY",
                "GOOGLE_APPLICATION_CREDENTIALS",
                "GOOGLE_CLOUD_LOCATION",
                "GOOGLE_CLOUD_PROJECT",
                "GOOGLE_GEMINI_BASE_URL",
                "GOOGLE_GENAI_USE_VERTEXAI",
            ],
            Self::Aider => &[
                "AIDER_MODEL",
                "ANTHROPIC_API_KEY",
                "DEEPSEEK_API_KEY",
                "GEMINI_API_KEY",
                "OPENAI_API_BASE",
                "OPENAI_API_KEY",
                "OPENROUTER_API_KEY",
            ],
        };
        own.iter().chain(&NETWORK).copied().collect()
    }

    /// Whether the client says what a call cost, whatever the model.
    #[must_use]
    pub fn reports_cost(self) -> bool {
        self == Self::ClaudeCode
    }

    /// Files that the client leaves in the folder and that are no part of its work, as
    /// patterns of git.
    #[must_use]
    pub fn litter(self) -> &'static [&'static str] {
        match self {
            Self::Aider => &[".aider*"],
            Self::ClaudeCode | Self::Codex | Self::GeminiCli => &[],
        }
    }
}
