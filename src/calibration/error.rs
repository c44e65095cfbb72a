//! What can be wrong with labels, verdicts and profiles that are to be calibrated.
//!
//! Data that are merely too few are no error: the statistic is then undefined, or the
//! threshold not certifiable, with the reason. An error is what no figure can be made of.

use crate::dataset::{DatasetError, RowError};
use crate::store::StoreError;

/// Why a calibration can't be made, written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// A data set can't be read.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A stored run can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A rule for what counts as good that can't be understood.
    #[error(
        "`{text}` is no rule for a good label: expected `>=4`, `=yes`, or a list such as `good,excellent`"
    )]
    Positive {
        /// What was written.
        text: String,
    },
    /// A number without a sign, which could mean it alone or everything from it on.
    #[error(
        "`{text}` alone is no rule for a good label: `>={text}` for {text} and above, `={text}` for exactly {text}"
    )]
    BareNumber {
        /// What was written.
        text: String,
    },
    /// Cases that were to bring their labels, and have none.
    #[error(
        "`{path}` holds no labels: name their column with `--map label=COLUMN`, or a file of labels with `--labels`"
    )]
    NoLabels {
        /// The file.
        path: String,
    },
    /// A rule that no label fits, nor can fit.
    #[error(
        "no label of criterion `{criterion}` is good by the rule `{rule}`: its labels are {}{}",
        quoted(.values),
        if *.more { " and more" } else { "" }
    )]
    PositiveMatchesNothing {
        /// The rule.
        rule: String,
        /// The criterion.
        criterion: String,
        /// Values that occur.
        values: Vec<String>,
        /// Whether there are further ones.
        more: bool,
    },
    /// A file with a header and nothing else.
    #[error("there is no {what}: the file has no rows below its header")]
    NoData {
        /// `label` or `judgement`.
        what: &'static str,
    },
    /// An accept rule that can't be understood.
    #[error("`{text}` is no accept rule: expected `>=` and a number, such as `>=4`")]
    Accept {
        /// What was written.
        text: String,
    },
    /// A sealed part that another candidate has opened.
    #[error(
        "the sealed part was opened on {date}{}: it certifies once, and this is another candidate; collect new labels",
        profile.as_ref().map_or(String::new(), |own| format!(" for `{own}`"))
    )]
    SealOpened {
        /// When.
        date: String,
        /// The profile that was made.
        profile: Option<String>,
    },
    /// A sealed part that is none, since labels of it were used before.
    #[error(
        "the sealed part is not unseen: labels of it were used on {date}; seal them with the same share from the first calibration on"
    )]
    SealBroken {
        /// When.
        date: String,
    },
    /// A sealed part that is everything, or nothing.
    #[error("{cases} cases are sealed and {open} are not: choose another share for `--sealed`")]
    SealEmpty {
        /// Sealed cases.
        cases: u64,
        /// The others.
        open: u64,
    },
    /// A ledger that can't be read or written.
    #[error("failed to {action} the ledger of looks `{path}`")]
    Ledger {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// `>=x` over labels that are words.
    #[error(
        "the rule `{rule}` needs numbers, and criterion `{criterion}` is labelled with words such as `{word}`: name the good ones, such as `={word}`"
    )]
    WordsNeedNames {
        /// The rule.
        rule: String,
        /// The criterion.
        criterion: String,
        /// A label.
        word: String,
    },
    /// The criterion is not in a file.
    #[error("no {what} has the criterion `{criterion}`{}; its criteria are {}", did_you_mean(.suggestion), quoted(.present))]
    UnknownCriterion {
        /// `label` or `judgement`.
        what: &'static str,
        /// The criterion asked for.
        criterion: String,
        /// The criteria there are.
        present: Vec<String>,
        /// What was likely meant.
        suggestion: Option<String>,
    },
    /// Several criteria, and none named.
    #[error("the labels have several criteria ({}): name one with `--criterion`", quoted(.present))]
    CriterionNeeded {
        /// The criteria there are.
        present: Vec<String>,
    },
    /// No case has both a label and a judgement.
    #[error(
        "no case has both a label and a judgement: {labelled} labelled and {judged} judged cases, such as `{label}` and `{judgement}`; check that both files use the same ids"
    )]
    NoOverlap {
        /// Labelled cases.
        labelled: usize,
        /// Judged cases.
        judged: usize,
        /// A labelled case.
        label: String,
        /// A judged case.
        judgement: String,
    },
    /// One judge's two recorded scores for the same case, order and sample.
    #[error(
        "judge `{judge}` is recorded twice on case `{case}` (lines {first} and {second}): number them in a `sample` column, or keep one"
    )]
    DuplicateJudgement {
        /// The judge.
        judge: String,
        /// The case.
        case: String,
        /// The line of the first.
        first: u64,
        /// The line of the second.
        second: u64,
    },
    /// A judge's score off its declared scale.
    #[error(
        "judge `{judge}` scored case `{case}` {value}, off its declared scale `{scale}` (line {line})"
    )]
    OffScale {
        /// The judge.
        judge: String,
        /// The case.
        case: String,
        /// The score.
        value: f64,
        /// The scale.
        scale: String,
        /// The line.
        line: u64,
    },
    /// A judge's declared scale, with nothing to bring it to.
    #[error(
        "the scale of judge `{judge}` is declared, but criterion `{criterion}` has no label scale to bring it to: declare it with `--label-scale`"
    )]
    NoLabelScale {
        /// The judge.
        judge: String,
        /// The criterion.
        criterion: String,
    },
    /// A scale or price for a judge that has no judgement.
    #[error("no judge is named `{judge}`{}; the judges are {}", did_you_mean(.suggestion), quoted(.present))]
    UnknownJudge {
        /// The name.
        judge: String,
        /// The judges there are.
        present: Vec<String>,
        /// What was likely meant.
        suggestion: Option<String>,
    },
    /// Judged cases, and no label for any.
    #[error(
        "none of the {judged} judged cases has a label: check that both files use the same ids"
    )]
    NoLabelledCase {
        /// Judged cases.
        judged: u64,
    },
    /// Two recordings without a common case.
    #[error(
        "`{first}` and `{second}` have no case in common, such as `{first_case}` and `{second_case}`: compare runs of the same data"
    )]
    NothingInCommon {
        /// The one.
        first: String,
        /// The other.
        second: String,
        /// A case of the one.
        first_case: String,
        /// A case of the other.
        second_case: String,
    },
    /// A case twice in one recording.
    #[error("case `{case}` stands twice in `{recording}`: it can't be matched")]
    CaseTwice {
        /// The case.
        case: String,
        /// Where.
        recording: String,
    },
    /// Pairs in both orders.
    #[error(
        "judge `{judge}` is recorded on case `{case}` in two orders (lines {first} and {second}): choose one with `--order`"
    )]
    BothOrders {
        /// The judge.
        judge: String,
        /// The case.
        case: String,
        /// The line of the one.
        first: u64,
        /// The line of the other.
        second: u64,
    },
    /// The same run twice.
    #[error("run `{run}` is named twice")]
    RunTwice {
        /// The run.
        run: String,
    },
    /// Two contenders of one name.
    #[error("two contenders are named `{name}`: give the panel another name")]
    ContenderTwice {
        /// The name.
        name: String,
    },
    /// A limit that can't be understood.
    #[error(
        "`{text}` is no limit: expected `METRIC=NUMBER` or `CONTENDER:METRIC=NUMBER`, with a metric of {}", quoted(.known)
    )]
    Limit {
        /// What was written.
        text: String,
        /// The metrics there are.
        known: Vec<String>,
    },
    /// A pattern that does not compile, or captures nothing.
    #[error("`{pattern}` is no group pattern: {message}")]
    GroupPattern {
        /// The pattern.
        pattern: String,
        /// Why.
        message: String,
    },
    /// A case without a group.
    #[error(
        "case `{case}` has no group by {rule}: every labelled case needs one, or cases that belong together may be split apart"
    )]
    NoGroup {
        /// The case.
        case: String,
        /// The field or pattern.
        rule: String,
    },
    /// Groups or splits from the cases, without a file of cases.
    #[error("{option} reads the cases: name them with `--items`")]
    ItemsNeeded {
        /// The option.
        option: &'static str,
    },
    /// A case whose split is none that calibration knows.
    #[error(
        "case `{case}` has the split `{split}`: expected `fit` (or `train`, `dev`) or `certify` (or `test`, `calibration`)"
    )]
    UnknownPart {
        /// The case.
        case: String,
        /// Its split.
        split: String,
    },
    /// The same group or content in both parts.
    #[error(
        "cases `{first}` (fit) and `{second}` (certify) {why}: what was fitted can't certify itself"
    )]
    PartsOverlap {
        /// A case of the fit part.
        first: String,
        /// A case of the certify part.
        second: String,
        /// What they share.
        why: &'static str,
    },
    /// A file of recorded loops that is not right.
    #[error("`{path}`, line {line}: {message}")]
    Trajectories {
        /// The file.
        path: String,
        /// The line, from 1; 0 for the whole.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A share over accepted outputs, asked of loops.
    #[error(
        "loops are certified by `false_positive_rate` or `expected`: a loop ends at its first accept, so the share of bad ones among the accepted is no order statistic; it is reported beside the certificate"
    )]
    LoopMode,
    /// A number outside its range.
    #[error("`{option}` is {value}: expected {expected}")]
    OutOfRange {
        /// The option.
        option: &'static str,
        /// The value.
        value: f64,
        /// What was expected.
        expected: &'static str,
    },
    /// A profile can't be read or written.
    #[error("failed to {action} profile `{path}`")]
    ProfileFile {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A profile that is no profile.
    #[error("`{path}` is no profile: {message}")]
    ProfileShape {
        /// The file.
        path: String,
        /// Why.
        message: String,
    },
    /// A profile of another format version.
    #[error(
        "profile `{path}` has the format version {found}: this program reads version {supported}; run `venire calibrate` again"
    )]
    ProfileVersion {
        /// The file.
        path: String,
        /// Its version.
        found: u64,
        /// The version understood.
        supported: u64,
    },
    /// A profile changed after it was written.
    #[error(
        "profile `{path}` was edited after it was written: its content hash is {found}, not {expected}; run `venire calibrate` again"
    )]
    ProfileEdited {
        /// The file.
        path: String,
        /// The hash of what it holds.
        found: String,
        /// The hash written in it.
        expected: String,
    },
    /// A profile for other judges.
    #[error(
        "profile `{name}` does not fit the panel: {}; calibrate this panel (`venire calibrate`), or go on with `--allow-mismatch`, which marks every result `uncalibrated`", .changes.join("; ")
    )]
    ProfileMismatch {
        /// The profile.
        name: String,
        /// What changed, one entry a judge.
        changes: Vec<String>,
    },
    /// A loop that may run longer than its certificate holds.
    #[error(
        "profile `{name}` is certified for loops of at most {certified} generation(s), and this one may run for {generations}: set `budget.max_generations = {certified}`, certify longer loops with `venire calibrate --trajectories`, or go on with `--allow-mismatch`, which marks every result `uncertified`"
    )]
    ProfileGenerations {
        /// The profile.
        name: String,
        /// The generations that the certificate holds for.
        certified: u32,
        /// The generations that the policy allows.
        generations: u32,
    },
    /// A profile that lacks what a panel needs of it.
    #[error("profile `{name}` can't be used: {message}")]
    ProfileUnusable {
        /// The profile.
        name: String,
        /// What is missing, and what to do.
        message: String,
    },
}

impl CalibrationError {
    /// Whether a profile was refused for what it is: edited, of another version, for other
    /// judges.
    #[must_use]
    pub fn refuses_profile(&self) -> bool {
        matches!(
            self,
            Self::ProfileVersion { .. }
                | Self::ProfileEdited { .. }
                | Self::ProfileMismatch { .. }
                | Self::ProfileGenerations { .. }
                | Self::ProfileUnusable { .. }
        )
    }
}

impl From<RowError> for CalibrationError {
    fn from(error: RowError) -> Self {
        Self::Dataset(error.into())
    }
}

fn did_you_mean(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|name| format!(", did you mean `{name}`?")).unwrap_or_default()
}

fn quoted(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(16).map(|name| format!("`{name}`")).collect();
    let more = names.len().saturating_sub(16);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
