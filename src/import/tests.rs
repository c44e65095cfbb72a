use super::*;
use crate::dataset::{LabelSource, LabelValue};
use crate::verdict::Status;

fn read_as(name: &str, text: &str, options: &ImportOptions) -> Result<Imported, ImportError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    import(&path, options)
}

fn read(name: &str, text: &str) -> Imported {
    read_as(name, text, &ImportOptions::default()).unwrap()
}

fn refused(name: &str, text: &str) -> String {
    read_as(name, text, &ImportOptions::default()).unwrap_err().to_string()
}

fn notes(imported: &Imported) -> String {
    imported.notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

const PROMPTFOO: &str = r#"{"evalId": "e", "config": {}, "metadata": {"promptfooVersion": "0.121.20"},
"results": {"version": 3, "timestamp": "t", "prompts": [], "stats": {}, "results": [
 {"testIdx": 0, "promptIdx": 0, "provider": {"id": "echo", "label": ""},
  "prompt": {"raw": "Say Lima", "label": "Say {{city}}"}, "vars": {"city": "Lima"},
  "response": {"output": "Lima!"}, "failureReason": 1, "success": false, "score": 0.5,
  "testCase": {"vars": {"city": "Lima"}, "description": "first"},
  "gradingResult": {"pass": false, "score": 0.5, "reason": "x", "componentResults": [
    {"pass": true, "score": 0.9, "reason": "because", "assertion": {"type": "llm-rubric", "value": "polite?", "metric": "polite"}},
    {"pass": false, "score": 0, "reason": "no JSON", "metadata": {"graderError": true}, "assertion": {"type": "llm-rubric", "value": "kind?"}},
    {"pass": true, "score": 1, "reason": "ok", "assertion": {"type": "contains", "value": "L"}},
    {"pass": false, "score": 0, "reason": "no", "assertion": {"type": "contains", "value": "z"}},
    {"pass": true, "score": 1, "reason": "set", "metadata": {"assertionSet": {}}, "componentResults": []},
    {"pass": false, "score": 0, "reason": "Manual result", "comment": "meh", "assertion": {"type": "human"}},
    null]}},
 {"testIdx": 3, "promptIdx": 0, "provider": {"id": "echo", "label": "Mine"},
  "prompt": {"raw": "Say Lima"}, "vars": {"city": "Lima"}, "error": "boom", "failureReason": 2,
  "gradingResult": null},
 {"testIdx": 4, "promptIdx": 1, "provider": {"id": "echo"}, "prompt": {"raw": "说"}, "vars": {"city": "利马"},
  "response": {"output": {"a": [1]}}, "gradingResult": {"pass": true, "score": 1}}]}}"#;

#[test]
fn a_failed_grader_of_promptfoo_is_no_zero_and_a_person_is_a_label() {
    let own = read("r.json", PROMPTFOO);
    assert_eq!((own.tool, own.version.as_deref()), (Tool::Promptfoo, Some("0.121.20")));
    assert_eq!(own.cases.len(), 3);
    let said: Vec<(&str, &str, Status, Option<f64>)> = own
        .judgements
        .iter()
        .map(|own| (own.judge.as_str(), own.criterion.as_str(), own.status, own.score))
        .collect();
    assert_eq!(
        said,
        [
            ("llm-rubric", "polite", Status::Ok, Some(0.9)),
            ("llm-rubric", "overall", Status::ProviderError, None),
            ("contains", "overall", Status::Ok, Some(1.0)),
            ("contains#2", "overall", Status::Ok, Some(0.0)),
        ]
    );
    assert_eq!(own.labels.len(), 1);
    assert_eq!(own.labels[0].value, LabelValue::Number(0.0));
    assert_eq!(own.labels[0].label_source, LabelSource::Human);
    let notes = notes(&own);
    for said in
        ["grader that failed", "a set of assertions", "provider failed", "without assertions"]
    {
        assert!(notes.contains(said), "{said}: {notes}");
    }
    assert!(!notes.contains("a 0 by a model"), "this file says which graders failed: {notes}");
}

