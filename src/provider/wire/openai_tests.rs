use super::super::Wire;
use super::*;
use crate::provider::{Message, Role};

const REPLY: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1,
    "model":"gpt-4.1-mini-2025-04-14","choices":[{"index":0,"message":{"role":"assistant",
    "content":"Yes","refusal":null,"annotations":[]},"logprobs":{"content":[{"token":"Yes",
    "logprob":-0.1,"bytes":[89],"top_logprobs":[{"token":"Yes","logprob":-0.1,"bytes":null},
    {"token":"No","logprob":-2.4,"bytes":null}]}],"refusal":null},"finish_reason":"stop"}],
    "usage":{"prompt_tokens":50,"completion_tokens":21,"total_tokens":71,
    "prompt_tokens_details":{"cached_tokens":32},
    "completion_tokens_details":{"reasoning_tokens":20}}}"#;

fn request() -> ChatRequest {
    ChatRequest {
        messages: vec![Message { role: Role::User, content: "好吗?\n\"x\"".into() }],
        temperature: Some(0.0),
        seed: Some(9),
        max_tokens: Some(8),
        response_format: ResponseFormat::JsonSchema {
            name: "verdict".into(),
            schema: json!({"type": "object"}),
        },
        top_logprobs: Some(5),
    }
}

fn encoded(plan: Plan, seed_field: &'static str) -> Value {
    let extra = Map::new();
    let target = Target { model: "m", seed_field, extra_body: &extra };
    serde_json::from_slice(&encode(target, &request(), plan)).unwrap()
}

fn full() -> Plan {
    Plan { top_logprobs: Some(5), ..Wire::OpenAi.capabilities() }
}

#[test]
fn a_full_request_has_every_field_of_the_dialect() {
    let expected = json!({
        "model": "m",
        "messages": [{"role": "user", "content": "好吗?\n\"x\""}],
        "temperature": 0.0, "seed": 9, "max_tokens": 8,
        "response_format": {"type": "json_schema", "json_schema":
            {"name": "verdict", "schema": {"type": "object"}, "strict": true}},
        "logprobs": true, "top_logprobs": 5,
    });
    assert_eq!(encoded(full(), "seed"), expected);
}

#[test]
fn what_the_plan_leaves_out_is_not_sent() {
    let plan = Plan {
        form: Form::JsonObject,
        top_logprobs: None,
        temperature: false,
        seed: false,
        completion_tokens: true,
    };
    let expected = json!({
        "model": "m",
        "messages": [{"role": "user", "content": "好吗?\n\"x\""}],
        "max_completion_tokens": 8,
        "response_format": {"type": "json_object"},
    });
    assert_eq!(encoded(plan, "seed"), expected);
    let text = encoded(Plan { form: Form::Text, ..full() }, "random_seed");
    assert_eq!((text.get("response_format"), &text["random_seed"]), (None, &json!(9)));
}

#[test]
fn a_recorded_reply_is_read_whole() {
    let decoded = decode(REPLY.as_bytes()).unwrap();
    assert_eq!((decoded.text.as_str(), &decoded.finish), ("Yes", &FinishReason::Stop));
    let usage = decoded.usage.unwrap();
    assert_eq!(
        (usage.tokens_in, usage.tokens_cached, usage.tokens_out, usage.tokens_reasoning),
        (50, 32, 21, 20)
    );
    let logprobs = decoded.logprobs.unwrap();
    assert_eq!(logprobs[0].top, vec![("Yes".into(), -0.1), ("No".into(), -2.4)]);
    assert_eq!(decoded.model.as_deref(), Some("gpt-4.1-mini-2025-04-14"));
    assert_eq!(decoded.id.as_deref(), Some("chatcmpl-1"));
}

fn with_message(message: &str, finish: &str) -> Decoded {
    let body = format!(r#"{{"choices":[{{"message":{message},"finish_reason":{finish}}}]}}"#);
    decode(body.as_bytes()).unwrap()
}

#[test]
fn content_may_be_parts_and_reasoning_stays_apart() {
    let parts = with_message(
        r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},
            {"type":"text","text":"4"},{"type":"image_url"},"/5"]}"#,
        "\"stop\"",
    );
    assert_eq!((parts.text.as_str(), parts.reasoning.as_deref()), ("4/5", Some("hm")));
    for field in ["reasoning_content", "reasoning"] {
        let apart = with_message(&format!(r#"{{"content":"3","{field}":"why"}}"#), "null");
        assert_eq!((apart.text.as_str(), apart.reasoning.as_deref()), ("3", Some("why")));
    }
}

#[test]
fn empty_answers_stay_empty_and_say_why() {
    for (message, finish, expected) in [
        (r#"{"content":""}"#, "\"stop\"", FinishReason::Stop),
        (r#"{"content":null}"#, "\"length\"", FinishReason::Length),
        (r#"{"content":null}"#, "\"content_filter\"", FinishReason::Refusal),
        (
            r#"{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}"#,
            "\"tool_calls\"",
            FinishReason::Other("tool_calls".into()),
        ),
    ] {
        let decoded = with_message(message, finish);
        assert_eq!((decoded.text.as_str(), decoded.finish), ("", expected));
        assert_eq!(decoded.usage, None);
    }
    let refused = with_message(r#"{"content":null,"refusal":"I can't."}"#, "\"stop\"");
    assert_eq!((refused.text.as_str(), refused.finish), ("I can't.", FinishReason::Refusal));
}

#[test]
fn malformed_twins_are_refused_and_what_they_cost_is_kept() {
    let body = br#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let Err(Undecodable::NotAReply { usage: Some(usage), .. }) = decode(body) else { panic!() };
    assert_eq!((usage.tokens_in, usage.tokens_out), (1, 2));
    for body in [
        "{}",
        r#"{"choices":[{}]}"#,
        r#"{"choices":"x"}"#,
        r#"{"choices":[{"message":{"content":"x"},"logprobs":{"content":[{"token":"a","logprob":NaN}]}}]}"#,
        &REPLY[..300],
    ] {
        assert!(decode(body.as_bytes()).is_err(), "{body}");
    }
}

#[test]
fn a_log_probability_that_is_null_is_not_a_number() {
    let tokens = |own: &str, other: &str| {
        let body = format!(
            r#"{{"choices":[{{"message":{{"content":"a"}},"logprobs":{{"content":[{{"token":"a",
            "logprob":{own},"top_logprobs":[{{"token":"b","logprob":{other}}}]}}]}}}}]}}"#
        );
        decode(body.as_bytes()).unwrap().logprobs
    };
    assert_eq!(tokens("null", "-1"), None);
    assert_eq!(tokens("-0.5", "null").unwrap()[0].top, vec![]);
}

#[test]
fn a_model_that_failed_behind_the_server_is_no_reply() {
    let body = br#"{"choices":[{"message":{"content":"hal"},"finish_reason":"error",
        "error":{"code":502}}]}"#;
    assert!(decode(body).is_err());
}
