//! What coding agents print in batch mode: the answer, the tokens and the dollars.
//!
//! A client that reports an error has failed, whatever its exit code and whatever text comes
//! with it; a client that reports no tokens has not used none.

use serde::Deserialize;
use serde_json::Value;

use super::preset::Preset;
use crate::verdict::Usage;

/// What a client said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Said {
    /// Its answer; may be empty.
    pub(super) text: String,
    /// `None` where it reports none.
    pub(super) usage: Option<Usage>,
    /// Millionths of a US dollar, rounded up; `None` where it reports none.
    pub(super) micro_dollars: Option<u64>,
    /// Set when it failed: in its own words.
    pub(super) failure: Option<String>,
}

impl Said {
    fn failed(words: impl Into<String>) -> Self {
        Self { failure: Some(words.into()), ..Self::default() }
    }
}

/// Reads what a client printed; `None` when it is not in the client's format.
pub(super) fn read(preset: Preset, printed: &str) -> Option<Said> {
    match preset {
        Preset::ClaudeCode => claude(printed),
        Preset::Codex => codex(printed),
        Preset::GeminiCli => gemini(printed),
        Preset::Aider => Some(aider(printed)),
    }
}

/// The JSON values of a text: the whole of it, or one a line.
fn values(printed: &str) -> Vec<Value> {
    match serde_json::from_str(printed.trim()) {
        Ok(Value::Array(events)) => events,
        Ok(value) => vec![value],
        Err(_) => printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
    }
}

fn whole(value: Option<&Value>) -> u64 {
    value.and_then(Value::as_u64).unwrap_or(0)
}

/// Rounded up, so that a limit holds; `None` for what is no amount.
fn micro_dollars(usd: f64) -> Option<u64> {
    (usd.is_finite() && usd >= 0.0).then(|| (usd * 1e6 - 1e-6).ceil().max(0.0) as u64)
}

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// One object of `type` `result`, alone or at the end of a list of events.
fn claude(printed: &str) -> Option<Said> {
    let values = values(printed);
    let result = values.iter().rev().find(|value| value["type"] == "result")?;
    let answer = text(result.get("result"));
    let subtype = text(result.get("subtype"));
    let failed = result["is_error"] == true || subtype.starts_with("error");
    Some(Said {
        failure: failed.then(|| if answer.is_empty() { subtype } else { answer.clone() }),
        usage: claude_usage(result),
        micro_dollars: result["total_cost_usd"].as_f64().and_then(micro_dollars),
        text: answer,
    })
}