#[test]
fn repeats_of_one_test_are_one_group_and_a_failed_provider_leaves_no_output() {
    let own = read("r.json", PROMPTFOO);
    let facts: Vec<_> = own
        .cases
        .iter()
        .map(|case| (case.id.as_str(), case.group.as_deref(), case.output.as_deref()))
        .collect();
    assert_eq!(
        facts,
        [
            ("0.0", Some("test-0"), Some("Lima!")),
            ("3.0", Some("test-0"), None),
            ("4.1", Some("test-4"), Some("{\"a\":[1]}"))
        ]
    );
    assert_eq!(own.without_output(), 1);
    assert_eq!(own.cases[1].source.as_deref(), Some("Mine"));
    assert_eq!(own.cases[0].source.as_deref(), Some("echo"), "an empty label is none");
}

#[test]
fn a_zero_by_a_model_is_doubted_where_the_file_says_of_no_grader_that_it_failed() {
    let text = PROMPTFOO.replace("graderError", "other");
    assert!(notes(&read("r.json", &text)).contains("a 0 by a model"));
}

#[test]
fn another_version_is_refused_with_what_is_known_and_what_helps() {
    let error = refused("r.json", &PROMPTFOO.replace("\"version\": 3", "\"version\": 2"));
    assert!(error.contains("version 2: version 3 is understood"), "{error}");
    assert!(error.contains("promptfoo export"), "{error}");
    let error = refused("r.json", &PROMPTFOO.replace("\"version\": 3, ", ""));
    assert!(error.contains("version none"), "{error}");
    let error = refused("l.json", &INSPECT.replace("\"version\": 2", "\"version\": 9"));
    assert!(error.contains("version 9") && error.contains("inspect log convert"), "{error}");
}

#[test]
fn a_field_of_another_type_is_named_with_line_and_way() {
    let error = refused("r.json", &PROMPTFOO.replace("\"score\": 0.9", "\"score\": \"high\""));
    assert!(error.contains("line 8"), "{error}");
    let way = "`results.results[0].gradingResult.componentResults[0].score`";
    assert!(error.contains(way), "{error}");
    let error = refused("r.json", &PROMPTFOO[..700]);
    assert!(error.contains("not valid JSON"), "{error}");
}

const INSPECT: &str = r#"{"version": 2, "status": "success",
"eval": {"task": "demo", "model": "m/x", "packages": {"inspect_ai": "0.3.285"}},
"samples": [
 {"id": 1, "epoch": 1, "input": "attachment://ab12", "target": ["a", "b"],
  "output": {"choices": [{"message": {"role": "assistant", "content": "GRADE"}}], "completion": "GRADE"},
  "attachments": {"ab12": "long text"}, "metadata": {"t": 1},
  "scores": {
    "match": {"value": "C", "explanation": "same", "history": []},
    "graded": {"value": NaN, "reason": "grader_failed", "explanation": "Infinity is no grade", "history": []},
    "two": {"value": {"x": 1, "y": 0.5}, "history": []},
    "many": {"value": [1, 2], "history": []},
    "edited": {"value": "I", "explanation": "mine", "history": [
      {"value": "P", "explanation": "theirs", "metadata": {}},
      {"value": "I", "explanation": "mine", "provenance": {"timestamp": "t", "author": "anna"}}]}}},
 {"id": "q2", "epoch": 2, "target": "", "error": {"message": "boom"},
  "input": [{"id": "z", "source": "input", "role": "user", "content": [{"type": "text", "text": "hi"}]}],
  "output": {"choices": [], "completion": ""}, "scores": {"match": {"value": "N"}}}]}"#;

#[test]
fn an_inspect_log_gives_epochs_as_cases_and_unscored_as_no_score() {
    let own = read("l.json", INSPECT);
    assert_eq!(own.version.as_deref(), Some("0.3.285"));
    assert_eq!(own.cases[0].input.as_deref(), Some("long text"));
    assert_eq!(own.cases[0].expected.as_deref(), Some("a\nb"));
    assert_eq!(own.cases[0].id, "1/1");
    assert_eq!(own.cases[1].input.as_deref(), Some("user: hi"));
    assert_eq!((own.cases[1].output.as_ref(), own.cases[1].expected.as_ref()), (None, None));
    assert_eq!(own.cases[1].group.as_deref(), Some("q2"));
    let of = |judge: &str, criterion: &str| {
        let is = |own: &&Judgement| own.judge == judge && own.criterion == criterion;
        own.judgements.iter().find(is).unwrap()
    };
    assert_eq!(of("match", "overall").score, Some(1.0));
    assert_eq!(
        (of("graded", "overall").status, of("graded", "overall").score),
        (Status::Unparseable, None)
    );
    assert_eq!(of("graded", "overall").feedback.as_deref(), Some("Infinity is no grade"));
    assert_eq!((of("two", "x").score, of("two", "y").score), (Some(1.0), Some(0.5)));
    assert!(own.judgements.iter().all(|own| own.judge != "many"));
    assert!(notes(&own).contains("`many` is a list"), "{}", notes(&own));
}

