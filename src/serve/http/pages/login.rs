//! Signing in: a token for a cookie, since a browser can't put a token into its headers.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{HeaderValue, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use minijinja::context;
use serde::Deserialize;

use super::super::fault::Fault;
use super::super::runs::query;
use super::super::service::Service;
use super::super::session::{COOKIE, LASTS};
use super::{Place, filled, form, go_to, page as whole};

#[derive(Debug, Default, Deserialize)]
struct Way {
    #[serde(default)]
    next: String,
}

#[derive(Debug, Deserialize)]
struct Given {
    token: String,
    #[serde(default)]
    next: String,
}

pub(in super::super) async fn page(
    State(service): State<Arc<Service>>,
    uri: Uri,
) -> Result<Response, Fault> {
    let way: Way = query(&uri)?;
    shown(&service, &way.next, false)
}

fn shown(service: &Service, next: &str, wrong: bool) -> Result<Response, Fault> {
    let values = context! { next => within(next), wrong };
    let body = filled(include_str!("login.html"), values)?;
    let mut response = whole(service, Place::Outside, "venire", &[], &body)?;
    if wrong {
        *response.status_mut() = StatusCode::UNAUTHORIZED;
    }
    Ok(response)
}

/// A path of this server; anything that a browser could take for another's is the first page.
fn within(next: &str) -> &str {
    let is_own = next.starts_with('/')
        && !next.starts_with("//")
        && !next.contains('\\')
        && next.is_ascii()
        && !next.contains(|c: char| c.is_control() || c.is_whitespace());
    if is_own { next } else { "/" }
}

pub(in super::super) async fn sign_in(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response, Fault> {
    let given: Given = form(request).await?;
    if !service.options().tokens.admit(given.token.trim()) {
        service.metrics.refused("unauthorized");
        return shown(&service, &given.next, true);
    }
    let session = service.sessions.begin();
    let mut response = go_to(within(&given.next));
    let cookie = format!(
        "{COOKIE}={session}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict",
        LASTS.as_secs()
    );
    let cookie = HeaderValue::from_str(&cookie).map_err(|_| Fault::internal("no cookie"))?;
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}

pub(in super::super) async fn sign_out(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
) -> Response {
    service.sessions.end(&headers);
    let mut response = go_to("/login").into_response();
    let gone = HeaderValue::from_static("venire=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
    response.headers_mut().insert(SET_COOKIE, gone);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signing_in_leads_to_no_other_site() {
        for own in ["/", "/runs/a?b=c", "/label"] {
            assert_eq!(within(own), own);
        }
        for other in
            ["", "//evil.example", "/\\evil.example", "http://evil", "javascript:x", "/a\r\nb"]
        {
            assert_eq!(within(other), "/", "{other}");
        }
    }
}
