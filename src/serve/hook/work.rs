//! What of an agent's work is judged: the task, and the changes or the last words.

use std::path::Path;

use super::event::Event;
use super::judging::Hook;
use super::ledger::{Session, Turn};
use super::outcome::Outcome;
use super::transcript;
use super::workspace::Workspace;
use crate::case::Case;

/// Bytes of a file that a tool wrote beyond which it is not judged.
const MOST_OF_FILE: u64 = 4 << 20;

/// What of an agent's work is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputFrom {
    /// The changes of the workspace where there are some, else the agent's last words.
    #[default]
    Auto,
    /// The changes of the workspace.
    Changes,
    /// The agent's last words.
    Answer,
}

impl Hook {
    /// What is judged, and the tree of the workspace.
    pub(super) async fn case(
        &self,
        event: &Event,
        outcome: &mut Outcome,
        workspace: &Workspace,
        session: &Session,
    ) -> Result<(Case, Option<String>), String> {
        let tree = workspace.tree().await.map_err(|error| error.to_string())?;
        outcome.workspace.clone_from(&tree);
        let changes = match (&tree, self.output) {
            (None, OutputFrom::Changes) => {
                return Err(format!("`{}` is not under git", workspace.root().display()));
            }
            (None, _) | (_, OutputFrom::Answer) => None,
            (Some(tree), _) => {
                let base = match &session.base {
                    Some(base) => base.clone(),
                    None => workspace.committed().await.map_err(|error| error.to_string())?,
                };
                let changes = workspace.changes(base, tree.clone()).await;
                Some(changes.map_err(|error| error.to_string())?.text)
            }
        };
        let (from, output) = match (changes, self.output) {
            (Some(changes), OutputFrom::Changes) => ("changes", changes),
            (Some(changes), _) if !changes.is_empty() => ("changes", changes),
            _ => ("answer", event.answer.clone().unwrap_or_default()),
        };
        outcome.output = Some(from.to_owned());
        let input = self.task(event, outcome, session);
        let mut case = Case { input, output: Some(output), ..Case::default() };
        case.id = case.content_id();
        Ok((case, tree))
    }

    /// What the agent was asked for.
    fn task(&self, event: &Event, outcome: &mut Outcome, session: &Session) -> Option<String> {
        let own = |prompt: &str| session.is_own_words(prompt);
        if let Some(task) = self.task.as_ref().or(session.task.as_ref()) {
            return Some(task.clone());
        }
        if let Some(prompt) = event.prompt.as_ref().filter(|prompt| !own(prompt)) {
            return Some(prompt.clone());
        }
        let transcript = event.transcript.as_ref()?;
        match transcript::last_prompt(transcript, own) {
            Ok(prompt) => prompt,
            Err(error) => {
                let path = transcript.display();
                outcome.warnings.push(format!("the transcript `{path}` can't be read: {error}"));
                None
            }
        }
    }
}

/// The agent's words since it was made to go on: Gemini CLI sends those before once more.
pub(super) fn latest(event: &Event, turn: &mut Turn) -> Option<String> {
    let all = event.answer.clone()?;
    let rest = turn.said.as_deref().and_then(|before| all.strip_prefix(before));
    let rest = rest.and_then(|rest| rest.strip_prefix('\n')).map(str::to_owned);
    turn.said = Some(all);
    rest
}

/// The text of a file of the workspace; `None` for whatever no judge of text can judge.
pub(super) fn written(file: &Path, workspace: &Workspace) -> Option<String> {
    let path = workspace.root().join(file).canonicalize().ok()?;
    let metadata = path.metadata().ok()?;
    let inside = path.starts_with(workspace.root());
    if !inside || !metadata.is_file() || metadata.len() > MOST_OF_FILE {
        return None;
    }
    std::fs::read_to_string(path).ok()
}