#[test]
fn an_edit_is_a_label_by_its_author_beside_the_scorers_own_word() {
    let own = read("l.json", INSPECT);
    let scorer = own.judgements.iter().find(|own| own.judge == "edited").unwrap();
    assert_eq!((scorer.score, scorer.feedback.as_deref()), (Some(0.5), Some("theirs")));
    assert_eq!(own.labels.len(), 1);
    assert_eq!(
        (own.labels[0].rater.as_str(), &own.labels[0].value),
        ("anna", &LabelValue::Number(0.0))
    );
}

#[test]
fn words_that_are_no_score_and_texts_that_are_missing_are_refused() {
    let error = refused("l.json", &INSPECT.replace("\"value\": \"C\"", "\"value\": \"good\""));
    assert!(error.contains("sample 0") && error.contains("`scores.match.value`"), "{error}");
    let error = refused("l.json", &INSPECT.replace("\"ab12\": ", "\"other\": "));
    assert!(error.contains("attachment"), "{error}");
    let error = refused("x.eval", "PK");
    assert!(error.contains("inspect log convert"), "{error}");
}

const LM_EVAL: &str = r#"{"doc_id": 0, "doc": {"q": "2+2"}, "target": "4", "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": {"until": []}}}, "resps": [["It is 4"]], "filtered_resps": ["4"], "filter": "strict", "metrics": ["exact_match", "bleu"], "exact_match": 1.0, "bleu": ["4", "4"]}
{"doc_id": 0, "doc": {"q": "2+2"}, "target": "4", "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": {"until": []}}}, "resps": [["It is 4"]], "filtered_resps": ["4"], "filter": "loose", "metrics": ["exact_match"], "exact_match": NaN}

{"doc_id": 1, "doc": {}, "target": "1", "arguments": [["P", " a"], ["P", " b"]], "resps": [[["-1", "False"]], [["-2", "True"]]], "filtered_resps": [], "filter": "none", "metrics": ["acc"], "acc": true}
"#;

#[test]
fn filters_of_lm_eval_are_judges_of_one_case_and_likelihoods_leave_no_output() {
    let own = read("samples_arc_easy_2026-11-30T10-00-00.1.jsonl", LM_EVAL);
    assert_eq!(own.tool, Tool::LmEval);
    let ids: Vec<&str> = own.cases.iter().map(|own| own.id.as_str()).collect();
    assert_eq!(ids, ["arc_easy/0", "arc_easy/1"]);
    assert_eq!(own.cases[0].output.as_deref(), Some("It is 4"));
    assert_eq!((own.cases[1].input.as_deref(), own.cases[1].output.as_ref()), (Some("P"), None));
    let said: Vec<(&str, Option<f64>)> =
        own.judgements.iter().map(|own| (own.judge.as_str(), own.score)).collect();
    assert_eq!(
        said,
        [("exact_match,strict", Some(1.0)), ("exact_match,loose", None), ("acc", Some(1.0))]
    );
    let said = notes(&own);
    assert!(said.contains("`bleu` is no number") && said.contains("likelihood"), "{said}");
}

#[test]
fn rows_of_lm_eval_that_lack_a_field_are_named_by_line() {
    let error = refused("samples.jsonl", &LM_EVAL.replace("\"metrics\": [\"acc\"], ", ""));
    assert!(error.contains("line 4, field `metrics`"), "{error}");
    let error = refused("samples.jsonl", &LM_EVAL.replace("\"acc\": true", "\"acc\": \"yes\""));
    assert!(error.contains("line 4, field `acc`: expected a number"), "{error}");
}

