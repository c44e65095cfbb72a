//! The `http` judge: posts each case as JSON to a service and reads its answer, in the form
//! that scripts answer in.
//!
//! It waits and asks again like a polite client where the service says that it is busy or
//! can't be reached, and never otherwise. Redirects are not followed: they could carry keys to another host.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use futures::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Method, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use super::process::{Period, plain};
use super::reported::Reported;
use super::script::answer::{self, AnswerForm};
use super::{BoxedJudge, BuildContext, BuildError, Judge};
use crate::case::Case;
use crate::config::secret::names_credential;
use crate::provider::{
    CallContext, OUT_OF_FILES_HINT, ProviderError, is_loopback, is_out_of_files,
};
use crate::score::Scale;
use crate::verdict::{Fingerprint, Status, Verdict};

/// Bytes of an answer that are read at most.
const BODY_LIMIT: usize = 1024 * 1024;

/// Configuration of an `http` judge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpSpec {
    /// Where to post the case.
    pub url: String,
    /// `POST` or `PUT`.
    #[serde(default)]
    pub method: PostMethod,
    /// Extra request headers. Keys belong in `api_key_env`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The environment variable whose value is sent as bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// The scale of `score` in the answers, criteria included; `unit` when absent.
    #[serde(default = "unit")]
    pub scale: Scale,
    /// Whether every answer must carry the case's `id`.
    #[serde(default)]
    pub echo_id: bool,
    /// How long one request may take; only the judge's deadline holds when absent.
    /// In a panel file the seat's `timeout` stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub timeout: Option<Period>,
    /// Which version of the service this is. Part of the fingerprint: raise it when the
    /// service changes in a way that the address does not show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The method by which a case is sent.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum PostMethod {
    /// POST.
    #[default]
    Post,
    /// PUT.
    Put,
}

fn unit() -> Scale {
    Scale::UNIT
}

struct HttpJudge {
    url: Url,
    method: Method,
    headers: HeaderMap,
    key: Option<SecretString>,
    form: AnswerForm,
    timeout: Option<Duration>,
    client: OnceLock<reqwest::Client>,
    /// Whether anything ever answered there.
    reached: AtomicBool,
    reported: Reported,
    fingerprint: Fingerprint,
}

/// How long a service is tried that never answered: one that is starting up is there by then,
/// and one that is not there must not take a run as long as its deadlines.
const UNREACHED: Duration = Duration::from_secs(5);

impl std::fmt::Debug for HttpJudge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpJudge").field("url", &shown(&self.url)).finish_non_exhaustive()
    }
}

