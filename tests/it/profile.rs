//! A profile in use: what it decides, what it says, and when it is refused.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::workbench::{Ran, Workbench};

const JUDGES: [&str; 3] = ["a", "b", "c"];

fn sequence() -> impl FnMut() -> f64 {
    let mut state = 7u64;
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    }
}

fn panel(more: &str) -> String {
    let mut panel = format!("name = \"three\"\nthreshold = 0.5\n{more}\n");
    for judge in JUDGES {
        let _ = write!(
            panel,
            "[[judge]]\nname = \"{judge}\"\nkind = \"replay\"\nfile = \"judgements.csv\"\n"
        );
    }
    panel
}

/// 400 cases, the first half of them labelled; judges see the truth through noise, and `a` is
/// silent on every fortieth case.
fn bench() -> Workbench {
    let bench = Workbench::new();
    let mut random = sequence();
    let mut labels = String::from("item_id,label\n");
    let mut judgements = String::from("item_id,judge,score\n");
    let (mut first, mut rest) = (String::from("id,output\n"), String::from("id,output\n"));
    for i in 0..400 {
        let good = random() < 0.5;
        let cases = if i < 200 { &mut first } else { &mut rest };
        writeln!(cases, "c{i},x").unwrap();
        writeln!(labels, "c{i},{}", u8::from(good)).unwrap();
        for judge in JUDGES {
            let centre = if good { 0.7 } else { 0.3 };
            let score = (centre + (random() - 0.5) * 0.6_f64).clamp(0.0, 1.0);
            if judge != "a" || i % 40 != 0 {
                writeln!(judgements, "c{i},{judge},{score:.4}").unwrap();
            }
        }
    }
    bench.write("labels.csv", labels);
    bench.write("judgements.csv", judgements);
    bench.write("first.csv", first);
    bench.write("rest.csv", rest);
    bench.write("panel.toml", panel(""));
    bench
}

/// The same, with a profile fitted from a run over the first half.
fn calibrated() -> Workbench {
    let bench = bench();
    bench.run(&["-q", "run", "first.csv"]).exits(0);
    calibrate(&bench, &["-o", "p.json"]).exits(0);
    bench
}

fn calibrate(bench: &Workbench, more: &[&str]) -> Ran {
    let mut arguments = vec![
        "-q",
        "calibrate",
        "--run",
        "latest",
        "--labels",
        "labels.csv",
        "--positive",
        "=1",
        "--criterion",
        "overall",
    ];
    if !more.contains(&"--label-criterion") {
        arguments.extend(["--label-criterion", "overall"]);
    }
    arguments.extend(more);
    bench.run(&arguments)
}

fn rulings(bench: &Workbench, more: &[&str]) -> Vec<Value> {
    let mut arguments =
        vec!["-q", "run", "rest.csv", "--what", "rulings", "-o", "r.jsonl", "--json"];
    arguments.extend(more);
    bench.run(&arguments).exits(0);
    bench.rows("r.jsonl")
}

fn read(bench: &Workbench, name: &str) -> Value {
    serde_json::from_str(&bench.read(name)).unwrap()
}

