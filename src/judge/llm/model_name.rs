//! Whether the model that answered is the one that was asked for, by their names alone.
//!
//! Family, version, size and variant must agree (`gpt-4.1` is not `gpt-4.1-mini`). What says
//! nothing of the model is looked through: addresses and file paths, a provider before the
//! name, `:latest`, quantisation, `instruct`, and the date of a snapshot where none was asked
//! for.

use std::sync::LazyLock;

use regex::Regex;

struct Patterns {
    date: Regex,
    size: Regex,
    quantisation: Regex,
    vendor: Regex,
}

/// `None` only if a pattern below does not compile, which a test rules out; then names are
/// compared as they are.
static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    let compile = |pattern: &str| Regex::new(pattern).ok();
    Some(Patterns {
        // 2025-04-14, 20250929, 08-2024, and at the end 0613, 2411, 001, 05-20.
        date: compile(
            r"[-_@:](20\d\d[-_.]?[01]\d[-_.]?[0-3]\d|[01]\d-20\d\d|[0-3]\d{3}$|0\d\d$|[01]\d-[0-3]\d$)(-v\d+$)?",
        )?,
        size: compile(r"^(?:\d+x)?\d+(?:\.\d+)?[bm]$")?,
        quantisation: compile(
            r"^(?:i?q\d(?:_[a-z0-9]+)*|[bf]p?f?(?:4|8|16|32)|nf4|u?int[48]|w\d+a\d+|awq|gptq|gguf|ggml|mlx|bnb|exl[23]|ud|[k0-9]_[a-z0-9]+|[48]-?bits?)$",
        )?,
        vendor: compile(r"^(?:[a-z]{2}\.)?(?:anthropic|meta|mistral|openai|google|amazon)\.")?,
    })
});

/// Words that say how a model is served or tuned for use, not which one it is.
const SERVING: [&str; 14] = [
    "latest",
    "preview",
    "exp",
    "experimental",
    "stable",
    "instruct",
    "chat",
    "it",
    "hf",
    "free",
    "model",
    "meta",
    "bit",
    "bits",
];

/// A model's name, taken apart.
#[derive(Debug, Default)]
struct Name {
    /// Runs of letters and of digits, in order and without zeros: `gpt`, `4`, `1`, `mini`.
    parts: Vec<String>,
    size: Option<String>,
    date: Option<String>,
    /// Whether it says `latest`, which may stand for a version.
    latest: bool,
}

impl Name {
    fn of(written: &str, patterns: &Patterns) -> Self {
        let name = written.trim().to_lowercase();
        let name = name.rsplit(['/', '\\']).next().unwrap_or(&name);
        let name = [".gguf", ".ggml", ".safetensors", ".bin"]
            .iter()
            .find_map(|ending| name.strip_suffix(ending))
            .unwrap_or(name);
        let name = patterns.vendor.replace(name, "");
        let mut found = Self::default();
        // `Llama-3.2-1B-Instruct.Q4_K_M`: a point may stand before the quantisation.
        let name = match name.rfind(".q").or_else(|| name.rfind(".iq")).or(name.rfind(".f")) {
            Some(at) if patterns.quantisation.is_match(&name[at + 1..]) => name[..at].to_owned(),
            _ => name.into_owned(),
        };
        let preview = ["-preview", "-exp", "-latest"].iter().any(|word| name.contains(word));
        // Without the words that may stand after a date.
        let mut plain = name.clone();
        for word in ["-preview", "-latest", ":latest", ":free", "-instruct", "-chat"] {
            plain = plain.replace(word, "");
        }
        if let Some(date) = patterns.date.find(&plain) {
            found.date = Some(date.as_str().chars().filter(char::is_ascii_digit).collect());
            plain.replace_range(date.range(), "");
        }
        found.latest = preview || name.ends_with(":latest");
        // A quantisation such as `q4_k_m` is taken apart with the rest.
        let mut quantised = false;
        for word in plain.split(['-', ':', '@', ' ', '_']) {
            if quantised && matches!(word, "k" | "s" | "m" | "l" | "xs" | "xl" | "nl" | "xxs") {
                continue;
            }
            if patterns.quantisation.is_match(word) {
                quantised = true;
            } else if patterns.size.is_match(word) {
                found.size = Some(word.to_owned());
            } else if !SERVING.contains(&word) {
                found.parts.extend(runs(word));
            }
        }
        found
    }
}

/// Runs of letters and of digits; a lone zero is none (`2.0` is 2).
fn runs(word: &str) -> Vec<String> {
    let mut runs: Vec<String> = Vec::new();
    let mut kind = None;
    for c in word.chars() {
        let of = match c {
            c if c.is_numeric() => Some(true),
            c if c.is_alphabetic() => Some(false),
            _ => None,
        };
        match (of, runs.last_mut()) {
            (Some(_), Some(last)) if of == kind => last.push(c),
            (Some(_), _) => runs.push(c.to_string()),
            (None, _) => {}
        }
        kind = of;
    }
    runs.retain(|run| run != "0");
    runs
}

