use super::*;

fn said(preset: Preset, printed: &str) -> Said {
    read(preset, printed).expect("it is in the client's format")
}

const CLAUDE: &str = r#"{"type":"result","subtype":"success","is_error":false,"num_turns":3,
    "result":"Done: two files.","stop_reason":"end_turn","terminal_reason":"completed",
    "total_cost_usd":0.0123456,
    "usage":{"input_tokens":10,"cache_creation_input_tokens":200,"cache_read_input_tokens":3000,
             "output_tokens":44},
    "modelUsage":{"large":{"inputTokens":10,"cacheCreationInputTokens":200,
        "cacheReadInputTokens":3000,"outputTokens":44},
        "small":{"inputTokens":5,"outputTokens":6}}}"#;

#[test]
fn claude_tells_its_answer_tokens_of_all_models_and_dollars() {
    let said = said(Preset::ClaudeCode, CLAUDE);
    assert_eq!(said.text, "Done: two files.");
    assert_eq!((said.failure, said.micro_dollars), (None, Some(12_346)));
    let usage = said.usage.unwrap();
    assert_eq!((usage.tokens_in, usage.tokens_out, usage.tokens_cached), (3215, 50, 3000));
    assert_eq!((usage.calls, usage.estimated), (3, false));
}

#[test]
fn claude_without_model_usage_is_read_by_its_plain_usage_and_in_a_list_of_events() {
    let mut value: Value = serde_json::from_str(CLAUDE).unwrap();
    value["modelUsage"] = serde_json::json!({});
    let list = serde_json::json!([{ "type": "system" }, value]).to_string();
    assert_eq!(said(Preset::ClaudeCode, &list).usage.unwrap().tokens_in, 3210);
    let lines = format!("{{\"type\":\"system\"}}\n{value}\n");
    assert_eq!(said(Preset::ClaudeCode, &lines).usage.unwrap().tokens_out, 44);
}

#[test]
fn a_client_that_reports_an_error_has_failed_whatever_it_calls_it() {
    // What an unreachable server gives: `success`, with a text.
    let unreachable = r#"{"type":"result","subtype":"success","is_error":true,"num_turns":1,
        "result":"API Error: Unable to connect","total_cost_usd":0,
        "usage":{"input_tokens":0,"output_tokens":0},"modelUsage":{}}"#;
    let told = said(Preset::ClaudeCode, unreachable).failure.unwrap();
    assert!(told.contains("Unable to connect"), "{told}");
    let capped = r#"{"type":"result","subtype":"error_max_turns","is_error":false,"num_turns":9,
        "total_cost_usd":0.5,"usage":{"input_tokens":7,"output_tokens":8}}"#;
    let capped = said(Preset::ClaudeCode, capped);
    assert_eq!(capped.failure.as_deref(), Some("error_max_turns"));
    // It was paid for all the same.
    assert_eq!((capped.micro_dollars, capped.usage.unwrap().tokens_in), (Some(500_000), 7));
    let gemini = "{\"session_id\":\"s\",\"error\":{\"type\":\"Error\",\"message\":\"no key\"}}";
    assert_eq!(said(Preset::GeminiCli, gemini).failure.as_deref(), Some("no key"));
}

#[test]
fn codex_tells_its_last_message_and_a_turn_that_does_not_complete_has_failed() {
    let whole = [
        r#"{"type":"thread.started","thread_id":"t"}"#,
        r#"{"type":"turn.started"}"#,
        r#"{"type":"item.completed","item":{"type":"agent_message","text":"Looking."}}"#,
        r#"{"type":"item.completed","item":{"type":"mcp_tool_call","text":"no answer"}}"#,
        r#"{"type":"item.completed","item":{"type":"agent_message","text":"改好了。"}}"#,
        r#"{"type":"turn.completed","usage":{"input_tokens":900,"cached_input_tokens":500,"cache_write_input_tokens":0,"output_tokens":70,"reasoning_output_tokens":20}}"#,
    ];
    let told = said(Preset::Codex, &whole.join("\n"));
    assert_eq!((told.text.as_str(), &told.failure, told.micro_dollars), ("改好了。", &None, None));
    let usage = told.usage.unwrap();
    assert_eq!((usage.tokens_in, usage.tokens_cached), (900, 500));
    assert_eq!((usage.tokens_out, usage.tokens_reasoning), (70, 20));
    for cut in 2..whole.len() {
        assert!(said(Preset::Codex, &whole[..cut].join("\n")).failure.is_some(), "{cut} lines");
    }
    let unreachable = "{\"type\":\"turn.started\"}\n{\"type\":\"error\",\"message\":\"Reconnecting\"}\n{\"type\":\"turn.failed\",\"error\":{\"message\":\"stream disconnected\"}}\n";
    let told = said(Preset::Codex, unreachable);
    assert_eq!(told.failure.as_deref(), Some("stream disconnected"));
}

#[test]
fn gemini_tells_its_response_and_the_tokens_of_each_model() {
    let printed = r#"A note before.
{"session_id":"s","response":"Fine.","stats":{"models":{
    "pro":{"api":{"totalRequests":2},"tokens":{"prompt":100,"candidates":20,"thoughts":5,"total":130,"cached":40,"tool":3}},
    "flash":{"api":{"totalRequests":1},"tokens":{"prompt":10,"candidates":2,"total":12}}}}}"#;
    let told = said(Preset::GeminiCli, printed);
    assert_eq!((told.text.as_str(), &told.failure), ("Fine.", &None));
    let usage = told.usage.unwrap();
    assert_eq!((usage.tokens_in, usage.tokens_out, usage.calls), (113, 29, 3));
    assert_eq!((usage.tokens_cached, usage.tokens_reasoning), (40, 5));
    let bare = said(Preset::GeminiCli, r#"{"response":"","stats":{"models":{}}}"#);
    assert_eq!((bare.text.as_str(), bare.usage), ("", None));
}

#[test]
fn aider_tells_rounded_tokens_which_are_an_estimate_and_the_dollars_of_each_message() {
    let printed = "Applied edit to a.py\n\
        Tokens: 12k sent, 1.2k received. Cost: $0.04 message, $0.04 session.\n\
        Tokens: 2,500 sent, 1.1k cache hit, 150 received. Cost: $0.01 message, $0.05 session.\n";
    let told = said(Preset::Aider, printed);
    let usage = told.usage.unwrap();
    assert_eq!((usage.tokens_in, usage.tokens_out), (12_500 + 2500, 1250 + 150));
    assert_eq!((usage.calls, usage.estimated, told.micro_dollars), (2, true, Some(50_000)));
    let exact = said(Preset::Aider, "> Tokens: 709 sent, 87 received.").usage.unwrap();
    assert_eq!((exact.tokens_in, exact.estimated), (709, false));
    assert_eq!(said(Preset::Aider, "nothing of the kind").usage, None);
}

#[test]
fn what_is_in_no_known_format_is_not_guessed_at() {
    for preset in [Preset::ClaudeCode, Preset::Codex, Preset::GeminiCli] {
        for printed in ["", "Sorry.", "{", "[]", "null", "{\"type\":1}", "{\"respons\":\"x\"}"] {
            assert_eq!(read(preset, printed), None, "{preset:?} {printed:?}");
        }
    }
    for number in ["", "k", "-3", "NaN", "infk", "1e999"] {
        assert_eq!(rounded(number), None, "{number:?}");
    }
}