#[test]
fn a_run_under_a_profile_is_certified_and_keeps_the_raw_score_beside_the_mapped_one() {
    let bench = calibrated();
    let profile = read(&bench, "p.json");
    let certificate = &profile["certificate"];
    assert_eq!(certificate["status"], "certified", "{certificate}");
    let plain = rulings(&bench, &[]);
    assert!(plain.iter().all(|row| row["profile"].is_null() && row["uncertified"].is_null()));
    let rows = rulings(&bench, &["--profile", "p.json"]);
    let (threshold, tiebreak) =
        (certificate["threshold"].as_f64().unwrap(), certificate["tiebreak"].as_f64().unwrap());
    let (mut bad, mut accepted_bad, mut degraded) = (0, 0, 0);
    let labels = bench.read("labels.csv");
    for (row, plain) in rows.iter().zip(&plain) {
        assert_eq!((&row["profile"], &row["profile_hash"]), (&"p".into(), &profile["hash"]));
        assert_eq!(row["raw_score"], plain["score"], "the raw score is the one without profile");
        let accepted = row["decision"] == "accept";
        if row["degraded"] == true {
            degraded += 1;
        } else {
            assert_eq!((&row["uncertified"], &row["uncalibrated"]), (&false.into(), &false.into()));
            let key = (row["key_score"].as_f64().unwrap(), row["key_tiebreak"].as_f64().unwrap());
            assert_eq!(accepted, key >= (threshold, tiebreak), "{row}");
        }
        let case = row["case"].as_str().unwrap();
        if labels.lines().any(|line| line == format!("{case},0")) {
            bad += 1;
            accepted_bad += u32::from(accepted);
        }
    }
    assert_eq!(degraded, 5);
    assert!(f64::from(accepted_bad) <= 0.10 * f64::from(bad), "{accepted_bad} of {bad}");
    let words = bench.run(&["-q", "run", "rest.csv", "--profile", "p.json"]).exits(0);
    assert!(words.stdout.contains("rulings certified, false_positive_rate at most 0.05"));
    assert!(words.stdout.contains("5 degraded"), "{}", words.stdout);
}

#[test]
fn a_profile_may_stand_in_the_panel_s_file_and_the_flag_wins() {
    let bench = calibrated();
    bench.write("panel.toml", panel("profile = \"p.json\""));
    assert!(rulings(&bench, &[]).iter().all(|row| row["profile"] == "p"));
    std::fs::copy(bench.path("p.json"), bench.path("q.json")).unwrap();
    bench.write("panel.toml", panel("profile = \"missing.json\""));
    assert!(
        rulings(&bench, &["--profile", "q.json"])
            .iter()
            .all(|row| row["uncertified"] == false || row["degraded"] == true)
    );
    bench.run(&["-q", "run", "rest.csv"]).exits(2).says(&["failed to read profile"]);
}

#[test]
fn a_threshold_below_the_certified_one_marks_every_ruling_uncertified() {
    let bench = calibrated();
    let lenient = rulings(&bench, &["--profile", "p.json", "--threshold", "0.1"]);
    assert!(lenient.iter().all(|row| row["uncertified"] == true && row["uncalibrated"] == false));
    let reason = lenient[0]["profile_reasons"].as_str().unwrap();
    assert!(reason.contains("not above the certified one"), "{reason}");
    let strict = rulings(&bench, &["--profile", "p.json", "--threshold", "0.99"]);
    let full = strict.iter().filter(|row| row["degraded"] == false);
    assert!(full.clone().count() > 150);
    assert!(full.clone().all(|row| row["uncertified"] == false && row["threshold"] == 0.99));
}

#[test]
fn a_profile_for_another_panel_is_refused_with_everything_that_changed() {
    let bench = calibrated();
    let refused = |panel: &str| {
        bench.write("other.toml", panel);
        bench.run(&["-q", "run", "-c", "other.toml", "rest.csv", "--profile", "p.json"]).exits(3)
    };
    let renamed = panel("").replace("name = \"c\"", "name = \"d\"\njudge = \"c\"");
    refused(&renamed).says(&["`d` is new", "`c` is missing", "--allow-mismatch"]);
    let inverted = panel("").replacen("kind =", "invert = true\nkind =", 1);
    refused(&inverted).says(&["`a` was not inverted and is inverted"]);
    refused(&panel("aggregate = \"mean\"")).says(&["`aggregate` is mean"]);
    refused(&panel("aggregate = \"pooled\"")).says(&["no weights for `pooled`"]);
    bench.write("judgements.csv", bench.read("judgements.csv") + "c999,a,0.5\n");
    refused(&panel("")).says(&["`a` is another: its fingerprint was"]);
    let rows = rulings(&bench, &["--profile", "p.json", "--allow-mismatch"]);
    assert!(rows.iter().all(|row| row["uncalibrated"] == true && row["uncertified"] == true));
    assert!(rows[0]["profile_reasons"].as_str().unwrap().contains("`a` is another"));
}

