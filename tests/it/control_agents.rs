//! Coding agents in batch mode: stand-ins print what the real clients print, and what they
//! say of tokens, dollars and errors reaches the result.

use serde_json::json;

use crate::workbench::Workbench;

/// A loop of one stand-in: `agent` are keys of its section, `script` is the client.
fn bench(agent: &str, script: &str, more: &str) -> Workbench {
    let bench = Workbench::new();
    bench.write("client.sh", script);
    bench.write(
        "loop.toml",
        format!(
            "task = \"write\"\n{more}\n[agent]\n{agent}\n\
             [panel]\nthreshold = 0.9\n\
             [[panel.judge]]\nname = \"words\"\nkind = \"rule\"\nrule = \"length\"\nwords = {{ min = 3 }}\n"
        ),
    );
    bench
}

const CLAUDE: &str = r#"kind = "command"
preset = "claude-code"
argv = ["sh", "client.sh"]"#;

/// What the client prints: an answer, 40 tokens in, 5 out, and a cent.
const ANSWERS: &str = r#"cat > prompt.txt
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"three good words","total_cost_usd":0.01,"usage":{"input_tokens":10,"cache_read_input_tokens":30,"output_tokens":5}}'
"#;

#[test]
fn tokens_and_dollars_of_a_client_are_known_and_not_estimated() {
    let bench = bench(CLAUDE, ANSWERS, "[budget]\nusd = 1.0\n");
    let result = bench.run(&["loop", "--json", "-q"]).exits(0).json();
    assert_eq!(result["best"]["output"], "three good words");
    let agent = &result["usage"]["agent"];
    assert_eq!((&agent["tokens_in"], &agent["tokens_out"]), (&json!(40), &json!(5)));
    assert_eq!((&agent["calls"], &agent["estimated"]), (&json!(2), &json!(false)));
    assert_eq!((&agent["cost_usd"], &result["cost_usd"]), (&json!(0.01), &json!(0.01)));
    assert!(bench.read("prompt.txt").contains("write"));
}

#[test]
fn an_error_or_an_empty_answer_of_a_client_is_no_output_and_is_paid_for() {
    let quick = "[exit]\nagent_failures = 2\nagent_backoff = 0.0\n";
    let failing = r#"cat >/dev/null
echo '{"type":"result","subtype":"success","is_error":true,"num_turns":1,"result":"API Error: no way through","total_cost_usd":0.02,"usage":{"input_tokens":7,"output_tokens":1}}'
exit 1
"#;
    let bench = bench(CLAUDE, failing, quick);
    let ran = bench.run(&["loop", "--json"]).exits(3).says(&["API Error: no way through"]);
    let result = ran.json();
    assert_eq!((&result["reason"], &result["generations"]), (&json!("agent_failed"), &json!(0)));
    assert_eq!(result["usage"]["agent"]["tokens_in"], 14);
    assert_eq!(result["cost_usd"], 0.04);
    bench.write("client.sh", ANSWERS.replace("three good words", ""));
    let result = bench.run(&["loop", "--json", "-q"]).exits(3).json();
    assert_eq!((&result["reason"], &result["cost_usd"]), (&json!("agent_empty"), &json!(0.02)));
    bench.write("client.sh", "cat >/dev/null; echo 'three good words'\n");
    bench.run(&["loop", "--json"]).exits(3).says(&["did not print what `claude-code` prints"]);
}

#[test]
fn under_a_limit_on_money_a_client_that_reports_no_dollars_needs_a_price() {
    let codex = "kind = \"command\"\npreset = \"codex\"\nargv = [\"sh\", \"client.sh\"]";
    let script = r#"cat >/dev/null
echo '{"type":"item.completed","item":{"type":"agent_message","text":"three good words"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1000000,"output_tokens":100}}'
"#;
    let budget = "[budget]\nusd = 5.0\ntokens = 5000000\n";
    bench(codex, script, budget).run(&["loop"]).exits(2).says(&["budget.usd", "price"]);
    let estimated = "kind = \"command\"\nargv = [\"sh\", \"client.sh\"]";
    bench(estimated, script, budget).run(&["loop"]).exits(2).says(&["budget.usd", "price"]);
    let priced = format!("{codex}\nprice = {{ input = 2.0, output = 10.0 }}");
    let result = bench(&priced, script, budget).run(&["loop", "--json", "-q"]).exits(0).json();
    assert_eq!(result["cost_usd"], 2.001);
}

