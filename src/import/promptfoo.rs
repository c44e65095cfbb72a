//! promptfoo: `promptfoo eval -o results.json`, results version 3.
//!
//! A result is a case; each assertion is a judge by its type, and its metric the criterion. A
//! rating that a person gave in the viewer is a label. A grader that failed has no score, where
//! the file says so (`metadata.graderError`); older versions wrote 0, which is said.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::document::{Document, text_of};
use super::error::ImportError;
use super::sheet::Sheet;
use crate::case::Case;
use crate::dataset::{Judgement, Label, LabelSource, LabelValue};
use crate::verdict::Status;

const KNOWN: u64 = 3;
/// What the viewer calls a person's rating.
const PERSON: &str = "human";

#[derive(Deserialize)]
struct Probe {
    results: ProbeResults,
}

#[derive(Deserialize)]
struct ProbeResults {
    version: Option<Value>,
}

#[derive(Deserialize)]
struct File {
    results: Results,
    metadata: Option<FileMetadata>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileMetadata {
    promptfoo_version: Option<String>,
}

#[derive(Deserialize)]
struct Results {
    results: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    test_idx: u64,
    prompt_idx: u64,
    provider: Provider,
    prompt: Prompt,
    #[serde(default)]
    vars: Map<String, Value>,
    response: Option<Response>,
    grading_result: Option<Grading>,
    error: Option<String>,
    test_case: Option<TestCase>,
}

#[derive(Deserialize)]
struct Provider {
    id: Option<String>,
    label: Option<String>,
}

#[derive(Deserialize)]
struct Prompt {
    raw: String,
    label: Option<String>,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    output: Value,
}

#[derive(Deserialize)]
struct TestCase {
    description: Option<String>,
    metadata: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Grading {
    component_results: Option<Vec<Option<Component>>>,
}

#[derive(Deserialize)]
struct Component {
    pass: bool,
    score: Option<f64>,
    reason: Option<String>,
    assertion: Option<Assertion>,
    metadata: Option<Map<String, Value>>,
}

impl Row {
    fn components(&self) -> impl Iterator<Item = &Component> {
        let graded = self.grading_result.iter();
        graded.filter_map(|own| own.component_results.as_ref()).flatten().flatten()
    }

    fn says_failures(&self) -> bool {
        self.components().any(Component::failed)
    }
}

impl Component {
    fn failed(&self) -> bool {
        let flag = self.metadata.as_ref().and_then(|own| own.get("graderError"));
        flag == Some(&Value::Bool(true))
    }
}

#[derive(Deserialize)]
struct Assertion {
    #[serde(rename = "type")]
    kind: String,
    metric: Option<String>,
    threshold: Option<f64>,
}

pub(super) fn read(document: &Document, sheet: &mut Sheet) -> Result<Option<String>, ImportError> {
    let version = document.parse::<Probe>()?.results.version;
    if version.as_ref().and_then(Value::as_u64) != Some(KNOWN) {
        return Err(ImportError::Version {
            path: document.name().to_owned(),
            tool: "promptfoo",
            found: version.map_or("none".to_owned(), |own| own.to_string()),
            known: "3",
            cure: "write it again with `promptfoo export eval ID -o FILE.json` of a current promptfoo",
        });
    }
    let file: File = document.parse()?;
    let says_failures = file.results.results.iter().any(|row| row.says_failures());
    let mut groups: HashMap<String, u64> = HashMap::new();
    for (i, row) in file.results.results.into_iter().enumerate() {
        let place = format!("result {i}");
        // Repeats of a test are tests of their own; what was asked is the same.
        let asked = crate::canonical::canonical_json(&Value::Object(row.vars.clone()));
        let group = *groups.entry(asked).or_insert(row.test_idx);
        let case = case(&row, group, sheet, &place);
        let id = sheet.case(case, &place)?;
        judgements(&row, &id, says_failures, sheet, &place)?;
    }
    Ok(file.metadata.and_then(|own| own.promptfoo_version))
}

fn case(row: &Row, group: u64, sheet: &mut Sheet, place: &str) -> Case {
    let output = row.response.as_ref().and_then(|own| text_of(&own.output));
    if output.is_none() {
        sheet.note("no output: the provider failed, so there is nothing to judge", place);
    }
    let mut metadata = row.vars.clone();
    let mut add = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            metadata.entry(key).or_insert(value);
        }
    };
    add("prompt_label", row.prompt.label.clone().map(Value::from));
    if let Some(test) = &row.test_case {
        add("description", test.description.clone().map(Value::from));
        for (key, value) in test.metadata.iter().flatten() {
            add(key, Some(value.clone()));
        }
    }
    if output.is_none() {
        add("error", row.error.clone().map(Value::from));
    }
    let label = row.provider.label.clone().filter(|own| !own.is_empty());
    Case {
        id: format!("{}.{}", row.test_idx, row.prompt_idx),
        input: Some(row.prompt.raw.clone()),
        output,
        group: Some(format!("test-{group}")),
        source: label.or_else(|| row.provider.id.clone()),
        metadata,
        ..Case::default()
    }
}

