//! The `observe` judge: looks at the environment that an output was meant to change, and
//! says whether it is as stated.
//!
//! An expectation states something about a URL, a TCP port or a file. What is not as stated,
//! a refused connection included, is a failed expectation; only our own inability to look (a
//! name that can't be resolved, a file that may not be read) is a failed measurement.

mod file;
mod judge;
mod net;
mod receipt;
mod text;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::receipt::Receipts;
use self::text::TextRules;
use super::http::{parse_headers, parse_url};
use super::process::Period;
use super::{BoxedJudge, BuildContext, BuildError};
use crate::config::secret::masked_url;
use crate::verdict::Fingerprint;

/// Configuration of an `observe` judge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObserveSpec {
    /// What is expected of the environment; at least one.
    pub expect: Vec<Expectation>,
    /// How long an expectation may take to come true; looked at once when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Period>,
    /// The pause between looks; half a second when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Period>,
    /// True where looking changes something: each case is then looked at once at most, and
    /// a receipt under `.venire/receipts` keeps what was seen.
    #[serde(default)]
    pub side_effects: bool,
}

/// One expectation, of exactly one of `url`, `port` and `file`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Its name in criteria and feedback; the target when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its share of the score; above 0.
    #[serde(default = "one")]
    pub weight: f64,
    /// Whether the output is rejected when it is not met.
    #[serde(default)]
    pub required: bool,

    /// A URL that is asked for. `{id}` stands for the case's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The request's method; `GET` when absent. Others than `GET`, `HEAD` and `OPTIONS` need
    /// `side_effects = true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The request's headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The request's body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The status expected; any of 200 to 299 when absent. Redirects are not followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the whole answer may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_latency: Option<Period>,

    /// A TCP port as `host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Whether the port is expected to be open (the default) or closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<bool>,

    /// A file. `{id}` stands for the case's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether the file is expected to be there (the default) or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<SizeRange>,
    /// The SHA-256 of its content, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The BLAKE3 of its content, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blake3: Option<String>,

    /// A text that the body or file holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// A regular expression that is found in the body or file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// Values in the body or file as JSON, by JSON Pointer (RFC 6901): `"/status" = "ok"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub json: BTreeMap<String, Value>,
}

/// A range of sizes in bytes, both ends included.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct SizeRange {
    /// At least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// At most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

fn one() -> f64 {
    1.0
}

/// What one look found.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    /// As stated.
    Met,
    /// Not as stated, and what there is instead.
    Unmet(String),
    /// We could not look.
    Unable(String),
}

/// What is looked at.
#[derive(Debug)]
enum Target {
    Url(net::UrlTarget),
    Port(net::PortTarget),
    File(file::FileTarget),
}

#[derive(Debug)]
struct Ready {
    name: String,
    weight: f64,
    required: bool,
    /// Whether a look must not be repeated.
    once: bool,
    target: Target,
}

/// The built judge.
#[derive(Debug)]
struct ObserveJudge {
    expectations: Vec<Ready>,
    within: Duration,
    every: Duration,
    receipts: Option<Receipts>,
    client: OnceLock<reqwest::Client>,
    fingerprint: Fingerprint,
}

impl ObserveSpec {
    /// Checks the configuration. Nothing is looked at.
    ///
    /// # Errors
    /// No expectations, one without a target or with two, a key that does not belong to its
    /// target, a URL, port, regular expression, pointer or hash that is malformed, a weight
    /// that is not above 0, a method that changes something without `side_effects`.
    pub fn build(&self, context: &BuildContext) -> Result<BoxedJudge, BuildError> {
        if self.expect.is_empty() {
            return Err(BuildError::invalid(
                "expect",
                "expected at least one expectation, found none",
            ));
        }
        if self.every.is_some_and(|every| every.get() < Duration::from_millis(10)) {
            return Err(BuildError::invalid("every", "expected 10 milliseconds or more"));
        }
        let mut expectations: Vec<Ready> = Vec::new();
        for (i, expectation) in self.expect.iter().enumerate() {
            let field = format!("expect[{i}]");
            let ready = expectation.build(&field, self.side_effects, context)?;
            if expectations.iter().any(|other| other.name == ready.name) {
                let reason = format!("`{}` names two: give each a `name` of its own", ready.name);
                return Err(BuildError::invalid(format!("{field}.name"), reason));
            }
            expectations.push(ready);
        }
        let fingerprint =
            Fingerprint::of("observe", &serde_json::to_value(self).unwrap_or_default());
        Ok(std::sync::Arc::new(ObserveJudge {
            expectations,
            within: self.within.map(Period::get).unwrap_or_default(),
            every: self.every.map_or(Duration::from_millis(500), Period::get),
            receipts: self.side_effects.then(|| Receipts::new(&context.base, &fingerprint)),
            client: OnceLock::new(),
            fingerprint,
        }))
    }
}

