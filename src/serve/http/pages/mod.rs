//! Web pages: runs, rulings with their votes, loops as they go on, profiles, and the queues in
//! which people review and label.
//!
//! They share the look and the escaping of reports, ask for nothing from elsewhere, and work
//! with the keyboard alone; without script everything but the keys works too.

mod home;
mod label;
mod login;
mod loops;
mod profiles;
mod review;
mod runs;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, FromRequest as _, Request};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, LOCATION,
};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use minijinja::context;
use serde::de::DeserializeOwned;

use super::fault::Fault;
use super::service::Service;
use crate::report::page::{Link, Shell, environment};
use crate::report::{ReportError, words};

const STYLE: &str = include_str!("served.css");
const SCRIPT: &str = include_str!("served.js");

/// The time for a form to arrive.
const TYPED: Duration = Duration::from_secs(30);

/// The pages. Beside a labelling queue there are no others: whoever labels is not to see
/// what the judges said.
pub(super) fn router(service: &Service) -> Router<Arc<Service>> {
    let router = Router::new().route("/login", get(login::page).post(login::sign_in));
    let router = router.route("/logout", post(login::sign_out));
    if service.labelling().is_some() {
        return router
            .route("/", get(async || go_to("/label")))
            .route("/label", get(label::page).post(label::label))
            .route("/label/skip", post(label::skip));
    }
    router
        .route("/", get(home::page))
        .route("/runs/{run}", get(runs::run))
        .route("/runs/{run}/cases/{case}", get(runs::case))
        .route("/loops", get(loops::list))
        .route("/loops/{run}", get(loops::one))
        .route("/profiles", get(profiles::list))
        .route("/profiles/{name}", get(profiles::one))
        .route("/review", get(review::first))
        .route("/review/{run}", get(review::one).post(review::answer))
}

/// Which page of the navigation a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Runs,
    Loops,
    Profiles,
    Review,
    Label,
    /// Before somebody is let in.
    Outside,
}

/// The links of a page.
fn links(service: &Service, place: Place) -> Vec<Link<'static>> {
    if place == Place::Outside || service.labelling().is_some() {
        return Vec::new();
    }
    let all = [
        ("/", "runs", Place::Runs),
        ("/loops", "loops", Place::Loops),
        ("/profiles", "profiles", Place::Profiles),
        ("/review", "review", Place::Review),
    ];
    all.into_iter().map(|(path, title, own)| Link { path, title, current: own == place }).collect()
}

fn shell<'a>(links: &'a [Link<'a>]) -> Shell<'a> {
    Shell { links, style: STYLE, script: SCRIPT, served: true }
}

/// A whole page from its content.
fn page(
    service: &Service,
    place: Place,
    title: &str,
    facts: &[String],
    body: &str,
) -> Result<Response, Fault> {
    let links = links(service, place);
    let shell = shell(&links);
    let title = words::plain(title);
    let mut text = shell.head(&title, facts)?;
    text.push_str(body);
    text.push_str(&shell.foot()?);
    Ok(html(StatusCode::OK, &shell, text))
}

/// Text as a page that may do what its shell says.
fn html(status: StatusCode, shell: &Shell<'_>, text: impl Into<Bytes>) -> Response {
    let mut response = (status, text.into()).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(policy) = HeaderValue::from_str(&shell.policy()) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// A template filled in; every value is escaped.
fn filled(template: &str, values: minijinja::Value) -> Result<String, Fault> {
    Ok(environment().render_str(template, values).map_err(ReportError::from)?)
}

impl From<ReportError> for Fault {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Store(error) => error.into(),
            error => Self::internal(format!("a page can't be written: {error}")),
        }
    }
}

/// An error as a page, for whoever asked for one.
pub(super) fn of_fault(service: &Service, fault: &Fault) -> Response {
    let message = words::plain(&fault.message);
    let written = filled(include_str!("message.html"), context! { message }).and_then(|body| {
        let title = fault.status.canonical_reason().unwrap_or("Error");
        page(service, Place::Runs, title, &[], &body)
    });
    match written {
        Ok(mut response) => {
            *response.status_mut() = fault.status;
            response
        }
        Err(fault) => fault.into_response(),
    }
}

/// The way to the page where somebody signs in, and from there to the one that was asked for.
pub(super) fn sign_in(asked: &Uri) -> Response {
    let path = asked.path_and_query().map_or("/", |own| own.as_str());
    go_to(&format!("/login?next={}", in_path(path)))
}

/// Whether a request is one of a browser that wants a page.
pub(super) fn wants_page(method: &Method, headers: &HeaderMap) -> bool {
    super::accept::names(headers, "text/html")
        && matches!(*method, Method::GET | Method::HEAD | Method::POST)
}

/// The way to another page after something was done.
fn go_to(path: &str) -> Response {
    match HeaderValue::from_str(path) {
        Ok(path) => (StatusCode::SEE_OTHER, [(LOCATION, path)]).into_response(),
        Err(_) => Fault::not_found("there is no page of this name").into_response(),
    }
}

/// The fields of a form.
async fn form<T: DeserializeOwned>(request: Request) -> Result<T, Fault> {
    let form = tokio::time::timeout(TYPED, Form::<T>::from_request(request, &())).await;
    match form.map_err(|_| super::body::too_slow(TYPED))? {
        Ok(Form(fields)) => Ok(fields),
        Err(FormRejection::InvalidFormContentType(_)) => Err(Fault::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "media_type",
            "expected the fields of a form",
        )),
        Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            Err(Fault::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "the form is too large"))
        }
        Err(error) => Err(Fault::unusable(error.body_text())),
    }
}

/// A part of a path, with everything escaped that would mean something there.
fn in_path(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

/// A time in UTC, to the second.
fn moment(time: &str) -> String {
    let whole = time.split('.').next().unwrap_or_default().trim_end_matches('Z');
    words::plain(&format!("{} UTC", whole.replace('T', " ")))
}

/// Work on files, away from the threads that answer requests.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let task = tokio::task::spawn_blocking(work);
    task.await.map_err(|error| Fault::internal(format!("a page's work ended: {error}")))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_changes_the_path_that_it_stands_in() {
        assert_eq!(in_path("a/../b?c#d 二\"<"), "a%2F..%2Fb%3Fc%23d%20%E4%BA%8C%22%3C");
        assert_eq!(in_path("20260102-030405-1a2b"), "20260102-030405-1a2b");
    }
}
