//! The hosts' settings files: where they are, and how an entry of ours gets into them.
//!
//! Files are read into a form that keeps the order of keys and whatever else is in them, so
//! that the difference shown to the person is the difference made. A file that is not plain
//! JSON (one with comments, say) is left alone.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::host::Host;

/// Whose settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The project's, in its folder.
    Project,
    /// The person's, in their home.
    User,
}

/// What is written into the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The command line.
    pub command: String,
    /// How long the host shall wait.
    pub timeout: Duration,
    /// Forced continuations of a turn, for hosts that keep a limit of their own.
    pub blocks: u32,
    /// Whether uses of tools are judged too.
    pub tools: bool,
}

/// Why settings can't be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The host has no settings file.
    #[error(
        "`{host}` has no settings file that is known: call `venire hook {host}` where it runs commands"
    )]
    NoFile {
        /// The host.
        host: &'static str,
    },
    /// The file is not plain JSON.
    #[error(
        "`{path}` is not plain JSON ({message}): add this by hand\n{entry}",
        path = path.display()
    )]
    NotJson {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
        /// What to add.
        entry: String,
    },
    /// A part of the file is not what the host expects there.
    #[error("`{path}`: `{key}` is not {expected}", path = path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// What was expected.
        expected: &'static str,
    },
}

/// The settings file of a host, below a project's or a person's folder.
///
/// # Errors
/// For the generic host, which has none.
pub fn settings_file(host: Host, folder: &Path) -> Result<PathBuf, InstallError> {
    let name = match host {
        Host::ClaudeCode => ".claude/settings.json",
        Host::Codex => ".codex/hooks.json",
        Host::GeminiCli => ".gemini/settings.json",
        Host::OpenHands => ".openhands/hooks.json",
        Host::Cursor => ".cursor/hooks.json",
        Host::Generic => return Err(InstallError::NoFile { host: host.name() }),
    };
    Ok(folder.join(name))
}

/// JSON with the order of its keys.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Plain(serde_json::Value),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    fn text(text: impl Into<String>) -> Self {
        Self::Plain(serde_json::Value::String(text.into()))
    }

    fn number(number: u64) -> Self {
        Self::Plain(number.into())
    }

    fn map<const N: usize>(entries: [(&str, Node); N]) -> Self {
        Self::Map(entries.into_iter().map(|(key, node)| (key.to_owned(), node)).collect())
    }

    fn as_text(&self) -> Option<&str> {
        match self {
            Self::Plain(value) => value.as_str(),
            _ => None,
        }
    }

    /// Whether this or something in it is a command of ours for this host.
    fn is_ours(&self, host: Host) -> bool {
        match self {
            Self::Map(entries) => entries.iter().any(|(key, node)| match (key.as_str(), node) {
                ("command", node) => node.as_text().is_some_and(|text| calls_us(text, host)),
                (_, node) => node.is_ours(host),
            }),
            Self::List(nodes) => nodes.iter().any(|node| node.is_ours(host)),
            Self::Plain(_) => false,
        }
    }
}

/// Whether a command line is one that was installed here: `... hook HOST ...`.
fn calls_us(command: &str, host: Host) -> bool {
    let mut words = command.split_whitespace().skip(1);
    let is_venire = command.contains("venire");
    is_venire
        && words.any(|word| word == "hook")
        && command.split_whitespace().any(|word| word == host.name())
}

/// The settings with the entry in them, or, for `None`, without any of ours. `text` is the
/// file as it is; `None` where there is none yet. The result is the same when it was there.
///
/// # Errors
/// When the file is not plain JSON, or not of the host's form.
pub fn merged(
    host: Host,
    path: &Path,
    text: Option<&str>,
    entry: Option<&Entry>,
) -> Result<String, InstallError> {
    let events = entry.map(|entry| events(host, entry)).unwrap_or_default();
    let text = text.filter(|text| !text.trim().is_empty());
    let mut root = match text {
        None => Node::Map(Vec::new()),
        Some(text) => serde_json::from_str(text).map_err(|error| {
            let alone = Node::Map(
                events
                    .iter()
                    .map(|(name, node)| (name.clone(), Node::List(vec![node.clone()])))
                    .collect(),
            );
            InstallError::NotJson {
                path: path.to_owned(),
                message: error.to_string(),
                entry: written(&Node::map([("hooks", alone)]), 2),
            }
        })?,
    };
    let shape = |key: &str, expected| InstallError::Shape {
        path: path.to_owned(),
        key: key.to_owned(),
        expected,
    };
    let Node::Map(top) = &mut root else { return Err(shape("", "an object")) };
    if host == Host::Cursor && !top.iter().any(|(key, _)| key == "version") {
        top.insert(0, ("version".to_owned(), Node::number(1)));
    }
    let wrapped = top.iter().position(|(key, _)| key == "hooks");
    // OpenHands reads the events without the wrapper too, and not both.
    let bare = host == Host::OpenHands && wrapped.is_none() && !top.is_empty();
    let hooks = if bare {
        &mut *top
    } else {
        let at = wrapped.unwrap_or_else(|| {
            top.push(("hooks".to_owned(), Node::Map(Vec::new())));
            top.len() - 1
        });
        let Node::Map(hooks) = &mut top[at].1 else { return Err(shape("hooks", "an object")) };
        hooks
    };
    for (name, groups) in hooks.iter_mut() {
        let Node::List(groups) = groups else {
            return Err(shape(&format!("hooks.{name}"), "a list"));
        };
        without_ours(groups, host);
    }
    for (name, group) in &events {
        let same = |own: &str| own == name || (host == Host::OpenHands && own == snake_case(name));
        match hooks.iter_mut().find(|(own, _)| same(own)) {
            Some((_, Node::List(groups))) => groups.push(group.clone()),
            _ => hooks.push((name.clone(), Node::List(vec![group.clone()]))),
        }
    }
    hooks.retain(|(_, groups)| *groups != Node::List(Vec::new()));
    if entry.is_none() {
        top.retain(|(key, node)| key != "hooks" || *node != Node::Map(Vec::new()));
    }
    Ok(written(&root, text.map_or(2, indent)))
}