fn judgements(
    row: &Row,
    id: &str,
    says_failures: bool,
    sheet: &mut Sheet,
    place: &str,
) -> Result<(), ImportError> {
    let mut met: HashMap<(&str, &str), u32> = HashMap::new();
    for component in row.components() {
        let Some(assertion) = &component.assertion else {
            sheet.note("a set of assertions: its parts are taken, its sum is not", place);
            continue;
        };
        let criterion = assertion.metric.as_deref().unwrap_or(Label::DEFAULT_CRITERION);
        if assertion.kind == PERSON {
            sheet.note("a person's rating in the viewer: a label", place);
            sheet.label(Label {
                case: id.to_owned(),
                rater: Label::DEFAULT_RATER.to_owned(),
                criterion: criterion.to_owned(),
                value: LabelValue::Number(f64::from(u8::from(component.pass))),
                label_source: LabelSource::Human,
            })?;
            continue;
        }
        let times = met.entry((&assertion.kind, criterion)).or_insert(0);
        *times += 1;
        let judge = match *times {
            1 => assertion.kind.clone(),
            n => format!("{}#{n}", assertion.kind),
        };
        if *times == 2 {
            sheet.note(
                format!(
                    "a test with several `{}`: they are `{0}`, `{0}#2` and so on, in the test's order",
                    assertion.kind
                ),
                place,
            );
        }
        let status = match (component.failed(), component.score) {
            (true, _) => {
                sheet.note("a grader that failed, its 0 is no score: `provider_error`", place);
                Status::ProviderError
            }
            (false, Some(_)) => Status::Ok,
            (false, None) => {
                sheet.note("a result without a score: `abstained`", place);
                Status::Abstained
            }
        };
        if !says_failures && component.score == Some(0.0) && by_model(&assertion.kind) {
            sheet.note(
                "a 0 by a model: versions of promptfoo without `graderError` write 0 for a grader that failed, too",
                place,
            );
        }
        let mut metadata = Map::new();
        metadata.insert("pass".to_owned(), component.pass.into());
        if let Some(threshold) = assertion.threshold {
            metadata.insert("threshold".to_owned(), threshold.into());
        }
        let judgement = Judgement {
            case: id.to_owned(),
            judge,
            criterion: criterion.to_owned(),
            status,
            score: component.score.filter(|_| status == Status::Ok),
            raw: None,
            order: None,
            sample: 0,
            feedback: component.reason.clone(),
            metadata,
        };
        sheet.judgement(judgement, place)?;
    }
    if met.is_empty() && row.response.is_some() {
        sheet.note("a result without assertions: a case, and no judgement", place);
    }
    Ok(())
}

/// Whether a model is asked by this assertion.
fn by_model(kind: &str) -> bool {
    const KINDS: [&str; 10] = [
        "llm-rubric",
        "g-eval",
        "factuality",
        "model-graded-closedqa",
        "model-graded-factuality",
        "answer-relevance",
        "context-faithfulness",
        "context-recall",
        "context-relevance",
        "search-rubric",
    ];
    KINDS.contains(&kind.strip_prefix("not-").unwrap_or(kind))
}
