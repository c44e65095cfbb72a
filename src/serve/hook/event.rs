//! What a host says: its payload read into one form.
//!
//! Payloads grow with each version of a host, so unknown fields are no fault and only what is
//! used is looked at. What is there and of a wrong kind is a fault: nothing is guessed.
//! `stop_hook_active` is kept for the record and decides nothing; the counters are ours.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::host::Host;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A person asked for something: a turn begins.
    Prompt,
    /// The agent wants to stop.
    Stop,
    /// A subagent wants to stop.
    SubagentStop,
    /// A tool has run.
    ToolUsed,
    /// Anything else, which is not answered.
    Other,
}

/// A tool that has run, as far as files go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolUse {
    /// The tool's name.
    pub name: String,
    /// The file that it wrote.
    pub file: Option<PathBuf>,
}

/// An event in one form for all hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The host's own name for it.
    pub name: String,
    /// The host's id of the session; `None` where it gives none.
    pub session: Option<String>,
    /// The host's id of the person's prompt, the same for all that follows from it.
    pub prompt_id: Option<String>,
    /// The subagent.
    pub agent: Option<String>,
    /// Where the agent works.
    pub directory: Option<PathBuf>,
    /// What the person asked for, where the payload says so.
    pub prompt: Option<String>,
    /// The agent's last words.
    pub answer: Option<String>,
    /// Where the host keeps the conversation.
    pub transcript: Option<PathBuf>,
    /// Whether the host believes that a hook has made the agent go on.
    pub stop_hook_active: Option<bool>,
    /// Why there is nothing to judge yet, or any more: work goes on in the background, or the
    /// person stopped the agent.
    pub unfinished: Option<String>,
    /// The tool, for [`EventKind::ToolUsed`].
    pub tool: Option<ToolUse>,
}

/// What is wrong with a payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// It is not JSON.
    #[error("the payload of `{host}` is not JSON: {message}")]
    Json {
        /// The host.
        host: &'static str,
        /// Why.
        message: String,
    },
    /// It is JSON and no object.
    #[error("the payload of `{host}` is no JSON object")]
    NoObject {
        /// The host.
        host: &'static str,
    },
    /// A field is missing.
    #[error("the payload of `{host}` has no `{field}`")]
    Missing {
        /// The host.
        host: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A field holds something else.
    #[error("`{field}` in the payload of `{host}`: expected {expected}")]
    Kind {
        /// The host.
        host: &'static str,
        /// The field.
        field: &'static str,
        /// What was expected.
        expected: &'static str,
    },
}

/// The fields of one payload.
struct Fields<'a> {
    host: &'static str,
    map: &'a Map<String, Value>,
}

impl Fields<'_> {
    fn value(&self, field: &str) -> Option<&Value> {
        self.map.get(field).filter(|value| !value.is_null())
    }

    fn text(&self, field: &'static str) -> Result<Option<String>, EventError> {
        match self.value(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(EventError::Kind { host: self.host, field, expected: "a text" }),
        }
    }

    /// A text that is not empty.
    fn word(&self, field: &'static str) -> Result<Option<String>, EventError> {
        Ok(self.text(field)?.filter(|text| !text.trim().is_empty()))
    }

    fn path(&self, field: &'static str) -> Result<Option<PathBuf>, EventError> {
        Ok(self.word(field)?.map(PathBuf::from))
    }

    /// Hosts have been seen to leave it out, so what it holds is never an error.
    fn flag(&self, field: &str) -> Option<bool> {
        self.value(field).and_then(Value::as_bool)
    }

    fn count(&self, field: &str) -> usize {
        self.value(field).and_then(Value::as_array).map_or(0, Vec::len)
    }
}

impl Event {
    /// An event of a host that sends no payload.
    #[must_use]
    pub fn bare(kind: EventKind, name: &str) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            session: None,
            prompt_id: None,
            agent: None,
            directory: None,
            prompt: None,
            answer: None,
            transcript: None,
            stop_hook_active: None,
            unfinished: None,
            tool: None,
        }
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// When it is no JSON object, has no name of an event, or a field that is used holds
    /// something of another kind.
    pub fn read(host: Host, payload: &str) -> Result<Self, EventError> {
        if host == Host::Generic && payload.trim().is_empty() {
            return Ok(Self::bare(EventKind::Stop, "stop"));
        }
        let value = crate::config::json(payload)
            .map_err(|message| EventError::Json { host: host.name(), message })?;
        let Value::Object(map) = &value else {
            return Err(EventError::NoObject { host: host.name() });
        };
        let fields = Fields { host: host.name(), map };
        match host {
            Host::ClaudeCode | Host::Codex => common(&fields),
            Host::GeminiCli => gemini(&fields),
            Host::OpenHands => openhands(&fields),
            Host::Cursor => cursor(&fields),
            Host::Generic => generic(&fields),
        }
    }
}