/// The URL without what may be a secret in it.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// A URL that requests can be sent to, without a user or password in it; `instead` says where
/// those belong.
pub(super) fn parse_url(text: &str, field: &str, instead: &str) -> Result<Url, BuildError> {
    let wrong = |why: &str| {
        BuildError::invalid(field, format!("{why}: expected such as `http://localhost:8000/judge`"))
    };
    // What stands there may hold a credential, so it is not repeated.
    let url = Url::parse(text).map_err(|error| wrong(&format!("not a URL ({error})")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong(&format!("the scheme `{}` is not http or https", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let reason = format!("holds a user or password: {instead}");
        return Err(BuildError::invalid(field, reason));
    }
    Ok(url)
}

/// Header names and values of a configuration.
pub(super) fn parse_headers(
    headers: &BTreeMap<String, String>,
    field: &str,
) -> Result<HeaderMap, BuildError> {
    let mut parsed = HeaderMap::new();
    for (name, value) in headers {
        let at = format!("{field}.{name}");
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| BuildError::invalid(&at, "is not the name of a header"))?;
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| BuildError::invalid(&at, "holds characters that no header may hold"))?;
        value.set_sensitive(true);
        parsed.insert(key, value);
    }
    Ok(parsed)
}

/// Headers that say who asks, not what: a new key is not a new judge.
const CREDENTIALS: [&str; 5] =
    ["authorization", "proxy-authorization", "x-api-key", "api-key", "cookie"];

impl HttpSpec {
    /// Checks the configuration and reads the key. Nothing is sent.
    ///
    /// # Errors
    /// A URL or header that can't work, a variable that is not set, a timeout of 0.
    pub fn build(&self, _context: &BuildContext) -> Result<BoxedJudge, BuildError> {
        let instead = "put the key into an environment variable and name that in `api_key_env`";
        let url = parse_url(&self.url, "url", instead)?;
        if let Some((name, _)) = url.query_pairs().find(|(name, _)| names_credential(name)) {
            let reason = format!("holds a credential in `{name}`: {instead}");
            return Err(BuildError::invalid("url", reason));
        }
        let headers = parse_headers(&self.headers, "headers")?;
        let key = self.api_key_env.as_deref().map(|variable| match std::env::var(variable) {
            Ok(key) if !key.trim().is_empty() => {
                if HeaderValue::from_str(&format!("Bearer {}", key.trim())).is_err() {
                    let reason = format!("`{variable}` holds characters that no header may hold");
                    return Err(BuildError::invalid("api_key_env", reason));
                }
                Ok(SecretString::from(key.trim().to_owned()))
            }
            _ => {
                let reason =
                    format!("the environment variable `{variable}` is not set: put the key in it");
                Err(BuildError::invalid("api_key_env", reason))
            }
        });
        if key.is_some() && headers.contains_key("authorization") {
            let reason = "stands beside `api_key_env`: expected one of the two";
            return Err(BuildError::invalid("headers.authorization", reason));
        }
        if self.timeout.is_some_and(|timeout| timeout.get().is_zero()) {
            return Err(BuildError::invalid("timeout", "expected more than 0 seconds"));
        }
        let named: BTreeMap<String, &String> = self
            .headers
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .filter(|(name, _)| !CREDENTIALS.contains(&name.as_str()))
            .collect();
        let identity = json!({
            "url": url.as_str(),
            "method": self.method,
            "headers": named,
            "scale": self.scale,
            "version": self.version,
            "answer": answer::VERSION,
        });
        Ok(std::sync::Arc::new(HttpJudge {
            url,
            method: match self.method {
                PostMethod::Post => Method::POST,
                PostMethod::Put => Method::PUT,
            },
            headers,
            key: key.transpose()?,
            form: AnswerForm { scale: self.scale, echo_id: self.echo_id },
            timeout: self.timeout.map(Period::get),
            client: OnceLock::new(),
            reached: AtomicBool::new(false),
            reported: Reported::default(),
            fingerprint: Fingerprint::of("http", &identity),
        }))
    }
}

/// One request that gave no answer.
#[derive(Debug)]
struct Failure {
    status: Status,
    detail: String,
    /// Whether the service asked for another try, and after what wait.
    again: Option<Option<Duration>>,
}

impl Failure {
    fn new(status: Status, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), again: None }
    }
}

impl Judge for HttpJudge {
    fn kind(&self) -> &'static str {
        "http"
    }

    fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    fn reports_cost(&self) -> bool {
        true
    }

    fn judge<'a>(&'a self, case: &'a Case, context: &'a CallContext) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            let body = match serde_json::to_string(case) {
                Ok(body) => body,
                Err(error) => return Verdict::failed(Status::Internal, error.to_string()),
            };
            let ask = async |context: &CallContext| self.measure(case, &body, context).await;
            self.reported.ask(context, ask).await
        })
    }

    fn ping<'a>(
        &'a self,
        context: &'a CallContext,
    ) -> Option<BoxFuture<'a, Result<String, ProviderError>>> {
        Some(Box::pin(async move {
            // Any answer at all shows that the service is there; a case is not sent, since
            // judging may cost something.
            let request = async {
                let client = self.client().map_err(|f| f.detail)?;
                client
                    .head(self.url.clone())
                    .headers(self.headers.clone())
                    .send()
                    .await
                    .map_err(|error| self.transport(&error).detail)
            };
            let result = tokio::time::timeout_at(context.deadline, request).await;
            let message = match result {
                Ok(Ok(response)) => {
                    return Ok(format!("`{}` answers ({})", shown(&self.url), response.status()));
                }
                Ok(Err(message)) => message,
                Err(_) => format!("`{}` does not answer", shown(&self.url)),
            };
            Err(ProviderError {
                status: Status::ProviderError,
                message,
                http_status: None,
                too_long: false,
                attempts: 1,
                cost_unknown: false,
                hint: Some("start the service, or correct `url`".to_owned()),
            })
        }))
    }
}

impl HttpJudge {
    async fn measure(&self, case: &Case, body: &str, context: &CallContext) -> Verdict {
        let mut attempts = 0;
        let mut verdict = match self.ask(body, context, &mut attempts).await {
            Ok(bytes) => self.form.read(&bytes, case),
            Err(failure) => Verdict::failed(failure.status, failure.detail),
        };
        verdict.attempts = attempts.max(1);
        verdict
    }

