//! Loops as their users meet them: what `venire loop` prints, keeps and refuses.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::workbench::Workbench;

/// A loop of a script and a rule; `agent` is a shell script, `more` is added to the file.
pub(crate) fn scripted(bench: &Workbench, agent: &str, more: &str) {
    bench.write("agent.sh", agent);
    bench.write(
        "loop.toml",
        format!(
            "task = \"count\"\n{more}\n\
             [agent]\nkind = \"command\"\nargv = [\"sh\", \"agent.sh\"]\nestimate_tokens = false\n\
             [panel]\nthreshold = 0.9\n\
             [[panel.judge]]\nname = \"words\"\nkind = \"rule\"\nrule = \"length\"\nwords = {{ min = 5 }}\n"
        ),
    );
}

/// A word more with every output.
pub(crate) const COUNTING: &str = "cat > /dev/null; i=0; while [ $i -lt $VENIRE_GENERATION ]; do printf 'word%s ' $i; i=$((i+1)); done\n";

fn outcome(bench: &Workbench, code: i32) -> Value {
    bench.run(&["loop", "--json", "-q"]).exits(code).json()
}

#[test]
fn the_example_goes_from_failing_to_accepted_without_any_model() {
    let bench = Workbench::new();
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/loops/leap-year");
    for entry in std::fs::read_dir(example).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        bench.write(&format!("leap/{name}"), std::fs::read(entry.path()).unwrap());
    }
    let ran = bench.run(&["loop", "-c", "leap/loop.toml", "--json"]).exits(0);
    ran.says(&["generation 1 ", "-> go on", "-> quality_reached"]);
    let ran = bench.run(&["loop", "-c", "leap/loop.toml", "--json", "-q"]).exits(0);
    let result = ran.json();
    assert_eq!(
        (&result["outcome"], &result["reason"]),
        (&json!("accepted"), &json!("quality_reached"))
    );
    assert_eq!(result["classic_reason"], "quality_threshold_reached");
    let generations = result["generations"].as_u64().unwrap();
    assert_eq!((generations, &result["refinements"]), (5, &json!(4)));
    assert!(result["history"][0]["decision"] == "reject");
    let script = bench.write("best.sh", result["best"]["output"].as_str().unwrap());
    for (year, kind) in [("1900", "common\n"), ("2000", "leap\n"), ("2026", "common\n")] {
        let output = std::process::Command::new("sh").arg(&script).arg(year).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), kind);
    }
    let keys = [
        "run",
        "also_fired",
        "evaluations",
        "last",
        "usage",
        "cost_usd",
        "elapsed_seconds",
        "confirmation",
        "profile",
    ];
    for key in keys {
        assert!(result.get(key).is_some(), "no `{key}`");
    }
    assert!(result["usage"]["agent"].is_object());
}

#[test]
fn a_starter_loop_is_written_once_and_runs_without_any_model() {
    let bench = Workbench::new();
    let ran = bench.run(&["init", "--loop", "first"]).exits(0);
    assert!(ran.stdout.contains("venire loop -c first/loop.toml"), "{}", ran.stdout);
    let result = bench.run(&["loop", "-c", "first/loop.toml", "--json", "-q"]).exits(0).json();
    assert_eq!(result["reason"], "quality_reached");
    bench.run(&["init", "--loop", "first"]).exits(2).says(&["is there already"]);
}

#[test]
fn the_reason_and_the_exit_code_tell_how_it_ended() {
    let bench = Workbench::new();
    scripted(&bench, COUNTING, "[budget]\nmax_generations = 3\n");
    let result = outcome(&bench, 1);
    assert_eq!(
        (&result["reason"], &result["outcome"]),
        (&json!("max_generations"), &json!("not_accepted"))
    );
    assert_eq!(result["best"]["generation"], 3);
    assert_eq!(result["history"].as_array().unwrap().len(), 3);
    scripted(&bench, "cat >/dev/null; echo the same\n", "");
    let result = outcome(&bench, 1);
    assert_eq!((&result["reason"], &result["generations"]), (&json!("repeated_output"), &json!(3)));
    let ran = bench.run(&["loop"]).exits(1);
    assert!(ran.stdout.contains("not_accepted: repeated_output"), "{}", ran.stdout);
}

