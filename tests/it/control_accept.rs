//! What it takes to be accepted: reserve judges, early decisions, disputes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::control::{COUNTING, scripted};
use crate::workbench::Workbench;

/// A second rule with a higher demand, on the reserve.
const RESERVE: &str = "[[panel.judge]]\nname = \"more\"\nkind = \"rule\"\nrule = \"length\"\nwords = { min = 7 }\ngraded = false\nreserve = true\n";

fn with(bench: &Workbench, agent: &str, more: &str, judges: &str) {
    scripted(bench, agent, more);
    let text = format!("{}{judges}", bench.read("loop.toml"));
    bench.write("loop.toml", text);
}

#[test]
fn what_the_panel_accepts_has_to_pass_before_the_reserve_too() {
    let bench = Workbench::new();
    with(&bench, COUNTING, "", RESERVE);
    let result = bench.run(&["loop", "--json", "-q"]).exits(0).json();
    assert_eq!((&result["reason"], &result["generations"]), (&json!("quality_reached"), &json!(7)));
    assert_eq!(result["history"][4]["status"], "confirmation_rejected");
    assert_eq!(result["history"][6]["status"], "accepted");
    // Ten judgements: seven first ones, and of generations 5 to 7 a second one.
    assert_eq!(
        (&result["evaluations"], &result["confirmation"]),
        (&json!(10), &json!("confirmed"))
    );
    let log = bench.read(result["log"].as_str().unwrap());
    let judges =
        log.lines().filter(|line| line.contains("\"judged\"")).fold([0, 0], |[a, b], line| {
            if line.contains("\"judge\":\"more\"") { [a, b + 1] } else { [a + 1, b] }
        });
    assert_eq!(judges, [7, 3], "the reserve is asked about what has passed, and the panel is not");
    // Outside of loops a reserve is left out.
    let panel =
        bench.read("loop.toml").split_once("[panel]").unwrap().1.replace("panel.judge", "judge");
    bench.write("panel.toml", panel);
    bench.write("answer.txt", "a b c d e f");
    let ruling = bench.run(&["score", "answer.txt", "--json"]).exits(0).json();
    assert_eq!(ruling["votes"].as_array().unwrap().len(), 1);
}

#[test]
fn an_early_decision_does_not_wait_for_a_judge_that_can_not_change_it() {
    let bench = Workbench::new();
    let slow = "[[panel.judge]]\nname = \"slow\"\nkind = \"script\"\nargv = [\"sh\", \"-c\", \"sleep 60\"]\n";
    let same = "[[panel.judge]]\nname = \"same\"\nkind = \"rule\"\nrule = \"length\"\nwords = { min = 5 }\n";
    let agent = "cat > /dev/null; echo a b c d e f\n";
    with(&bench, agent, "[exit]\nearly_decision = true\n", &format!("{same}{slow}"));
    let began = Instant::now();
    let result = bench.run(&["loop", "--json", "-q"]).exits(0).json();
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(result["reason"], "quality_reached");
    let interval = result["best"]["interval"].as_array().unwrap();
    assert_eq!(interval.len(), 2, "the score is an interval");
}

/// A judge that wants a word which the other does not look for.
fn disputed(bench: &Workbench, agent: &str, human: &str) {
    let strict = "[[panel.judge]]\nname = \"rhyme\"\nkind = \"rule\"\nrule = \"contains\"\nall = [\"moon\"]\nrequired = true\n";
    with(bench, agent, &format!("[feedback]\ndisputes = true\n{human}"), strict);
}

/// Says five words, and from the second time on disputes the first finding.
const DISPUTING: &str = "cat > prompt$VENIRE_CALL.txt; echo a b c d e $VENIRE_GENERATION; if [ $VENIRE_GENERATION -gt 1 ]; then echo; echo 'DISPUTE 1: no moon was asked for'; fi\n";

#[test]
fn a_dispute_is_looked_at_by_the_others_once_and_then_ends_as_undecided() {
    let bench = Workbench::new();
    disputed(&bench, DISPUTING, "");
    let ran = bench.run(&["loop", "--json"]).exits(3);
    let result = ran.json();
    assert_eq!(result["reason"], "evaluator_unreliable");
    assert_eq!((&result["generations"], &result["evaluations"]), (&json!(2), &json!(3)));
    let output = result["last"]["output"].as_str().unwrap();
    assert!(!output.contains("DISPUTE"), "the rebuttal is no part of the output: {output}");
    let prompt = bench.read("prompt2.txt");
    assert!(prompt.contains("[1] rhyme") && prompt.contains("DISPUTE 1"), "{prompt}");
    ran.says(&["judge the dispute", "disputed: the other judges"]);
    // Killed or not, the log gives the same.
    let again = bench.run(&["loop", "--resume", "--json", "-q"]).exits(3).json();
    assert_eq!((&again["reason"], &again["history"]), (&result["reason"], &result["history"]));
    let replayed =
        bench.run(&["replay", result["log"].as_str().unwrap(), "--policy", "loop.toml", "--json"]);
    assert_eq!(replayed.exits(0).json()["undecided_rate"]["value"], 1.0);
}

#[test]
fn a_person_is_asked_about_a_dispute_and_sees_both_sides() {
    let bench = Workbench::new();
    disputed(&bench, DISPUTING, "[human]\nask = [\"on_dispute\"]\n");
    let result = bench.run(&["loop", "--json", "-q"]).exits(4).json();
    assert_eq!(result["reason"], "awaiting_human");
    let waiting: Value = bench.run(&["review", "--json"]).exits(0).json();
    assert_eq!(waiting[0]["about"], "on_dispute");
    assert_eq!(waiting[0]["disputes"][0]["rebuttal"], "no moon was asked for");
    let shown = bench.run(&["review", "latest"]).exits(4).stdout;
    assert!(shown.contains("disputed by the agent") && shown.contains("no moon"), "{shown}");
    let accepted = ["loop", "--resume", "--answer", "accept", "--json", "-q"];
    assert_eq!(bench.run(&accepted).exits(0).json()["reason"], "human_accepted");
    scripted(&bench, COUNTING, "[human]\nask = [\"on_dispute\"]\n");
    bench.run(&["loop"]).exits(2).says(&["feedback.disputes"]);
}

#[test]
fn a_finding_is_disputed_once_and_a_lost_dispute_is_told() {
    let bench = Workbench::new();
    // Too short for the other judge as well.
    disputed(&bench, &DISPUTING.replace("a b c d e ", "a "), "[budget]\nmax_generations = 4\n");
    let result = bench.run(&["loop", "--json", "-q"]).exits(1).json();
    assert_eq!(result["reason"], "max_generations");
    assert!(bench.read("prompt3.txt").contains("the finding stands"));
    assert!(!bench.read("prompt4.txt").contains("the finding stands"));
    let log = bench.read(result["log"].as_str().unwrap());
    let disputes = log
        .lines()
        .filter(|line| line.contains("\"round\":\"dispute\"") && line.contains("\"ruled\""))
        .count();
    // Two judges find something each: each finding can be disputed once.
    assert!((1..=2).contains(&disputes), "{disputes}");
}
