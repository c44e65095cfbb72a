//! A refusal that arrives: what a client still sends of a refused body is read and thrown away
//! for a moment.
//!
//! Closing a connection with unread data resets it, and the client then sees a broken
//! connection instead of the answer that says why.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt as _;
use hyper::body::{Frame, SizeHint};

/// Bodies up to this size come with their headers or soon after: the connection's own reading
/// takes care of them.
const SMALL: u64 = 16 * 1024;
/// What is thrown away of a refused body at most.
const MOST: u64 = 4 * 1024 * 1024;
const LONGEST: Duration = Duration::from_secs(2);

/// A body that two hold: the handler reads it, and what it leaves is thrown away.
#[derive(Clone)]
struct Held(Arc<Mutex<Body>>);

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Pin::new(&mut *body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).size_hint()
    }
}

/// Answers, and reads on for a moment where the answer is a refusal of a body.
pub(super) async fn linger(request: Request, next: Next) -> Response {
    let length = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let length = length.and_then(|text| text.parse::<u64>().ok());
    if length.is_some_and(|length| length <= SMALL) || request.body().is_end_stream() {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let held = Held(Arc::new(Mutex::new(body)));
    let rest = held.clone();
    let response = next.run(Request::from_parts(parts, Body::new(held))).await;
    if response.status().is_client_error() || response.status().is_server_error() {
        let _ = tokio::time::timeout(LONGEST, discard(rest)).await;
    }
    response
}

async fn discard(rest: Held) {
    let mut left = MOST;
    let mut parts = Body::new(rest).into_data_stream();
    while let Some(Ok(part)) = parts.next().await {
        let Some(less) = left.checked_sub(part.len() as u64) else { return };
        left = less;
    }
}
