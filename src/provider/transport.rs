//! Bytes to a server and back. Retries, meanings and limits are not known here; the trait is
//! the seam at which tests put a scripted server under paused time.

use std::fmt;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::Url;
use reqwest::header::HeaderMap;

/// The largest reply that is read.
const LARGEST_BODY: usize = 16 * 1024 * 1024;
/// A body may pause this long between two pieces. The time to the first byte has no limit but
/// the deadline: a model may think for minutes.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Outgoing<'a> {
    pub(super) url: &'a Url,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nobody listens there.
    Refused,
    /// The connection could not be made in time.
    ConnectTimeout,
    /// The host's name is not known.
    Name,
    /// The server's certificate, or a server that does not speak TLS. A handshake that merely
    /// breaks off is [`Trouble::Connect`].
    Tls,
    /// This process may open no more files or connections.
    Files,
    /// Another failure to connect.
    Connect,
    /// The connection broke, or the body stalled, after it was made.
    Broken,
    /// The body is larger than what is read.
    TooLarge,
    /// The HTTP client could not be built.
    Setup,
}

/// Why there is no response.
#[derive(Clone, Debug)]
pub(super) struct TransportFault {
    pub(super) trouble: Trouble,
    /// The cause in the library's words, the URL not among them.
    pub(super) cause: String,
}

pub(super) trait Transport: fmt::Debug + Send + Sync {
    fn send<'a>(
        &'a self,
        outgoing: Outgoing<'a>,
    ) -> BoxFuture<'a, Result<Incoming, TransportFault>>;
}

/// The real one. Connections are opened at first use and kept.
#[derive(Debug, Default)]
pub(super) struct Http {
    /// For loopback addresses: a proxy could not reach them.
    direct: OnceLock<Result<reqwest::Client, String>>,
    /// For everything else: the system's proxies.
    proxied: OnceLock<Result<reqwest::Client, String>>,
}

/// Whether an address is this machine's own.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

impl Http {
    fn client(&self, url: &Url) -> Result<&reqwest::Client, TransportFault> {
        let loopback = is_loopback(url);
        let cell = if loopback { &self.direct } else { &self.proxied };
        let built = cell.get_or_init(|| {
            let builder = reqwest::Client::builder()
                .user_agent(concat!("venire/", env!("CARGO_PKG_VERSION")))
                // A redirect could carry the key to another host.
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(CONNECT_TIMEOUT)
                .pool_idle_timeout(Duration::from_secs(60))
                .tcp_keepalive(Duration::from_secs(30));
            let builder = if loopback { builder.no_proxy() } else { builder };
            builder.build().map_err(|error| chain(&error))
        });
        built
            .as_ref()
            .map_err(|cause| TransportFault { trouble: Trouble::Setup, cause: cause.clone() })
    }

    async fn exchange(&self, outgoing: Outgoing<'_>) -> Result<Incoming, TransportFault> {
        let mut response = self
            .client(outgoing.url)?
            .post(outgoing.url.clone())
            .headers(outgoing.headers.clone())
            .body(outgoing.body)
            .send()
            .await
            .map_err(fault)?;
        let expected = response.content_length().unwrap_or(0);
        if expected > LARGEST_BODY as u64 {
            return Err(too_large());
        }
        let mut body = Vec::with_capacity(expected as usize);
        loop {
            match tokio::time::timeout(LONGEST_PAUSE, response.chunk()).await {
                Ok(Ok(Some(piece))) if body.len() + piece.len() > LARGEST_BODY => {
                    return Err(too_large());
                }
                Ok(Ok(Some(piece))) => body.extend_from_slice(&piece),
                Ok(Ok(None)) => break,
                Ok(Err(error)) => return Err(fault(error)),
                Err(_) => {
                    return Err(TransportFault {
                        trouble: Trouble::Broken,
                        cause: format!("the body stalled for {} s", LONGEST_PAUSE.as_secs()),
                    });
                }
            }
        }
        let status = response.status().as_u16();
        Ok(Incoming { status, headers: std::mem::take(response.headers_mut()), body })
    }
}

impl Transport for Http {
    fn send<'a>(
        &'a self,
        outgoing: Outgoing<'a>,
    ) -> BoxFuture<'a, Result<Incoming, TransportFault>> {
        Box::pin(self.exchange(outgoing))
    }
}

fn too_large() -> TransportFault {
    let cause = format!("the body is larger than {} MiB", LARGEST_BODY / 1024 / 1024);
    TransportFault { trouble: Trouble::TooLarge, cause }
}

fn fault(error: reqwest::Error) -> TransportFault {
    let error = error.without_url();
    let cause = chain(&error);
    let trouble = trouble(&cause, error.is_connect(), error.is_timeout());
    TransportFault { trouble, cause }
}

/// What a cause in the library's words means.
fn trouble(cause: &str, connecting: bool, timed_out: bool) -> Trouble {
    let lower = cause.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if is_out_of_files(&lower) {
        Trouble::Files
    } else if !connecting {
        Trouble::Broken
    } else if has(&["certificate", "invalidcontenttype", "corrupt message", "protocol version"]) {
        Trouble::Tls
    } else if has(&["dns error", "lookup address", "resolve"]) {
        Trouble::Name
    } else if timed_out || has(&["timed out"]) {
        Trouble::ConnectTimeout
    } else if has(&["refused"]) {
        Trouble::Refused
    } else {
        Trouble::Connect
    }
}

/// What to do when there are no more files to open.
pub(crate) const OUT_OF_FILES_HINT: &str = "raise `ulimit -n` or lower `-j`";

/// Whether a cause says that this process, or the system, has too many files open.
pub(crate) fn is_out_of_files(cause: &str) -> bool {
    let cause = cause.to_lowercase();
    // As Linux, macOS and Windows number and word it.
    ["too many open files", "os error 24)", "os error 23)", "os error 10024)"]
        .iter()
        .any(|words| cause.contains(words))
}

/// The innermost cause, which is the one that says something.
fn chain(error: &dyn std::error::Error) -> String {
    let mut parts = vec![error.to_string()];
    let mut source = error.source();
    while let Some(inner) = source {
        parts.push(inner.to_string());
        source = inner.source();
    }
    parts.dedup();
    // The outer ones say "error sending request" and the like.
    parts.split_off(parts.len().saturating_sub(2)).join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_open_files_are_no_fault_of_the_server() {
        for (cause, connecting, expected) in [
            ("tcp open error: Too many open files (os error 24)", true, Trouble::Files),
            ("dns error: Too many open files (os error 24)", true, Trouble::Files),
            ("tcp connect error: Connection refused (os error 111)", true, Trouble::Refused),
            ("connection reset by peer (os error 104)", false, Trouble::Broken),
            ("dns error: failed to lookup address information", true, Trouble::Name),
        ] {
            assert_eq!(trouble(cause, connecting, false), expected, "{cause}");
        }
    }

    #[test]
    fn loopback_is_told_from_hosts_that_look_like_it() {
        for (url, expected) in [
            ("http://localhost:1/v1", true),
            ("http://127.0.0.1/v1", true),
            ("http://127.8.0.1:80/", true),
            ("http://[::1]:8080/v1", true),
            ("http://localhost.example.com/", false),
            ("http://10.0.0.1/", false),
            ("https://api.openai.com/v1", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
