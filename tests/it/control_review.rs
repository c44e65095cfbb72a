//! People in loops: where they are asked, what they may answer, and that nothing is answered
//! for them.

use serde_json::{Value, json};

use crate::control::{COUNTING, scripted};
use crate::workbench::Workbench;

/// A word more with every output, five are enough, and a person is asked before that counts.
fn asking(human: &str) -> Workbench {
    let bench = Workbench::new();
    scripted(&bench, COUNTING, &format!("[human]\n{human}\n"));
    bench
}

fn waits(bench: &Workbench) -> (Value, String) {
    let result = bench.run(&["loop", "--json", "-q"]).exits(4).json();
    assert_eq!(result["reason"], "awaiting_human");
    let run = result["run"].as_str().unwrap().to_owned();
    (result, run)
}

fn resumed(bench: &Workbench, run: &str, code: i32) -> Value {
    bench.run(&["loop", "--resume", run, "--json", "-q"]).exits(code).json()
}

#[test]
fn before_an_output_is_accepted_a_person_is_asked_and_sees_what_they_need() {
    let bench = asking("ask = [\"before_accept\"]");
    let (result, run) = waits(&bench);
    assert_eq!(result["generations"], 5);
    let listed = bench.run(&["review"]).exits(0).stdout;
    assert!(listed.contains(&run) && listed.contains("before_accept"), "{listed}");
    let shown = bench.run(&["review", &run]).exits(4).stdout;
    for part in ["count", "word4", "+word0 word1 word2 word3 word4", "words", "before_accept?"] {
        assert!(shown.contains(part), "no `{part}` in {shown}");
    }
    // Asked again, it waits as before: no answer is made up.
    assert_eq!(resumed(&bench, &run, 4)["reason"], "awaiting_human");
    bench.run(&["review", &run, "--answer", "accept"]).exits(0);
    bench.run(&["review", &run, "--answer", "reject"]).exits(2).says(&[&run]);
    let result = resumed(&bench, &run, 0);
    assert_eq!((&result["reason"], &result["generations"]), (&json!("human_accepted"), &json!(5)));
    assert!(bench.run(&["review", "--json"]).exits(0).json().as_array().unwrap().is_empty());
}

#[test]
fn a_rejection_with_a_reason_is_feedback_and_one_without_is_the_end() {
    let bench = asking("ask = [\"before_accept\"]");
    let (_, run) = waits(&bench);
    bench
        .write("agent.sh", format!("cat > prompt.txt; {}", &COUNTING["cat > /dev/null; ".len()..]));
    bench.run(&["review", "latest", "--answer", "reject=too plain"]).exits(0);
    bench.run(&["loop", "--resume", &run, "-q"]).exits(2).says(&["has changed"]);
    scripted(&bench, COUNTING, "[human]\nask = [\"before_accept\"]\n");
    let result = resumed(&bench, &run, 4);
    assert_eq!(result["generations"], 6);
    let log = bench.read(result["log"].as_str().unwrap());
    assert!(log.contains("reject_with") && log.contains("\"note\":\"too plain\""), "{log}");
    assert!(bench.run(&["review"]).exits(0).stdout.contains(&run), "it is asked anew");
    bench.run(&["review", &run, "--answer", "stop"]).exits(0);
    assert_eq!(resumed(&bench, &run, 1)["reason"], "human_rejected");
}

#[test]
fn an_edited_output_is_judged_like_any_other_and_a_score_is_a_label() {
    let bench = asking("ask = [\"every 2\"]");
    let (_, run) = waits(&bench);
    bench.run(&["review", &run, "--score", "0.4"]).exits(4);
    bench.run(&["review", &run, "--score", "1.4"]).exits(2).says(&["between 0 and 1"]);
    bench.run(&["review", &run, "--answer", "edit="]).exits(2);
    bench.write("mine.txt", "these are my own words\n");
    bench.run(&["review", &run, "--answer", "edit=@mine.txt"]).exits(0);
    let result = resumed(&bench, &run, 0);
    assert_eq!((&result["reason"], &result["generations"]), (&json!("quality_reached"), &json!(3)));
    assert_eq!(result["best"]["output"], "these are my own words\n");
    let log = bench.read(&format!(".venire/loops/{run}/events.jsonl"));
    assert!(log.contains("\"labelled\"") && log.contains("0.4"), "{log}");
}

#[test]
fn disagreement_and_a_score_near_the_threshold_ask() {
    // Three of five words score 0.6, which is 0.3 below the threshold.
    let bench = asking("ask = [\"near_threshold\"]\nmargin = 0.31");
    let (result, run) = waits(&bench);
    assert_eq!(result["generations"], 3);
    bench.run(&["loop", "--resume", &run, "--answer", "continue=more", "-q"]).exits(4);
    let bench = asking("ask = [\"on_disagreement\"]\nspread = 0.5");
    let text = bench.read("loop.toml");
    let other = "[[panel.judge]]\nname = \"other\"\nkind = \"rule\"\nrule = \"length\"\nwords = { max = 9 }\n";
    bench.write("loop.toml", format!("{text}{other}"));
    let (result, _) = waits(&bench);
    assert_eq!(result["generations"], 1);
}

#[test]
fn what_stands_in_for_an_answer_is_declared_and_comes_only_after_the_deadline() {
    let late = asking("ask = [\"before_accept\"]\ndeadline = \"0s\"\non_deadline = \"accept\"");
    let (_, run) = waits(&late);
    let result = resumed(&late, &run, 0);
    assert_eq!(result["reason"], "human_accepted");
    assert!(late.read(&format!(".venire/loops/{run}/events.jsonl")).contains("by_deadline"));
    let early = asking("ask = [\"before_accept\"]\ndeadline = \"24h\"\non_deadline = \"accept\"");
    let (_, run) = waits(&early);
    resumed(&early, &run, 4);
    let none = asking("ask = [\"before_accept\"]\ndeadline = \"1h\"");
    none.run(&["loop"]).exits(2).says(&["human.deadline", "on_deadline"]);
}

#[test]
fn what_people_scored_becomes_the_labels_of_a_calibration() {
    let bench = asking("ask = [\"every 1\"]");
    bench.run(&["review", "--export", "labels"]).exits(3).says(&["nothing was written"]);
    let (_, run) = waits(&bench);
    for (score, answer) in [("0.1", "continue"), ("0.9", "edit=two more words"), ("0.3", "stop")] {
        bench.run(&["review", &run, "--score", score, "--answer", answer]).exits(0);
        bench.run(&["loop", "--resume", &run, "-q"]);
    }
    bench.run(&["review", "--export", "labels"]).exits(0).says(&["3 scored outputs"]);
    let labels = bench.read("labels/labels.csv");
    assert_eq!(
        labels.lines().collect::<Vec<_>>(),
        [
            "item_id,rater,criterion,label".to_owned(),
            format!("{run}/1,person,overall,0.1"),
            format!("{run}/2,person,overall,0.9"),
            format!("{run}/3,person,overall,0.3"),
        ]
    );
    assert!(bench.read("labels/items.jsonl").contains("two more words"));
    let arguments = [
        "calibrate",
        "--judgements",
        "labels/judgements.jsonl",
        "--labels",
        "labels/labels.csv",
        "--items",
        "labels/items.jsonl",
        "--group",
        "group",
        "--positive",
        ">=0.8",
        "--no-split",
        "--json",
    ];
    let report = bench.run(&arguments).exits(0).json();
    assert_eq!(report["labels"]["count"], 3);
    assert_eq!(report["judges"][0]["name"], "words");
}