#[test]
fn an_exact_match_becomes_the_truth_only_when_it_is_named() {
    let options = |text: &str| ImportOptions {
        truths: vec![text.parse().unwrap()],
        id_prefix: "a-".into(),
        ..ImportOptions::default()
    };
    let own = read_as("s.jsonl", LM_EVAL, &options("exact_match,strict=ground_truth")).unwrap();
    assert_eq!(own.labels.len(), 1);
    assert_eq!(
        (own.labels[0].case.as_str(), own.labels[0].label_source),
        ("a-0", LabelSource::GroundTruth)
    );
    assert!(own.judgements.iter().all(|own| own.judge != "exact_match,strict"));
    let own = read_as("s.jsonl", LM_EVAL, &options("exact_match,loose=human")).unwrap();
    assert!(own.labels.is_empty() && notes(&own).contains("no label"), "{}", notes(&own));
    let error = read_as("s.jsonl", LM_EVAL, &options("acc2=model")).unwrap_err().to_string();
    assert!(error.contains("`acc2`") && error.contains("`acc`"), "{error}");
    for wrong in ["acc", "acc=truth", "=human"] {
        assert!(wrong.parse::<Truth>().is_err(), "{wrong}");
    }
}

#[test]
fn a_preference_is_the_score_of_the_second_output_and_a_draw_is_half() {
    let row = |annotator: &str, preference: &str| {
        format!(
            r#"{{"instruction": "问", "output_1": "A", "output_2": "B", "generator_1": "base",
            "generator_2": "mine", "annotator": "{annotator}", "preference": {preference},
            "price_per_example": 0.001, "time_per_example": 0.5, "raw_completion": {{"x": 1}}}}"#
        )
    };
    let rows: Vec<String> = [("a", "1"), ("b", "2.0"), ("c", "1.5"), ("d", "0"), ("e", "NaN")]
        .map(|(annotator, preference)| row(annotator, preference))
        .to_vec();
    let own = read("annotations.json", &format!("[{}]", rows.join(",")));
    assert_eq!(own.cases.len(), 1, "five words on one pair");
    assert_eq!(own.cases[0].baseline.as_deref(), Some("A"));
    let scores: Vec<Option<f64>> = own.judgements.iter().map(|own| own.score).collect();
    assert_eq!(scores, [Some(0.0), Some(1.0), Some(0.5), Some(0.5), None]);
    assert_eq!(own.judgements[4].status, Status::Unparseable);
    assert_eq!(own.judgements[0].metadata["latency_ms"], 500.0);
    let error = refused("a.json", &format!("[{}]", row("a", "3")));
    assert!(error.contains("row 0, field `preference`"), "{error}");
    let error = refused("a.json", &format!("[{}, {}]", row("a", "1"), row("a", "2")));
    assert!(error.contains("judge `a` twice"), "{error}");
    let error = refused("a.json", &format!("[{}]", row("a", "1").replace("instruction", "prompt")));
    assert!(error.contains("missing field `instruction`"), "{error}");
}

const DEEPEVAL: &str = r#"{"testCases": [
 {"name": "test_it", "input": "q", "actualOutput": "a", "expectedOutput": "e", "context": ["c"],
  "retrievalContext": ["r", "s"], "success": true, "metricsData": [
   {"name": "Relevancy", "threshold": 0.5, "success": true, "score": 0.8, "reason": "ok", "evaluationModel": "gpt"},
   {"name": "Faith", "threshold": 0.5, "success": false, "score": 0.0, "error": "ValueError: down"}]},
 {"name": "test_it", "input": "q2", "actualOutput": "b", "metricsData": [{"name": "Faith", "success": false}]}],
 "conversationalTestCases": [{"name": "talk", "scenario": "refund", "metricsData": [],
   "turns": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]}]}"#;

#[test]
fn a_metric_with_an_error_has_no_score_and_one_name_for_many_cases_is_numbered() {
    for text in [DEEPEVAL.to_owned(), format!("{{\"testRunData\": {DEEPEVAL}}}")] {
        let own = read("run.json", &text);
        let ids: Vec<&str> = own.cases.iter().map(|own| own.id.as_str()).collect();
        assert_eq!(ids, ["test_it/0", "test_it/1", "talk"]);
        let said: Vec<(Status, Option<f64>)> =
            own.judgements.iter().map(|own| (own.status, own.score)).collect();
        assert_eq!(
            said,
            [(Status::Ok, Some(0.8)), (Status::ProviderError, None), (Status::Abstained, None)]
        );
        assert_eq!(own.judgements[1].feedback.as_deref(), Some("ValueError: down"));
        assert_eq!(own.cases[0].context.as_deref(), Some("r\ns"));
        assert_eq!(own.cases[2].output.as_deref(), Some("user: hi\n\nassistant: yes?"));
        assert!(notes(&own).contains("the retrieved one"), "{}", notes(&own));
    }
}

