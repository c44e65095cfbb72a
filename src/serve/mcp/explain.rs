//! The tool `explain`: a stored ruling with each judge's verdict and reasons.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::definition::{self, Definition};
use super::score::Scored;
use super::status::words;
use crate::report::words::{beginning, plain_lines};
use crate::store::Store;
use crate::verdict::Verdict;

pub(super) const NAME: &str = "explain";

/// Characters of a text of the case that are shown: the caller wrote it or can read it.
const SHOWN: usize = 2_000;

/// What `explain` takes.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The case: the `case` that `score` gave, or the beginning or end of one. Without it, the
    /// last ruling of the run.
    #[serde(default)]
    #[schemars(with = "String")]
    case: Option<String>,
    /// The run: the `run` that `score` gave, the beginning of one, or `latest`. Without it, the
    /// answers judged by this server, else the newest run.
    #[serde(default)]
    #[schemars(with = "String")]
    run: Option<String>,
}

/// A stored ruling.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct Explained {
    /// The panel that ruled.
    panel: String,
    /// The beginning of what was asked; null where the case says nothing of it.
    input: Option<String>,
    /// The beginning of what was judged; null where the case holds no text.
    output: Option<String>,
    /// The ruling.
    ruling: Scored,
    /// Each judge's verdicts: what it measured on its own scale, its scores by criterion, its
    /// reasons, what it cost, and which model answered.
    verdicts: Vec<Verdict>,
}

pub(super) fn definition() -> Definition {
    Definition {
        name: NAME,
        title: "Why it was decided so",
        description: "Explains a ruling that `score` or a run gave: each judge's verdict with its scores by criterion and reasons, and the feedback. Judges nothing and costs nothing.".into(),
        input_schema: definition::input::<Arguments>(),
        output_schema: definition::output::<Explained>(),
        reads_only: true,
        open_world: false,
    }
}

/// Looks a ruling up; `own` is the run of this server.
pub(super) fn look(
    arguments: &Arguments,
    store: &Path,
    own: Option<&str>,
) -> Result<Explained, String> {
    let store = Store::open(store).map_err(words)?;
    let named = arguments.run.as_deref().or(own).unwrap_or("latest");
    let run = match store.run(named) {
        Ok(run) => run,
        Err(_) if arguments.run.is_none() => {
            return Err("nothing was judged yet: call `score` first".into());
        }
        Err(error) => return Err(words(error)),
    };
    let position = match &arguments.case {
        Some(case) => store.position(&run, case).map_err(words)?,
        None => match store.decisions(run.number).map_err(words)?.last {
            Some(position) => position,
            None => return Err(format!("run `{}` has no ruling yet", run.id)),
        },
    };
    let case = store.case(run.number, position).map_err(words)?.unwrap_or_default();
    let Some(ruling) = store.ruling(run.number, position).map_err(words)? else {
        return Err(format!(
            "case `{}` of run `{}` has no ruling: its judges were not done",
            case.id, run.id
        ));
    };
    Ok(Explained {
        panel: run.panel_name,
        input: case.input.as_deref().map(shown),
        output: case.output.as_deref().map(shown),
        ruling: Scored::of(&ruling, Some(run.id)),
        verdicts: ruling.verdicts,
    })
}

/// A text without control characters, cut after its beginning.
fn shown(text: &str) -> String {
    match beginning(text, SHOWN) {
        (all, 0) => plain_lines(all),
        (start, left) => format!("{}… {left} more characters", plain_lines(start)),
    }
}
