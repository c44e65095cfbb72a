use serde_json::json;

use super::*;

fn error(config: Value) -> String {
    match crate::config::from_value::<LlmSpec>(config) {
        Ok(spec) => spec.judging(Path::new("/nowhere"), &Value::Null).unwrap_err().to_string(),
        Err(problem) => problem.to_string(),
    }
}

#[test]
fn what_cannot_work_is_refused_with_the_key_and_the_cure() {
    for (config, parts) in [
        (json!({"mode": "choice"}), ["`choice_scores`", "2 to 20 labels"]),
        (
            json!({"mode": "choice", "choice_scores": {"a": 0, "b": 2}}),
            ["choice_scores.b", "[0,1]"],
        ),
        (
            json!({"mode": "choice", "choice_scores": {"Good": 0, "good": 1}}),
            ["choice_scores.good", "Good"],
        ),
        (json!({"mode": "checklist"}), ["`questions`", "at least one"]),
        (json!({"mode": "checklist", "questions": [" "]}), ["questions[0].text", "empty"]),
        (
            json!({"mode": "checklist", "questions": [{"text": "a", "weight": -1}]}),
            ["questions[0].weight", "-1"],
        ),
        (
            json!({"mode": "checklist", "questions": [{"text": "a", "weight": 0}]}),
            ["`questions`", "sum to 0"],
        ),
        (json!({"mode": "checklist", "questions": [{"txt": "a"}]}), ["questions[0]", "txt"]),
        (json!({"samples": 0}), ["`samples`", "1 or more"]),
        (json!({"max_tokens": 0}), ["`max_tokens`", "1 or more"]),
        (json!({"temperature": 3}), ["`temperature`", "[0,2]"]),
        (json!({"scale": "1-100"}), ["`scale`", "enumeration"]),
        (json!({"mode": "score", "scale": "1-100"}), ["`scale`", "enumeration"]),
        (json!({"mode": "score", "scale": "five"}), ["scale", "is not a scale"]),
        (json!({"mode": "yes_no", "scale": "1-5"}), ["`scale`", "does nothing in mode `yes_no`"]),
        (json!({"mode": "rubric", "questions": ["a"]}), ["`questions`", "`checklist`"]),
        (json!({"mode": "rubric", "criterion": "a"}), ["`criterion`", "does nothing"]),
        (
            json!({"mode": "score", "criterion": "a", "rubric": "general"}),
            ["`criterion`", "one of the two"],
        ),
        (json!({"mode": "score", "criterion": " "}), ["`criterion`", "empty"]),
        (json!({"rubric": "helpfulnes"}), ["`rubric`", "did you mean `helpfulness`?"]),
        (json!({"rubric": "mine.toml"}), ["`rubric`", "mine.toml"]),
        (json!({"logprobs": "require"}), ["`logprobs`", "no one-token answers"]),
        (
            json!({"mode": "yes_no", "logprobs": "require", "reasoning": true}),
            ["`logprobs`", "`reasoning`"],
        ),
        (json!({"template": "none.jinja"}), ["none.jinja", "`template`"]),
        (json!({"examples": "none.jsonl"}), ["none.jsonl", "`examples`"]),
        (json!({"rubrik": "general"}), ["rubrik", "did you mean `rubric`?"]),
        (json!({"mode": "yesno"}), ["mode", "did you mean `yes_no`?"]),
        (json!({"lang": "fr"}), ["lang", "fr"]),
    ] {
        let text = error(config.clone());
        assert!(parts.iter().all(|part| text.contains(part)), "{config}: {text}");
    }
}

#[test]
fn a_judge_without_a_model_is_refused() {
    let context = BuildContext::new("", crate::provider::Client::default());
    let error = LlmSpec::default().build(&context).unwrap_err().to_string();
    assert!(error.contains("`model`") && error.contains("provider/model"), "{error}");
}

#[test]
fn choices_stand_from_the_worst_to_the_best() {
    let spec: LlmSpec = crate::config::from_value(
        json!({"mode": "choice", "choice_scores": {"fine": 0.5, "awful": 0, "best": 1}}),
    )
    .unwrap();
    let labels: Vec<String> = spec.choices().unwrap().into_iter().map(|c| c.label).collect();
    assert_eq!(labels, ["awful", "fine", "best"]);
}

#[test]
fn questions_are_texts_or_tables() {
    let spec: LlmSpec = crate::config::from_value(
        json!({"questions": ["a", {"text": "b", "weight": 2, "required": true}]}),
    )
    .unwrap();
    let plain = Question { text: "a".into(), weight: 1.0, required: false };
    assert_eq!(spec.questions[0], plain);
    assert_eq!((spec.questions[1].weight, spec.questions[1].required), (2.0, true));
}

#[test]
fn a_configuration_survives_being_written_and_read() {
    let config = json!({"model": "openai/m", "mode": "choice", "choice_scores": {"a": 0.0, "b": 1.0}, "scale": "1-5", "examples": [{"output": "x", "answer": "a"}]});
    let spec: LlmSpec = crate::config::from_value(config).unwrap();
    let again: LlmSpec = crate::config::from_value(serde_json::to_value(&spec).unwrap()).unwrap();
    assert_eq!(spec, again);
}

#[test]
fn the_json_schema_names_every_key() {
    let schema = schemars::schema_for!(LlmSpec);
    let properties = schema.as_value()["properties"].as_object().unwrap();
    for key in ["model", "mode", "rubric", "choice_scores", "questions", "examples", "price"] {
        assert!(properties.contains_key(key), "{key}");
    }
    assert_eq!(schema.as_value()["additionalProperties"], json!(false));
}

#[test]
fn examples_come_from_files_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("e.jsonl", "{\"output\": \"x\", \"answer\": 4}\n\n{\"output\": \"y\", \"answer\": 2}\n"),
        ("e.json", r#"[{"output": "x", "answer": 4}, {"output": "y", "answer": 2}]"#),
        ("e.yaml", "- {output: x, answer: 4}\n- {output: z, answer: 2}\n"),
        (
            "e.toml",
            "[[examples]]\noutput = \"x\"\nanswer = 4\n[[examples]]\noutput = \"y\"\nanswer = 2\n",
        ),
    ];
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
        let examples = Examples::File(name.into()).read(folder.path()).unwrap();
        assert_eq!(examples.len(), 2, "{name}");
        assert_eq!(examples[1].answer, json!(2));
    }
    std::fs::write(folder.path().join("bad.jsonl"), "{}\n{\n").unwrap();
    let error = Examples::File("bad.jsonl".into()).read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
}
