//! The tool `score`: one answer judged, and the ruling as a model is to read it.
//!
//! Some hosts show a model the structured answer alone, so all that helps stands in it. What
//! was not decided has no score here, whatever the votes that came in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::definition::{self, Definition};
use crate::case::Case;
use crate::panel::Panel;
use crate::report::words::{marks, missing_flags, panel_score, plural, reason};
use crate::ruling::{CriterionRuling, Decision, Finding, Ruling};
use crate::score::Score;
use crate::verdict::Status;

pub(super) const NAME: &str = "score";

/// What `score` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// What was asked: the task or question that the answer is for, in full.
    #[serde(alias = "input")]
    task: String,
    /// The answer to judge, in full.
    #[serde(alias = "output")]
    answer: String,
    /// A reference answer to compare with, where there is one.
    #[serde(default)]
    #[schemars(with = "String")]
    expected: Option<String>,
    /// Material that the answer should rest on, where there is some.
    #[serde(default)]
    #[schemars(with = "String")]
    context: Option<String>,
    /// Another answer to the same task, for judges that compare two.
    #[serde(default)]
    #[schemars(with = "String")]
    baseline: Option<String>,
}

impl Arguments {
    pub(super) fn read(arguments: Map<String, Value>) -> Result<Self, String> {
        definition::read(NAME, arguments)
    }
}

impl From<Arguments> for Case {
    fn from(arguments: Arguments) -> Self {
        let mut case = Self {
            input: Some(arguments.task),
            output: Some(arguments.answer),
            expected: arguments.expected,
            context: arguments.context,
            baseline: arguments.baseline,
            ..Self::default()
        };
        case.id = case.content_id();
        case
    }
}

/// A ruling as a model is to read it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct Scored {
    /// The decision and why, in one line.
    summary: String,
    /// `accept`, `reject`, or `undecided` where too few judges could vote: then the answer was
    /// not rejected, and it was not accepted.
    decision: Decision,
    /// The median of the votes, in [0,1]; null where nothing was decided.
    score: Option<Score>,
    /// The score that an accepted answer must reach.
    threshold: f64,
    /// Votes that came in.
    votes_used: u32,
    /// Votes asked for.
    votes_declared: u32,
    /// The least number of votes for a decision.
    quorum: u32,
    /// `degraded` where a vote is missing; `uncertified` or `uncalibrated` where nothing bounds
    /// the error of this ruling.
    marks: Vec<String>,
    /// Judges and criteria that reject whatever the score is.
    vetoes: Vec<String>,
    /// What to change, merged over the judges.
    feedback: Vec<Finding>,
    /// The medians by criterion.
    criteria: Vec<CriterionRuling>,
    /// What became of each judge.
    judges: Vec<Said>,
    /// The run that the ruling is kept in; null where it could not be kept.
    run: Option<String>,
    /// The case's id in it: what `explain` takes.
    case: String,
}

/// One judge's vote as a model is to read it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
struct Said {
    /// Its name.
    judge: String,
    /// `ok` where it voted, else why not.
    status: Status,
    /// Its vote in [0,1]; null where it gave none.
    score: Option<Score>,
    /// Whether the vote counts in the median.
    counted: bool,
    /// Whether it may reject alone.
    required: bool,
    /// Why there is no vote.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl Scored {
    pub(super) fn of(ruling: &Ruling, run: Option<String>) -> Self {
        let decided = ruling.decision != Decision::Undecided;
        let said = ruling.votes.iter().map(|vote| Said {
            judge: vote.judge.clone(),
            status: vote.status,
            score: vote.score,
            counted: vote.counted,
            required: vote.required,
            detail: Some(ruling.detail_of(&vote.judge).to_owned()).filter(|text| !text.is_empty()),
        });
        Self {
            summary: summary(ruling),
            decision: ruling.decision,
            score: ruling.score.filter(|_| decided),
            threshold: ruling.threshold,
            votes_used: ruling.votes_used,
            votes_declared: ruling.votes_declared,
            quorum: ruling.quorum,
            marks: marks(ruling).into_iter().map(str::to_owned).collect(),
            vetoes: ruling.vetoes().into_iter().map(str::to_owned).collect(),
            feedback: ruling.feedback.clone(),
            criteria: ruling.criteria.clone(),
            judges: said.collect(),
            run,
            case: ruling.case.clone(),
        }
    }
}

/// The decision and why, in one line.
pub(super) fn summary(ruling: &Ruling) -> String {
    let votes = plural(u64::from(ruling.votes_declared), "vote", "votes");
    let used = ruling.votes_used;
    if ruling.decision != Decision::Undecided {
        let (decision, score) = (ruling.decision.name(), panel_score(ruling));
        return format!("{decision}: score {score}, {used} of {votes}; {}", reason(ruling));
    }
    let lacking: Vec<String> = missing_flags(ruling)
        .into_iter()
        .map(|flag| match flag.trim_start_matches('-') {
            "input" => "`task`".to_owned(),
            field => format!("`{field}`"),
        })
        .collect();
    let next = match lacking.as_slice() {
        [] => "the judges without a vote could not measure it".to_owned(),
        lacking => format!("judges without a vote compare with {}", lacking.join(", ")),
    };
    format!("undecided: {used} of {votes}, {}; it was not rejected, {next}", reason(ruling))
}

pub(super) fn definition(panel: &Panel) -> Definition {
    let kinds = || panel.seats.iter().map(|seat| seat.judge.kind());
    let names: Vec<&str> = panel.seats.iter().map(|seat| seat.name.as_str()).collect();
    Definition {
        name: NAME,
        title: "Judge an answer",
        description: format!(
            "Judges an answer to a task with the panel `{}`: {} ({}) vote independently, and the median of their votes decides. Call it with the finished answer before you hand it in. `decision` is `accept`, `reject` (then `feedback` says what to change) or `undecided` (it could not be measured, and `score` is null: that is neither a pass nor a fail).",
            panel.name,
            plural(names.len() as u64, "judge", "judges"),
            names.join(", "),
        ),
        input_schema: definition::input::<Arguments>(),
        output_schema: definition::output::<Scored>(),
        // Programs and probes of the user's own may do anything.
        reads_only: kinds().all(|kind| matches!(kind, "llm" | "rule" | "replay")),
        open_world: kinds().any(|kind| matches!(kind, "llm" | "http" | "observe")),
    }
}

/// Says on the log which judges gave no vote: the host shows its user nothing of it.
pub(super) fn log(ruling: &Ruling) {
    for verdict in ruling.verdicts.iter().filter(|verdict| verdict.status.is_error()) {
        let detail = verdict.detail.as_deref().unwrap_or_default();
        tracing::warn!("`{}` has no vote: {}: {detail}", verdict.judge, verdict.status);
    }
}
