use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::judge::llm::LlmSpec;
use crate::provider::{FinishReason, TokenLogprobs};

/// Answers from a list, and keeps what it was asked.
#[derive(Debug, Default)]
struct Script {
    replies: Mutex<VecDeque<Result<ChatReply, ProviderError>>>,
    asked: std::sync::Arc<Mutex<Vec<ChatRequest>>>,
}

impl Server for Script {
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ChatReply, ProviderError>> {
        self.asked.lock().unwrap().push(request.clone());
        let next = self.replies.lock().unwrap().pop_front().expect("one request too many");
        Box::pin(std::future::ready(next))
    }

    fn model(&self) -> &'static str {
        "openai/gpt-4.1-mini"
    }

    fn price(&self) -> Option<Price> {
        Some(Price { input: 1.0, output: 2.0, cached_input: None })
    }
}

fn reply(text: &str) -> ChatReply {
    ChatReply {
        text: text.to_owned(),
        reasoning: None,
        finish: FinishReason::Stop,
        logprobs: None,
        usage: Usage { tokens_in: 100, tokens_out: 10, calls: 1, ..Usage::default() },
        model: Some("gpt-4.1-mini-2025-04-14".into()),
        request_id: None,
        latency_ms: 20,
        attempts: 1,
        cost_usd: Some(0.001),
        downgraded: None,
        cached: false,
    }
}

fn with_logprobs(text: &str, top: &[(&str, f64)]) -> ChatReply {
    let top: Vec<(String, f64)> = top.iter().map(|(t, p)| ((*t).to_owned(), p.ln())).collect();
    let logprob = top.iter().find(|(t, _)| t == text).map_or(-20.0, |(_, l)| *l);
    let token = TokenLogprobs { token: text.to_owned(), logprob, top };
    ChatReply { logprobs: Some(vec![token]), finish: FinishReason::Length, ..reply(text) }
}

fn refused_request(status: u16) -> ProviderError {
    ProviderError {
        status: Status::ProviderError,
        message: "bad request".into(),
        http_status: Some(status),
        too_long: false,
        attempts: 1,
        cost_unknown: false,
        hint: Some("check the model's name".into()),
    }
}

fn judge(
    config: Value,
    replies: Vec<Result<ChatReply, ProviderError>>,
) -> (LlmJudge, std::sync::Arc<Mutex<Vec<ChatRequest>>>) {
    let mut config = config;
    config["model"] = json!("openai/gpt-4.1-mini");
    let spec: LlmSpec = crate::config::from_value(config).unwrap();
    let judging = spec.judging(std::path::Path::new(""), &json!("m")).unwrap();
    let script = Script { replies: Mutex::new(replies.into()), ..Script::default() };
    let asked = script.asked.clone();
    (LlmJudge::with_server(judging, Box::new(script)), asked)
}

async fn verdict(config: Value, replies: Vec<Result<ChatReply, ProviderError>>) -> Verdict {
    let (judge, _) = judge(config, replies);
    let mut case = Case::new("What is 2+2?", "4");
    case.baseline = Some("5".into());
    judge.judge(&case, &CallContext::standalone(Duration::from_secs(5))).await
}

