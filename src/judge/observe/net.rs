//! Expectations of a URL or a TCP port.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Method, Url};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout_at};

use super::Seen;
use super::text::TextRules;
use crate::case::Case;
use crate::judge::http::{root_cause, shown};

/// Bytes of a body that are looked at.
const BODY_LIMIT: usize = 8 * 1024 * 1024;

/// One look takes no longer, so that a silent peer does not eat the time of every later look.
const LOOK: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct UrlTarget {
    pub(super) url: String,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<String>,
    pub(super) status: Option<u16>,
    pub(super) max_latency: Option<Duration>,
    pub(super) rules: TextRules,
}

impl UrlTarget {
    pub(super) async fn look(
        &self,
        client: &OnceLock<reqwest::Client>,
        case: &Case,
        deadline: Instant,
    ) -> Seen {
        let url = match Url::parse(&self.url.replace("{id}", &encode(&case.id))) {
            Ok(url) => url,
            Err(error) => return Seen::Unable(format!("not a URL ({error})")),
        };
        let start = Instant::now();
        // A longer latency is allowed for where the configuration allows it.
        let patience = self.max_latency.map_or(LOOK, |latency| latency.max(LOOK));
        let stop = start.checked_add(patience).map_or(deadline, |stop| stop.min(deadline));
        match timeout_at(stop, self.ask(client, url)).await {
            Err(_) => Seen::Unmet(format!("gave no answer in {:?}", start.elapsed())),
            Ok(Err(seen)) => seen,
            Ok(Ok(())) => match self.max_latency {
                Some(limit) if start.elapsed() > limit => {
                    Seen::Unmet(format!("took {:?}, expected at most {limit:?}", start.elapsed()))
                }
                _ => Seen::Met,
            },
        }
    }

    async fn ask(&self, client: &OnceLock<reqwest::Client>, url: Url) -> Result<(), Seen> {
        let unable = |why: String| Err(Seen::Unable(why));
        // Whether the name is unknown or our resolver is out of order can't be told apart,
        // so it says nothing about the environment.
        if let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default())
            && url.domain().is_some()
            && let Err(error) = lookup_host((host, port)).await
        {
            return unable(format!("`{host}` can't be resolved ({error})"));
        }
        let client = match client.get() {
            Some(client) => client,
            None => match new_client() {
                Ok(new) => client.get_or_init(|| new),
                Err(error) => return unable(error.to_string()),
            },
        };
        let mut request = client.request(self.method.clone(), url.clone());
        request = request.headers(self.headers.clone());
        if let Some(body) = &self.body {
            request = request.body(body.clone());
        }
        let broken = |error: &reqwest::Error| {
            let how = if error.is_connect() { "can't be connected to" } else { "broke off" };
            Seen::Unmet(format!("{how} ({}): `{}`", root_cause(error), shown(&url)))
        };
        let mut response = request.send().await.map_err(|error| {
            if error.is_builder() { Seen::Unable(root_cause(&error)) } else { broken(&error) }
        })?;
        let status = response.status();
        let expected = match self.status {
            Some(code) => status.as_u16() == code,
            None => status.is_success(),
        };
        if !expected {
            let wanted = self.status.map_or("a success".to_owned(), |code| code.to_string());
            return Err(Seen::Unmet(format!("answered {}, expected {wanted}", status.as_u16())));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| broken(&error))? {
            if bytes.len() + chunk.len() > BODY_LIMIT {
                return unable(format!("its body is longer than {BODY_LIMIT} bytes"));
            }
            bytes.extend_from_slice(&chunk);
        }
        match self.rules.look(&bytes) {
            Seen::Met => Ok(()),
            other => Err(other),
        }
    }
}

/// A client that looks at the target itself: no proxy, no redirects.
fn new_client() -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("venire/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Everything but the unreserved characters of RFC 3986, percent-encoded.
fn encode(text: &str) -> String {
    use std::fmt::Write;
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[derive(Debug)]
pub(super) struct PortTarget {
    host: String,
    port: u16,
    open: bool,
}

impl PortTarget {
    pub(super) fn parse(text: &str, open: bool) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a port: expected such as `127.0.0.1:5432`");
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port: u16 = port.parse().map_err(|_| wrong())?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || port == 0 {
            return Err(wrong());
        }
        Ok(Self { host: host.to_owned(), port, open })
    }

    pub(super) async fn look(&self, deadline: Instant) -> Seen {
        use std::io::ErrorKind;
        let target = (self.host.as_str(), self.port);
        let stop = deadline.min(Instant::now() + LOOK);
        let addresses: Vec<_> = match timeout_at(stop, lookup_host(target)).await {
            Ok(Ok(addresses)) => addresses.collect(),
            Ok(Err(error)) => {
                return Seen::Unable(format!("`{}` can't be resolved ({error})", self.host));
            }
            Err(_) => return Seen::Unable(format!("`{}` can't be resolved in time", self.host)),
        };
        let open = match timeout_at(stop, TcpStream::connect(&addresses[..])).await {
            Ok(Ok(_)) => true,
            // A filtered port is silent: for whoever looks it is closed.
            Err(_) => false,
            Ok(Err(error)) => match error.kind() {
                ErrorKind::ConnectionRefused
                | ErrorKind::ConnectionReset
                | ErrorKind::TimedOut
                | ErrorKind::HostUnreachable => false,
                _ => return Seen::Unable(error.to_string()),
            },
        };
        match (open, self.open) {
            (true, false) => Seen::Unmet("is open, expected closed".to_owned()),
            (false, true) => Seen::Unmet("is closed, expected open".to_owned()),
            _ => Seen::Met,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_can_not_change_the_address() {
        assert_eq!(encode("a/../b?c=d#e 好"), "a%2F..%2Fb%3Fc%3Dd%23e%20%E5%A5%BD");
    }

    #[test]
    fn a_port_is_a_host_and_a_number() {
        assert!(PortTarget::parse("localhost:80", true).is_ok());
        assert_eq!(PortTarget::parse("[::1]:80", true).unwrap().host, "::1");
        for wrong in ["", "80", ":80", "host:", "host:0", "host:70000", "host:http"] {
            assert!(PortTarget::parse(wrong, true).is_err(), "{wrong}");
        }
    }
}
