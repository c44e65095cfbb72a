//! Answers that follow from the request alone: on the scale that is asked for, from the
//! quality that the candidate is marked with or from a hash.

use regex::Regex;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// A request, whatever dialect it came in.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) model: String,
    /// System and messages, in order.
    pub(crate) texts: Vec<String>,
    /// The schema that the answer must follow.
    pub(crate) schema: Option<Value>,
    /// Whether any JSON object is asked for.
    pub(crate) json: bool,
    pub(crate) top_logprobs: Option<u64>,
}

/// One token of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) logprob: f64,
    pub(crate) top: Vec<(String, f64)>,
}

/// An answer, in no dialect.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) tokens: Vec<Token>,
    /// `stop`, `length` or `refusal`.
    pub(crate) finish: &'static str,
    /// The model that the server says it used; `None` for the one asked.
    pub(crate) model: Option<String>,
}

impl Answer {
    /// An answer of these words, one token a word.
    pub(crate) fn of(text: impl Into<String>) -> Self {
        let text = text.into();
        let tokens = text
            .split_inclusive([' ', ',', ':', '{', '}', '"'])
            .map(|piece| Token {
                text: piece.to_owned(),
                logprob: -0.01,
                top: vec![(piece.to_owned(), -0.01)],
            })
            .collect();
        Self { text, tokens, finish: "stop", model: None }
    }

    /// The likeliest of some tokens, with the log-probabilities of all of them.
    fn likeliest(mut options: Vec<(String, f64)>) -> Self {
        options.sort_by(|a, b| b.1.total_cmp(&a.1));
        let top: Vec<(String, f64)> =
            options.into_iter().map(|(token, p)| (token, p.max(1e-6).ln())).collect();
        let (text, logprob) = top.first().cloned().unwrap_or_default();
        let tokens = vec![Token { text: text.clone(), logprob, top }];
        Self { text, tokens, finish: "stop", model: None }
    }
}

static QUALITY: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\[\[quality:([0-9]*\.?[0-9]+)\]\]").ok());
static SCALE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(\d+)\s*(?:to|-|–|and|到|至)\s*(\d+)").ok());
/// The cue that a one-token score is asked for with: every level, right before the answer.
static LEVELS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:Score \(|分数（)([0-9.]+(?:(?:, |、)[0-9.]+)+)[)）][:：]\s*$").ok()
});
static KEY: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#""([A-Za-z_][A-Za-z0-9_]*)"\s*:"#).ok());

/// A number in [0, 1) that follows from the parts.
fn hashed(parts: &[&str]) -> f64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part.as_bytes()).update(&[0]);
    }
    let hash = hasher.finalize();
    let byte = hash.as_bytes();
    f64::from(u32::from_le_bytes([byte[0], byte[1], byte[2], byte[3]])) / 4_294_967_296.0
}

/// What is known of the candidates' quality.
struct Quality<'a> {
    asked: &'a Asked,
    text: String,
    marks: Vec<f64>,
    noise: f64,
}

impl Quality<'_> {
    /// The quality of one aspect, in [0, 1].
    fn of(&self, aspect: &str) -> f64 {
        let chance = hashed(&[&self.asked.model, &self.text, aspect]);
        match self.marks.first() {
            Some(mark) => (mark + (2.0 * chance - 1.0) * self.noise).clamp(0.0, 1.0),
            None => chance,
        }
    }

    /// The probability that the first of two candidates is the better one.
    fn first_wins(&self) -> f64 {
        match self.marks[..] {
            [first, second, ..] => 1.0 / (1.0 + (-8.0 * (first - second)).exp()),
            _ => self.of("pair"),
        }
    }
}

/// The answer of a judge that does as it is told.
pub(super) fn usual(asked: &Asked, noise: f64) -> Answer {
    let text = asked.texts.join("\n");
    let marks = QUALITY.as_ref().map_or_else(Vec::new, |pattern| {
        pattern.captures_iter(&text).filter_map(|found| found[1].parse().ok()).collect()
    });
    let lower = text.to_lowercase();
    let quality = Quality { asked, text, marks, noise };
    let mentions = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if let Some(schema) = &asked.schema {
        return Answer::of(fill(schema, schema, "", &quality).to_string());
    }
    if let Some(found) = LEVELS.as_ref().and_then(|pattern| pattern.captures(&quality.text)) {
        let levels: Vec<&str> = found[1].split([',', '、']).map(str::trim).collect();
        return one_level(&levels, quality.of("score"));
    }
    let yes_no = mentions(&["yes or no", "yes/no", "`yes`", "\"yes\"", "'yes'"]);
    let shi_fou = mentions(&["“是”", "\"是\"", "「是」", "是或否", "`是`"]);
    let wants_json = asked.json || mentions(&["json"]);
    if wants_json && asked.top_logprobs.is_none() {
        return Answer::of(object(&quality).to_string());
    }
    if yes_no || shi_fou {
        let (yes, no) = if shi_fou { ("是", "否") } else { ("Yes", "No") };
        let p = quality.of("yes").clamp(0.001, 0.999);
        return Answer::likeliest(vec![(yes.into(), p), (no.into(), 1.0 - p)]);
    }
    if mentions(&["a or b", "`a`", "\"a\"", "a, b", "a/b"]) {
        let p = quality.first_wins().clamp(0.001, 0.999);
        return Answer::likeliest(vec![("A".into(), p), ("B".into(), 1.0 - p)]);
    }
    if wants_json {
        return Answer::of(object(&quality).to_string());
    }
    let scale = SCALE.as_ref().and_then(|pattern| {
        let found = pattern.captures(&quality.text)?;
        let (low, high): (u32, u32) = (found[1].parse().ok()?, found[2].parse().ok()?);
        (low < high && high - low <= 20).then_some((low, high))
    });
    let Some((low, high)) = scale else {
        return Answer::of(format!("{:.2}", quality.of("score")));
    };
    let levels: Vec<String> = (low..=high).map(|level| level.to_string()).collect();
    let levels: Vec<&str> = levels.iter().map(String::as_str).collect();
    one_level(&levels, quality.of("score"))
}