#[test]
fn what_is_wrong_with_a_loop_file_is_named() {
    let bench = Workbench::new();
    let cases = [
        ("[exit]\nall = []\n", "empty group"),
        ("[exit]\nany = [\"qualty_threshold\"]\n", "quality_threshold"),
        ("[exit]\nanny = []\n", "any"),
        ("[budget]\ntokens = 0\n", "tokens"),
        ("[budgt]\nusd = 1.0\n", "budget"),
        ("[feedback]\nkind = \"template\"\n", "template"),
        ("[strategy]\nadaptive = { targets = [0.7, 0.6] }\n", "ascending"),
    ];
    for (more, word) in cases {
        scripted(&bench, COUNTING, more);
        bench.run(&["loop"]).exits(2).says(&[word]);
    }
    bench.write("loop.toml", "task = \"x\"\n[panel]\n[[panel.judge]]\nname=\"a\"\nkind=\"rule\"\nrule=\"length\"\nwords={min=1}\n");
    bench.run(&["loop"]).exits(2).says(&["agent", "missing"]);
    scripted(&bench, COUNTING, "");
    let text = bench.read("loop.toml").replace("task = \"count\"", "");
    bench.write("loop.toml", &text);
    bench.run(&["loop"]).exits(2).says(&["--task"]);
    bench.run(&["loop", "--task", "count", "--json"]).exits(0);
}

#[test]
fn an_agent_that_gives_nothing_or_fails_is_a_failure_of_the_agent() {
    let bench = Workbench::new();
    let quick = "[exit]\nagent_backoff = 0.0\n";
    scripted(&bench, "cat > /dev/null\n", quick);
    let result = outcome(&bench, 3);
    assert_eq!((&result["reason"], &result["outcome"]), (&json!("agent_empty"), &json!("failed")));
    assert_eq!(result["best"], Value::Null);
    scripted(&bench, "echo trouble >&2; exit 7\n", quick);
    let ran = bench.run(&["loop", "--json"]).exits(3);
    assert_eq!(ran.json()["reason"], "agent_failed");
    ran.says(&["trouble", "7"]);
    scripted(&bench, "cat >/dev/null; printf '\\377\\376'\n", quick);
    bench.run(&["loop", "--json"]).exits(3).says(&["UTF-8"]);
}

#[test]
fn an_agent_that_prints_a_gigabyte_is_cut_and_reported() {
    let bench = Workbench::new();
    let more = "[exit]\nagent_backoff = 0.0\nagent_failures = 1\n";
    scripted(&bench, "head -c 1000000000 /dev/zero | tr '\\0' x\n", more);
    let ran = bench.run(&["loop", "--json"]).exits(3);
    assert_eq!(ran.json()["reason"], "agent_failed");
    ran.says(&["output_kb"]);
}

#[test]
fn an_agent_that_hangs_ignores_sigterm_and_leaves_children_is_ended_at_the_deadline() {
    let bench = Workbench::new();
    let mark = format!("venire-test-{}", std::process::id());
    let agent = format!(
        "trap '' TERM; (trap '' TERM; exec sleep 987.{}) & while :; do sleep 0.1; done # {mark}\n",
        std::process::id()
    );
    scripted(&bench, &agent, "[budget]\nseconds = 1\n");
    let began = Instant::now();
    let result = outcome(&bench, 1);
    assert_eq!(result["reason"], "deadline");
    assert!(began.elapsed() < Duration::from_secs(20));
    let listing = std::process::Command::new("ps").args(["-eo", "args"]).output().unwrap();
    let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
    assert!(!listing.contains(&format!("sleep 987.{}", std::process::id())), "a child is left");
}

#[test]
fn judges_that_can_not_judge_are_undecided_and_the_output_is_kept() {
    let bench = Workbench::new();
    bench.write("agent.sh", COUNTING);
    bench.write("judge.sh", "cat > /dev/null; echo '{\"score\": NaN}'\n");
    bench.write(
        "loop.toml",
        "task = \"x\"\n[agent]\nkind = \"command\"\nargv = [\"sh\", \"agent.sh\"]\n\
         [panel]\n[[panel.judge]]\nname = \"nan\"\nkind = \"script\"\nargv = [\"sh\", \"judge.sh\"]\n\
         [exit]\nagent_backoff = 0.0\nevaluation_retries = 1\n",
    );
    let result = outcome(&bench, 3);
    assert_eq!(result["outcome"], "undecided");
    assert_eq!(result["reason"], "evaluator_unavailable");
    assert_eq!(result["evaluations"], 4);
    assert_eq!(result["best"], Value::Null);
    assert_eq!(result["last"]["output"], "word0 word1 ");
}

#[test]
fn a_person_is_waited_for_and_the_answer_ends_or_continues_the_run() {
    let bench = Workbench::new();
    let more = "[exit]\nany = [{ kind = \"repeated_output\", actions = [\"ask\", \"exit\"] }]\n";
    scripted(&bench, "cat >/dev/null; echo the same\n", more);
    let result = outcome(&bench, 4);
    assert_eq!(
        (&result["outcome"], &result["reason"]),
        (&json!("waiting"), &json!("awaiting_human"))
    );
    let run = result["run"].as_str().unwrap();
    bench.run(&["loop", "--resume", run, "--answer", "perhaps"]).exits(2);
    let resumed = bench.run(&["loop", "--json", "-q", "--resume", run, "--answer", "continue=go"]);
    assert_eq!(resumed.exits(1).json()["reason"], "repeated_output");
    let result = outcome(&bench, 4);
    let run = result["run"].as_str().unwrap();
    let accepted = bench.run(&["loop", "--json", "-q", "--resume", run, "--answer", "accept"]);
    assert_eq!(accepted.exits(0).json()["reason"], "human_accepted");
}

