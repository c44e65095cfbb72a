//! Files in the shapes that other tools write, read without any mapping.

use std::path::Path;

use super::*;

fn cases(name: &str, options: &ReadOptions) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/dataset");
    read_with(&Source::open(&folder.join(name)).unwrap(), options).unwrap()
}

#[test]
fn alpaca_eval_outputs_are_cases() {
    let cases = cases("alpaca_eval.json", &options());
    assert_eq!(cases[0].input.as_deref(), Some("Name a river in Italy."));
    assert_eq!(cases[0].source.as_deref(), Some("small-model"));
    assert_eq!(cases[0].split.as_deref(), Some("eval"));
    assert_eq!(cases[0].metadata["dataset"], "own");
    assert_eq!(cases[1].output.as_deref(), Some(""));
}

#[test]
fn deepeval_test_cases_are_cases() {
    let case = &cases("deepeval.json", &options())[0];
    assert_eq!(case.output.as_deref(), Some("At nine."));
    assert_eq!(case.expected.as_deref(), Some("At 9:00."));
    assert_eq!(case.context.as_deref(), Some("Opening hours: 9 to 17.\nClosed on Sundays."));
    assert_eq!(case.metadata["channel"], "chat");
}

#[test]
fn inspect_samples_are_cases_without_an_output() {
    let cases = cases("inspect.jsonl", &bare());
    assert_eq!(
        cases[0].input.as_deref(),
        Some("system: Answer in one word.\n\nuser: Capital of Japan?")
    );
    assert_eq!(cases[0].expected.as_deref(), Some("Tokyo\n東京"));
    assert_eq!((cases[0].id.as_str(), cases[1].metadata["choices"][1].as_str()), ("1", Some("4")));
}

#[test]
fn openai_evals_samples_are_cases_without_an_output() {
    let case = &cases("openai_evals.jsonl", &bare())[0];
    assert_eq!(case.expected.as_deref(), Some("Tokyo"));
    assert!(case.input.as_ref().unwrap().starts_with("system: Answer"));
}

#[test]
fn promptfoo_tables_keep_assertions_as_metadata() {
    let cases = cases("promptfoo.csv", &options());
    assert_eq!(cases[0].input.as_deref(), Some("Say \"hi\""));
    assert_eq!(cases[0].output.as_deref(), Some("hi,\r\nthere"));
    assert_eq!((cases[0].expected.as_deref(), cases[1].expected.as_deref()), (None, None));
    assert_eq!(cases[0].metadata["__expected"], "contains: hi");
}

#[test]
fn ragas_samples_are_cases() {
    let case = &cases("ragas.jsonl", &options())[0];
    assert_eq!(case.context.as_deref(), Some("By A. Writer."));
    assert_eq!(case.expected.as_deref(), Some("A. Writer"));
}