fn table_of(text: &str, judges: &[&str], labels: &[&str]) -> Result<Imported, ImportError> {
    let columns = |own: &[&str]| own.iter().map(|own| own.parse().unwrap()).collect();
    let options = ImportOptions {
        judges: columns(judges),
        labels: columns(labels),
        map: FieldMap::parse(["id=nr"]).unwrap(),
        ..ImportOptions::default()
    };
    read_as("t.csv", text, &options)
}

#[test]
fn columns_of_a_table_are_judges_and_raters_and_leave_the_case() {
    let text = "nr,question,answer,gpt,rating,verdict,note\n1,问?,好,4,2,good,x\n2,b,c,,1,,y\n";
    let own = table_of(text, &["gpt", "other=rating"], &["anna=verdict"]).unwrap();
    assert_eq!(own.cases[0].output.as_deref(), Some("好"));
    assert_eq!(own.cases[0].metadata.keys().collect::<Vec<_>>(), ["note"]);
    let said: Vec<(&str, Option<f64>)> =
        own.judgements.iter().map(|own| (own.judge.as_str(), own.score)).collect();
    assert_eq!(
        said,
        [("gpt", Some(4.0)), ("other", Some(2.0)), ("gpt", None), ("other", Some(1.0))]
    );
    assert_eq!(own.judgements[2].status, Status::Abstained);
    assert_eq!(own.labels.len(), 1);
    assert_eq!(own.labels[0].value, LabelValue::Text("good".into()));
    assert!(notes(&own).contains("no label of `anna`"), "{}", notes(&own));
}

#[test]
fn an_id_made_of_the_content_knows_nothing_of_scores() {
    let text = |score: &str| format!("nr,answer,gpt\n,a,{score}\n");
    let first = table_of(&text("1"), &["gpt"], &[]).unwrap();
    let second = table_of(&text("5"), &["gpt"], &[]).unwrap();
    assert_eq!(first.cases[0].id, second.cases[0].id);
}

#[test]
fn cells_and_columns_that_do_not_fit_are_named() {
    let error = table_of("nr,answer,gpt\n1,a,high\n", &["gpt"], &[]).unwrap_err().to_string();
    assert!(error.contains("line 2, field `gpt`: expected a number"), "{error}");
    let error = table_of("nr,answer,gpt\n1,a,1\n", &["gpd"], &[]).unwrap_err().to_string();
    assert!(error.contains("no column `gpd`") && error.contains("`gpt`"), "{error}");
    let error = table_of("nr,answer,x\n1,a,1\n1,b,1\n", &[], &["x"]);
    assert!(matches!(error, Err(ImportError::TwoCases { .. })), "{error:?}");
    let error = table_of("nr,answer,x\n1,a,1\n1,a,0\n", &[], &["x"]);
    assert!(matches!(error, Err(ImportError::TwoLabels { .. })), "{error:?}");
    let own = table_of("nr,answer,gpt\n1,a,\n", &["gpt"], &[]).unwrap();
    assert!(notes(&own).contains("empty throughout"), "{}", notes(&own));
}

#[test]
fn what_is_no_result_file_is_refused_with_what_it_holds() {
    for (name, text, said) in [
        ("x.json", r#"{"a": 1, "b": 2}"#, "`a`, `b`"),
        ("x.json", r#"[{"case": 1}]"#, "`case`"),
        ("x.json", "[1]", "something else than rows"),
        ("x.jsonl", r#"{"case": 1}"#, "`case`"),
        ("x.csv", "a,b\n1,2\n", "--judge"),
        ("x.json", "[]", "holds no results"),
        ("x.jsonl", "\n\n", "holds no results"),
        ("x.json", "", "not valid JSON"),
        ("x.db", "", "DEEPEVAL_LOCAL_STORE"),
    ] {
        let error = refused(name, text);
        assert!(error.contains(said), "{name} {text}: {error}");
    }
    let options = ImportOptions {
        judges: vec!["gpt".parse().unwrap()],
        tool: Some(Tool::Inspect),
        ..ImportOptions::default()
    };
    assert!(matches!(
        read_as("l.json", INSPECT, &options),
        Err(ImportError::ColumnsOfNoTable { .. })
    ));
}

#[test]
fn words_of_python_become_null_outside_texts_alone() {
    use super::document::finite;
    assert_eq!(
        finite(r#"{"a": NaN, "b": [-Infinity,Infinity]}"#),
        r#"{"a": null, "b": [null,null]}"#
    );
    let text = r#"{"a": "NaN \" Infinity 你"}"#;
    assert_eq!(finite(text), text);
}
