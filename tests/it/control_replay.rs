//! Recorded loops under other panels and against targets: what `venire replay` makes of them.

use serde_json::json;

use crate::control::{COUNTING, scripted};
use crate::workbench::Workbench;

/// A loop that was recorded with two judges: five words are enough for one, the other wants no
/// more than three.
fn recorded() -> (Workbench, String) {
    let bench = Workbench::new();
    scripted(&bench, COUNTING, "[budget]\nmax_generations = 6\n");
    let short = "[[panel.judge]]\nname = \"short\"\nkind = \"rule\"\nrule = \"length\"\nwords = { max = 3 }\n";
    bench.write("loop.toml", format!("{}{short}", bench.read("loop.toml")));
    let result = bench.run(&["loop", "--json", "-q"]).exits(1).json();
    assert_eq!(result["reason"], "max_generations");
    (bench, result["log"].as_str().unwrap().to_owned())
}

/// The metrics under a panel of these judges.
fn under(bench: &Workbench, log: &str, panel: &str, code: i32) -> crate::workbench::Ran {
    bench.write(
        "policy.toml",
        format!("[exit]\nany = [\"quality_threshold\"]\n[panel]\nthreshold = 0.9\n{panel}"),
    );
    bench.run(&["replay", log, "--policy", "policy.toml", "--json"]).exits(code)
}

const WORDS: &str =
    "[[panel.judge]]\nname = \"words\"\nkind = \"rule\"\nrule = \"length\"\nwords = { min = 5 }\n";

#[test]
fn a_log_is_played_under_another_panel_of_the_judges_that_were_recorded() {
    let (bench, log) = recorded();
    let same = bench.run(&["replay", &log, "--policy", "loop.toml", "--json"]).exits(0).json();
    assert_eq!((&same["accepted"], &same["censored"]), (&json!(0), &json!(0)));
    let alone = under(&bench, &log, WORDS, 0).json();
    assert_eq!((&alone["accepted"], &alone["generations_mean"]["value"]), (&json!(1), &json!(5.0)));
    // Their mean is 0.6 with one word, 0.7 with two and 0.8 with three.
    let short = WORDS.replace("\"words\"\nkind", "\"short\"\nkind");
    let mean = format!("aggregate = \"mean\"\n{WORDS}{short}");
    let mean = under(&bench, &log, &mean, 0).json();
    assert_eq!(mean["accepted"], 0);
    bench.write(
        "policy.toml",
        bench.read("policy.toml").replace("threshold = 0.9", "threshold = 0.75"),
    );
    let lower = bench.run(&["replay", &log, "--policy", "policy.toml", "--json"]).exits(0).json();
    assert_eq!((&lower["accepted"], &lower["generations_mean"]["value"]), (&json!(1), &json!(3.0)));
}

#[test]
fn a_judge_that_was_not_recorded_is_a_missing_vote_and_no_veto_is_guessed() {
    let (bench, log) = recorded();
    let new = WORDS.replace("\"words\"\nkind", "\"new\"\nkind");
    let ran = under(&bench, &log, &format!("quorum = 1\n{WORDS}{new}"), 0);
    let ran = ran.says(&["no verdicts of `new`", "missing"]);
    assert_eq!(ran.json()["accepted"], 1);
    let required = format!("quorum = 1\n{WORDS}{new}required = true\n");
    under(&bench, &log, &required, 2).says(&["`new`", "requires"]);
    // Nobody is asked, and so no key is needed: the verdicts that count are there.
    let model = "[[panel.judge]]\nname = \"words\"\nkind = \"llm\"\nmodel = \"openai/gpt-4.1\"\n";
    assert_eq!(under(&bench, &log, model, 0).json()["accepted"], 1);
    let gone = "[[panel.judge]]\nname = \"words\"\nkind = \"script\"\nargv = [\"./gone\"]\n";
    under(&bench, &log, gone, 0).says(&["can't be seated", "as they were ruled"]);
    // A panel of strangers has nothing to say: rulings stand as they were made.
    let strangers = under(&bench, &log, &new, 0).json();
    assert_eq!((&strangers["accepted"], &strangers["censored"]), (&json!(0), &json!(1)));
}

#[test]
fn a_target_fails_only_where_the_interval_excludes_it() {
    let bench = Workbench::new();
    bench.write("policy.toml", "[exit]\nany = [{ quality_threshold = { threshold = 0.9 } }]\n");
    let table = |loops: usize, accepted: usize| {
        let row = |i: usize| format!("t{i},1,{},1\n", if i < accepted { 0.95 } else { 0.5 });
        format!("task,generation,score,truth\n{}", (0..loops).map(row).collect::<String>())
    };
    let arguments = |more: &'static str| {
        let mut all = vec!["replay", "t.csv", "--policy", "policy.toml", "--json"];
        all.extend((!more.is_empty()).then_some(more));
        all
    };
    bench.write("t.csv", table(4, 3));
    let few = bench.run(&arguments("--targets")).exits(0).json();
    assert_eq!(
        few["targets"]["convergence_rate"],
        json!({ "above": 0.95, "standing": "open" }),
        "three of four may be 95 of 100"
    );
    bench.write("t.csv", table(200, 150));
    let many = bench.run(&arguments("--targets")).exits(1).json();
    assert_eq!(many["targets"]["convergence_rate"]["standing"], "missed");
    assert_eq!(many["targets"]["generations_to_accept_median"]["standing"], "met");
    assert_eq!(many["targets"]["false_acceptance_share"]["standing"], "met");
    // They are shown without the flag, and bind nobody.
    let shown = bench.run(&arguments("")).exits(0).json();
    assert_eq!(shown["targets"], many["targets"]);
    let text = bench.run(&["replay", "t.csv", "--policy", "policy.toml"]).exits(0).stdout;
    assert!(text.contains("> 0.95 missed") && text.contains("< 3 met"), "{text}");
    bench.write("mine.toml", "convergence_rate = { above = 0.6 }\n");
    let own = bench.run(&arguments("--targets=mine.toml")).exits(0).json();
    assert_eq!(own["targets"], json!({ "convergence_rate": { "above": 0.6, "standing": "met" } }));
    bench.write("mine.toml", "convergence = { above = 0.6 }\n");
    bench.run(&arguments("--targets=mine.toml")).exits(2).says(&["convergence_rate", "mine.toml"]);
}

#[test]
fn the_figures_of_many_tasks_stand_beside_their_targets() {
    let bench = Workbench::new();
    scripted(&bench, COUNTING, "");
    let tasks: Vec<String> = (0..6).map(|i| format!("{{\"task\":\"count {i}\"}}\n")).collect();
    bench.write("tasks.jsonl", tasks.concat());
    // Five generations each, six times: the median is not below 3.
    let arguments = ["loop", "--tasks", "tasks.jsonl", "--json", "-q"];
    let shown = bench.run(&arguments).exits(0).json();
    assert_eq!(shown["targets"]["generations_to_accept_median"]["standing"], "missed");
    assert!(shown["runs"][0]["elapsed_seconds"].is_number() && shown["runs"][0]["log"].is_string());
    bench.run(&[&arguments[..], &["--targets"]].concat()).exits(1);
    bench.run(&["loop", "--targets"]).exits(2).says(&["--tasks"]);
}
