//! The first gate, the first loop, the first run: what a newcomer types, and what must not
//! pass without a word.

use crate::workbench::Workbench;

/// A required check that only vetoes, beside a rule that votes.
fn vetoing(argv: &str, more: &str) -> String {
    format!(
        "threshold = 0.5\n\
         [[judge]]\nname = \"length\"\nkind = \"rule\"\nrule = \"length\"\nwords = {{ min = 1 }}\n\
         [[judge]]\nname = \"tests\"\nkind = \"command\"\nrequired = true\nweight = 0\n\
         [[judge.checks]]\nname = \"run\"\nargv = {argv}\n{more}\n"
    )
}

#[test]
fn the_readme_s_gate_decides_with_the_panel_of_init_and_so_does_the_case_of_the_docs() {
    let bench = Workbench::new();
    bench.run(&["init"]).exits(0);
    bench.write("task.txt", "How long do I have to return a lamp?");
    bench.write("answer.txt", "You can return a lamp within 30 days of delivery.");
    bench.run(&["score", "--input", "@task.txt", "answer.txt"]).exits(0);
    let ran = bench.run(&["gate", "--input", "@task.txt", "answer.txt"]).exits(0);
    assert!(ran.stdout.starts_with("accept"), "{}", ran.stdout);
    bench.write("answer.txt", "I'm sorry, but I can't help with your question about a lamp.");
    let ran = bench.run(&["gate", "--input", "@task.txt", "answer.txt"]).exits(1);
    assert!(ran.stdout.contains("`no-refusal` rejects"), "{}", ran.stdout);
    let docs = include_str!("../../docs/data.md");
    let case = docs.split("```json case.json\n").nth(1).unwrap().split("```").next().unwrap();
    bench.write("case.json", case);
    bench.run(&["score", "--case", "case.json"]).exits(0);
    // Without the task the judge that compares with it says so, and the hint names the flag.
    let ran = bench.run(&["gate", "answer.txt"]);
    assert!(ran.code != 0);
}

#[test]
fn a_gate_without_what_its_judges_compare_with_names_the_flag() {
    let bench = Workbench::new();
    for (rule, flag) in [
        ("rule = \"equals\"", "--expected"),
        ("rule = \"similarity\"\nmetric = \"chrf\"\nagainst = \"context\"", "--context"),
        ("rule = \"length\"\nwords = { min = 1 }\nof = \"input\"", "--input"),
    ] {
        bench.write("panel.toml", format!("[[judge]]\nname = \"j\"\nkind = \"rule\"\n{rule}\n"));
        bench.write("a.txt", "x");
        for verb in ["gate", "score"] {
            let ran = bench.run(&[verb, "a.txt"]).exits(3);
            assert!(ran.stdout.contains(flag), "{verb}: no {flag} in {}", ran.stdout);
        }
    }
}

#[test]
fn an_endless_answer_is_no_verdict_that_names_its_judge_or_a_failure_where_asked_for() {
    let bench = Workbench::new();
    let argv = "[\"sh\", \"-c\", \"sleep 60\"]";
    bench.write("panel.toml", vetoing(argv, "timeout = \"300ms\""));
    bench.write("a.txt", "one two");
    let ran = bench.run(&["gate", "a.txt"]).exits(3);
    for text in ["- tests (required): timeout: ", "300ms"] {
        assert!(ran.stdout.contains(text), "no `{text}` in {}", ran.stdout);
    }
    bench.write("panel.toml", vetoing(argv, "timeout = \"300ms\"\ntimeout_fails = true"));
    let ran = bench.run(&["gate", "a.txt"]).exits(1);
    assert!(ran.stdout.contains("did not end within 300ms"), "{}", ran.stdout);
}

