//! The person's last prompt, from a host's own log of the conversation: for hosts whose
//! events do not say it, where no event at the start of the turn was hooked.
//!
//! The logs are the hosts' own affair and change with them, so whatever is not understood is
//! passed over, and finding nothing is no fault.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

/// Bytes of a log that are looked at: the last ones.
const MOST: u64 = 32 << 20;

/// The last prompt in a log; `None` where there is none.
///
/// # Errors
/// When the file can't be read.
pub(super) fn last_prompt(
    path: &Path,
    is_own_words: impl Fn(&str) -> bool,
) -> std::io::Result<Option<String>> {
    use std::io::Seek as _;
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(std::io::SeekFrom::Start(length.saturating_sub(MOST)))?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let prompts = text.lines().rev().filter_map(|line| serde_json::from_str(line).ok());
    Ok(prompts.filter_map(|entry: Value| prompt(&entry)).find(|prompt| !is_own_words(prompt)))
}

fn prompt(entry: &Value) -> Option<String> {
    let text = match entry["type"].as_str()? {
        // Claude Code: tool results and its own remarks are `user` entries too.
        "user" if entry["isMeta"] != true && entry["isSidechain"] != true => {
            let content = &entry["message"]["content"];
            match content {
                Value::String(text) => text.clone(),
                Value::Array(parts) => {
                    let texts = parts.iter().filter(|part| part["type"] == "text");
                    texts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
                }
                _ => return None,
            }
        }
        // Codex.
        "event_msg" if entry["payload"]["type"] == "user_message" => {
            entry["payload"]["message"].as_str()?.to_owned()
        }
        _ => return None,
    };
    (!text.trim().is_empty() && !text.starts_with("Stop hook feedback")).then_some(text)
}
