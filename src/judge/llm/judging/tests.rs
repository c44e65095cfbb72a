use serde_json::json;

use super::*;
use crate::judge::llm::LlmSpec;
use crate::provider::TokenLogprobs;

fn judging(config: Value) -> Judging {
    let mut config = config;
    config["model"] = json!("openai/m");
    let spec: LlmSpec = crate::config::from_value(config).unwrap();
    spec.judging(std::path::Path::new(""), &json!("openai/m")).unwrap()
}

#[test]
fn show() {
    for c in [
        json!({"rubric":"summary"}),
        json!({"mode":"yes_no"}),
        json!({"mode":"choice","choice_scores":{"good":1,"bad":0},"lang":"zh"}),
        json!({"mode":"pairwise","reasoning":true,"rubric":"helpfulness"}),
        json!({"mode":"checklist","questions":["Is it short?","Is it true?"]}),
        json!({"mode":"score","scale":"unit"}),
    ] {
        let j = judging(c);
        let mut case = Case::new("q?", "an answer {{ x }}");
        case.baseline = Some("base".into());
        for m in &j.requests(&case, 0, j.first_form()).unwrap()[0].request.messages {
            println!("--- {:?}\n{}", m.role, m.content);
        }
    }
}
