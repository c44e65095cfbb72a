//! Why a request has no reply, and why an endpoint can't be used.

use crate::verdict::Status;

/// Why a request has no reply.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// The verdict's status that follows.
    pub status: Status,
    /// What happened, in words for a person; never a key, a prompt or a whole reply.
    pub message: String,
    /// The HTTP status, where a server answered.
    pub http_status: Option<u16>,
    /// Whether the prompt does not fit in the model's context: no other form of it will.
    pub too_long: bool,
    /// Requests sent.
    pub attempts: u32,
    /// Whether something was sent that may have cost money which nobody tells of: a request
    /// that was given up, or a reply that could not be read.
    pub cost_unknown: bool,
    /// What to do about it, where we know.
    pub hint: Option<String>,
}

/// Why an endpoint can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The model does not say its provider, or the provider is not known.
    #[error("`{model}`: {reason}")]
    Model {
        /// As written.
        model: String,
        /// What was expected.
        reason: String,
    },
    /// A key of the configuration can't work.
    #[error("`{field}`: {reason}")]
    Invalid {
        /// The key.
        field: &'static str,
        /// What was expected.
        reason: String,
    },
    /// No API key.
    #[error("no API key for `{model}`: expected it in the environment variable `{variable}`")]
    MissingKey {
        /// The model, as `provider/model`.
        model: String,
        /// The variable looked for.
        variable: String,
    },
}

impl ProviderError {
    pub(super) fn new(status: Status, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            status,
            message,
            http_status: None,
            too_long: false,
            attempts: 0,
            cost_unknown: false,
            hint: None,
        }
    }

    pub(super) fn too_long(mut self) -> Self {
        self.too_long = true;
        self
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn http(mut self, status: u16) -> Self {
        self.http_status = Some(status);
        self
    }
}