/// Whether the model that answered can be the one asked for. A size that only one of the two
/// names says is no difference, and no more is a version where `latest` was asked for.
pub(super) fn same_model(asked: &str, returned: &str) -> bool {
    let Some(patterns) = PATTERNS.as_ref() else { return asked == returned };
    let (ours, mut theirs) = (Name::of(asked, patterns), Name::of(returned, patterns));
    if ours.parts.is_empty() || theirs.parts.is_empty() {
        return true;
    }
    let differ = |a: &Option<String>, b: &Option<String>| {
        a.as_ref().zip(b.as_ref()).is_some_and(|(a, b)| a != b)
    };
    let is_number = |part: &String| part.chars().all(char::is_numeric);
    if ours.latest && !ours.parts.iter().any(is_number) {
        theirs.parts.retain(|part| !is_number(part));
    }
    let sorted = |mut parts: Vec<String>| {
        parts.sort();
        parts
    };
    // `claude-3-5-sonnet` and `claude-sonnet-3-5` are one model.
    sorted(ours.parts) == sorted(theirs.parts)
        && !differ(&ours.size, &theirs.size)
        && !differ(&ours.date, &theirs.date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert!(PATTERNS.is_some());
    }

    #[test]
    fn a_snapshot_a_path_and_a_quantisation_are_the_same_model() {
        for (asked, returned) in [
            ("openai/gpt-4.1", "gpt-4.1"),
            ("openai/gpt-4.1", "gpt-4.1-2025-04-14"),
            ("openai/gpt-4.1-mini", "gpt-4.1-mini-2025-04-14"),
            ("openai/gpt-4o-2024-08-06", "gpt-4o-2024-08-06"),
            ("openai/gpt-4", "gpt-4-0613"),
            ("openai/gpt-3.5-turbo", "gpt-3.5-turbo-0125"),
            ("openai/o3-mini", "o3-mini-2025-01-31"),
            ("anthropic/claude-opus-4-1", "claude-opus-4-1-20250805"),
            ("anthropic/claude-sonnet-4-0", "claude-sonnet-4-20250514"),
            ("anthropic/claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
            ("openrouter/anthropic/claude-opus-4.1", "claude-opus-4-1"),
            ("gemini/gemini-2.5-flash", "gemini-2.5-flash-preview-05-20"),
            ("gemini/gemini-2.0-flash", "models/gemini-2.0-flash-001"),
            ("gemini/gemini-flash-latest", "gemini-2.5-flash"),
            ("mistral/mistral-large-latest", "mistral-large-2411"),
            ("xai/grok-4", "grok-4-0709"),
            ("groq/meta-llama/llama-4", "llama-4"),
            ("ollama/llama3.2", "llama3.2:latest"),
            ("ollama/qwen2.5:7b", "qwen2.5:7b"),
            ("openai/qwen2.5-1.5b", "/models/qwen2.5-1.5b-instruct-q4_k_m.gguf"),
            ("openai/qwen2.5-1.5b", "C:\\models\\Qwen2.5-1.5B-Instruct.Q8_0.gguf"),
            ("vllm/Qwen/Qwen2.5-7B-Instruct-AWQ", "Qwen/Qwen2.5-7B-Instruct-AWQ"),
            ("openai/qwen2.5", "qwen2.5-7b-instruct-fp16"),
            ("together/meta-llama/Llama-3.1-8B", "meta-llama/Meta-Llama-3.1-8B-Instruct"),
            ("openai/mixtral-8x7b", "mixtral-8x7b-instruct.gguf"),
            ("deepseek/deepseek-chat", "deepseek-chat"),
            ("openai/m", "m"),
            ("openai/通义千问-7b", "通义千问-7b"),
        ] {
            assert!(same_model(asked, returned), "{asked} {returned}");
        }
    }

    #[test]
    fn another_family_version_size_or_variant_is_another_model() {
        for (asked, returned) in [
            ("openai/gpt-4.1", "gpt-3.5-turbo"),
            ("openai/gpt-4.1", "gpt-4.1-mini"),
            ("openai/gpt-4.1-mini", "gpt-4.1-nano-2025-04-14"),
            ("openai/gpt-4.1", "gpt-4.1-mini-2025-04-14"),
            ("openai/gpt-4o", "gpt-4"),
            ("openai/gpt-4", "gpt-4-turbo"),
            ("openai/gpt-4o-2024-08-06", "gpt-4o-2024-05-13"),
            ("openai/o3", "o3-mini"),
            ("openai/o3", "o4"),
            ("anthropic/claude-opus-4-1", "claude-haiku-3"),
            ("anthropic/claude-opus-4-1", "claude-opus-4"),
            ("anthropic/claude-sonnet-4", "claude-opus-4"),
            ("anthropic/claude-sonnet-4", "claude-sonnet-4-5-20250929"),
            ("gemini/gemini-2.5-pro", "gemini-2.5-flash"),
            ("gemini/gemini-2.5-flash", "gemini-2.0-flash-001"),
            ("openai/qwen2.5-1.5b", "qwen2.5-0.5b-instruct-q4_k_m.gguf"),
            ("openai/qwen2.5-1.5b", "/models/qwen2.5-coder-1.5b.gguf"),
            ("ollama/qwen2.5:7b", "qwen2.5:1.5b"),
            ("openai/qwen2.5-1.5b", "smollm2-135m"),
            ("openai/llama-3-8b", "llama-3.1-8b"),
            ("openai/mixtral-8x7b", "mixtral-8x22b"),
            ("openai/gpt-4.1", "llama-3-8b"),
            ("openai/m", "evil"),
            ("openai/gpt-4.1", "claude"),
        ] {
            assert!(!same_model(asked, returned), "{asked} {returned}");
        }
    }
}