#[test]
fn a_workspace_is_judged_by_its_patch_and_left_at_its_best() {
    let bench = Workbench::new();
    let git = |arguments: &[&str]| {
        let status = std::process::Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
            .args(arguments)
            .current_dir(bench.path("repo"))
            .output()
            .unwrap();
        assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
    };
    bench.write("repo/value.txt", "0\n");
    bench.write("repo/.gitignore", "ignored\n");
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "start"]);
    bench.write("repo/ignored", "mine\n");
    // Better, then worse: the best is the second.
    bench.write(
        "agent.sh",
        "cat >/dev/null; case $VENIRE_GENERATION in 1) echo 1 > value.txt;; 2) echo 2 > value.txt; echo new > untracked.txt;; *) echo 0 > value.txt; rm -f untracked.txt; echo $VENIRE_GENERATION > junk.txt;; esac\n",
    );
    let agent = bench.path("agent.sh").display().to_string();
    bench.write(
        "loop.toml",
        format!(
            "task = \"x\"\n[agent]\nkind = \"workspace\"\ndirectory = \"repo\"\nargv = [\"sh\", \"{agent}\"]\n\
             [panel]\n[[panel.judge]]\nname = \"checks\"\nkind = \"command\"\n\
             [[panel.judge.checks]]\nname = \"one\"\nargv = [\"grep\", \"-q\", \"[12]\", \"value.txt\"]\n\
             [[panel.judge.checks]]\nname = \"two\"\nargv = [\"test\", \"-f\", \"untracked.txt\"]\n\
             [[panel.judge.checks]]\nname = \"never\"\nargv = [\"false\"]\n\
             [exit]\nany = [\"quality_threshold\"]\n[budget]\nmax_generations = 4\n"
        ),
    );
    let result = outcome(&bench, 1);
    assert_eq!(result["reason"], "max_generations");
    assert_eq!(result["best"]["generation"], 2);
    let patch = result["best"]["output"].as_str().unwrap();
    assert!(patch.contains("+2") && patch.contains("untracked.txt"), "{patch}");
    assert_eq!(bench.read("repo/value.txt"), "2\n");
    assert_eq!(bench.read("repo/untracked.txt"), "new\n");
    assert!(!bench.path("repo/junk.txt").exists());
    assert_eq!(bench.read("repo/ignored"), "mine\n");
    let status = std::process::Command::new("git")
        .args(["diff", "--cached", "--name-only"])
        .current_dir(bench.path("repo"))
        .output()
        .unwrap();
    assert!(status.stdout.is_empty(), "the user's index is not touched");
}

#[test]
fn many_tasks_are_loops_of_their_own_and_the_same_command_goes_on() {
    let bench = Workbench::new();
    let counted = format!("echo call >> calls.txt; {COUNTING}");
    scripted(&bench, &counted, "");
    bench.write("tasks.jsonl", "{\"task\":\"one\",\"id\":\"a\"}\n{\"task\":\"two\"}\n");
    let arguments = ["loop", "--tasks", "tasks.jsonl", "--json", "-q"];
    let first = bench.run(&arguments).exits(0).json();
    assert_eq!((&first["tasks"], &first["accepted"]), (&json!(2), &json!(2)));
    assert_eq!(first["convergence_rate"]["value"], 1.0);
    assert_eq!(first["runs"][0]["task"], "a");
    assert!(first["time_to_convergence_median"]["value"].as_f64().unwrap() > 0.0);
    let again = bench.run(&arguments).exits(0).json();
    assert_eq!(again["runs"], first["runs"]);
    assert_eq!(bench.read("calls.txt").lines().count(), 10, "nothing is done twice");
    bench.write("tasks.jsonl", "{\"tsk\":\"one\"}\n");
    bench.run(&arguments).exits(2).says(&["line 1", "task"]);
}

#[test]
fn a_command_of_the_policy_ends_the_loop_when_it_is_satisfied() {
    let bench = Workbench::new();
    let more = "[exit]\nany = [{ command = { argv = [\"grep\", \"-q\", \"word2\"] } }]\n";
    scripted(&bench, COUNTING, more);
    let result = outcome(&bench, 0);
    assert_eq!(
        (&result["reason"], &result["generations"]),
        (&json!("command_satisfied"), &json!(3))
    );
    scripted(&bench, COUNTING, "[exit]\nany = [{ command = { argv = [\"no-such-program\"] } }]\n");
    bench.run(&["loop"]).exits(2).says(&["no-such-program"]);
}