impl Expectation {
    fn build(
        &self,
        field: &str,
        side_effects: bool,
        context: &BuildContext,
    ) -> Result<Ready, BuildError> {
        let at = |key: &str| format!("{field}.{key}");
        crate::config::check_weight(self.weight, false)
            .map_err(|reason| BuildError::invalid(at("weight"), reason))?;
        self.only_own_keys(field)?;
        let rules = self.text_rules(field)?;
        let mut once = false;
        let (target, shown) = match (&self.url, &self.port, &self.file) {
            (Some(url), None, None) => {
                let method = self.method.as_deref().unwrap_or("GET");
                let method = reqwest::Method::from_bytes(method.as_bytes())
                    .map_err(|_| BuildError::invalid(at("method"), "is no HTTP method"))?;
                once = !method.is_safe();
                if once && !side_effects {
                    let reason =
                        format!("`{method}` may change something: set `side_effects = true`");
                    return Err(BuildError::invalid(at("method"), reason));
                }
                if self.status.is_some_and(|status| !(100..1000).contains(&status)) {
                    return Err(BuildError::invalid(at("status"), "expected 100 to 999"));
                }
                let instead = "put credentials into `headers`, whose values are not kept";
                parse_url(&url.replace("{id}", "id"), &at("url"), instead)?;
                let target = net::UrlTarget {
                    url: url.clone(),
                    method,
                    headers: parse_headers(&self.headers, &at("headers"))?,
                    body: self.body.clone(),
                    status: self.status,
                    max_latency: self.max_latency.map(Period::get),
                    rules,
                };
                (Target::Url(target), masked_url(url))
            }
            (None, Some(port), None) => {
                let target = net::PortTarget::parse(port, self.open.unwrap_or(true))
                    .map_err(|reason| BuildError::invalid(at("port"), reason))?;
                (Target::Port(target), port.clone())
            }
            (None, None, Some(path)) => {
                let target = file::FileTarget::build(self, path, rules, field, context)?;
                (Target::File(target), path.clone())
            }
            _ => {
                let reason = "expected exactly one of `url`, `port` and `file`";
                return Err(BuildError::invalid(field, reason));
            }
        };
        let name = match &self.name {
            Some(name) if name.trim().is_empty() => {
                return Err(BuildError::invalid(at("name"), "expected a name, found none"));
            }
            Some(name) => name.clone(),
            None => shown,
        };
        Ok(Ready { name, weight: self.weight, required: self.required, once, target })
    }

    /// A key that belongs to another target would be ignored, so it is refused.
    fn only_own_keys(&self, field: &str) -> Result<(), BuildError> {
        let of_url = [
            ("method", self.method.is_some()),
            ("headers", !self.headers.is_empty()),
            ("body", self.body.is_some()),
            ("status", self.status.is_some()),
            ("max_latency", self.max_latency.is_some()),
        ];
        let of_port = [("open", self.open.is_some())];
        let of_file = [
            ("exists", self.exists.is_some()),
            ("size", self.size.is_some()),
            ("sha256", self.sha256.is_some()),
            ("blake3", self.blake3.is_some()),
        ];
        let of_text = [
            ("contains", self.contains.is_some()),
            ("regex", self.regex.is_some()),
            ("json", !self.json.is_empty()),
        ];
        let (url, port, file) = (self.url.is_some(), self.port.is_some(), self.file.is_some());
        let stray = [(&of_url[..], url, "url"), (&of_port, port, "port"), (&of_file, file, "file")]
            .into_iter()
            .filter(|(_, wanted, _)| !wanted)
            .find_map(|(keys, _, of)| keys.iter().find(|key| key.1).map(|key| (key.0, of)))
            .or_else(|| {
                of_text.iter().find(|key| key.1 && port).map(|key| (key.0, "url` or `file"))
            });
        match stray {
            Some((key, of)) => {
                let reason = format!("belongs to an expectation of `{of}`");
                Err(BuildError::invalid(format!("{field}.{key}"), reason))
            }
            None => Ok(()),
        }
    }

    fn text_rules(&self, field: &str) -> Result<TextRules, BuildError> {
        let at = |key: &str| format!("{field}.{key}");
        let regex = self.regex.as_deref().map(regex::Regex::new).transpose().map_err(|error| {
            BuildError::invalid(at("regex"), format!("is no regular expression: {error}"))
        })?;
        if let Some(pointer) = self.json.keys().find(|p| !p.is_empty() && !p.starts_with('/')) {
            let reason = format!("`{pointer}` is no JSON Pointer: expected such as `/status`");
            return Err(BuildError::invalid(at("json"), reason));
        }
        Ok(TextRules { contains: self.contains.clone(), regex, json: self.json.clone() })
    }
}
