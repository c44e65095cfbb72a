//! Why a result file can't be imported, and where.

use crate::dataset::DatasetError;

/// Why a file was not imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file can't be read, or a row of a table can't be used.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// Text that is not JSON.
    #[error("`{path}` line {line}: not valid JSON: {message}")]
    Json {
        /// The file.
        path: String,
        /// The line, from 1.
        line: u64,
        /// The parser's own words.
        message: String,
    },
    /// A field that is missing or has another type than the tool writes.
    #[error("`{path}` line {line}, field `{field}`: {message}")]
    Field {
        /// The file.
        path: String,
        /// The line, from 1.
        line: u64,
        /// The way to the field, as in `results.results[3].score`.
        field: String,
        /// What was found and expected.
        message: String,
    },
    /// A file of no tool that is known.
    #[error(
        "`{path}` is no result file that is understood: {found}; name the tool with `--from` (promptfoo, inspect, lm_eval, alpaca_eval, deepeval), or the columns of a table with `--judge NAME=COLUMN`"
    )]
    Unknown {
        /// The file.
        path: String,
        /// What it holds instead.
        found: String,
    },
    /// A layout of another version.
    #[error("`{path}` is a {tool} file of version {found}: version {known} is understood; {cure}")]
    Version {
        /// The file.
        path: String,
        /// The tool.
        tool: &'static str,
        /// The version of the file.
        found: String,
        /// The version that is understood.
        known: &'static str,
        /// What to do.
        cure: &'static str,
    },
    /// Inspect's packed format.
    #[error(
        "`{path}` is a packed Inspect log: turn it into JSON first, with `inspect log convert {path} --to json --output-dir FOLDER`"
    )]
    PackedLog {
        /// The file.
        path: String,
    },
    /// Two different cases of one id.
    #[error(
        "`{path}` has the id `{id}` for two different cases, in {first} and {second}: import one part of the file at a time"
    )]
    TwoCases {
        /// The file.
        path: String,
        /// The id.
        id: String,
        /// Where the first stands.
        first: String,
        /// Where the second stands.
        second: String,
    },
    /// One judge's word twice.
    #[error(
        "`{path}` has judge `{judge}` twice on case `{case}`, criterion `{criterion}`; the second stands in {place}"
    )]
    TwoJudgements {
        /// The file.
        path: String,
        /// The judge.
        judge: String,
        /// The case.
        case: String,
        /// The criterion.
        criterion: String,
        /// Where the second stands.
        place: String,
    },
    /// One rater's label twice.
    #[error(
        "`{path}` has two labels of rater `{rater}` on case `{case}`, criterion `{criterion}`: keep one"
    )]
    TwoLabels {
        /// The file.
        path: String,
        /// The rater.
        rater: String,
        /// The case.
        case: String,
        /// The criterion.
        criterion: String,
    },
    /// A value that can't be what it stands for.
    #[error("`{path}` {place}, field `{field}`: expected {expected}, found {found}")]
    Value {
        /// The file.
        path: String,
        /// Where, as in `line 3` or `result 7`.
        place: String,
        /// The field.
        field: String,
        /// What is expected there.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A column that no row of a table has.
    #[error("`{path}` has no column `{column}`; its columns are {}", .columns.join(", "))]
    NoColumn {
        /// The file.
        path: String,
        /// The column asked for.
        column: String,
        /// The columns there are.
        columns: Vec<String>,
    },
    /// A judge that is to be the truth and is not there.
    #[error("`{path}` has no judge `{judge}` to take labels from; its judges are {}", .judges.join(", "))]
    NoJudge {
        /// The file.
        path: String,
        /// The judge asked for.
        judge: String,
        /// The judges there are.
        judges: Vec<String>,
    },
    /// Columns named for a file that has none.
    #[error(
        "`--judge` and `--label` name columns of a table, and a {tool} file has none: leave them out"
    )]
    ColumnsOfNoTable {
        /// The tool.
        tool: &'static str,
    },
    /// A table without a word on its columns.
    #[error("which columns hold scores? name them with `--judge NAME=COLUMN`")]
    NoColumns,
    /// A `--judge` or `--label` without a column.
    #[error("`{text}` names no column: expected `COLUMN` or `NAME=COLUMN`")]
    ColumnSyntax {
        /// What was written.
        text: String,
    },
    /// A column that is named twice.
    #[error(
        "the column `{column}` is named twice, for `{first}` and for `{second}`: a column is the scores of one judge or the labels of one rater"
    )]
    ColumnTwice {
        /// The column.
        column: String,
        /// Who has it first.
        first: String,
        /// Who has it again.
        second: String,
    },
    /// A `--label-from` that says too little.
    #[error(
        "`{text}` says not what the truth rests on: expected `JUDGE=human`, `JUDGE=ground_truth` or `JUDGE=model`"
    )]
    TruthSyntax {
        /// What was written.
        text: String,
    },
    /// A file without a single result.
    #[error("`{path}` holds no results")]
    Empty {
        /// The file.
        path: String,
    },
}
