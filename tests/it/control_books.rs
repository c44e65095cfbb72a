//! What loops tell of prices that nobody knows, and of logs that are damaged.

use serde_json::{Value, json};

use crate::control::{COUNTING, scripted};
use crate::workbench::Workbench;

/// A loop whose agent calls a model, as its tokens say, and tells no price.
fn unpriced(bench: &Workbench, more: &str) {
    scripted(bench, COUNTING, more);
    let text = bench.read("loop.toml").replace("estimate_tokens = false\n", "");
    bench.write("loop.toml", text);
}

fn run_of(result: &Value) -> String {
    result["run"].as_str().unwrap().to_owned()
}

/// Breaks the second line of a run's log.
fn damage(bench: &Workbench, run: &str) {
    let log = format!(".venire/loops/{run}/events.jsonl");
    let text = bench.read(&log);
    let lines: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(i, line)| if i == 1 { line.replacen("sum", "smu", 1) } else { line.to_owned() })
        .collect();
    bench.write(&log, format!("{}\n", lines.join("\n")));
}

#[test]
fn a_price_that_nobody_knows_is_no_zero_however_often_the_run_is_told_of() {
    let bench = Workbench::new();
    unpriced(&bench, "");
    let first = bench.run(&["loop", "--json", "-q"]).exits(0).json();
    assert_eq!(
        (&first["cost_usd"], &first["usage"]["agent"]["cost_usd"]),
        (&json!(null), &json!(null))
    );
    assert!(first["usage"]["agent"]["tokens_in"].as_u64().unwrap() > 0);
    // The judge is a rule, which costs nothing.
    assert_eq!(first["usage"]["judge"]["cost_usd"], 0.0);
    let run = run_of(&first);
    let again = bench.run(&["loop", "--resume", &run, "--json", "-q"]).exits(0).json();
    assert_eq!((&again["cost_usd"], &again["usage"]), (&first["cost_usd"], &first["usage"]));
    let told = bench.run(&["loop", "--resume", &run]).exits(0).stdout;
    assert!(told.contains("price unknown") && !told.contains('$'), "{told}");
    bench.run(&["report", ".venire/loops", "-o", "page.html"]).exits(0);
    let page = bench.read("page.html");
    assert!(page.contains("price unknown") && !page.contains("$0"), "a price on the page");
}

#[test]
fn a_price_that_nobody_knows_is_none_after_an_answer_and_of_several_starts() {
    let bench = Workbench::new();
    unpriced(&bench, "[human]\nask = [\"before_accept\"]\nterminal = false\n");
    let waits = bench.run(&["loop", "--json", "-q"]).exits(4).json();
    let answered = ["loop", "--resume", &run_of(&waits), "--answer", "accept", "--json", "-q"];
    let done = bench.run(&answered).exits(0).json();
    assert_eq!((&waits["cost_usd"], &done["cost_usd"]), (&json!(null), &json!(null)));
    let bench = Workbench::new();
    unpriced(&bench, "[starts]\nn = 2\n");
    let first = bench.run(&["loop", "--json", "-q"]).exits(0).json();
    let again = bench.run(&["loop", "--resume", &run_of(&first), "--json", "-q"]).exits(0).json();
    for own in [&first, &again] {
        assert_eq!(
            (&own["cost_usd"], &own["usage"]["agent"]["cost_usd"]),
            (&json!(null), &json!(null))
        );
    }
    // Where nothing has a price because nothing is paid for, it is nothing.
    let bench = Workbench::new();
    scripted(&bench, COUNTING, "");
    let free = bench.run(&["loop", "--json", "-q"]).exits(0).json();
    let told = bench.run(&["loop", "--resume", &run_of(&free), "--json", "-q"]).exits(0).json();
    assert_eq!((&free["cost_usd"], &told["cost_usd"]), (&json!(0.0), &json!(0.0)));
}

#[test]
fn why_a_run_can_t_go_on_is_told_the_same_with_and_without_a_loop_file() {
    let bench = Workbench::new();
    scripted(&bench, COUNTING, "");
    let run = run_of(&bench.run(&["loop", "--json", "-q"]).exits(0).json());
    let whole = run_of(&bench.run(&["loop", "--json", "-q"]).exits(0).json());
    damage(&bench, &run);
    for with_file in [true, false] {
        if !with_file {
            std::fs::rename(bench.path("loop.toml"), bench.path("kept.toml")).unwrap();
        }
        let resume = |run: &str| bench.run(&["loop", "--resume", run]);
        let damaged = resume(&run).exits(3).says(&["line 2", "events.jsonl"]);
        let unknown = resume("none").exits(2).says(&["no run `none`"]);
        for own in [damaged, unknown] {
            assert!(!own.stderr.contains("loop.toml"), "{}", own.stderr);
        }
    }
    // Of a whole run it is the file that is missing, and that is said.
    bench.run(&["loop", "--resume", &whole]).exits(2).says(&["began with", "loop.toml"]);
    bench.run(&["loop", "--resume", &whole, "-c", "kept.toml"]).exits(0);
    let empty = Workbench::new();
    let none = empty.run(&["loop", "--resume"]).exits(2).says(&["no run `latest`"]);
    assert!(!none.stderr.contains("loop.toml"), "{}", none.stderr);
}

#[test]
fn a_damaged_run_is_listed_and_left_out_of_the_report_of_the_others() {
    let bench = Workbench::new();
    scripted(&bench, COUNTING, "");
    let good = run_of(&bench.run(&["loop", "--json", "-q"]).exits(0).json());
    let bad = run_of(&bench.run(&["loop", "--json", "-q"]).exits(0).json());
    damage(&bench, &bad);
    for what in ["loops", "runs"] {
        let ran = bench.run(&["list", what]).exits(0).says(&[&bad, "damaged"]);
        assert!(
            ran.stdout.contains("damaged: line 2") && ran.stdout.contains(&good),
            "{}",
            ran.stdout
        );
    }
    let listed = bench.run(&["list", "loops", "--json"]).exits(0).json();
    let row = listed.as_array().unwrap().iter().find(|own| own["run"] == bad.as_str()).unwrap();
    assert_eq!((&row["state"], &row["task"]), (&json!("damaged"), &json!("count")));
    assert!(row["damaged"].as_str().unwrap().starts_with("line 2"), "{row}");
    let folder = ["report", ".venire/loops", "-o", "page.html"];
    bench.run(&folder).exits(0).says(&["left out", &bad, "line 2"]);
    let page = bench.read("page.html");
    assert!(page.contains(&good) && page.contains("A log is left out"), "the page lacks a loop");
    let alone = format!(".venire/loops/{bad}");
    bench.run(&["report", &alone, "-o", "alone.html"]).exits(2).says(&["line 2"]);
}