#[test]
fn an_edited_profile_and_one_of_another_version_are_refused() {
    let bench = calibrated();
    let text = bench.read("p.json");
    bench.write("edited.json", text.replace("\"alpha\": 0.05", "\"alpha\": 0.01"));
    let under = |profile: &str| bench.run(&["-q", "run", "rest.csv", "--profile", profile]);
    under("edited.json").exits(3).says(&["was edited after it was written"]);
    bench.write("old.json", text.replace("\"version\": 2", "\"version\": 1"));
    under("old.json").exits(3).says(&["format version 1", "reads version 2"]);
    bench.write("none.json", "{}");
    under("none.json").exits(2).says(&["is no profile"]);
    bench
        .run(&["-q", "run", "rest.csv", "--allow-mismatch"])
        .exits(2)
        .says(&["name one with `--profile FILE`"]);
}

#[test]
fn a_run_is_not_gone_on_with_under_another_profile() {
    let bench = calibrated();
    rulings(&bench, &["--profile", "p.json"]);
    bench.run(&["-q", "run", "--resume"]).exits(0);
    bench
        .run(&[
            "-q",
            "calibrate",
            "--judgements",
            "judgements.csv",
            "--labels",
            "labels.csv",
            "--positive",
            "=1",
            "--seed",
            "9",
            "-o",
            "p.json",
        ])
        .exits(0);
    bench
        .run(&["-q", "run", "--resume"])
        .exits(2)
        .says(&["it was begun under profile", "now there is profile"]);
}

#[test]
fn what_only_a_profile_gives_is_refused_without_one() {
    let bench = calibrated();
    for (more, what) in [
        ("aggregate = \"pooled\"", "`aggregate = \"pooled\"` needs a profile"),
        ("aggregate = \"dawid_skene\"", "`aggregate = \"dawid_skene\"` needs a profile"),
    ] {
        bench.write("other.toml", panel(more));
        bench.run(&["-q", "run", "-c", "other.toml", "rest.csv"]).exits(2).says(&[what]);
    }
    let alone = |judge: &str| {
        let name = format!("name = \"{judge}\"\n");
        panel("").replace(&name, &format!("{name}accept_alone = true\n"))
    };
    bench.write("panel.toml", alone("b"));
    bench.run(&["-q", "run", "rest.csv"]).exits(2).says(&["`accept_alone` of judge `b` needs"]);
    let rows = rulings(&bench, &["--profile", "p.json"]);
    let reasons: Vec<&str> = rows.iter().filter_map(|row| row["reason"].as_str()).collect();
    assert!(reasons.contains(&"accepted_alone: b"), "{reasons:?}");
    // `a` is silent on some bad cases, and there counts as accepting.
    bench.write("panel.toml", alone("a"));
    bench
        .run(&["-q", "run", "rest.csv", "--profile", "p.json"])
        .exits(3)
        .says(&["judge `a` is to accept alone, and its own false-positive rate is not certified"]);
}

#[test]
fn pooled_votes_are_certified_and_dawid_skene_never_is() {
    let bench = calibrated();
    calibrate(&bench, &["--aggregate", "stack", "-o", "stack.json", "--split", "0.5"]).exits(0);
    bench.write("panel.toml", panel("aggregate = \"pooled\""));
    let rows = rulings(&bench, &["--profile", "stack.json"]);
    assert!(rows.iter().any(|row| row["uncertified"] == false && row["decision"] == "accept"));
    bench.write("panel.toml", panel("aggregate = \"dawid_skene\""));
    let rows = rulings(&bench, &["--profile", "p.json"]);
    assert!(rows.iter().all(|row| row["uncertified"] == true && row["uncalibrated"] == false));
    let accepted = rows.iter().filter(|row| row["decision"] == "accept").count();
    assert!((60..140).contains(&accepted), "{accepted} of 200");
}

