//! Streamable HTTP: where the server listens, and who may ask.
//!
//! Without a token only this machine can reach it: any other address is refused. Requests
//! under a foreign `Host` or from a foreign `Origin`, as a web page's are that had its name
//! turned to this machine, are answered with 403.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{Tools, wire};

/// The shortest token: with fewer characters it could be guessed.
const LEAST: usize = 16;

/// Who may ask.
#[derive(Clone, Default)]
pub struct Access {
    hosts: Vec<String>,
    token: Option<blake3::Hash>,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access")
            .field("hosts", &self.hosts)
            .field("token", &self.token.is_some())
            .finish()
    }
}

/// Why the server can't be set up so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// A token that could be guessed.
    #[error(
        "the token has {length} characters: expected at least {LEAST}, without blanks, such as `openssl rand -hex 32` prints"
    )]
    WeakToken {
        /// Its length.
        length: usize,
    },
    /// No name of a host.
    #[error("`{name}` is no name of a host: expected such as `venire.example.org`, without a port")]
    Host {
        /// What was given.
        name: String,
    },
    /// Others could reach it, and anybody may ask.
    #[error(
        "`{address}` can be reached from other machines and there is no token: set `VENIRE_TOKEN`, or listen on 127.0.0.1"
    )]
    NoToken {
        /// The address.
        address: SocketAddr,
    },
    /// The address can't be had.
    #[error("failed to listen on `{address}`")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Accepting connections failed for good.
    #[error("failed to accept connections")]
    Accept(#[source] std::io::Error),
}

impl Access {
    /// For this machine, and for requests under the names `hosts` beside its own; with a
    /// token, for who has it.
    ///
    /// # Errors
    /// When a name is none, or the token could be guessed.
    pub fn new(hosts: Vec<String>, token: Option<&str>) -> Result<Self, HttpError> {
        let is_name = |name: &String| {
            !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
        };
        if let Some(name) = hosts.iter().find(|name| !is_name(name)) {
            return Err(HttpError::Host { name: name.clone() });
        }
        let hash = |token: &str| {
            let length = token.chars().count();
            if length < LEAST || token.chars().any(|c| c.is_whitespace() || c.is_control()) {
                return Err(HttpError::WeakToken { length });
            }
            Ok(blake3::hash(token.as_bytes()))
        };
        Ok(Self { hosts, token: token.map(hash).transpose()? })
    }
}

/// An address that is listened on.
#[derive(Debug)]
pub struct Address {
    listener: TcpListener,
    local: SocketAddr,
    access: Access,
}

impl Address {
    /// Listens; port 0 takes a free one.
    ///
    /// # Errors
    /// When others could reach the address and there is no token, or it can't be had.
    pub async fn listen(address: SocketAddr, access: Access) -> Result<Self, HttpError> {
        if access.token.is_none() && !is_loopback(address.ip()) {
            return Err(HttpError::NoToken { address });
        }
        let failed = |source| HttpError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, local, access })
    }

    /// Where clients find it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.local)
    }

    fn hosts(&self) -> Vec<String> {
        let own = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let bound =
            Some(self.local.ip()).filter(|ip| !ip.is_unspecified()).map(|ip| ip.to_string());
        own.into_iter().chain(bound).chain(self.access.hosts.iter().cloned()).collect()
    }
}

/// Serves the tools on an address until `stop` fires; calls in flight are then cancelled.
///
/// # Errors
/// When no connection can be accepted any more.
pub async fn serve_http(
    tools: Arc<Tools>,
    address: Address,
    stop: CancellationToken,
) -> Result<(), HttpError> {
    let mut router: Router = wire::router(tools, &address.hosts(), stop.child_token());
    if let Some(token) = address.access.token {
        router = router.layer(middleware::from_fn_with_state(token, admit));
    }
    axum::serve(address.listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
        .map_err(HttpError::Accept)
}

/// Lets a request through that has the token. Hashes are compared, in constant time.
async fn admit(State(token): State<blake3::Hash>, request: Request<Body>, next: Next) -> Response {
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, given) = value.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| blake3::hash(given.trim().as_bytes()))
    });
    if given == Some(token) {
        return next.run(request).await;
    }
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    let why = "this server asks for a token: send `Authorization: Bearer TOKEN`\n";
    (StatusCode::UNAUTHORIZED, challenge, why).into_response()
}

/// Whether only this machine reaches an address.
fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_loopback(),
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(v6.is_loopback(), |v4| v4.is_loopback()),
    }
}