#[tokio::test]
async fn a_readable_reply_is_asked_for_once_and_accounted_for() {
    let verdict = verdict(
        json!({"mode": "score", "logprobs": "never"}),
        vec![Ok(reply(r#"{"score": 4, "why": "short"}"#))],
    )
    .await;
    assert_eq!(verdict.score.unwrap().get(), 0.75);
    assert_eq!(verdict.raw, Some(json!(4)));
    assert_eq!(verdict.feedback, ["short"]);
    assert_eq!(verdict.usage.tokens_in, 100);
    assert_eq!((verdict.attempts, verdict.latency_ms, verdict.cached), (1, 20, false));
    assert_eq!(verdict.cost_usd, Some(0.001));
    assert_eq!(verdict.model_returned.as_deref(), Some("gpt-4.1-mini-2025-04-14"));
    assert_eq!(verdict.notes["score_source"], "text");
    assert!(!verdict.notes.contains_key("model_mismatch"));
    assert!(!verdict.notes.contains_key("asked_again"));
}

#[tokio::test]
async fn an_unreadable_reply_is_asked_for_once_more_with_what_was_wrong() {
    let (judge, asked) = judge(
        json!({"mode": "score", "logprobs": "never"}),
        vec![Ok(reply(r#"{"score": 9}"#)), Ok(reply(r#"{"score": 5}"#))],
    );
    let context = CallContext::standalone(Duration::from_secs(5));
    let verdict = judge.judge(&Case::new("a", "b"), &context).await;
    assert_eq!(verdict.score.unwrap().get(), 1.0);
    assert_eq!(verdict.usage.calls, 2);
    assert_eq!(verdict.usage.tokens_out, 20);
    assert_eq!(verdict.cost_usd, Some(0.002));
    assert_eq!(verdict.notes["asked_again"], true);
    let asked = asked.lock().unwrap();
    let said: Vec<&str> = asked[1].messages[2..].iter().map(|m| m.content.as_str()).collect();
    assert_eq!(said[0], r#"{"score": 9}"#);
    assert!(said[1].contains("`9` is outside the scale 1-5"), "{}", said[1]);
}

#[tokio::test]
async fn a_second_unreadable_reply_is_a_failed_measurement() {
    let bad = || Ok(reply("I like it."));
    let verdict = verdict(json!({"rubric": "summary"}), vec![bad(), bad()]).await;
    assert_eq!((verdict.status, verdict.score), (Status::Unparseable, None));
    assert_eq!(verdict.usage.calls, 2);
}

#[tokio::test]
async fn truncated_and_refused_replies_are_not_asked_for_again() {
    for (finish, status) in
        [(FinishReason::Length, Status::Truncated), (FinishReason::Refusal, Status::Refused)]
    {
        let cut = ChatReply { finish, ..reply(r#"{"score": 4}"#) };
        let verdict = verdict(json!({"mode": "score", "logprobs": "never"}), vec![Ok(cut)]).await;
        assert_eq!((verdict.status, verdict.score), (status, None));
    }
}

#[tokio::test]
async fn one_token_is_read_by_its_log_probabilities_though_it_was_cut_there() {
    let tops = [("yes", 0.6), (" Yes", 0.1), ("No", 0.2), ("The", 0.1)];
    let verdict = verdict(json!({"mode": "yes_no"}), vec![Ok(with_logprobs("yes", &tops))]).await;
    assert!((verdict.score.unwrap().get() - 0.7 / 0.9).abs() < 1e-9);
    assert_eq!(verdict.notes["score_source"], "logprobs");
    assert!((verdict.notes["answer_mass"].as_f64().unwrap() - 0.9).abs() < 1e-9);
}

#[tokio::test]
async fn without_log_probabilities_the_written_word_is_read() {
    let verdict = verdict(json!({"mode": "yes_no"}), vec![Ok(reply("Yes."))]).await;
    assert_eq!(verdict.score.unwrap().get(), 1.0);
    assert_eq!(verdict.notes["score_source"], "text");
}

#[tokio::test]
async fn a_wordy_reply_without_log_probabilities_is_asked_for_in_the_written_form() {
    let cut = ChatReply { finish: FinishReason::Length, ..reply("The answer to") };
    let (judge, asked) =
        judge(json!({"mode": "yes_no"}), vec![Ok(cut), Ok(reply(r#"{"answer": "no"}"#))]);
    let context = CallContext::standalone(Duration::from_secs(5));
    let verdict = judge.judge(&Case::new("a", "b"), &context).await;
    assert_eq!(verdict.score.unwrap().get(), 0.0);
    let asked = asked.lock().unwrap();
    assert_eq!((asked[0].max_tokens, asked[0].top_logprobs), (Some(4), Some(20)));
    assert!(asked[1].max_tokens.unwrap() > 100);
    assert_eq!(asked[1].top_logprobs, None);
    assert!(matches!(asked[1].response_format, ResponseFormat::JsonSchema { .. }));
}

#[tokio::test]
async fn a_server_that_refuses_log_probabilities_is_not_asked_for_them_again() {
    let yes = || Ok(reply(r#"{"answer": "yes"}"#));
    let (judge, asked) =
        judge(json!({"mode": "yes_no"}), vec![Err(refused_request(400)), yes(), yes()]);
    let context = CallContext::standalone(Duration::from_secs(5));
    let first = judge.judge(&Case::new("a", "b"), &context).await;
    assert_eq!((first.status, first.attempts, first.usage.calls), (Status::Ok, 2, 1));
    let second = judge.judge(&Case::new("a", "c"), &context).await;
    assert_eq!(second.attempts, 1);
    assert_eq!(asked.lock().unwrap()[2].top_logprobs, None);
}

#[tokio::test]
async fn a_request_that_is_refused_in_both_forms_says_nothing_about_log_probabilities() {
    let (judge, asked) = judge(
        json!({"mode": "yes_no"}),
        vec![Err(refused_request(400)), Err(refused_request(400)), Ok(reply("no"))],
    );
    let context = CallContext::standalone(Duration::from_secs(5));
    let too_long = judge.judge(&Case::new("a", "b"), &context).await;
    assert_eq!((too_long.status, too_long.attempts), (Status::ProviderError, 2));
    judge.judge(&Case::new("a", "c"), &context).await;
    assert_eq!(asked.lock().unwrap()[2].top_logprobs, Some(20));
}

#[tokio::test]
async fn a_stray_refusal_after_log_probabilities_have_worked_changes_no_scale() {
    let yes = || Ok(with_logprobs("yes", &[("yes", 0.6), ("no", 0.4)]));
    let speaking =
        |words: &str| Err(ProviderError { message: words.to_owned(), ..refused_request(422) });
    let (judge, asked) = judge(
        json!({"mode": "yes_no"}),
        vec![
            yes(),
            speaking("image too large"),
            yes(),
            speaking("`logprobs` is switched off"),
            Ok(reply(r#"{"answer": "yes"}"#)),
            Ok(reply(r#"{"answer": "yes"}"#)),
        ],
    );
    let context = CallContext::standalone(Duration::from_secs(5));
    let mut sources = Vec::new();
    for i in 0..5 {
        let verdict = judge.judge(&Case::new("a", format!("b{i}")), &context).await;
        sources.push(verdict.notes.get("score_source").cloned());
    }
    let by = |source: &str| Some(json!(source));
    assert_eq!(sources, [by("logprobs"), None, by("logprobs"), by("text"), by("text")]);
    assert_eq!(asked.lock().unwrap()[2].top_logprobs, Some(20));
    assert_eq!(asked.lock().unwrap()[5].top_logprobs, None);
}

#[tokio::test]
async fn a_content_filter_is_a_refusal_and_is_not_asked_in_another_form() {
    let filtered = ProviderError { status: Status::Refused, ..refused_request(400) };
    let verdict = verdict(json!({"mode": "yes_no"}), vec![Err(filtered)]).await;
    assert_eq!((verdict.status, verdict.attempts), (Status::Refused, 1));
}

#[tokio::test]
async fn a_call_that_nobody_told_the_cost_of_leaves_the_cost_unknown() {
    let given_up = ProviderError {
        status: Status::Timeout,
        http_status: None,
        cost_unknown: true,
        ..refused_request(400)
    };
    let verdict = verdict(json!({"rubric": "summary"}), vec![Err(given_up)]).await;
    assert_eq!((verdict.status, verdict.cost_usd), (Status::Timeout, None));
}

#[tokio::test]
async fn a_prompt_that_does_not_fit_is_not_sent_in_another_form() {
    let too_long = ProviderError { too_long: true, ..refused_request(400) };
    let (judge, asked) = judge(json!({"mode": "yes_no"}), vec![Err(too_long), Ok(reply("no"))]);
    let context = CallContext::standalone(Duration::from_secs(5));
    let verdict = judge.judge(&Case::new("a", "b"), &context).await;
    assert_eq!((verdict.status, verdict.attempts), (Status::ProviderError, 1));
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn required_log_probabilities_on_other_words_are_not_asked_for_in_writing() {
    let reply = with_logprobs("The", &[("The", 0.99), ("yes", 0.01)]);
    let verdict = verdict(json!({"mode": "yes_no", "logprobs": "require"}), vec![Ok(reply)]).await;
    assert_eq!((verdict.status, verdict.score), (Status::Unparseable, None));
}

#[tokio::test]
async fn required_log_probabilities_that_do_not_come_are_a_failed_measurement() {
    let verdict =
        verdict(json!({"mode": "yes_no", "logprobs": "require"}), vec![Ok(reply("Yes"))]).await;
    assert_eq!((verdict.status, verdict.score), (Status::ProviderError, None));
}

#[tokio::test]
async fn a_provider_error_keeps_its_status_and_gives_its_hint() {
    let verdict = verdict(json!({"rubric": "summary"}), vec![Err(refused_request(404))]).await;
    assert_eq!(verdict.status, Status::ProviderError);
    assert_eq!(verdict.detail.as_deref(), Some("bad request (hint: check the model's name)"));
    assert_eq!((verdict.attempts, verdict.usage.calls, verdict.cached), (1, 0, false));
    assert_eq!(verdict.cost_usd.map(f64::is_sign_negative), Some(false), "nothing costs -0.0");
}

#[tokio::test]
async fn a_pair_is_asked_in_both_orders_and_fails_when_one_fails() {
    let config = || json!({"mode": "pairwise", "logprobs": "never"});
    let says = |side: &str| Ok(reply(&json!({"preferred": side, "why": side}).to_string()));
    // A in the given order and B in the swapped one are both the output.
    let good = verdict(config(), vec![says("A"), says("B")]).await;
    assert_eq!(good.score.unwrap().get(), 1.0);
    assert_eq!(good.notes["position_consistent"], true);
    assert_eq!(good.notes["picked_first"], 1);
    let biased = verdict(config(), vec![says("A"), says("A")]).await;
    assert_eq!(biased.score.unwrap().get(), 0.5);
    assert_eq!(biased.notes["position_consistent"], false);
    assert_eq!(biased.notes["picked_first"], 2);
    let cut = ChatReply { finish: FinishReason::Length, ..reply("") };
    let failed = verdict(config(), vec![says("A"), Ok(cut)]).await;
    assert_eq!((failed.status, failed.score), (Status::Truncated, None));
    assert_eq!(failed.usage.calls, 2);
}

#[tokio::test]
async fn a_pair_by_log_probabilities_is_averaged_over_both_orders() {
    let first = with_logprobs("A", &[("A", 0.9), ("B", 0.1)]);
    let second = with_logprobs("A", &[("A", 0.6), ("B", 0.4)]);
    let verdict = verdict(json!({"mode": "pairwise"}), vec![Ok(first), Ok(second)]).await;
    assert!((verdict.score.unwrap().get() - 0.65).abs() < 1e-9);
    assert_eq!(verdict.notes["position_consistent"], false);
    assert!((verdict.notes["p_first"].as_f64().unwrap() - 0.75).abs() < 1e-9);
}

#[tokio::test]
async fn a_case_that_lacks_what_is_judged_is_an_abstention_and_asks_nobody() {
    let context = CallContext::standalone(Duration::from_secs(5));
    let (judge, asked) = judge(json!({"mode": "pairwise"}), Vec::new());
    let verdict = judge.judge(&Case::new("a", "b"), &context).await;
    assert_eq!((verdict.status, verdict.attempts), (Status::Abstained, 0));
    let verdict = judge.judge(&Case::default(), &context).await;
    assert_eq!(verdict.status, Status::Abstained);
    assert!(asked.lock().unwrap().is_empty());
    assert_eq!(judge.plan(&Case::default()).calls, 0);
}

#[tokio::test]
async fn another_model_than_the_one_asked_for_is_noted() {
    let other = ChatReply { model: Some("llama-3.1-8b".into()), ..reply(r#"{"score": 4}"#) };
    let verdict = verdict(json!({"mode": "score", "logprobs": "never"}), vec![Ok(other)]).await;
    assert!(verdict.notes["model_mismatch"].as_str().unwrap().contains("llama-3.1-8b"));
}

#[tokio::test]
async fn a_plan_counts_calls_tokens_and_money() {
    let (judge, _) = judge(json!({"mode": "pairwise", "reasoning": true}), Vec::new());
    let mut case = Case::new("a", "b");
    case.baseline = Some("c".into());
    let plan = judge.plan(&case);
    assert_eq!((plan.calls, plan.tokens_out), (2, 2048));
    assert!(plan.tokens_in > 400, "{plan:?}");
    let cost = (plan.tokens_in as f64 + 2.0 * 2048.0) / 1e6;
    assert!((plan.cost_usd.unwrap() - cost).abs() < 1e-12);
}

#[tokio::test]
async fn a_ping_is_one_token() {
    let (judge, asked) = judge(json!({}), vec![Ok(reply("OK"))]);
    let context = CallContext::standalone(Duration::from_secs(5));
    let words = judge.ping(&context).unwrap().await.unwrap();
    assert!(words.contains("gpt-4.1-mini-2025-04-14"), "{words}");
    assert_eq!(asked.lock().unwrap()[0].max_tokens, Some(1));
}

#[test]
fn chinese_text_counts_about_one_token_a_character() {
    let message = |content: &str| ChatRequest {
        messages: vec![Message { role: Role::User, content: content.into() }],
        ..ChatRequest::default()
    };
    assert_eq!(tokens(&message("评分标准")) - tokens(&message("")), 4);
    assert_eq!(tokens(&message("abcdefgh")) - tokens(&message("")), 2);
}
