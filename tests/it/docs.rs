//! The documentation against the program: every panel in it can be seated, every key and name
//! that the program has is in it, every example reads.
//!
//! A fenced block whose info string names a file (```` ```python judge.py ````) is that file
//! for the panels of the same document. A panel says what else it needs in a comment:
//! `# needs: tests.py, data/` makes an empty file and folder, `# needs: terminal` says that it
//! can't be seated without a person.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::workbench::{Ran, Workbench};

/// A fenced block of a document.
#[derive(Clone)]
struct Block {
    /// `docs/judges.md line 12`.
    place: String,
    language: String,
    /// The file that it is, where the info string names one.
    name: Option<String>,
    text: String,
}

/// A document with its blocks.
struct Document {
    text: String,
    blocks: Vec<Block>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `docs/*.md`, `docs/hosts/*.md` and, where there is one, `README.md`.
fn documents() -> Vec<Document> {
    let mut paths: Vec<_> = ["docs", "docs/hosts"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root().join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    paths.push(root().join("README.md"));
    paths.sort();
    paths.into_iter().filter(|path| path.exists()).map(|path| read(&path)).collect()
}

fn document(name: &str) -> Document {
    read(&root().join("docs").join(name))
}

fn read(path: &Path) -> Document {
    let text = std::fs::read_to_string(path).unwrap();
    let file = path.strip_prefix(root()).unwrap().display().to_string();
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (i, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), open) {
            (Some(info), false) => {
                let mut words = info.split_whitespace().map(str::to_owned);
                blocks.push(Block {
                    place: format!("{file} line {}", i + 1),
                    language: words.next().unwrap_or_default(),
                    name: words.next(),
                    text: String::new(),
                });
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, false) => {}
        }
    }
    assert!(!open, "{file}: a fenced block is never closed");
    Document { text, blocks }
}

impl Document {
    fn panels(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|b| b.language == "toml" && b.text.contains("[[judge]]"))
    }

    /// From a heading to the next one of the same or a higher level.
    #[track_caller]
    fn section(&self, heading: &str) -> String {
        let level = |line: &str| line.chars().take_while(|c| *c == '#').count();
        let mut section: Vec<&str> = Vec::new();
        let mut fenced = false;
        for line in self.text.lines() {
            fenced ^= line.trim_start().starts_with("```");
            let is_heading = !fenced && line.starts_with('#');
            if !section.is_empty() && is_heading && level(line) <= level(heading) {
                break;
            }
            if !section.is_empty() || line == heading {
                section.push(line);
            }
        }
        assert!(!section.is_empty(), "no section `{heading}`");
        section.join("\n")
    }
}

impl Block {
    /// What the comments `# needs: A, B` name.
    fn needs(&self) -> impl Iterator<Item = &str> {
        let lists = self.text.lines().filter_map(|line| line.strip_prefix("# needs:"));
        lists.flat_map(|list| list.split(',')).map(str::trim)
    }

    /// Runs `venire check` on a panel of this document.
    fn check(&self, document: &Document, keys: &BTreeSet<String>) -> Ran {
        let bench = bench(document);
        for need in self.needs().filter(|need| *need != "terminal") {
            let path = bench.path(need);
            if path.exists() {
                continue;
            }
            if need.ends_with('/') {
                std::fs::create_dir_all(path).unwrap();
            } else {
                bench.write(need, "");
            }
        }
        bench.write("panel.toml", &self.text);
        let lines: Vec<String> = keys.iter().map(|key| format!("{key}=dummy\n")).collect();
        bench.write(".env", lines.concat());
        bench.run(&["check"])
    }
}

/// A folder with the files that a document shows.
fn bench(document: &Document) -> Workbench {
    let bench = Workbench::new();
    for block in &document.blocks {
        if let Some(name) = &block.name {
            let path = bench.write(name, &block.text);
            #[cfg(unix)]
            if block.text.starts_with("#!") {
                use std::os::unix::fs::PermissionsExt;
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
            }
            #[cfg(not(unix))]
            drop(path);
        }
    }
    bench
}

