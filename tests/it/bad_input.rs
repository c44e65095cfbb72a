//! Bad input gets a clear message and the right exit code, before anything is judged.

use crate::workbench::{RULES, Workbench};

fn bench_with_panel(panel: &str) -> Workbench {
    let bench = Workbench::with_rules();
    bench.write("panel.toml", panel);
    bench
}

#[test]
fn a_data_set_that_is_not_there_is_named() {
    Workbench::with_rules().run(&["run", "nothing.csv"]).exits(2).says(&["nothing.csv"]);
}

#[test]
fn a_panel_that_is_not_there_is_named_with_what_to_do() {
    let bench = Workbench::new();
    bench.run(&["run", "x.csv"]).exits(2).says(&["panel.toml", "venire init"]);
}

#[test]
fn an_empty_data_set_is_inconclusive() {
    let bench = Workbench::with_rules();
    bench.write("empty.csv", "id,input,output\n");
    bench.run(&["run", "empty.csv"]).exits(3).says(&["empty.csv", "no cases"]);
    bench.write("empty.jsonl", "");
    bench.run(&["run", "empty.jsonl"]).exits(3);
}

#[test]
fn a_data_set_without_an_output_says_which_columns_it_has() {
    let bench = Workbench::with_rules();
    bench.write("wrong.csv", "id,input,outptu\na,q,x\n");
    bench.run(&["run", "wrong.csv"]).exits(2).says(&["wrong.csv", "output", "outptu", "--map"]);
}

#[test]
fn a_mapped_column_that_is_not_there_is_named() {
    let bench = Workbench::with_rules();
    let ran = bench.run(&["run", "cases.csv", "--map", "output=completion"]);
    ran.exits(2).says(&["completion"]);
}

#[test]
fn two_columns_for_one_field_with_different_values_are_refused() {
    let bench = Workbench::with_rules();
    bench.write("two.csv", "id,output,completion\na,x,y\n");
    bench.run(&["run", "two.csv"]).exits(2).says(&["output", "completion", "--map"]);
}

#[test]
fn an_id_that_stands_twice_is_named_with_both_lines() {
    let bench = Workbench::with_rules();
    bench.write("twice.csv", "id,output\na,x\nb,y\na,z\n");
    bench.run(&["run", "twice.csv"]).exits(2).says(&["`a`", "2", "4"]);
}

#[test]
fn a_row_with_broken_utf8_is_named_and_can_be_skipped() {
    let bench = Workbench::with_rules();
    bench.write("broken.csv", b"id,output\na,one two\nb,\xff\xfe\nc,three four\n".as_slice());
    bench.run(&["run", "broken.csv"]).exits(2).says(&["broken.csv", "3", "UTF-8"]);
    let ran = bench.run(&["run", "broken.csv", "--on-bad-row", "skip", "--json"]).exits(0);
    assert_eq!(ran.json()["cases"], 2);
    ran.says(&["1 row"]);
}

#[test]
fn an_unknown_key_is_named_with_a_near_miss() {
    let bench = bench_with_panel(&RULES.replace("threshold", "treshold"));
    bench.run(&["check"]).exits(2).says(&["panel.toml", "treshold", "did you mean `threshold`?"]);
    let bench = bench_with_panel(&RULES.replace("graded", "grade"));
    bench.run(&["check"]).exits(2).says(&["short", "grade", "did you mean `graded`?"]);
}

#[test]
fn an_unknown_kind_of_judge_is_named_with_a_near_miss() {
    let bench = bench_with_panel(&RULES.replace("kind = \"rule\"", "kind = \"rul\""));
    bench.run(&["check"]).exits(2).says(&["short", "rul", "did you mean `rule`?"]);
    let bench = bench_with_panel(&RULES.replace("\"length\"", "\"lenght\""));
    bench.run(&["check"]).exits(2).says(&["short", "lenght", "length"]);
}

#[test]
fn a_quorum_above_the_seats_is_refused() {
    let bench = bench_with_panel(&format!("quorum = 3\n{RULES}"));
    bench.run(&["check"]).exits(2).says(&["quorum", "3", "2"]);
}

#[test]
fn a_panel_without_judges_or_with_a_name_twice_is_refused() {
    bench_with_panel("threshold = 0.5\n").run(&["check"]).exits(2).says(&["judge"]);
    let bench = bench_with_panel(&RULES.replace("\"some\"", "\"short\""));
    bench.run(&["check"]).exits(2).says(&["short", "differ"]);
}