#[test]
fn a_loop_says_who_rejects_a_full_score_and_passes_a_time_out_on() {
    let bench = Workbench::new();
    let looped = |argv: &str, more: &str| {
        let panel = vetoing(argv, more).replace("[[judge", "[[panel.judge");
        bench.write("agent.sh", "cat >> prompts.txt; echo \"$VENIRE_GENERATION words $RANDOM\"\n");
        bench.write(
            "loop.toml",
            format!(
                "task = \"count\"\n[agent]\nkind = \"command\"\nargv = [\"sh\", \"agent.sh\"]\nestimate_tokens = false\n[budget]\nmax_generations = 2\n[panel]\n{panel}"
            ),
        );
        bench.run(&["loop"])
    };
    let ran = looped("[\"false\"]", "").exits(1).says(&["reject by tests"]);
    assert!(ran.stdout.contains("rejected by tests"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("####"), "a full bar says that all is well: {}", ran.stdout);
    let prompts = bench.read("prompts.txt");
    assert!(prompts.contains("Score: 1.00; rejected all the same by: tests"), "{prompts}");
    std::fs::remove_file(bench.path("prompts.txt")).unwrap();
    looped("[\"sh\", \"-c\", \"sleep 60\"]", "timeout = \"300ms\"");
    let prompts = bench.read("prompts.txt");
    assert!(prompts.contains("did not end within 300ms"), "{prompts}");
}

#[test]
fn a_loop_goes_on_with_its_own_task_and_is_listed() {
    let bench = Workbench::new();
    crate::control::scripted(&bench, crate::control::COUNTING, "");
    let text = bench.read("loop.toml").replace("task = \"count\"", "");
    bench.write("loop.toml", &text);
    bench.run(&["loop", "--task", "count words"]).exits(0);
    bench.write("tasks.jsonl", "{\"task\": \"one\"}\n");
    bench.run(&["loop", "--tasks", "tasks.jsonl"]).exits(0);
    let ran = bench.run(&["loop", "--resume"]).exits(0);
    assert!(ran.stdout.contains("accepted"), "{}", ran.stdout);
    let ran = bench.run(&["list", "runs"]).exits(0);
    for text in ["count words", "quality_reached", "events.jsonl", "task-"] {
        assert!(ran.stdout.contains(text), "no `{text}` in {}", ran.stdout);
    }
    bench.run(&["show"]).exits(2).says(&["venire list runs", "loops"]);
    let checked = bench.run(&["check", "-c", "loop.toml"]).exits(0);
    assert!(checked.stdout.contains("loop `"), "{}", checked.stdout);
}

#[test]
fn a_misspelt_test_file_is_warned_of_and_never_rejects() {
    let bench = Workbench::new();
    bench.write("panel.toml", vetoing("[\"python3\", \"tests_answer.py\", \"{output_file}\"]", ""));
    bench.write("test_answer.py", "");
    bench.write("a.txt", "x = 1");
    bench.run(&["check"]).exits(0).says(&["`tests`", "`tests_answer.py` is not there"]);
    let ran = bench.run(&["gate", "a.txt"]).exits(3);
    assert!(ran.stdout.contains("can't open file"), "{}", ran.stdout);
    bench.write("panel.toml", vetoing("[\"python3\", \"test_answer.py\", \"{output_file}\"]", ""));
    let ran = bench.run(&["check"]).exits(0);
    assert!(!ran.stderr.contains("is not there"), "{}", ran.stderr);
    bench.run(&["gate", "a.txt"]).exits(0);
}

/// Thirty cases with texts of their own.
fn thirty(bench: &Workbench) {
    let rows: String = (0..30).map(|i| format!("q{i},answer number {i},n{i}\n")).collect();
    bench.write("cases.csv", format!("question,answer,team\n{rows}"));
}

#[test]
fn rules_that_say_one_to_everything_are_named_when_they_outvote_the_rest() {
    let bench = Workbench::new();
    thirty(&bench);
    let rule =
        |name: &str, keys: &str| format!("[[judge]]\nname = \"{name}\"\nkind = \"rule\"\n{keys}\n");
    let some = rule("some", "rule = \"length\"\nwords = { min = 1 }");
    let safe = rule("safe", "rule = \"secrets\"");
    let odd = rule("odd", "rule = \"regex\"\npattern = '[13579]$'");
    bench.write("panel.toml", format!("{some}{safe}{odd}"));
    bench.run(&["run", "cases.csv"]).exits(0).says(&[
        "`some`, `safe`",
        "weight = 0",
        "required = true",
    ]);
    let safe = format!("{safe}required = true\nweight = 0\n");
    let even = rule("even", "rule = \"regex\"\npattern = '[02468]$'");
    bench.write("panel.toml", format!("{some}{safe}{odd}{even}"));
    let ran = bench.run(&["run", "cases.csv"]).exits(0);
    assert!(
        !ran.stderr.contains("outvote") && !ran.stderr.contains("weight = 0"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_recording_with_other_ids_is_said_and_check_says_what_was_understood() {
    let bench = Workbench::new();
    thirty(&bench);
    bench.write("gpt.csv", "item_id,score\nT-1000,1\nT-1001,0\n");
    bench.write(
        "panel.toml",
        "quorum = 1\n[[judge]]\nname = \"gpt4\"\nkind = \"replay\"\nfile = \"gpt.csv\"\n[[judge]]\nname = \"some\"\nkind = \"rule\"\nrule = \"length\"\nwords = { min = 1 }\n",
    );
    bench.run(&["run", "cases.csv"]).says(&[
        "`gpt4` has no score for any of the 30 cases",
        "T-1000",
        "--map id=",
    ]);
    let ran = bench.run(&["check", "cases.csv"]).exits(0);
    for text in ["fields: input, output", "`id`", "`expected`", "metadata: `team`"] {
        assert!(ran.stdout.contains(text), "no `{text}` in {}", ran.stdout);
    }
    bench.write("gpt.csv", "item_id,rating\nT-1000,1\n");
    bench.run(&["check"]).exits(2).says(&["no column `score`", "`item_id`, `rating`"]);
}

#[test]
fn asking_again_is_not_suggested_where_the_same_would_come_out() {
    let bench = Workbench::new();
    thirty(&bench);
    bench.write("panel.toml", vetoing("[\"sh\", \"-c\", \"exit 127\"]", ""));
    let ran = bench.run(&["run", "cases.csv"]);
    assert!(!ran.stdout.contains("--retry-errors"), "{}", ran.stdout);
    bench.run(&["export", "latest", "-o", "a.xlsx"]).exits(2).says(&["write `.csv`"]);
}

#[test]
fn a_veto_is_named_where_the_decision_stands_and_a_finding_once() {
    let bench = Workbench::new();
    thirty(&bench);
    bench.write("panel.toml", vetoing("[\"sh\", \"-c\", \"echo broken-here; exit 1\"]", ""));
    let ran = bench.run(&["run", "cases.csv", "-o", "report.html"]).exits(0);
    for text in ["reject by tests", "tests (required)"] {
        assert!(ran.stdout.contains(text), "no `{text}` in {}", ran.stdout);
    }
    let listed = bench.run(&["show", "latest", "--json", "--limit", "1"]).exits(0).json();
    let id = listed[0]["case"]["id"].as_str().unwrap().to_owned();
    let shown = bench.run(&["show", "latest", &id]).exits(0);
    assert_eq!(shown.stdout.matches("broken-here").count(), 1, "{}", shown.stdout);
    let page = bench.read("report.html");
    assert!(page.contains("<code>run</code> failed"), "backticks are code on a page");
    assert!(page.matches("of 1 vote,").count() <= 1, "what is the same on every row is left out");
    assert!(page.contains("by tests</span>") && page.contains("required</span>"));
}

#[test]
fn keys_of_a_natural_guess_are_answered_with_the_right_one() {
    let bench = Workbench::new();
    for (judge, right) in [
        ("kind = \"script\"\ncommand = \"x.py\"", "`argv"),
        ("kind = \"replay\"\npath = \"x.csv\"", "`file"),
        ("kind = \"rule\"\nrule = \"length\"\nmin_words = 3", "`words = { min"),
        ("kind = \"rule\"\nrule = \"length\"\nmax_chars = 3", "`characters = { min"),
    ] {
        bench.write("panel.toml", format!("[[judge]]\nname = \"j\"\n{judge}\n"));
        bench.run(&["check"]).exits(2).says(&[right]);
    }
}

/// Every text file below a folder of the repository.
fn texts(folder: &std::path::Path, found: &mut Vec<(std::path::PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts(&path, found);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            found.push((path, text));
        }
    }
}

#[test]
fn every_command_that_is_named_anywhere_exists() {
    let help = Workbench::new().run(&["--help"]).exits(0).stdout;
    let verbs: Vec<&str> = help
        .split("Commands:")
        .nth(1)
        .unwrap()
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(verbs.contains(&"gate") && verbs.contains(&"calibrate"), "{verbs:?}");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found =
        vec![(root.join("README.md"), std::fs::read_to_string(root.join("README.md")).unwrap())];
    for folder in ["src", "docs"] {
        texts(&root.join(folder), &mut found);
    }
    // In backticks: prose such as "venire judges outputs" is no command.
    let named = regex::Regex::new(r"`venire ([a-z][a-z-]+)").unwrap();
    let mut seen = 0;
    for (path, text) in &found {
        for said in named.captures_iter(text) {
            seen += 1;
            let verb = said.get(1).unwrap().as_str();
            assert!(verbs.contains(&verb), "`venire {verb}` is named in {}", path.display());
        }
    }
    assert!(seen > 50, "only {seen} commands were found");
}