/// Every variable for a key that the documents name.
fn key_variables(documents: &[Document]) -> BTreeSet<String> {
    let words = documents
        .iter()
        .flat_map(|d| d.text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    words.filter(|word| word.ends_with("_API_KEY")).map(str::to_owned).collect()
}

/// Whether a refusal names a feature that this build lacks.
fn lacks_a_feature(stderr: &str) -> bool {
    let missing = [
        ("schema", cfg!(feature = "schema")),
        ("language", cfg!(feature = "language")),
        ("syntax", cfg!(feature = "syntax")),
    ];
    missing.iter().any(|(name, built)| !built && stderr.contains(&format!("the feature `{name}`")))
}

#[test]
fn every_panel_in_the_docs_can_be_seated() {
    let documents = documents();
    let keys = key_variables(&documents);
    let mut seen = 0;
    for document in &documents {
        for block in document.panels() {
            let ran = block.check(document, &keys);
            let seated = ran.code == 0
                || lacks_a_feature(&ran.stderr)
                || block.needs().any(|need| need == "terminal")
                    && ran.stderr.contains("asks on a terminal");
            assert!(seated, "{}: {}", block.place, ran.stderr);
            seen += 1;
        }
    }
    assert!(seen > 35, "only {seen} panels were found");
}

#[test]
fn a_misspelt_key_in_any_panel_of_the_docs_is_refused() {
    let documents = documents();
    let keys = key_variables(&documents);
    for document in &documents {
        for block in document.panels() {
            let text = block.text.replacen("[[judge]]\n", "[[judge]]\nno_such_key = 1\n", 1);
            let ran = Block { text, ..block.clone() }.check(document, &keys);
            assert_eq!(ran.code, 2, "{}: {}", block.place, ran.stderr);
            assert!(ran.stderr.contains("no_such_key"), "{}: {}", block.place, ran.stderr);
        }
    }
}

#[test]
fn json_in_the_docs_is_json_and_its_cases_are_cases() {
    for document in documents() {
        for block in &document.blocks {
            let texts: Vec<&str> = match block.language.as_str() {
                "json" => vec![&block.text],
                "jsonl" => block.text.lines().collect(),
                _ => continue,
            };
            for text in texts {
                if let Err(error) = serde_json::from_str::<Value>(text) {
                    panic!("{}: {error}: {text}", block.place);
                }
            }
        }
        let bench = bench(&document);
        bench.write("any.toml", "[[judge]]\nname = \"any\"\nkind = \"rule\"\nrule = \"refusal\"\n");
        let named = |block: &&Block| {
            let data = matches!(block.language.as_str(), "jsonl" | "csv");
            data && block.name.as_ref().is_some_and(|name| name.starts_with("cases"))
        };
        for block in document.blocks.iter().filter(named) {
            let name = block.name.as_deref().unwrap();
            let ran = bench.run(&["check", "-c", "any.toml", name]);
            assert_eq!(ran.code, 0, "{}: {}", block.place, ran.stderr);
        }
    }
}

#[test]
fn the_scripts_in_the_docs_judge() {
    let document = document("judges.md");
    let bench = bench(&document);
    let panel = document.panels().find(|block| block.text.contains("./judge.sh")).unwrap();
    bench.write("panel.toml", &panel.text);
    bench.write("cases.jsonl", "{\"id\":\"a\",\"output\":\"We guarantee it.\"}\n");
    bench.run(&["run", "cases.jsonl", "-o", "rows.jsonl"]).exits(0);
    let rows = bench.rows("rows.jsonl");
    let scores: Vec<(&str, f64)> = rows
        .iter()
        .map(|row| (row["judge"].as_str().unwrap(), row["score"].as_f64().unwrap()))
        .collect();
    assert_eq!(scores, [("short", 1.0), ("promises-nothing", 0.0)]);
}

/// The properties of a part of the panel's schema.
fn properties(part: &Value) -> Vec<String> {
    part["properties"].as_object().unwrap().keys().cloned().collect()
}

#[track_caller]
fn all_named<S: AsRef<str>>(text: &str, names: impl IntoIterator<Item = S>, place: &str) {
    for name in names {
        let name = name.as_ref();
        assert!(text.contains(&format!("`{name}`")), "{place} does not say `{name}`");
    }
}

#[test]
fn every_key_of_every_judge_is_documented_in_its_section() {
    let schema = Workbench::new().run(&["schema", "panel"]).exits(0).json();
    let judges = document("judges.md");
    let definitions = &schema["$defs"];
    let kinds = definitions["Judge"]["oneOf"].as_array().unwrap();
    // What every kind has is the seat's.
    let mut common: Vec<String> = properties(&kinds[0]).into_iter().collect();
    common.retain(|key| kinds.iter().all(|kind| kind["properties"].get(key).is_some()));
    assert!(common.iter().any(|key| key == "weight"), "{common:?}");
    all_named(
        &judges.section("## Keys of every judge"),
        common.clone(),
        "the table of common keys",
    );
    for variant in kinds {
        let kind = variant["properties"]["kind"]["const"].as_str().unwrap();
        // The options of rules are looked at below, each in its own section.
        if kind != "rule" {
            let keys = properties(variant).into_iter().filter(|key| !common.contains(key));
            all_named(&judges.section(&format!("## {kind}")), keys, kind);
        }
    }
    for variant in definitions["RuleSpec"]["oneOf"].as_array().unwrap() {
        let rule = variant["properties"]["rule"]["const"].as_str().unwrap();
        let keys = properties(variant).into_iter().filter(|key| key != "rule" && key != "of");
        all_named(&judges.section(&format!("### {rule}")), keys, rule);
    }
    for (part, heading) in [
        ("CheckSpec", "## command"),
        ("SandboxSpec", "## command"),
        ("Expectation", "## observe"),
        ("HumanCriterion", "## human"),
        ("Part", "### composite"),
    ] {
        all_named(&judges.section(heading), properties(&definitions[part]), part);
    }
    let panels = document("panels.md");
    let keys = properties(&schema).into_iter().filter(|key| key != "judge");
    all_named(&panels.text, keys, "docs/panels.md");
    let rubric = Workbench::new().run(&["schema", "rubric"]).exits(0).json();
    let rubrics = document("rubrics.md");
    all_named(&rubrics.text, properties(&rubric), "docs/rubrics.md");
    all_named(&rubrics.text, properties(&rubric["$defs"]["Criterion"]), "docs/rubrics.md");
}

#[test]
fn every_key_condition_and_reason_of_a_loop_is_documented() {
    let schema = Workbench::new().run(&["schema", "loop"]).exits(0).json();
    let loops = document("loops.md").text;
    let definitions = &schema["$defs"];
    for section in
        ["ExitSpec", "BudgetSpec", "FeedbackSpec", "StrategySpec", "StartsSpec", "HumanSpec"]
    {
        for key in properties(&definitions[section]) {
            // In a table, or in an example with a value.
            let said = loops.contains(&format!("`{key}`"))
                || loops.contains(&format!("`{key} = "))
                || loops.contains(&format!(" {key} = "))
                || loops.contains(&format!("\n{key} = "));
            assert!(said, "docs/loops.md does not say `{key}` of {section}");
        }
    }
    let variants = |name: &str| definitions[name]["oneOf"].as_array().unwrap().clone();
    for variant in variants("AgentSpec") {
        let kind = variant["properties"]["kind"]["const"].as_str().unwrap().to_owned();
        all_named(&loops, [kind], "docs/loops.md");
    }
    for variant in variants("Condition") {
        let kind = variant["properties"]["kind"]["const"].as_str().unwrap().to_owned();
        all_named(&loops, [kind], "docs/loops.md");
    }
    all_named(&loops, venire::control::Reason::ALL.map(|r| r.name()), "docs/loops.md");
}

#[test]
fn every_name_that_the_program_lists_is_in_its_document() {
    let bench = Workbench::new();
    for (what, file) in [
        ("statuses", "panels.md"),
        ("aggregators", "panels.md"),
        ("rubrics", "rubrics.md"),
        ("judges", "judges.md"),
    ] {
        let listed = bench.run(&["list", what, "--json"]).exits(0).json();
        let rows = listed.as_array().unwrap();
        assert!(rows.len() > 3, "{listed}");
        all_named(&document(file).text, rows.iter().map(|r| r["name"].as_str().unwrap()), file);
    }
    let runs = document("runs.md").text;
    all_named(&runs, venire::provider::provider_names(), "docs/runs.md");
    let data = document("data.md").text;
    for field in
        ["id", "input", "output", "expected", "context", "baseline", "group", "split", "source"]
    {
        all_named(&data, [field], "docs/data.md");
        all_named(&data, venire::dataset::aliases_of(field), "docs/data.md");
    }
    for row in ["verdict-row", "ruling-row"] {
        let schema = bench.run(&["schema", row]).exits(0).json();
        all_named(&runs, properties(&schema), "docs/runs.md");
    }
}

#[test]
fn every_field_and_cause_of_an_outcome_and_every_limit_of_a_hook_is_documented() {
    let bench = Workbench::new();
    let schema = bench.run(&["schema", "outcome"]).exits(0).json();
    let hooks = document("hooks.md");
    let section = hooks.section("## What was really found");
    all_named(&section, properties(&schema), "the outcome's section");
    let causes = schema["$defs"]["Cause"]["oneOf"].as_array().unwrap();
    all_named(
        &section,
        causes.iter().map(|c| c["const"].as_str().unwrap()),
        "the outcome's section",
    );
    let help = bench.run(&["hook", "--help"]).exits(0).stdout;
    let flags = help.split_whitespace().filter(|word| word.starts_with("--max-"));
    all_named(&hooks.text, flags, "docs/hooks.md");
}

#[test]
fn every_flag_in_the_docs_commands_is_one_of_its_verb() {
    let bench = Workbench::new();
    let mut seen = 0;
    for document in documents() {
        for block in document.blocks.iter().filter(|b| b.language == "sh") {
            for line in block.text.lines() {
                let Some(command) = line.trim_start_matches("$ ").strip_prefix("venire ") else {
                    continue;
                };
                let words: Vec<&str> = command
                    .split_whitespace()
                    .take_while(|w| !matches!(*w, "|" | "&&" | "#"))
                    .collect();
                if matches!(words[0], "serve" | "label") && !cfg!(feature = "server") {
                    continue;
                }
                let below = ["install", "status"].iter().find(|verb| words.get(1) == Some(verb));
                let mut help = vec![words[0]];
                help.extend(below);
                help.push("--help");
                let ran = bench.run(&help);
                assert_eq!(ran.code, 0, "{}: no verb `{}`", block.place, words[0]);
                for flag in words.iter().filter(|word| word.starts_with('-') && word.len() > 1) {
                    let flag = flag.split('=').next().unwrap();
                    let known = ran
                        .stdout
                        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '.' | '[' | '`'))
                        .any(|word| word == flag);
                    assert!(known, "{}: `venire {}` has no `{flag}`", block.place, words[0]);
                }
                seen += 1;
            }
        }
    }
    assert!(seen > 10, "only {seen} commands were found");
}

#[test]
fn links_within_the_docs_lead_somewhere() {
    let anchor = |heading: &str| -> String {
        heading
            .trim()
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    };
    let folders = ["docs", "docs/hosts"].map(|folder| std::fs::read_dir(root().join(folder)));
    for entry in folders.into_iter().flat_map(Result::unwrap) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap();
            if target.contains("://") {
                continue;
            }
            let (file, fragment) = target.split_once('#').unwrap_or((target, ""));
            let file =
                if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(file.exists(), "{}: no file for `{target}`", path.display());
            if !fragment.is_empty() {
                let other = std::fs::read_to_string(&file).unwrap();
                let found = other
                    .lines()
                    .filter(|line| line.starts_with('#'))
                    .any(|line| anchor(line.trim_start_matches('#')) == fragment);
                assert!(found, "{}: no heading for `{target}`", path.display());
            }
        }
    }
}
