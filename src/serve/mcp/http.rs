//! Streamable HTTP: where the server listens, and who may ask.
//!
//! Without a token only this machine can reach it: any other address is refused. Requests
//! under a foreign `Host` or from a foreign `Origin`, as a web page's are that had its name
//! turned to this machine, are answered with 403.

use std::net::SocketAddr;
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
use crate::serve::access::{TokenError, Tokens, bearer, is_host_name, is_loopback};

/// Who may ask.
#[derive(Clone, Debug, Default)]
pub struct Access {
    hosts: Vec<String>,
    tokens: Tokens,
}

/// Why the server can't be set up so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// A token that can't be used.
    #[error(transparent)]
    Token(#[from] TokenError),
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
    /// For this machine, and for requests under the names `hosts` beside its own; with the
    /// token of `VENIRE_TOKEN`, for who has it.
    ///
    /// # Errors
    /// When a name is none, or the token could be guessed.
    pub fn new(hosts: Vec<String>, token: Option<&str>) -> Result<Self, HttpError> {
        if let Some(name) = hosts.iter().find(|name| !is_host_name(name)) {
            return Err(HttpError::Host { name: name.clone() });
        }
        let mut tokens = Tokens::default();
        if let Some(token) = token {
            tokens.add(token, "`VENIRE_TOKEN`")?;
        }
        Ok(Self { hosts, tokens })
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
        if access.tokens.is_empty() && !is_loopback(address.ip()) {
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
    let tokens = address.access.tokens;
    if !tokens.is_empty() {
        router = router.layer(middleware::from_fn_with_state(tokens, admit));
    }
    axum::serve(address.listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
        .map_err(HttpError::Accept)
}

/// Lets a request through that has the token.
async fn admit(State(tokens): State<Tokens>, request: Request<Body>, next: Next) -> Response {
    if bearer(request.headers()).is_some_and(|given| tokens.admit(given)) {
        return next.run(request).await;
    }
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    let why = "this server asks for a token: send `Authorization: Bearer TOKEN`\n";
    (StatusCode::UNAUTHORIZED, challenge, why).into_response()
}