#[test]
fn score_and_gate_say_what_their_ruling_is_worth() {
    let bench = calibrated();
    bench.write("case.json", r#"{"id": "c201", "output": "x"}"#);
    let arguments = ["-q", "score", "--case", "case.json", "--profile", "p.json"];
    let words = bench.run(&arguments);
    for part in ["mapped", "raw score", "expected label", "profile p (", ": certified, "] {
        assert!(words.stdout.contains(part), "no `{part}` in {}", words.stdout);
    }
    let ruling = bench.run(&[&arguments[..], &["--json"]].concat()).json();
    assert_eq!(ruling["profile"]["uncertified"], false);
    assert_eq!(ruling["profile"]["bound"]["alpha"], 0.05);
    let gate = |more: &[&str]| {
        let mut arguments = vec!["-q", "gate", "--case", "case.json", "--profile", "p.json"];
        arguments.extend(more);
        bench.run(&arguments)
    };
    assert!(gate(&[]).stdout.contains(": certified, false_positive_rate at most 0.05"));
    assert!(gate(&["--threshold", "0"]).exits(0).stdout.contains("uncertified"));
    bench.write("case.json", r#"{"id": "c200", "output": "x"}"#);
    assert!(gate(&[]).stdout.contains("degraded: no vote of `"));
}

#[test]
fn without_a_certificate_nothing_is_announced_as_certified_whoever_answered() {
    let bench = bench();
    bench.run(&["-q", "run", "first.csv"]).exits(0);
    // Ten bad cases allow no threshold at alpha 0.001.
    calibrate(&bench, &["-o", "p.json", "--alpha", "0.001"]).exits(0);
    assert_eq!(read(&bench, "p.json")["certificate"]["status"], "not_certifiable");
    // Nobody has a vote on the one, all have on the other.
    bench.write("rest.csv", "id,output\nnobody,x\nc201,x\n");
    let rows = rulings(&bench, &["--profile", "p.json"]);
    assert_eq!((&rows[0]["decision"], rows.len()), (&"undecided".into(), 2));
    assert!(rows.iter().all(|row| row["uncertified"] == true), "{rows:?}");
    assert!(rows[0]["profile_reasons"].as_str().unwrap().contains("has no certificate"));
    let words = bench.run(&["-q", "run", "rest.csv", "--profile", "p.json"]).exits(0);
    let said = "0 rulings certified; 1 uncertified; 1 undecided";
    assert!(words.stdout.contains(said), "{}", words.stdout);
    bench.write("case.json", r#"{"id": "nobody", "output": "x"}"#);
    for verb in ["score", "gate"] {
        let ran = bench.run(&["-q", verb, "--case", "case.json", "--profile", "p.json"]);
        assert!(ran.stdout.contains(": uncertified: profile `p` has no certificate"));
        assert!(!ran.stdout.contains(": certified"), "{}", ran.stdout);
    }
}

#[test]
fn an_undecided_ruling_is_neither_certified_nor_uncertified() {
    let bench = calibrated();
    bench.write("rest.csv", "id,output\nnobody,x\nc201,x\n");
    let words = bench.run(&["-q", "run", "rest.csv", "--profile", "p.json"]).exits(0);
    assert!(words.stdout.contains("1 ruling certified, "), "{}", words.stdout);
    assert!(words.stdout.contains("; 1 undecided"), "{}", words.stdout);
    let json = bench.run(&["-q", "run", "rest.csv", "--profile", "p.json", "--json"]).json();
    let own = &json["profile"];
    assert_eq!((&own["certified"], &own["uncertified"]), (&1.into(), &0.into()));
    bench.write("case.json", r#"{"id": "nobody", "output": "x"}"#);
    let gate = bench.run(&["-q", "gate", "--case", "case.json", "--profile", "p.json"]);
    assert!(gate.stdout.contains("nothing was decided, so nothing is certified"));
}

#[test]
fn every_report_names_the_profile_its_threshold_and_the_marks() {
    let bench = calibrated();
    let threshold = read(&bench, "p.json")["certificate"]["threshold"].as_f64().unwrap();
    bench.write("full.csv", "id,output\nc201,x\nc202,x\n");
    for format in ["html", "md", "xml"] {
        let name = format!("report.{format}");
        let write = |data: &str, more: &[&str]| {
            let mut arguments = vec!["-q", "run", data, "--profile", "p.json"];
            arguments.extend(more);
            bench.run(&arguments).exits(0);
            bench.run(&["-q", "export", "latest", "-o", &name]).exits(0);
            bench.read(&name)
        };
        let text = write("full.csv", &[]);
        let says = |part: &str| assert!(text.contains(part), "no `{part}` in {text}");
        says(&format!("threshold {threshold:.2}, votes mapped by a profile"));
        says("profile p (");
        says("2 certified, false_positive_rate at most 0.05 with confidence 0.9");
        assert!(!text.contains("threshold 0.50"), "the raw threshold decided nothing: {text}");
        let lenient = write("full.csv", &["--threshold", "0.1"]);
        assert!(lenient.contains("threshold 0.10"), "{lenient}");
        assert!(lenient.contains("0 certified; 2 uncertified"), "{lenient}");
        assert!(lenient.contains("not above the certified one"), "{lenient}");
        let all = write("rest.csv", &[]);
        assert!(all.contains("5 degraded"), "{format}");
        bench.run(&["-q", "run", "full.csv"]).exits(0);
        bench.run(&["-q", "export", "latest", "-o", &name]).exits(0);
        let raw = bench.read(&name);
        assert!(raw.contains("threshold 0.50") && !raw.contains("profile p"), "{raw}");
    }
}

/// Loops of `k` generations by three judges; every third never becomes good. With `stop`, a
/// loop ends as soon as its median passes 0.5, as in a log recorded while accepting.
fn loops(n: usize, k: usize, stop: bool) -> String {
    let mut random = sequence();
    let mut text = String::from("trajectory,generation,a,b,c,label\n");
    for i in 0..n {
        let good_at = if i % 3 == 0 { usize::MAX } else { 1 + (random() * k as f64) as usize };
        let task = (random() - 0.5) * 0.2;
        for generation in 1..=k {
            let good = generation >= good_at;
            let centre = task + if good { 0.7 } else { 0.35 };
            let mut scores: Vec<f64> =
                (0..3).map(|_| (centre + (random() - 0.5) * 0.4).clamp(0.0, 1.0)).collect();
            writeln!(
                text,
                "t{i},{generation},{:.3},{:.3},{:.3},{}",
                scores[0],
                scores[1],
                scores[2],
                u8::from(good)
            )
            .unwrap();
            scores.sort_by(f64::total_cmp);
            if stop && scores[1] >= 0.5 {
                break;
            }
        }
    }
    text
}

fn of_loops(bench: &Workbench, more: &[&str]) -> Ran {
    let mut arguments = vec!["-q", "calibrate", "--trajectories", "loops.csv"];
    arguments.extend(more);
    bench.run(&arguments)
}

#[test]
fn a_loop_certificate_names_its_generations_and_reports_the_five_ways_to_be_wrong() {
    let bench = Workbench::new();
    bench.write("loops.csv", loops(300, 4, false));
    let report = of_loops(&bench, &["-o", "loop.json", "--json"]).exits(0).json();
    let certificate = &report["certificate"];
    assert_eq!(
        (&certificate["status"], &certificate["generations"]),
        (&"certified".into(), &4.into())
    );
    // One number a loop that never becomes good: about three quarters of a hundred certify.
    let never = certificate["n_bad"].as_u64().unwrap();
    assert!((60..90).contains(&never), "{never}");
    assert_eq!(report["loops"]["never_complete"], never);
    let own = &report["loops"];
    assert_eq!((&own["censored"], &own["threshold_origin"]), (&0.into(), &"certified".into()));
    for name in [
        "check_false_positive_rate",
        "trajectory_false_positive_rate",
        "premature_rate",
        "false_acceptance_share",
        "missed_rate",
    ] {
        assert!(own["estimands"][name]["n"].as_u64().unwrap() > 0, "{name}: {own}");
    }
    assert_eq!(own["by_generation"].as_array().unwrap().len(), 4);
    let any = of_loops(&bench, &["--over", "any_bad", "--json"]).exits(0).json();
    assert!(any["certificate"]["n_bad"].as_u64().unwrap() > never);
    let fewer = of_loops(&bench, &["--generations", "2", "--json"]).exits(0).json();
    assert_eq!(fewer["certificate"]["generations"], 2);
    let words = of_loops(&bench, &[]).exits(0);
    for part in ["of loops that stay bad for 4 generations", "Bad of first accepts"] {
        assert!(words.stdout.contains(part), "no `{part}` in {}", words.stdout);
    }
}

#[test]
fn a_log_recorded_while_accepting_is_refused_and_its_threshold_found() {
    let bench = Workbench::new();
    bench.write("loops.csv", loops(300, 6, true));
    let report = of_loops(&bench, &["--json"]).exits(0).json();
    assert_eq!(report["certificate"]["status"], "not_certifiable");
    let reason = report["certificate"]["reason"].as_str().unwrap();
    assert!(reason.contains("stopped while their output was bad"), "{reason}");
    assert!(report["loops"]["censored"].as_u64().unwrap() > 5);
    assert!(report["loops"]["stopped_at"].as_f64().is_some());
}

#[test]
fn files_of_loops_that_are_not_right_are_refused_with_their_line() {
    let bench = Workbench::new();
    for (text, says) in [
        ("generation,score,label\n1,0.5,1\n", "the column `trajectory` is missing"),
        ("trajectory,generation,label\nt,1,1\n", "expected the column `score`"),
        ("trajectory,generation,score,label\nt,1,0.5,1\nt,1,0.5,1\n", "stands twice"),
        ("trajectory,generation,score,label\nt,1,0.5,1\nt,3,0.5,1\n", "line 3: trajectory `t` has"),
        ("trajectory,generation,score,label\nt,2,0.5,1\n", "begins with generation 2"),
        ("trajectory,generation,score,label\nt,x,0.5,1\n", "line 2: `generation`: `x`"),
        ("trajectory,generation,score,label\nt,1,NaN,1\n", "`score`: `NaN` is no score"),
        ("trajectory,generation,score,label\n", "holds no row"),
    ] {
        bench.write("loops.csv", text);
        of_loops(&bench, &[]).exits(2).says(&[says]);
    }
    bench.write("loops.csv", loops(30, 3, false));
    of_loops(&bench, &["--generations", "0"]).exits(2).says(&["`--generations` is 0"]);
    of_loops(&bench, &["--mode", "false_acceptance_share"]).exits(2).says(&["first accept"]);
    of_loops(&bench, &["--judge", "x"]).exits(2).says(&["no judge is named `x`"]);
}

const LOOP: &str = r#"
name = "l"
task = "write"
[agent]
kind = "command"
argv = ["sh", "-c", "echo hello"]
estimate_tokens = false
[budget]
max_generations = 4
[panel]
threshold = 0.5
"#;

#[test]
fn a_loop_is_held_to_the_generations_of_its_certificate() {
    let bench = Workbench::new();
    bench.write("loops.csv", loops(300, 4, false));
    of_loops(&bench, &["-o", "loop.json"]).exits(0);
    let mut text = LOOP.to_owned();
    for judge in JUDGES {
        let _ = write!(
            text,
            "[[panel.judge]]\nname = \"{judge}\"\nkind = \"rule\"\nrule = \"length\"\nwords = {{ min = 1 }}\n"
        );
    }
    bench.write("loop.toml", &text);
    let run = |more: &[&str]| {
        let mut arguments = vec!["-q", "loop", "--profile", "loop.json", "--json"];
        arguments.extend(more);
        bench.run(&arguments)
    };
    let report = run(&[]).exits(0).json();
    assert_eq!(report["reason"], "quality_reached");
    let own = &report["profile"];
    assert_eq!((&own["name"], &own["status"]), (&"loop".into(), &"certified".into()));
    assert_eq!((&own["generations"], &own["degraded"]), (&4.into(), &false.into()));
    let longer = text.replace("max_generations = 4", "max_generations = 9");
    bench.write("loop.toml", &longer);
    run(&[]).exits(3).says(&["at most 4 generation(s)", "may run for 9", "max_generations = 4"]);
    let report = run(&["--allow-mismatch"]).exits(0).json();
    assert_eq!(report["profile"]["status"], "uncertified");
    // A way to accept that passes the panel by is not certified either.
    let command = "[[exit.any]]\ncommand = { argv = [\"true\"] }\n[agent]";
    bench.write("loop.toml", text.replace("[agent]", command));
    let report = run(&[]).exits(0).json();
    assert_eq!(report["reason"], "command_satisfied", "{report}");
    assert_eq!(report["profile"]["status"], "uncertified");
    // The threshold of the file's own condition is one for the calibrated score.
    let own = "[[exit.any]]\nquality_threshold = { threshold = 0.01 }\n[agent]";
    bench.write("loop.toml", text.replace("[agent]", own));
    let report = run(&[]).exits(0).json();
    assert_eq!(report["profile"]["status"], "uncertified", "{report}");
    bench.write("tasks.jsonl", "{\"task\": \"one\"}\n{\"task\": \"two\"}\n");
    bench.write("loop.toml", &text);
    let many = run(&["--tasks", "tasks.jsonl"]).exits(0).json();
    assert_eq!(many["runs"][1]["profile"]["status"], "certified");
}

#[test]
fn a_judge_that_only_vetoes_vetoes_in_a_loop_too() {
    let bench = Workbench::new();
    let mut text = LOOP.replace("max_generations = 4", "max_generations = 2");
    text.push_str(
        "[[panel.judge]]\nname = \"some\"\nkind = \"rule\"\nrule = \"length\"\nwords = { min = 1 }\n\
         [[panel.judge]]\nname = \"veto\"\nkind = \"rule\"\nrule = \"contains\"\nnone = [\"hello\"]\n\
         required = true\nweight = 0\n",
    );
    bench.write("loop.toml", text);
    let report = bench.run(&["-q", "loop", "--json"]).exits(1).json();
    assert_eq!(report["outcome"], "not_accepted", "{report}");
}

/// Equal but for the last digits of numbers, which another machine may compute otherwise.
fn same(a: &Value, b: &Value, at: &str) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            assert!(a.keys().eq(b.keys()), "{at}");
            a.iter().for_each(|(key, value)| same(value, &b[key], &format!("{at}.{key}")));
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{at}");
            a.iter().zip(b).enumerate().for_each(|(i, (a, b))| same(a, b, &format!("{at}[{i}]")));
        }
        (Value::Number(x), Value::Number(y)) => {
            let (x, y) = (x.as_f64().unwrap(), y.as_f64().unwrap());
            assert!((x - y).abs() <= 1e-9 * x.abs().max(1.0), "{at}: {x} and {y}");
        }
        _ => assert_eq!(a, b, "{at}"),
    }
}

#[cfg(unix)]
#[test]
fn the_shipped_profile_is_what_its_recorded_command_writes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("calibration");
    let bench = Workbench::new();
    let status = std::process::Command::new(root.join("fit"))
        .arg(env!("CARGO_BIN_EXE_venire"))
        .arg(bench.path(""))
        .status()
        .unwrap();
    assert!(status.success());
    let shipped = std::fs::read_to_string(root.join("code-changes.json")).unwrap();
    let mut shipped: Value = serde_json::from_str(&shipped).unwrap();
    let mut fitted = read(&bench, "code-changes.json");
    for profile in [&mut shipped, &mut fitted] {
        profile.as_object_mut().unwrap().remove("hash");
    }
    same(&shipped, &fitted, "profile");
    for report in ["code-changes.html", "code-changes.md", "code-changes.csv"] {
        let shipped = std::fs::read_to_string(root.join("../reports").join(report)).unwrap();
        assert!(
            shipped == bench.read(report),
            "reports/{report} is not what `calibration/fit` writes: run it"
        );
    }
    let panel = root.join("code-changes.toml");
    let checked = bench.run(&[
        "-q",
        "check",
        "-c",
        panel.to_str().unwrap(),
        "--profile",
        root.join("code-changes.json").to_str().unwrap(),
    ]);
    assert!(checked.exits(0).stdout.contains("profile `code-changes`"));
}