/// The sum over all models where it is told: the plain `usage` leaves helpers out.
fn claude_usage(result: &Value) -> Option<Usage> {
    let models = result["modelUsage"].as_object().filter(|models| !models.is_empty());
    let (rows, names): (Vec<&Value>, [&str; 4]) = match models {
        Some(models) => (
            models.values().collect(),
            ["inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens"],
        ),
        None => (
            vec![result.get("usage").filter(|usage| usage.is_object())?],
            [
                "input_tokens",
                "cache_creation_input_tokens",
                "cache_read_input_tokens",
                "output_tokens",
            ],
        ),
    };
    let sum = |name: &str| rows.iter().map(|row| whole(row.get(name))).sum::<u64>();
    let [fresh, written, cached, out] = names.map(sum);
    Some(Usage {
        tokens_in: fresh + written + cached,
        tokens_out: out,
        tokens_cached: cached,
        calls: whole(result.get("num_turns")).clamp(1, u64::from(u32::MAX)) as u32,
        ..Usage::default()
    })
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CodexUsage {
    input_tokens: u64,
    cached_input_tokens: u64,
    output_tokens: u64,
    reasoning_output_tokens: u64,
}

/// JSON Lines. The answer is the last message; a turn that does not complete has failed.
fn codex(printed: &str) -> Option<Said> {
    let values = values(printed);
    let kind = |value: &Value| text(value.get("type"));
    values.iter().find(|value| !kind(value).is_empty())?;
    let mut said = Said::default();
    let mut completed = false;
    let mut error: Option<String> = None;
    for value in &values {
        match kind(value).as_str() {
            "item.completed" if value["item"]["type"] == "agent_message" => {
                said.text = text(value["item"].get("text"));
            }
            "item.completed" if value["item"]["type"] == "error" => {
                error = Some(text(value["item"].get("message")));
            }
            "error" => error = Some(text(value.get("message"))),
            "turn.failed" => {
                completed = false;
                error = Some(text(value["error"].get("message")));
            }
            "turn.completed" => {
                completed = true;
                let own: Option<CodexUsage> =
                    value.get("usage").and_then(|usage| CodexUsage::deserialize(usage).ok());
                if let Some(own) = own {
                    let usage = said.usage.get_or_insert_default();
                    usage.add(&Usage {
                        tokens_in: own.input_tokens,
                        tokens_out: own.output_tokens,
                        tokens_cached: own.cached_input_tokens,
                        tokens_reasoning: own.reasoning_output_tokens,
                        calls: 1,
                        estimated: false,
                    });
                }
            }
            _ => {}
        }
    }
    if !completed {
        let words = error.filter(|words| !words.is_empty());
        said.failure = Some(words.unwrap_or_else(|| "its turn did not complete".to_owned()));
    }
    Some(said)
}

/// One object: `response` and `stats`, or `error`.
fn gemini(printed: &str) -> Option<Said> {
    // Notes may stand before it.
    let object = |text: &str| serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
    let value = object(printed.trim())
        .or_else(|| printed.match_indices("\n{").find_map(|(at, _)| object(&printed[at..])))?;
    let mut said = match value.get("error").filter(|error| !error.is_null()) {
        Some(error) => {
            let words = text(error.get("message"));
            Said::failed(if words.is_empty() { error.to_string() } else { words })
        }
        None => Said { text: text(Some(value.get("response")?)), ..Said::default() },
    };
    for model in value["stats"]["models"].as_object().into_iter().flat_map(|models| models.values())
    {
        let tokens = &model["tokens"];
        let of = |name: &str| whole(tokens.get(name));
        let tokens_in = of("prompt") + of("tool");
        said.usage.get_or_insert_default().add(&Usage {
            tokens_in,
            tokens_out: (of("candidates") + of("thoughts"))
                .max(of("total").saturating_sub(tokens_in)),
            tokens_cached: of("cached"),
            tokens_reasoning: of("thoughts"),
            calls: whole(model["api"].get("totalRequests")).clamp(1, u64::from(u32::MAX)) as u32,
            estimated: false,
        });
    }
    Some(said)
}

/// Plain text, with a line of tokens and cost after each message. Numbers with a `k` or `M`
/// are rounded, and so an estimate.
fn aider(printed: &str) -> Said {
    let mut said = Said { text: printed.to_owned(), ..Said::default() };
    let mut dollars: Option<f64> = None;
    for line in printed.lines() {
        let Some(row) = line.trim_start_matches(['>', ' ']).strip_prefix("Tokens: ") else {
            continue;
        };
        let (counts, cost) = row.split_once("Cost: ").unwrap_or((row, ""));
        let mut usage = Usage { calls: 1, ..Usage::default() };
        for part in counts.trim().trim_end_matches('.').split(", ") {
            let Some((number, what)) = part.trim().split_once(' ') else { continue };
            let Some((tokens, rounded)) = rounded(number) else { continue };
            usage.estimated |= rounded;
            match what.trim() {
                "sent" => usage.tokens_in += tokens,
                "cache hit" => usage.tokens_cached += tokens,
                "received" => usage.tokens_out += tokens,
                _ => {}
            }
        }
        said.usage.get_or_insert_default().add(&usage);
        let message = cost.split(" message").next().and_then(|cost| cost.strip_prefix('$'));
        if let Some(usd) = message.and_then(|usd| usd.replace(',', "").parse::<f64>().ok()) {
            *dollars.get_or_insert(0.0) += usd;
        }
    }
    said.micro_dollars = dollars.and_then(micro_dollars);
    said
}

/// A number of tokens as people write it, at the upper end of what was rounded.
fn rounded(number: &str) -> Option<(u64, bool)> {
    let number = number.replace(',', "");
    let (digits, unit) = match number.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => match number.strip_suffix(['m', 'M']) {
            Some(digits) => (digits, 1e6),
            None => (number.as_str(), 1.0),
        },
    };
    let value: f64 =
        digits.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)?;
    if unit == 1.0 {
        return Some((value.ceil() as u64, false));
    }
    let decimals = digits.split_once('.').map_or(0, |(_, after)| after.len().min(9));
    let half = 0.5 * 0.1_f64.powi(decimals as i32);
    Some((((value + half) * unit).ceil() as u64, true))
}

#[cfg(test)]
mod tests;
