//! Who is let in: by host, by origin, by token.
//!
//! A page on another site can make a browser send requests here. Its own name in `Host` (DNS
//! rebinding) or in `Origin` gives it away, and so it is refused even where no token is asked
//! for. Every answer carries headers that keep browsers from guessing and framing.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    HOST, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::fault::Fault;
use super::pages;
use super::service::Service;
use crate::serve::access::bearer;

/// What browsers say about who made a request.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Paths that need no token: they say that the server lives, or take one.
const OPEN: [&str; 3] = ["/health", "/ready", "/login"];

/// Lets a request through, or answers why not.
pub(super) async fn guard(
    State(service): State<Arc<Service>>,
    request: Request,
    next: Next,
) -> Response {
    let wants_page =
        is_page(request.uri().path()) && pages::wants_page(request.method(), request.headers());
    let mut response = match admitted(&service, &request) {
        Ok(()) => next.run(request).await,
        Err(fault) if wants_page && fault.status == StatusCode::UNAUTHORIZED => {
            pages::sign_in(request.uri())
        }
        Err(fault) => {
            service.metrics.refused(fault.kind);
            fault.into_response()
        }
    };
    if wants_page && let Some(fault) = response.extensions_mut().remove::<Fault>() {
        response = pages::of_fault(&service, &fault);
    }
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// Whether people look at what is at a path, and programs do not.
fn is_page(path: &str) -> bool {
    !path.starts_with("/v1/") && path != "/openapi.json" && path != "/metrics"
}

fn admitted(service: &Service, request: &Request) -> Result<(), Fault> {
    let options = service.options();
    let (headers, uri) = (request.headers(), request.uri());
    let host = host(headers, uri)?;
    if !is_known(&host, &options.hosts) {
        return Err(Fault::new(
            StatusCode::FORBIDDEN,
            "host",
            "the header `host` names another server: this one is reached by its address, as `localhost`, or by a name given with `--allow-host`",
        ));
    }
    if let Some(origin) = headers.get(ORIGIN)
        && !is_own(origin, &host, &options.hosts)
    {
        return Err(Fault::new(
            StatusCode::FORBIDDEN,
            "origin",
            "the request was made by a page of another site",
        ));
    }
    // Some browsers leave the origin out; they then say this.
    let site = headers.get(FETCH_SITE).and_then(|site| site.to_str().ok());
    if *request.method() != Method::GET && matches!(site, Some("cross-site" | "same-site")) {
        return Err(Fault::new(
            StatusCode::FORBIDDEN,
            "origin",
            "the request was made by a page of another site",
        ));
    }
    if options.tokens.is_empty() || OPEN.contains(&uri.path()) || service.sessions.admits(headers) {
        return Ok(());
    }
    match bearer(headers) {
        Some(token) if options.tokens.admit(token) => Ok(()),
        Some(_) => Err(unauthorized("the token is not one of this server's")),
        None => Err(unauthorized("expected the header `authorization: Bearer TOKEN`")),
    }
}

fn unauthorized(message: &str) -> Fault {
    Fault::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
}

/// The host and port that a request names: exactly one.
fn host(headers: &HeaderMap, uri: &Uri) -> Result<Authority, Fault> {
    let wrong = || {
        Fault::new(
            StatusCode::BAD_REQUEST,
            "host",
            "expected one header `host` with a host and port",
        )
    };
    let mut named = headers.get_all(HOST).iter();
    match (named.next(), named.next()) {
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| wrong())?;
            text.parse().map_err(|_| wrong())
        }
        (None, _) => uri.authority().cloned().ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

/// Whether a host is an address, `localhost`, or one of the names given: no name that
/// somebody else's name server could point here.
fn is_known(host: &Authority, names: &[String]) -> bool {
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    let name = name.strip_suffix('.').unwrap_or(name);
    name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Whether an origin is this server itself, or a page under one of its names.
fn is_own(origin: &HeaderValue, host: &Authority, names: &[String]) -> bool {
    let Some(uri) = origin.to_str().ok().and_then(|text| text.parse::<Uri>().ok()) else {
        return false;
    };
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return false };
    let same = authority.as_str().eq_ignore_ascii_case(host.as_str());
    let named = names.iter().any(|own| authority.host().eq_ignore_ascii_case(own));
    matches!(scheme, "http" | "https") && (same || named)
}

#[cfg(test)]
mod tests {
    use axum::http::header::AUTHORIZATION;

    use super::*;

    #[test]
    fn a_name_that_could_point_anywhere_is_no_host_of_ours() {
        let names = vec!["venire.example.org".to_owned()];
        let known = |text: &str| is_known(&text.parse().unwrap(), &names);
        for own in [
            "127.0.0.1:8700",
            "[::1]:80",
            "localhost:1",
            "LOCALHOST",
            "10.1.2.3",
            "Venire.Example.org:443",
            "localhost.",
        ] {
            assert!(known(own), "{own}");
        }
        for other in
            ["evil.example:8700", "localhost.evil.example", "127.0.0.1.nip.io", "xlocalhost"]
        {
            assert!(!known(other), "{other}");
        }
    }

    #[test]
    fn an_origin_is_ours_with_host_and_port_alike() {
        let names = vec!["venire.example.org".to_owned()];
        let host = "127.0.0.1:8700".parse().unwrap();
        let own = |text: &str| is_own(&HeaderValue::from_str(text).unwrap(), &host, &names);
        assert!(own("http://127.0.0.1:8700") && own("https://venire.example.org"));
        for other in [
            "null",
            "",
            "http://127.0.0.1:8701",
            "http://evil.example",
            "file://",
            "ftp://127.0.0.1:8700",
        ] {
            assert!(!own(other), "{other}");
        }
    }

    #[test]
    fn a_bearer_token_is_read_whatever_the_case_of_its_scheme() {
        let of = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_static(text));
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(of("Bearer abc"), Some("abc".into()));
        assert_eq!(of("bearer  abc "), Some("abc".into()));
        assert_eq!(of("Basic abc"), None);
        assert_eq!(of("abc"), None);
    }
}