/// One of some levels as one token, likelier the nearer it is to a quality.
fn one_level(levels: &[&str], quality: f64) -> Answer {
    let peak = quality * (levels.len() - 1) as f64;
    let weights: Vec<f64> =
        (0..levels.len()).map(|at| (-2.0 * (at as f64 - peak).powi(2)).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let options = levels.iter().zip(weights).map(|(level, w)| ((*level).to_owned(), w / sum));
    Answer::likeliest(options.collect())
}

/// An object with the keys that the prompt shows, or with a score.
fn object(quality: &Quality<'_>) -> Value {
    if let Some(schema) = shown_schema(&quality.text) {
        return fill(&schema, &schema, "", quality);
    }
    let mut keys: Vec<&str> = KEY.as_ref().map_or_else(Vec::new, |pattern| {
        pattern
            .captures_iter(&quality.text)
            .filter_map(|found| Some(found.get(1)?.as_str()))
            .collect()
    });
    keys.dedup();
    if keys.is_empty() {
        keys = vec!["score", "feedback"];
    }
    let fields = keys.into_iter().map(|key| {
        let lower = key.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let value = if has(&["reason", "feedback", "explan", "comment", "why", "thought"]) {
            json!("as far as the mock can tell")
        } else if has(&["winner", "choice", "better", "preferred"]) {
            json!(if quality.first_wins() >= 0.5 { "A" } else { "B" })
        } else {
            json!((quality.of(key) * 100.0).round() / 100.0)
        };
        (key.to_owned(), value)
    });
    Value::Object(fields.collect())
}

/// A JSON Schema that stands in the prompt.
fn shown_schema(text: &str) -> Option<Value> {
    text.match_indices('{').take(50).find_map(|(at, _)| {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        let value = values.next()?.ok()?;
        value.get("properties")?.is_object().then_some(value)
    })
}

fn fill(schema: &Value, root: &Value, name: &str, quality: &Quality<'_>) -> Value {
    if let Some(target) = schema["$ref"].as_str().and_then(|r| root.pointer(r.strip_prefix('#')?)) {
        return fill(target, root, name, quality);
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(options) = schema["enum"].as_array().filter(|options| !options.is_empty()) {
        return choose(options, name, quality);
    }
    for key in ["anyOf", "oneOf"] {
        let options = schema[key].as_array();
        if let Some(option) = options.and_then(|all| all.iter().find(|s| s["type"] != "null")) {
            return fill(option, root, name, quality);
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().find_map(|k| k.as_str().filter(|k| *k != "null")),
        kind => kind.as_str(),
    };
    let range = |low: f64, high: f64| {
        (schema["minimum"].as_f64().unwrap_or(low), schema["maximum"].as_f64().unwrap_or(high))
    };
    match kind.map(str::to_lowercase).as_deref() {
        Some("boolean") => json!(quality.of(name) >= 0.5),
        Some("integer") => {
            let (low, high) = range(1.0, 5.0);
            json!((low + quality.of(name) * (high - low)).round() as i64)
        }
        Some("number") => {
            let (low, high) = range(0.0, 1.0);
            json!(((low + quality.of(name) * (high - low)) * 1000.0).round() / 1000.0)
        }
        Some("string") => {
            let words = format!("Noted on {}.", if name.is_empty() { "it" } else { name });
            let most = schema["maxLength"].as_u64().unwrap_or(200);
            json!(words.chars().take(usize::try_from(most).unwrap_or(200)).collect::<String>())
        }
        Some("array") => {
            let least = schema["minItems"].as_u64().unwrap_or(1).clamp(1, 64);
            let item = |i: u64| fill(&schema["items"], root, &format!("{name}{i}"), quality);
            Value::Array((0..least).map(item).collect())
        }
        Some("null") => Value::Null,
        _ => {
            let empty = Map::new();
            let properties = schema["properties"].as_object().unwrap_or(&empty);
            let fields = properties
                .iter()
                .map(|(key, property)| (key.clone(), fill(property, root, key, quality)));
            Value::Object(fields.collect())
        }
    }
}

/// One of some options: by size where they are numbers, by meaning where they have one.
fn choose(options: &[Value], name: &str, quality: &Quality<'_>) -> Value {
    let number = |value: &Value| {
        value.as_f64().or_else(|| value.as_str().and_then(|text| text.parse().ok()))
    };
    let at = |share: f64, n: usize| ((share * (n - 1) as f64).round() as usize).min(n - 1);
    let mut numbers: Vec<(f64, &Value)> =
        options.iter().filter_map(|value| Some((number(value)?, value))).collect();
    if !numbers.is_empty() {
        numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
        return numbers[at(quality.of(name), numbers.len())].1.clone();
    }
    let find = |words: &[&str]| {
        options.iter().find(|option| {
            option.as_str().is_some_and(|text| words.contains(&text.to_lowercase().as_str()))
        })
    };
    let pairs: [(&[&str], &[&str], f64); 2] = [
        (&["a", "first"], &["b", "second"], quality.first_wins()),
        (&["yes", "true", "pass", "是"], &["no", "false", "fail", "否"], quality.of(name)),
    ];
    for (good, bad, share) in pairs {
        if let (Some(good), Some(bad)) = (find(good), find(bad)) {
            return if share >= 0.5 { good } else { bad }.clone();
        }
    }
    options[at(quality.of(name), options.len())].clone()
}