fn named(fields: &Fields<'_>, field: &'static str) -> Result<String, EventError> {
    fields.word(field)?.ok_or(EventError::Missing { host: fields.host, field })
}

/// Claude Code, and Codex which has the same names.
fn common(fields: &Fields<'_>) -> Result<Event, EventError> {
    let name = named(fields, "hook_event_name")?;
    let kind = match name.as_str() {
        "UserPromptSubmit" => EventKind::Prompt,
        "Stop" => EventKind::Stop,
        "SubagentStop" => EventKind::SubagentStop,
        "PostToolUse" => EventKind::ToolUsed,
        _ => EventKind::Other,
    };
    let tool = match (kind, fields.word("tool_name")?) {
        (EventKind::ToolUsed, Some(name)) => {
            let input = fields.value("tool_input");
            let file = input.and_then(|input| {
                ["file_path", "notebook_path"].iter().find_map(|key| input[*key].as_str())
            });
            Some(ToolUse { name, file: file.map(PathBuf::from) })
        }
        _ => None,
    };
    let running = fields.count("background_tasks");
    let unfinished = (running > 0)
        .then(|| format!("{running} of the agent's tasks still run in the background"));
    Ok(Event {
        session: fields.word("session_id")?,
        prompt_id: fields.word("prompt_id")?,
        agent: fields.word("agent_id")?,
        directory: fields.path("cwd")?,
        prompt: if kind == EventKind::Prompt { fields.word("prompt")? } else { None },
        answer: fields.text("last_assistant_message")?,
        transcript: fields.path("transcript_path")?,
        stop_hook_active: fields.flag("stop_hook_active"),
        unfinished,
        tool,
        ..Event::bare(kind, &name)
    })
}

fn gemini(fields: &Fields<'_>) -> Result<Event, EventError> {
    let name = named(fields, "hook_event_name")?;
    let kind = match name.as_str() {
        "BeforeAgent" => EventKind::Prompt,
        "AfterAgent" => EventKind::Stop,
        _ => EventKind::Other,
    };
    Ok(Event {
        session: fields.word("session_id")?,
        directory: fields.path("cwd")?,
        prompt: fields.word("prompt")?,
        answer: fields.text("prompt_response")?,
        transcript: fields.path("transcript_path")?,
        stop_hook_active: fields.flag("stop_hook_active"),
        ..Event::bare(kind, &name)
    })
}

fn openhands(fields: &Fields<'_>) -> Result<Event, EventError> {
    let name = named(fields, "event_type")?;
    let kind = match name.as_str() {
        "UserPromptSubmit" => EventKind::Prompt,
        "Stop" => EventKind::Stop,
        _ => EventKind::Other,
    };
    Ok(Event {
        session: fields.word("session_id")?,
        directory: fields.path("working_dir")?,
        prompt: if kind == EventKind::Prompt { fields.word("message")? } else { None },
        ..Event::bare(kind, &name)
    })
}

fn cursor(fields: &Fields<'_>) -> Result<Event, EventError> {
    let name = named(fields, "hook_event_name")?;
    let kind = match name.as_str() {
        "beforeSubmitPrompt" => EventKind::Prompt,
        "stop" => EventKind::Stop,
        _ => EventKind::Other,
    };
    let roots = match fields.value("workspace_roots") {
        None => None,
        Some(Value::Array(roots)) => roots.first().and_then(Value::as_str).map(PathBuf::from),
        Some(_) => {
            let (field, expected) = ("workspace_roots", "a list of folders");
            return Err(EventError::Kind { host: fields.host, field, expected });
        }
    };
    let unfinished = match fields.word("status")?.as_deref() {
        Some("aborted") => Some("the person stopped the agent".to_owned()),
        Some("error") => Some("the agent ended by an error".to_owned()),
        _ => None,
    };
    Ok(Event {
        session: fields.word("conversation_id")?,
        directory: roots,
        prompt: if kind == EventKind::Prompt { fields.word("prompt")? } else { None },
        unfinished,
        ..Event::bare(kind, &name)
    })
}

/// Whatever of the usual names is there.
fn generic(fields: &Fields<'_>) -> Result<Event, EventError> {
    let name = fields.word("hook_event_name")?.unwrap_or_else(|| "stop".to_owned());
    let kind = match name.as_str() {
        "UserPromptSubmit" | "prompt" => EventKind::Prompt,
        _ => EventKind::Stop,
    };
    Ok(Event {
        session: fields.word("session_id")?,
        prompt_id: fields.word("prompt_id")?,
        directory: fields.path("cwd")?,
        prompt: fields.word("prompt")?,
        answer: fields.text("answer")?,
        ..Event::bare(kind, &name)
    })
}