#[test]
fn a_missing_key_is_named_and_no_request_is_made() {
    let panel = "[[judge]]\nname = \"gpt\"\nkind = \"llm\"\nmodel = \"openai/gpt-4.1-mini\"\n";
    let bench = bench_with_panel(panel);
    bench.run(&["run", "cases.csv"]).exits(2).says(&["gpt", "OPENAI_API_KEY"]);
}

#[test]
fn an_unknown_provider_is_named_with_a_near_miss() {
    let panel = "[[judge]]\nname = \"gpt\"\nkind = \"llm\"\nmodel = \"opnai/gpt\"\n";
    bench_with_panel(panel).run(&["check"]).exits(2).says(&["opnai", "openai"]);
}

#[test]
fn an_unreachable_server_is_inconclusive_and_says_how_to_check() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let panel =
        crate::workbench::model_panel(&format!("http://127.0.0.1:{port}"), 1, "timeout = 3");
    let bench = bench_with_panel(&panel);
    let ran = bench.run(&["run", "cases.csv", "--json"]).exits(3);
    assert_eq!(ran.json()["undecided"], 3);
    let ran = bench.run(&["export", "latest", "-o", "-"]).exits(0);
    assert!(ran.stdout.contains("listening"), "{}", ran.stdout);
}

#[test]
fn a_malformed_env_file_is_warned_of_by_its_line_and_never_quoted() {
    let bench = Workbench::with_rules();
    bench.write(".env", "A=1\n\nsk-secret-0123 456\n");
    for arguments in [&["check"][..], &["check", "--env-file", ".env"]] {
        let ran = bench.run(arguments).exits(0).says(&["warning", ".env`, line 3"]);
        assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("secret"));
    }
    bench.run(&["check", "--env-file", "none.env"]).exits(2).says(&["none.env"]);
}

#[test]
fn a_rubric_whose_weights_sum_to_zero_is_refused() {
    let bench = Workbench::with_rules();
    bench.write(
        "mine.toml",
        "name = \"mine\"\ndescription = \"x\"\n[[criteria]]\nname = \"a\"\nweight = 0\ndescription = \"x\"\n",
    );
    let panel = crate::workbench::model_panel("http://127.0.0.1:9", 1, "")
        .replace("mode = \"yes_no\"\ncriterion = \"Is it right?\"", "rubric = \"mine.toml\"");
    bench.write("panel.toml", panel);
    bench.run(&["check"]).exits(2).says(&["mine.toml", "weight"]);
}

#[test]
fn a_command_that_does_not_exist_is_named_before_anything_runs() {
    let panel = "[[judge]]\nname = \"tests\"\nkind = \"command\"\nchecks = [{ argv = [\"no-such-program-here\"] }]\n";
    bench_with_panel(panel)
        .run(&["run", "cases.csv"])
        .exits(2)
        .says(&["tests", "no-such-program-here"]);
}

#[test]
fn a_panel_whose_every_judge_abstains_is_inconclusive() {
    let panel = "[[judge]]\nname = \"same\"\nkind = \"rule\"\nrule = \"equals\"\n";
    let ran = bench_with_panel(panel).run(&["run", "cases.csv", "--json"]).exits(3);
    let summary = ran.json();
    assert_eq!(summary["statuses"]["abstained"], 3);
    assert_eq!((&summary["accepted"], &summary["rejected"]), (&0.into(), &0.into()));
}

#[test]
fn broken_configuration_is_named_with_its_line() {
    bench_with_panel("threshold = = 1").run(&["check"]).exits(2).says(&[
        "panel.toml",
        "TOML",
        "line 1",
    ]);
    let bench = Workbench::with_rules();
    bench.write("panel.ini", "x");
    bench.run(&["check", "-c", "panel.ini"]).exits(2).says(&["panel.ini", ".toml"]);
}

#[test]
fn an_unknown_run_is_named() {
    let bench = Workbench::with_rules();
    bench.run(&["export", "latest", "-o", "x.csv"]).exits(2).says(&["store.db", "venire run"]);
    bench.run(&["run", "cases.csv"]).exits(0);
    bench.run(&["export", "nope", "-o", "x.csv"]).exits(2).says(&["nope", "venire list runs"]);
    bench.run(&["export", "latest", "-o", "x.pdf"]).exits(2).says(&["x.pdf", ".csv"]);
}