#[test]
fn keys_that_can_not_work_together_are_named() {
    let cases = [
        ("kind = \"command\"", "preset"),
        ("kind = \"command\"\nargv = [\"sh\"]\nargs = [\"-x\"]", "agent.args"),
        ("kind = \"command\"\nargv = [\"sh\"]\nmodel = \"m\"", "agent.model"),
        ("kind = \"command\"\npreset = \"aider\"", "workspace"),
        ("kind = \"command\"\npreset = \"claude\"", "claude-code"),
        ("kind = \"command\"\nargv = [\"sh\"]\nprice = { input = -1.0, output = 0.0 }", "price"),
    ];
    for (agent, word) in cases {
        bench(agent, "", "").run(&["loop"]).exits(2).says(&[word]);
    }
}

#[test]
fn a_judge_that_uses_the_model_of_a_client_is_refused() {
    let agent = format!("{CLAUDE}\nmodel = \"large-1\"");
    let bench = bench(&agent, ANSWERS, "");
    let judge = "[[panel.judge]]\nname = \"same\"\nkind = \"llm\"\nmodel = \"openai/large-1\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmode = \"yes_no\"\ncriterion = \"Is it good?\"\n";
    let text = bench.read("loop.toml");
    bench.write("loop.toml", format!("{text}{judge}"));
    bench.run(&["loop"]).exits(2).says(&["`same` uses the agent's model `large-1`"]);
}

#[test]
#[cfg(unix)]
fn the_program_of_a_preset_is_found_by_name_and_sees_its_keys_and_no_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = bench("kind = \"command\"\npreset = \"claude-code\"\nmodel = \"m-1\"", "", "");
    let script = format!(
        "#!/bin/sh\necho \"$@\" > arguments.txt; echo \"$ANTHROPIC_BASE_URL,$SECRET\" > seen.txt\n{ANSWERS}"
    );
    let client = bench.write("bin/claude", script);
    std::fs::set_permissions(&client, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bench.path("bin").display());
    let mut command = bench.command(&["loop", "--json", "-q"]);
    command.env("PATH", path).env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9").env("SECRET", "s");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let arguments = bench.read("arguments.txt");
    assert!(arguments.starts_with("-p --output-format json"), "{arguments}");
    assert!(arguments.trim_end().ends_with("--model m-1"), "{arguments}");
    assert_eq!(bench.read("seen.txt"), "http://127.0.0.1:9,\n");
}

#[test]
fn a_client_that_leaves_files_behind_is_judged_by_its_work_alone() {
    let script = "test \"$(cat)\" = '' || exit 9\ngrep -q write \"$1\" || exit 8\n\
        echo history > .aider.history.md; echo better words here > text.txt\n\
        echo 'Tokens: 1.2k sent, 30 received. Cost: $0.003 message, $0.003 session.'\n";
    let agent = "kind = \"workspace\"\ndirectory = \"repo\"\npreset = \"aider\"\nargv = [\"sh\", \"../client.sh\", \"{prompt_file}\"]";
    let bench = bench(agent, script, "");
    bench.write("repo/.aider.conf.yml", "mine: true\n");
    let made = std::process::Command::new("git")
        .args(["init", "-q"])
        .current_dir(bench.path("repo"))
        .output()
        .unwrap();
    assert!(made.status.success());
    let result = bench.run(&["loop", "--json", "-q"]).exits(0).json();
    let patch = result["best"]["output"].as_str().unwrap();
    assert!(patch.contains("better words") && !patch.contains("aider"), "{patch}");
    assert_eq!(bench.read("repo/.aider.conf.yml"), "mine: true\n");
    let agent = &result["usage"]["agent"];
    assert_eq!((&agent["tokens_in"], &agent["estimated"]), (&json!(1250), &json!(true)));
    assert_eq!(result["cost_usd"], 0.003);
}
