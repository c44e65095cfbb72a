use super::super::Wire;
use super::*;

const REPLY: &str = r#"{"candidates":[{"content":{"parts":[{"text":"Let me see.","thought":true},
    {"text":"Yes"}],"role":"model"},"finishReason":"STOP","logprobsResult":{
    "chosenCandidates":[{"token":"Yes","tokenId":1,"logProbability":-0.25}],
    "topCandidates":[{"candidates":[{"token":"Yes","logProbability":-0.25},
    {"token":"No","logProbability":-1.5}]}]}}],
    "usageMetadata":{"promptTokenCount":30,"candidatesTokenCount":1,"thoughtsTokenCount":12,
    "cachedContentTokenCount":8,"totalTokenCount":43},
    "modelVersion":"gemini-2.5-flash","responseId":"r1"}"#;

fn encoded(request: &ChatRequest, extra: &Value) -> Value {
    let extra = extra.as_object().cloned().unwrap_or_default();
    let target = Target { model: "gemini-x", seed_field: "seed", extra_body: &extra };
    let plan = Plan { top_logprobs: request.top_logprobs, ..Wire::Gemini.capabilities() };
    serde_json::from_slice(&encode(target, request, plan)).unwrap()
}

#[test]
fn a_request_is_split_into_instructions_turns_and_configuration() {
    let say = |role, content: &str| Message { role, content: content.into() };
    let request = ChatRequest {
        messages: vec![
            say(Role::System, "grade"),
            say(Role::User, "q"),
            say(Role::Assistant, "a"),
            say(Role::User, "r"),
        ],
        temperature: Some(0.5),
        seed: Some(u64::MAX),
        max_tokens: Some(64),
        top_logprobs: Some(3),
        response_format: ResponseFormat::JsonSchema {
            name: "v".into(),
            schema: json!({
                "type": "object", "additionalProperties": false, "$schema": "x",
                "properties": {
                    "score": {"type": "integer", "enum": [3, 1, 2]},
                    "grade": {"type": ["string", "null"], "enum": ["good", "bad"]},
                    "list": {"type": "array", "items": {"type": "string", "pattern": "x"}},
                },
                "required": ["score"],
            }),
        },
    };
    let body = encoded(&request, &json!({"generationConfig": {"topK": 1, "seed": null}}));
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "grade"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "q"}]},
            {"role": "model", "parts": [{"text": "a"}]},
            {"role": "user", "parts": [{"text": "r"}]},
        ],
        "generationConfig": {
            "temperature": 0.5, "maxOutputTokens": 64, "topK": 1,
            "responseLogprobs": true, "logprobs": 3,
            "responseMimeType": "application/json",
            "responseSchema": {
                "type": "object", "required": ["score"],
                "properties": {
                    "score": {"type": "integer", "minimum": 1, "maximum": 3},
                    "grade": {"type": "string", "nullable": true, "enum": ["good", "bad"]},
                    "list": {"type": "array", "items": {"type": "string"}},
                },
            },
        },
    });
    assert_eq!(body, expected);
}

#[test]
fn an_enum_with_null_keeps_its_words_or_its_range() {
    // As every schema of a judge has it.
    for (schema, expected) in [
        (
            json!({"type": ["string", "null"], "enum": ["yes", "no", null]}),
            json!({"type": "string", "nullable": true, "enum": ["yes", "no"]}),
        ),
        (
            json!({"type": ["integer", "null"], "enum": [1, 2, 3, 4, 5, null]}),
            json!({"type": "integer", "nullable": true, "minimum": 1, "maximum": 5}),
        ),
        (
            json!({"type": ["number", "null"], "enum": [0, 0.1, 1, null]}),
            json!({"type": "number", "nullable": true, "minimum": 0, "maximum": 1}),
        ),
        (json!({"enum": [null]}), json!({"nullable": true})),
        (json!({"enum": ["a", 1]}), json!({})),
    ] {
        assert_eq!(supported_schema(&schema), expected, "{schema}");
    }
}

#[test]
fn thoughts_are_kept_apart_and_counted_as_output() {
    let decoded = decode(REPLY.as_bytes()).unwrap();
    assert_eq!((decoded.text.as_str(), decoded.reasoning.as_deref()), ("Yes", Some("Let me see.")));
    let usage = decoded.usage.unwrap();
    assert_eq!((usage.tokens_in, usage.tokens_out, usage.tokens_cached), (30, 13, 8));
    let expected = TokenLogprobs {
        token: "Yes".into(),
        logprob: -0.25,
        top: vec![("Yes".into(), -0.25), ("No".into(), -1.5)],
    };
    assert_eq!(decoded.logprobs, Some(vec![expected]));
}

#[test]
fn a_blocked_prompt_and_a_blocked_answer_are_refusals() {
    for body in [
        r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}"#,
        r#"{"candidates":[{"finishReason":"SAFETY","index":0}]}"#,
        r#"{"candidates":[{"finishReason":"PROHIBITED_CONTENT","content":{}}]}"#,
    ] {
        let decoded = decode(body.as_bytes()).unwrap();
        assert_eq!((decoded.finish, decoded.text.as_str()), (FinishReason::Refusal, ""), "{body}");
    }
}

#[test]
fn a_malformed_twin_is_refused() {
    assert!(decode(br#"{"candidates":[]}"#).is_err());
    assert!(decode(br#"{"candidates":[{"content":"text"}]}"#).is_err());
    assert!(decode(&REPLY.as_bytes()[..120]).is_err());
}
