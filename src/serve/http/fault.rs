//! Errors as one JSON shape: `{"error": {"kind", "message", "field"?}}`.
//!
//! The status says whose fault it is and whether asking again helps. Nothing of a case, a key
//! or a token stands in a message.

use std::any::Any;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{Response as HttpResponse, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::config::Problem;
use crate::store::StoreError;

/// What went wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The HTTP status.
    pub status: StatusCode,
    /// A word for programs.
    pub kind: &'static str,
    /// A sentence for people.
    pub message: String,
    /// The path of the value that is wrong, such as `metadata.x`.
    pub field: Option<String>,
    /// Seconds after which asking again may help.
    pub retry_after: Option<u64>,
}

/// The body of an error.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ErrorBody {
    /// What went wrong.
    pub(super) error: ErrorDetail,
}

/// What went wrong.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ErrorDetail {
    /// A word for programs, such as `busy` or `too_large`.
    pub(super) kind: String,
    /// A sentence for people.
    pub(super) message: String,
    /// The path of the value that is wrong, such as `metadata.x`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) field: Option<String>,
}

impl Fault {
    /// A fault with this status, kind and message.
    pub fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, message: message.into(), field: None, retry_after: None }
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// The request is understood and can't be used.
    pub fn unusable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "unusable", message)
    }

    /// A fault of this program or its surroundings.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    /// The value that is wrong.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into()).filter(|field| !field.is_empty());
        self
    }

    /// When asking again may help.
    #[must_use]
    pub fn after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    pub(super) fn body(&self) -> ErrorBody {
        ErrorBody {
            error: ErrorDetail {
                kind: self.kind.to_owned(),
                message: self.message.clone(),
                field: self.field.clone(),
            },
        }
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        let field = problem.at.clone();
        let said = Problem { at: String::new(), ..problem };
        Self::unusable(said.to_string()).at(field)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::Missing { .. }
            | StoreError::NoSuchRun { .. }
            | StoreError::NoSuchCase { .. } => Self::not_found(message),
            StoreError::AmbiguousRun { .. } | StoreError::AmbiguousCase { .. } => {
                Self::new(StatusCode::CONFLICT, "ambiguous", message)
            }
            StoreError::Busy { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "store", message).after(5)
            }
            _ => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "store", message),
        }
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        if self.status.is_server_error() {
            tracing::warn!("{}: {}", self.kind, self.message);
        }
        let mut response = json(self.status, &self.body());
        response.extensions_mut().insert(self.clone());
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"venire\""));
        }
        response
    }
}

/// A JSON answer. It may be about somebody's texts, so nobody on the way keeps it.
pub(super) fn json<T: Serialize>(status: StatusCode, value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => {
            let mut response = (status, body).into_response();
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        }
        Err(error) => {
            Fault::internal(format!("an answer can't be written: {error}")).into_response()
        }
    }
}

/// A text, which ends its last line. It too may be about somebody's texts.
pub(super) fn text(mut text: String) -> Response {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let mut response = (StatusCode::OK, text).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// What a handler that panicked is answered with; the words of the panic go to the log only.
pub(super) fn of_panic(panic: Box<dyn Any + Send + 'static>) -> HttpResponse<Body> {
    let words = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    tracing::error!("a request's handler panicked: {words}");
    Fault::internal("a fault of this program: its log says more").into_response()
}
