//! Loops with model servers: budgets, confirmation, self-judging, and replies paid for once.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mock::{Answer, Mock, Options};
use crate::workbench::Workbench;

/// A writer whose drafts get better by 0.2, and a judge that sees how good they are.
async fn server(latency: u64) -> Mock {
    let answer = Arc::new(|asked: &crate::mock::Asked| {
        if !asked.model.contains("writer") {
            return None;
        }
        let text = asked.texts.join("\n");
        let last = text.split("Draft ").skip(1).filter_map(|rest| {
            rest.split(' ').next().and_then(|number| number.parse::<u32>().ok())
        });
        let next = last.max().unwrap_or(0) + 1;
        let quality = f64::from(next * 2) / 10.0;
        Some(Answer::of(format!("Draft {next} of the text. [[quality:{quality:.1}]]")))
    });
    let latency = Duration::from_millis(latency);
    Mock::start(Options { answer: Some(answer), latency, ..Options::default() }).await.unwrap()
}

fn bench(url: &str, judge: &str, more: &str) -> Workbench {
    let bench = Workbench::new();
    bench.write(
        "loop.toml",
        format!(
            "task = \"Write a text.\"\n\
             [agent]\nkind = \"llm\"\nmodel = \"openai/writer\"\nbase_url = \"{url}/v1\"\nmax_tokens = 200\n\
             [panel]\nthreshold = 0.75\n\
             [[panel.judge]]\nname = \"reader\"\nkind = \"llm\"\nmodel = \"openai/{judge}\"\nbase_url = \"{url}/v1\"\nmode = \"yes_no\"\ncriterion = \"Is it good?\"\n{more}"
        ),
    );
    bench
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_writes_another_one_judges_and_what_passes_is_judged_again() {
    let server = server(0).await;
    let bench = bench(&server.url(), "reader", "[exit]\nconfirm = 1\n");
    let result = bench.run(&["loop", "--json", "-q"]).exits(0).json();
    assert_eq!((&result["reason"], &result["generations"]), (&json!("quality_reached"), &json!(4)));
    assert_eq!((&result["confirmation"], &result["evaluations"]), (&json!("confirmed"), &json!(5)));
    assert!(result["best"]["output"].as_str().unwrap().starts_with("Draft 4"));
    let usage = &result["usage"];
    assert_eq!(
        (&usage["agent"]["calls"], &usage["judge"]["calls"], &usage["confirmation"]["calls"]),
        (&json!(4), &json!(4), &json!(1))
    );
    assert!(usage["agent"]["tokens_in"].as_u64().unwrap() > 0);
    assert_eq!(server.log().answered(), 9, "the confirmation is a fresh measurement");
}

#[tokio::test(flavor = "multi_thread")]
async fn b_21_b_22_a_token_budget_stops_before_the_call_that_does_not_fit() {
    let server = server(0).await;
    let bench = bench(&server.url(), "reader", "[budget]\ntokens = 2500\n");
    let result = bench.run(&["loop", "--json", "-q"]).exits(1).json();
    assert_eq!(result["reason"], "token_budget");
    let spent: u64 = ["agent", "judge"]
        .iter()
        .map(|role| {
            let usage = &result["usage"][role];
            usage["tokens_in"].as_u64().unwrap_or(0) + usage["tokens_out"].as_u64().unwrap_or(0)
        })
        .sum();
    assert!(spent <= 2500);
    let last = &result["last"];
    assert!(last.is_null() || last["score"].is_number(), "the last draft was judged: {last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_does_not_judge_itself_and_money_needs_prices() {
    let server = server(0).await;
    let same = bench(&server.url(), "writer", "");
    same.run(&["loop"]).exits(2).says(&["openai/writer", "allow_self_judging"]);
    let text =
        same.read("loop.toml").replace("max_tokens", "allow_self_judging = true\nmax_tokens");
    same.write("loop.toml", text);
    same.run(&["loop", "--json"]).says(&["uses the agent's model"]);
    let unpriced = bench(&server.url(), "reader", "[budget]\nusd = 1.0\n");
    unpriced.run(&["loop"]).exits(2).says(&["budget.usd", "price", "assume_price"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_is_assumed_only_where_none_is_known_and_the_result_says_so() {
    let server = server(0).await;
    let assumed = "[budget]\nusd = 1.0\nassume_price = { input = 100.0, output = 200.0 }\n";
    let both = bench(&server.url(), "reader", assumed);
    let ran = both.run(&["loop", "--json"]).exits(0);
    let ran = ran.says(&["no price is known for the agent, the judge `reader`", "$100", "$200"]);
    let result = ran.json();
    let usage = &result["usage"];
    let paid = |role: &str| {
        let tokens = |key: &str| usage[role][key].as_f64().unwrap();
        (100.0 * tokens("tokens_in") + 200.0 * tokens("tokens_out")) / 1e6
    };
    for role in ["agent", "judge"] {
        let cost = usage[role]["cost_usd"].as_f64().unwrap();
        assert!((cost - paid(role)).abs() < 1e-4 && cost > 0.0, "{role}: {cost}");
    }
    assert!(result["warnings"].to_string().contains("are assumed"));
    // What is known stands, zeros too.
    let own = bench(
        &server.url(),
        "reader",
        &format!("price = {{ input = 0.0, output = 0.0 }}\n{assumed}"),
    );
    let result = own.run(&["loop", "--json", "-q"]).exits(0).json();
    assert_eq!(result["usage"]["judge"]["cost_usd"], 0.0);
    assert!(result["usage"]["agent"]["cost_usd"].as_f64().unwrap() > 0.0);
    // The limit holds with it.
    let small = bench(&server.url(), "reader", &assumed.replace("usd = 1.0", "usd = 0.15"));
    let result = small.run(&["loop", "--json", "-q"]).exits(1).json();
    assert_eq!(result["reason"], "money_budget");
    assert!(result["cost_usd"].as_f64().unwrap() <= 0.15);
    for (more, word) in [
        ("[budget]\nassume_price = { input = 1.0, output = 1.0 }\n", "without a limit on money"),
        ("[budget]\nusd = 1.0\nassume_price = { input = -1.0, output = 1.0 }\n", "0 or more"),
    ] {
        bench(&server.url(), "reader", more).run(&["loop"]).exits(2).says(&[word]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_of_models_killed_anywhere_pays_for_no_reply_twice() {
    let server = server(10).await;
    let whole = bench(&server.url(), "reader", "");
    let expected = whole.run(&["loop", "--json", "-q"]).exits(0).json();
    let paid = server.log().answered();
    for boundary in [2, 4, 5, 7, 9, 11, 14, 18] {
        let before = server.log().answered();
        let bench = bench(&server.url(), "reader", "");
        let mut child = Command::new(env!("CARGO_BIN_EXE_venire"))
            .current_dir(bench.path(""))
            .args(["loop", "--json", "-q"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = || {
            let run = std::fs::read_dir(bench.path(".venire/loops")).ok()?.next()?.ok()?;
            let text = std::fs::read(run.path().join("events.jsonl")).ok()?;
            Some(text.iter().filter(|byte| **byte == b'\n').count())
        };
        let patience = Instant::now() + Duration::from_secs(60);
        while lines().unwrap_or(0) < boundary {
            assert!(Instant::now() < patience);
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let resumed = bench.run(&["loop", "--json", "-q", "--resume"]).exits(0).json();
        for key in ["reason", "generations", "evaluations", "best", "history"] {
            assert_eq!(resumed[key], expected[key], "{key}, killed at event {boundary}");
        }
        let asked = server.log().answered() - before;
        assert!(asked <= paid + 1, "{asked} replies for {paid}, killed at event {boundary}");
    }
}

#[test]
fn replay_prints_metrics_of_tables_and_logs_with_intervals() {
    let bench = Workbench::new();
    bench.write(
        "t.csv",
        "task,generation,strict,kind,truth\na,1,0.5,0.6,0\na,2,0.95,0.92,1\nb,1,0.91,0.99,0\nc,1,0.2,0.3,0\n",
    );
    bench.write("policy.toml", "[exit]\nany = [{ quality_threshold = { threshold = 0.9 } }]\n");
    let ran = bench.run(&["replay", "t.csv", "--policy", "policy.toml", "--json"]).exits(0);
    let metrics: Value = ran.json();
    assert_eq!(
        (&metrics["tasks"], &metrics["accepted"], &metrics["censored"]),
        (&json!(3), &json!(2), &json!(1))
    );
    for name in
        ["convergence_rate", "false_positive_rate", "false_acceptance_share", "recovery_rate"]
    {
        for key in ["value", "lower", "upper", "n"] {
            assert!(metrics[name].get(key).is_some(), "{name}.{key}");
        }
    }
    assert_eq!(metrics["false_acceptance_share"]["value"], 0.5);
    assert_eq!(metrics["false_positive_rate"]["n"], 2);
    bench.run(&["replay", "none.csv", "--policy", "policy.toml"]).exits(2).says(&["none.csv"]);
    crate::control::scripted(&bench, crate::control::COUNTING, "");
    let result = bench.run(&["loop", "--json", "-q"]).exits(0).json();
    let log = result["log"].as_str().unwrap();
    let ran = bench.run(&["replay", log, "--policy", "loop.toml", "--json"]).exits(0).json();
    assert_eq!((&ran["accepted"], &ran["generations_mean"]["value"]), (&json!(1), &json!(5.0)));
    let ran = bench.run(&["replay", log, "--policy", "policy.toml"]).exits(0);
    assert!(ran.stdout.contains("convergence_rate"), "{}", ran.stdout);
}