#[test]
fn a_resumed_run_whose_data_or_panel_changed_is_refused() {
    let bench = Workbench::with_rules();
    bench.run(&["run", "cases.csv"]).exits(0);
    bench.write("cases.csv", "id,input,output\na,q,other\n");
    bench.run(&["run", "--resume"]).exits(2).says(&["data set has changed"]);
    let bench = Workbench::with_rules();
    bench.run(&["run", "cases.csv"]).exits(0);
    bench.write("panel.toml", RULES.replace("0.5", "0.6"));
    bench.run(&["run", "--resume"]).exits(2).says(&["panel has changed"]);
}

#[test]
fn a_key_that_stands_twice_is_named_wherever_json_or_yaml_is_read() {
    let judge = r#""name": "short", "kind": "rule", "rule": "length", "words": {"max": 4}"#;
    let bench = Workbench::with_rules();
    for (name, text, key) in [
        (
            "p.json",
            format!("{{\"threshold\": 0.2, \"judge\": [{{{judge}}}], \"threshold\": 0.9}}"),
            "threshold",
        ),
        ("q.json", format!("{{\"judge\": [{{{judge}, \"name\": \"other\"}}]}}"), "name"),
        (
            "r.json",
            format!("{{\"judge\": [{{{}}}]}}", judge.replace("4}", "4, \"max\": 9}")),
            "max",
        ),
        ("s.yaml", format!("threshold: 0.2\njudge:\n- {{{judge}}}\nthreshold: 0.9\n"), "threshold"),
        ("t.toml", format!("threshold = 0.2\n{RULES}"), "threshold"),
    ] {
        bench.write(name, text);
        bench.run(&["check", "-c", name]).exits(2).says(&[name, key]);
        if name.ends_with("json") {
            bench.run(&["check", "-c", name]).says(&["twice", "line 1"]);
        }
    }
    for (text, key) in [
        (r#"{"output": "one", "output": "two"}"#, "output"),
        (r#"{"output": "one", "metadata": {"a": 1, "a": 2}}"#, "`a`"),
    ] {
        bench.write("case.json", text);
        bench.run(&["score", "--case", "case.json"]).exits(2).says(&["case.json", key, "twice"]);
        bench.write("rows.jsonl", text);
        bench.run(&["run", "rows.jsonl"]).exits(2).says(&["rows.jsonl", "1", "twice"]);
    }
}

#[test]
fn a_number_that_is_none_is_refused_in_every_format() {
    let bench = Workbench::with_rules();
    for value in ["nan", "inf", "-inf"] {
        bench.write("panel.toml", RULES.replace("0.5", value));
        bench.run(&["check"]).exits(2).says(&["panel.toml", "line 3", "finite"]);
    }
    bench.write("p.yaml", "threshold: .nan\njudge: []\n");
    bench.run(&["check", "-c", "p.yaml"]).exits(2).says(&["p.yaml", "finite"]);
}

#[test]
fn weights_that_no_sum_can_hold_are_refused_by_key() {
    for weight in ["1e308", "1e-300", "0", "-1", "1e7"] {
        let check = format!("{{ argv = [\"true\"], weight = {weight} }}");
        let panel = format!(
            "[[judge]]\nname = \"c\"\nkind = \"command\"\nchecks = [{check}, {{ argv = [\"false\"], weight = {weight} }}]\n"
        );
        let bench = bench_with_panel(&panel);
        bench.run(&["check"]).exits(2).says(&["checks[0].weight", "weights are relative"]);
        let part = format!("{{ weight = {weight}, check = {{ rule = \"refusal\" }} }}");
        let panel = format!(
            "[[judge]]\nname = \"c\"\nkind = \"rule\"\nrule = \"composite\"\ncombine = \"mean\"\nparts = [{part}]\n"
        );
        bench_with_panel(&panel).run(&["check"]).exits(2).says(&["weight"]);
    }
}

#[test]
fn more_samples_than_make_sense_are_refused_with_what_is_allowed() {
    let bench = Workbench::with_rules();
    for times in ["0", "1001", "4294967295", "-3"] {
        let repeat = format!("--repeat={times}");
        bench.run(&["run", "cases.csv", &repeat]).exits(2).says(&["--repeat"]);
    }
    let samples = |n: u32| {
        let panel =
            crate::workbench::model_panel("http://127.0.0.1:9", 1, &format!("samples = {n}"));
        bench_with_panel(&panel)
    };
    samples(1001).run(&["check"]).exits(2).says(&["samples", "1000"]);
    samples(500).run(&["check", "--repeat", "3"]).exits(2).says(&["m0", "1500", "1000"]);
    samples(500).run(&["check", "--repeat", "2"]).exits(0);
}

#[test]
fn what_is_wrong_in_a_file_is_said_in_the_words_of_who_wrote_it() {
    let judge = |more: &str| format!("[[judge]]\nname = \"j\"\n{more}\n");
    let model = "kind = \"llm\"\nmodel = \"openai/x\"\nbase_url = \"http://127.0.0.1:9\"\n";
    for (panel, key) in [
        (
            format!("threshold = \"high\"\n{}", judge("kind = \"rule\"\nrule = \"refusal\"")),
            "threshold",
        ),
        (format!("name = [1]\n{}", judge("kind = \"rule\"\nrule = \"refusal\"")), "name"),
        (format!("quorum = -1\n{}", judge("kind = \"rule\"\nrule = \"refusal\"")), "quorum"),
        (format!("timeout = true\n{}", judge("kind = \"rule\"\nrule = \"refusal\"")), "timeout"),
        (format!("aggregate = 3\n{}", judge("kind = \"rule\"\nrule = \"refusal\"")), "aggregate"),
        (
            format!("aggregate = \"modus\"\n{}", judge("kind = \"rule\"\nrule = \"refusal\"")),
            "modus",
        ),
        ("judge = 5\n".to_owned(), "judge"),
        ("[[judge]]\nkind = \"rule\"\nrule = \"refusal\"\n".to_owned(), "name"),
        (judge("kind = \"rule\"\nrule = \"length\"\nwords = 4"), "words"),
        (judge("kind = \"rule\"\nrule = \"length\"\nwords = { max = \"four\" }"), "words"),
        (judge("kind = \"rule\"\nrule = 7"), "rule"),
        (judge(&format!("{model}samples = 1.5")), "samples"),
        (judge(&format!("{model}temperature = \"warm\"")), "temperature"),
        (judge(&format!("{model}rubric = {{}}")), "rubric"),
        (judge(&format!("{model}headers = [\"a\"]")), "headers"),
        (judge(&format!("{model}price = 3")), "price"),
        (judge(&format!("{model}questions = \"all\"")), "questions"),
        (judge(&format!("{model}mode = \"checklist\"\nquestions = [{{ text = 1 }}]")), "questions"),
        (judge("kind = \"command\"\nchecks = [{ argv = \"make test\" }]"), "argv"),
        (judge("kind = \"command\"\nchecks = \"make\""), "checks"),
        (judge("kind = \"command\"\nchecks = [{ weight = 1 }]"), "argv"),
        (judge("kind = \"script\"\nargv = { a = 1 }"), "argv"),
        (judge("kind = \"script\"\nargv = [\"sh\"]\nworkers = -1"), "workers"),
        (judge("kind = \"http\"\nurl = 5"), "url"),
        (judge("kind = \"replay\"\nfile = []"), "file"),
        (judge("kind = \"human\"\nscale = 5"), "scale"),
        (judge("kind = \"observe\"\nexpect = 1"), "expect"),
    ] {
        let ran = bench_with_panel(&panel).run(&["check"]).exits(2);
        assert!(ran.stderr.contains(key), "{panel}: {}", ran.stderr);
        for word in [
            "invalid type",
            "invalid value",
            "f64",
            "u32",
            "u64",
            "struct ",
            "enum ",
            "variant",
            "sequence",
            "a map",
            "a string",
            "boolean",
            "Spec",
            " field",
            "untagged",
        ] {
            assert!(!ran.stderr.contains(word), "`{word}` for {panel}: {}", ran.stderr);
        }
    }
    let bench = Workbench::with_rules();
    for (case, words) in [
        ("{\"output\": 5}", "expected a text, found `5`"),
        ("{\"output\": {\"a\": 1}}", "expected a text, found a table"),
        ("[1]", "expected"),
        ("{\"output\": \"x\"", "not JSON"),
    ] {
        bench.write("case.json", case);
        let ran = bench.run(&["score", "--case", "case.json"]).exits(2).says(&["case.json", words]);
        assert!(
            !ran.stderr.contains("struct") && !ran.stderr.contains("invalid"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_recording_may_be_a_table_with_tabs_or_a_json_list_and_other_names_are_said() {
    let bench = Workbench::with_rules();
    let panel = |file: &str| {
        format!("threshold = 0.5\n[[judge]]\nname = \"j\"\nkind = \"replay\"\nfile = \"{file}\"\n")
    };
    let json = r#"[{"case": "a", "judge": "j", "score": 1},
                   {"case": "b", "judge": "j", "score": 0}, {"case": "c", "judge": "j", "score": 0.5}]"#;
    bench.write("r.json", json);
    bench.write("r.tsv", "case\tjudge\tscore\na\tj\t1\nb\tj\t0\nc\tj\t0.5\n");
    bench.write("r.jsonl", "{\"case\":\"a\",\"judge\":\"j\",\"score\":1}\n{\"case\":\"b\",\"judge\":\"j\",\"score\":0}\n{\"case\":\"c\",\"judge\":\"j\",\"score\":0.5}\n");
    for file in ["r.json", "r.tsv", "r.jsonl"] {
        bench.write("panel.toml", panel(file));
        let summary = bench.run(&["run", "cases.csv", "--json"]).exits(0).json();
        assert_eq!((&summary["accepted"], &summary["rejected"]), (&2.into(), &1.into()), "{file}");
    }
    bench.write("r.xlsx", "x");
    bench.write("panel.toml", panel("r.xlsx"));
    bench.run(&["check"]).exits(2).says(&["r.xlsx", ".tsv", ".json"]);
    bench.write(
        "r.json",
        "[{\"case\": \"a\", \"score\": 1},\n {\"case\": \"b\", \"score\": 1, \"score\": 0}]",
    );
    bench.write("panel.toml", panel("r.json"));
    bench.run(&["check"]).exits(2).says(&["r.json", "line 2", "score", "twice"]);
}

#[test]
fn every_error_of_a_panel_is_listed_at_once_with_its_line() {
    let bench = bench_with_panel(
        r#"treshold = 0.5
quorum = "two"
[[judge]]
name = "short"
kind = "rul"
rule = "length"
[[judge]]
name = "gpt"
kind = "llm"
modle = "openai/gpt-4.1-mini"
samples = "many"
[[judge]]
name = "pattern"
kind = "rule"
rule = "regex"
pattern = "("
[[judge]]
name = "tests"
kind = "command"
weight = -1
checks = [{ argv = ["no-such-program-here"] }]
"#,
    );
    for verb in [&["check"][..], &["run", "cases.csv"], &["gate", "panel.toml"]] {
        let ran = bench.run(verb).exits(2);
        for line in [
            "panel.toml` has 8 errors",
            "line 1, column 1: `treshold`",
            "did you mean `threshold`?",
            "line 2, column 1: `quorum`",
            "line 5, column 1: `judge[0] (short).kind`",
            "did you mean `rule`?",
            "line 10, column 1: `judge[1] (gpt).modle`",
            "did you mean `model`?",
            "line 11, column 1: `judge[1] (gpt).samples`",
            "line 16, column 1: `judge[2] (pattern).pattern`",
            "line 20, column 1: `judge[3] (tests).weight`",
            "no-such-program-here",
        ] {
            assert!(ran.stderr.contains(line), "no `{line}` in {}", ran.stderr);
        }
    }
}

#[test]
fn words_of_other_tools_are_answered_with_what_says_the_same_here() {
    let bench = Workbench::with_rules();
    bench.write(
        "promptfooconfig.yaml",
        "prompts: [a]\nproviders: [openai:gpt-4]\ntests: []\nassert: [{type: contains, value: x}]\n",
    );
    bench.run(&["check", "-c", "promptfooconfig.yaml"]).exits(2).says(&[
        "line 1, column 1: `prompts`",
        "judges outputs that are there already",
        "line 3, column 1: `tests`",
        "venire run -c PANEL CASES",
        "line 4, column 1: `assert`",
        "`[[judge]]`",
    ]);
    bench.write(
        "panel.yaml",
        "judge:\n  - name: a\n    kind: llm\n    provider: openai:gpt-4\n  - name: b\n    kind: llm-rubric\n  - name: c\n    kind: contains\n  - name: d\n    type: is-json\n  - name: e\n    kind: rule\n    rule: icontains\n",
    );
    bench.run(&["check", "-c", "panel.yaml"]).exits(2).says(&[
        "line 4, column 5: `judge[0] (a).provider`",
        "`model = \"provider/model\"`",
        "a model is `kind = \"llm\"`",
        "`kind = \"rule\"`, `rule = \"contains\"`",
        "what other tools call `type` is `kind` here",
        "this rule is `contains`",
    ]);
}

#[test]
fn a_loop_file_lists_its_own_errors_and_those_of_its_panel() {
    let bench = Workbench::with_rules();
    bench.write(
        "loop.toml",
        "nam = \"x\"\n[exit]\nwhen = 3\n[panel]\n[[panel.judge]]\nname = \"a\"\nkind = \"rul\"\n",
    );
    let ran = bench.run(&["loop", "-c", "loop.toml", "--task", "x"]).exits(2);
    ran.says(&["`nam`", "panel.judge[0] (a).kind", "line 7", "errors"]);
}

#[test]
fn a_rubric_lists_all_its_errors() {
    let bench = Workbench::with_rules();
    bench.write(
        "mine.toml",
        "name = \"\"\n[[criteria]]\nname = \"a\"\nweight = -1\npass_mark = 3\n",
    );
    let panel = crate::workbench::model_panel("http://127.0.0.1:9", 1, "")
        .replace("mode = \"yes_no\"\ncriterion = \"Is it right?\"", "rubric = \"mine.toml\"");
    bench.write("panel.toml", panel);
    bench.run(&["check"]).exits(2).says(&["mine.toml", "3 errors", "weight", "pass_mark", "name"]);
}

#[test]
fn no_verb_writes_over_what_it_reads() {
    let bench = Workbench::with_rules();
    bench.write("j.csv", "case,judge,score\na,r,1\nb,r,0\nc,r,1\n");
    bench.write(
        "replay.toml",
        "threshold = 0.5\n[[judge]]\nname = \"r\"\nkind = \"replay\"\nfile = \"j.csv\"\n",
    );
    bench.write("a.txt", "an answer");
    bench.write("task.md", "a task");
    bench.run(&["run", "cases.csv"]).exits(0);
    for arguments in [
        &["run", "cases.csv", "-o", "./cases.csv"][..],
        &["run", "-c", "replay.toml", "cases.csv", "-o", "j.csv"],
        &["export", "latest", "-o", "cases.csv"],
        &["gate", "--input", "@task.md", "a.txt", "-o", "task.md"],
        &["score", "a.txt", "-o", "panel.toml"],
    ] {
        bench.run(arguments).exits(2).says(&["would overwrite"]);
    }
    bench.run(&["run", "cases.csv", "-o", "x.csv", "-o", "./x.csv"]).exits(2).says(&["twice"]);
}

#[test]
fn an_output_whose_name_says_no_format_lists_those_of_rows_and_of_reports() {
    let bench = Workbench::with_rules();
    let expected = ["x.xyz", ".jsonl", ".csv", ".html", ".md", ".xml"];
    bench.run(&["run", "cases.csv", "-o", "x.xyz"]).exits(2).says(&expected);
    bench.run(&["run", "cases.csv"]).exits(0);
    bench.run(&["export", "latest", "-o", "x.xyz"]).exits(2).says(&expected);
}

#[test]
fn asking_again_without_a_kept_run_is_refused() {
    let bench = Workbench::with_rules();
    let ran = bench.run(&["run", "-c", "panel.toml", "cases.csv", "--retry-errors"]).exits(2);
    ran.says(&["--retry-errors", "--resume"]);
}

#[test]
fn a_judge_s_name_holds_no_line_break_and_no_control_character() {
    for name in ["a\\nb", "a\\u001b[31m", "a\\tb"] {
        let bench = bench_with_panel(&RULES.replace("\"short\"", &format!("\"{name}\"")));
        bench.run(&["check"]).exits(2).says(&["name", "control characters"]);
    }
}

#[test]
fn one_json_object_is_no_data_set_and_the_way_to_import_it_is_said() {
    let bench = Workbench::with_rules();
    bench.write("results.json", "{\n  \"evalId\": \"x\",\n  \"results\": { \"results\": [] }\n}\n");
    let ran = bench.run(&["run", "results.json"]).exits(2);
    ran.says(&["results.json", "`evalId`, `results`", "a row a line", "venire import"]);
    // A row a line in a file of this name is fine.
    bench.write("rows.json", "{\"output\": \"one two\"}\n{\"output\": \"three four\"}\n");
    bench.run(&["run", "rows.json"]).exits(0);
}

#[test]
fn a_table_with_semicolons_is_read() {
    let bench = Workbench::with_rules();
    bench.write("de.csv", "\u{feff}id;input;output\na;\"Wie viel; genau?\";\"1,5 Liter\"\n");
    let ran = bench.run(&["run", "de.csv", "-o", "-", "-q"]).exits(0);
    assert!(ran.stdout.contains("\"case\":\"a\""), "{}", ran.stdout);
}

#[test]
fn a_criterion_with_braces_is_refused_since_nothing_fills_it_in() {
    let panel = crate::workbench::model_panel("http://127.0.0.1:9", 1, "")
        .replace("Is it right?", "Does it say {{ expected }}?");
    let bench = bench_with_panel(&panel);
    bench.run(&["check"]).exits(2).says(&["criterion", "template"]);
}

#[test]
fn a_weight_that_the_aggregator_does_not_look_at_is_warned_of() {
    let bench = bench_with_panel(&RULES.replacen("kind =", "weight = 3\nkind =", 1));
    bench.run(&["check"]).exits(0).says(&["weight", "no effect", "weighted_median"]);
}

#[test]
fn a_file_name_given_as_text_is_warned_of() {
    let bench = Workbench::with_rules();
    bench.write("task.txt", "Say something.");
    bench.write("answer.txt", "one two three");
    let ran = bench.run(&["score", "--input", "task.txt", "answer.txt"]);
    ran.says(&["`task.txt`", "@task.txt"]);
}

#[test]
fn a_case_without_an_output_is_an_input_error_that_names_the_field() {
    let bench = Workbench::with_rules();
    for case in ["{}", "{\"output\": null}", "{\"input\": \"q\", \"expected\": \"a\"}"] {
        bench.write("c0.json", case);
        for verb in ["score", "gate"] {
            let ran = bench.run(&[verb, "--case", "c0.json"]).exits(2);
            let ran = ran.says(&["c0.json", "`output`", "missing"]);
            assert_eq!(ran.stdout, "", "{verb} {case}");
        }
        bench.run(&["gate", "--case", "c0.json", "--on-undecided", "accept"]).exits(2);
        bench.write("rows.jsonl", format!("{case}\n"));
        bench.run(&["run", "rows.jsonl"]).exits(2).says(&["`output`"]);
    }
    // The empty text is an output, and is judged.
    bench.write("c0.json", "{\"output\": \"\"}");
    bench.run(&["gate", "--case", "c0.json"]).exits(1);
    // A recording looks at no output.
    bench.write("recorded.csv", "item_id,judge,score\nc1,ana,1\n");
    bench.write(
        "panel.toml",
        "threshold = 0.5\n[[judge]]\nname = \"ana\"\nkind = \"replay\"\nfile = \"recorded.csv\"\n",
    );
    bench.write("c0.json", "{\"id\": \"c1\"}");
    bench.run(&["score", "--case", "c0.json"]).exits(0);
}

#[test]
fn logs_are_in_colour_only_where_colours_are_wanted() {
    let bench = Workbench::with_rules();
    bench.write("good.txt", "one two");
    let logged = |settings: &[(&str, &str)]| {
        let mut command = bench.command(&["score", "--input", "good.txt", "good.txt"]);
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        command.envs(settings.iter().copied());
        let stderr = String::from_utf8(command.output().unwrap().stderr).unwrap();
        assert!(stderr.contains("is taken as the text itself"), "{stderr}");
        stderr
    };
    assert!(logged(&[("CLICOLOR_FORCE", "1")]).contains('\u{1b}'), "else this tests nothing");
    for settings in [&[][..], &[("NO_COLOR", "1")], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]] {
        let stderr = logged(settings);
        assert!(!stderr.contains('\u{1b}'), "{settings:?}: {stderr}");
    }
}