    fn client(&self) -> Result<&reqwest::Client, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(10))
            .user_agent(concat!("venire/", env!("CARGO_PKG_VERSION")));
        // A proxy could not reach a service on this machine.
        let builder = if is_loopback(&self.url) { builder.no_proxy() } else { builder };
        let client =
            builder.build().map_err(|error| Failure::new(Status::Internal, error.to_string()))?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Asks until there is an answer, a failure that asking again can't mend, or no time.
    async fn ask(
        &self,
        body: &str,
        context: &CallContext,
        attempts: &mut u32,
    ) -> Result<Vec<u8>, Failure> {
        let mut last: Option<Failure> = None;
        let asked = {
            let attempts = &mut *attempts;
            let last = &mut last;
            let once = || {
                *attempts += 1;
                self.request(body)
            };
            let waits = ExponentialBuilder::default()
                .with_min_delay(Duration::from_millis(250))
                .with_max_delay(Duration::from_secs(20))
                .with_jitter()
                .without_max_times();
            let deadline = context.deadline;
            let unreached = Instant::now() + UNREACHED;
            let work = once
                .retry(waits)
                .when(|failure: &Failure| failure.again.is_some())
                .adjust(|failure, wait| {
                    // Never sooner than one would ask of oneself: `Retry-After: 0` or a date
                    // that has passed must not become a request every millisecond.
                    let wait = wait?.max(failure.again.flatten().unwrap_or_default());
                    let until = if self.reached.load(Ordering::Relaxed) {
                        deadline
                    } else {
                        deadline.min(unreached)
                    };
                    // A pause that ends after the deadline is no use: say so now.
                    (Instant::now().checked_add(wait)? < until).then_some(wait)
                })
                .notify(|failure, _| {
                    *last = Some(Failure::new(failure.status, failure.detail.clone()));
                });
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => {
                    return Err(Failure::new(Status::Cancelled, "stopped while waiting for the service"));
                }
                asked = tokio::time::timeout_at(deadline, work) => asked,
            }
        };
        match (asked, last) {
            (Ok(result), _) => result,
            (Err(_), Some(failure)) => Err(failure),
            (Err(_), None) => {
                let detail = format!("`{}` gave no answer before the deadline", shown(&self.url));
                Err(Failure::new(Status::Timeout, detail))
            }
        }
    }

    async fn request(&self, body: &str) -> Result<Vec<u8>, Failure> {
        let mut request = self
            .client()?
            .request(self.method.clone(), self.url.clone())
            .headers(self.headers.clone())
            .header("content-type", "application/json")
            .header("accept", "application/json")
            .body(body.to_owned());
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose_secret());
        }
        if let Some(timeout) = self.timeout {
            request = request.timeout(timeout);
        }
        let response = request.send().await.map_err(|error| self.transport(&error))?;
        self.reached.store(true, Ordering::Relaxed);
        let status = response.status();
        let retry_after = retry_after(response.headers());
        let location = response.headers().get("location").cloned();
        let bytes = self.body(response).await;
        if status.is_success() {
            return bytes;
        }
        let said =
            bytes.map(|b| plain::head(&String::from_utf8_lossy(&b), 200)).unwrap_or_default();
        let detail = format!("`{}` answered {status}: {said}", shown(&self.url));
        Err(match status {
            StatusCode::TOO_MANY_REQUESTS => {
                Failure { status: Status::RateLimited, detail, again: Some(retry_after) }
            }
            StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                Failure { status: Status::ProviderError, detail, again: Some(retry_after) }
            }
            _ if status.is_redirection() => {
                let to = location.and_then(|l| l.to_str().map(|l| plain::head(l, 200)).ok());
                let to = to.unwrap_or_default();
                let detail = format!(
                    "`{}` redirects to `{to}`: redirects are not followed, set `url` to where the service is",
                    shown(&self.url)
                );
                Failure::new(Status::ProviderError, detail)
            }
            _ => Failure::new(Status::ProviderError, detail),
        })
    }

    async fn body(&self, mut response: reqwest::Response) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.transport(&error))? {
            if bytes.len() + chunk.len() > BODY_LIMIT {
                let detail = format!("the answer is longer than {BODY_LIMIT} bytes");
                return Err(Failure::new(Status::Unparseable, detail));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    fn transport(&self, error: &reqwest::Error) -> Failure {
        let url = shown(&self.url);
        let cause = root_cause(error);
        if is_out_of_files(&cause) {
            let detail = format!(
                "too many open files in this process, so `{url}` was not asked: \
                 {OUT_OF_FILES_HINT}"
            );
            return Failure { again: Some(None), ..Failure::new(Status::ProviderError, detail) };
        }
        if error.is_connect() {
            // Nothing was sent, so asking again costs nothing.
            let detail = format!(
                "failed to connect to `{url}` ({cause}): is the service running? try `curl -i {url}`"
            );
            return Failure { again: Some(None), ..Failure::new(Status::ProviderError, detail) };
        }
        if error.is_timeout() {
            return Failure::new(Status::Timeout, format!("`{url}` took too long to answer"));
        }
        let detail = format!("the exchange with `{url}` broke off ({cause})");
        Failure::new(Status::ProviderError, detail)
    }
}

/// The innermost error, which says what happened without repeating the URL.
pub(super) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// `Retry-After` (RFC 9110, section 10.2.3): seconds or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let wait = date.duration_since(jiff::Timestamp::now());
    Some(Duration::try_from(wait).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &'static str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static(text));
        retry_after(&headers)
    }

    fn judge(url: &str) -> BoxedJudge {
        let spec: HttpSpec = crate::config::from_value(json!({ "url": url })).unwrap();
        spec.build(&BuildContext::new("", crate::provider::Client::default())).unwrap()
    }

    /// Answers each connection with the next of these, and then with a score of 1.
    async fn serve(listener: tokio::net::TcpListener, heads: Vec<&'static str>) -> usize {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut served = 0;
        for head in heads.into_iter().chain(["HTTP/1.1 200 OK\r\n"]) {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut sent = vec![0; 65_536];
            let _ = stream.read(&mut sent).await.unwrap();
            let body = r#"{"score": 1}"#;
            let length = body.len();
            let answer =
                format!("{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).await.unwrap();
            served += 1;
        }
        served
    }

    #[tokio::test]
    async fn a_service_that_comes_up_a_moment_later_is_asked_again() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let judge = judge(&format!("http://{address}/judge"));
        let late = async {
            tokio::time::sleep(Duration::from_millis(400)).await;
            serve(tokio::net::TcpListener::bind(address).await.unwrap(), Vec::new()).await
        };
        let context = CallContext::standalone(Duration::from_secs(30));
        let case = Case::new("a", "b");
        let (verdict, _) = tokio::join!(judge.judge(&case, &context), late);
        assert_eq!(verdict.status, Status::Ok, "{:?}", verdict.detail);
        assert!(verdict.attempts > 1);
    }

    #[tokio::test]
    async fn a_service_that_was_never_there_ends_soon_and_says_so() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let judge = judge(&format!("http://{address}/judge"));
        let started = std::time::Instant::now();
        let context = CallContext::standalone(Duration::from_secs(120));
        let verdict = judge.judge(&Case::new("a", "b"), &context).await;
        assert_eq!(verdict.status, Status::ProviderError);
        assert!(verdict.detail.unwrap().contains("is the service running?"));
        assert!(verdict.attempts > 1 && started.elapsed() < UNREACHED + Duration::from_secs(1));
    }

    #[tokio::test]
    async fn no_wait_that_a_service_asks_for_makes_a_hot_loop() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let judge = judge(&format!("http://{}/judge", listener.local_addr().unwrap()));
        let busy = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 0\r\n";
        let started = std::time::Instant::now();
        let context = CallContext::standalone(Duration::from_secs(60));
        let case = Case::new("a", "b");
        let (verdict, served) =
            tokio::join!(judge.judge(&case, &context), serve(listener, vec![busy; 3]));
        assert_eq!((verdict.status, served), (Status::Ok, 4));
        // 0.25, 0.5 and 1 s at least.
        assert!(started.elapsed() >= Duration::from_millis(1_700), "{:?}", started.elapsed());
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(after("7"), Some(Duration::from_secs(7)));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        let far = after("Fri, 31 Dec 2100 23:59:59 GMT").unwrap();
        assert!(far > Duration::from_secs(365 * 86_400), "{far:?}");
        for wrong in ["", "soon", "-1", "1.5"] {
            assert_eq!(after(wrong), None, "{wrong}");
        }
    }
}