/// `UserPromptSubmit` as `user_prompt_submit`.
fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// Takes our commands out of an event's groups, and groups that then hold nothing.
fn without_ours(groups: &mut Vec<Node>, host: Host) {
    groups.retain_mut(|group| {
        if let Node::Map(entries) = group
            && let Some((_, Node::List(handlers))) =
                entries.iter_mut().find(|(key, _)| key == "hooks")
        {
            let before = handlers.len();
            handlers.retain(|handler| !handler.is_ours(host));
            return !handlers.is_empty() || before == 0;
        }
        !group.is_ours(host)
    });
}

/// The entry of each event, in the host's form.
fn events(host: Host, entry: &Entry) -> Vec<(String, Node)> {
    let seconds = entry.timeout.as_secs();
    let command = || ("command", Node::text(&entry.command));
    let handler = || match host {
        Host::GeminiCli => Node::map([
            ("name", Node::text("venire")),
            ("type", Node::text("command")),
            command(),
            // Gemini CLI counts in milliseconds.
            ("timeout", Node::number(seconds.saturating_mul(1000))),
        ]),
        _ => Node::map([
            ("type", Node::text("command")),
            command(),
            ("timeout", Node::number(seconds)),
        ]),
    };
    let group = |matcher: Option<&str>| {
        let hooks = Node::List(vec![handler()]);
        match matcher {
            Some(matcher) => Node::map([("matcher", Node::text(matcher)), ("hooks", hooks)]),
            None => Node::map([("hooks", hooks)]),
        }
    };
    let mut events = Vec::new();
    let mut add = |name: &str, node: Node| events.push((name.to_owned(), node));
    match host {
        Host::ClaudeCode => {
            add("UserPromptSubmit", group(None));
            add("Stop", group(None));
            add("SubagentStop", group(None));
            if entry.tools {
                add("PostToolUse", group(Some("Write|Edit|MultiEdit|NotebookEdit")));
            }
        }
        Host::Codex => {
            add("UserPromptSubmit", group(None));
            add("Stop", group(None));
        }
        Host::GeminiCli => {
            add("BeforeAgent", group(None));
            add("AfterAgent", group(None));
        }
        Host::OpenHands => {
            add("UserPromptSubmit", group(Some("*")));
            add("Stop", group(Some("*")));
        }
        Host::Cursor => {
            add("beforeSubmitPrompt", Node::map([command()]));
            let limit = Node::number(entry.blocks.into());
            add("stop", Node::map([command(), ("loop_limit", limit)]));
        }
        Host::Generic => {}
    }
    events
}

/// How far a file indents.
fn indent(text: &str) -> usize {
    let line = text.lines().find(|line| line.starts_with(' '));
    line.map_or(2, |line| line.len() - line.trim_start_matches(' ').len()).clamp(1, 8)
}

fn written(node: &Node, indent: usize) -> String {
    let spaces = " ".repeat(indent);
    let mut bytes = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(spaces.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, format);
    // Writing to memory can't fail, and keys are texts.
    let _ = node.serialize(&mut serializer);
    bytes.push(b'\n');
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Plain(value) => value.serialize(serializer),
            Self::List(nodes) => {
                let mut list = serializer.serialize_seq(Some(nodes.len()))?;
                for node in nodes {
                    list.serialize_element(node)?;
                }
                list.end()
            }
            Self::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, node) in entries {
                    map.serialize_entry(key, node)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Plain(serde_json::Value::Null))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
                Ok(Node::Plain(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
                Ok(Node::Plain(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
                Ok(Node::Plain(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
                Ok(Node::Plain(value.into()))
            }

            fn visit_str<E>(self, value: &str) -> Result<Node, E> {
                Ok(Node::text(value))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
                let mut nodes = Vec::new();
                while let Some(node) = list.next_element()? {
                    nodes.push(node);
                }
                Ok(Node::List(nodes))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Node::Map(entries))
            }
        }
        deserializer.deserialize_any(Any)
    }
}
