//! `venire check` on loop files: what is worth a second look.

use crate::control::{COUNTING, scripted};
use crate::workbench::Workbench;

/// What `check` says of a loop with these lines.
#[track_caller]
fn doubts(more: &str, judges: &str) -> String {
    let bench = Workbench::new();
    scripted(&bench, COUNTING, more);
    bench.write("loop.toml", format!("{}{judges}", bench.read("loop.toml")));
    let ran = bench.run(&["check", "-c", "loop.toml"]).exits(0);
    assert!(ran.stdout.contains("words") && ran.stdout.contains("at most"), "{}", ran.stdout);
    assert!(!bench.path(".venire").exists(), "nothing is run");
    ran.stderr
}

const RESERVE: &str = "[[panel.judge]]\nname = \"more\"\nkind = \"rule\"\nrule = \"length\"\nwords = { min = 7 }\nreserve = true\n";

#[test]
fn a_loop_without_faults_is_checked_without_a_word() {
    assert_eq!(doubts("", ""), "");
    assert_eq!(doubts("", RESERVE), "");
}

#[test]
fn conditions_that_can_not_fire_are_named() {
    for (more, words) in [
        (
            "[exit]\nany = [\"quality_threshold\", \"oscillation\"]\n[budget]\nmax_generations = 5\n",
            "`oscillation` can't fire",
        ),
        (
            "[exit]\nany = [\"quality_threshold\", \"convergence\"]\n[budget]\nmax_generations = 3\n",
            "`convergence` can't fire",
        ),
        (
            "[exit]\nany = [\"quality_threshold\", { kind = \"divergence\", window = 12 }]\n",
            "`divergence` can't fire",
        ),
        (
            "[exit]\nany = [\"quality_threshold\", { kind = \"improvement_stall\", patience = 10 }]\n",
            "`improvement_stall` can't fire",
        ),
        ("[exit]\nmin_generations = 10\n", "`repeated_output` can't fire"),
        ("[exit]\nany = [\"all_criteria_passed\"]\n", "`all_criteria_passed` can't fire"),
        (
            "[exit]\nany = [\"quality_threshold\", { kind = \"token_budget\", tokens = 90000 }]\n",
            "`token_budget` can't be reached",
        ),
        (
            "[exit]\nany = [\"quality_threshold\", { kind = \"time_budget\", seconds = 9000 }]\n",
            "`time_budget` can't be reached",
        ),
        (
            "[exit]\nany = [\"quality_threshold\", { kind = \"max_generations\", n = 20 }]\n",
            "`max_generations` 20 can't be reached",
        ),
        (
            "[exit]\nany = [\"quality_threshold\", { kind = \"repeated_output\", actions = [\"exit\", \"nudge\"] }]\n",
            "nothing follows",
        ),
        ("[exit]\nmax_spread = 0.3\n", "`exit.max_spread` can't fire"),
        ("[human]\nask = [\"on_disagreement\"]\n", "`on_disagreement` can't fire"),
        ("[feedback]\ndisputes = true\n", "nobody is left"),
        ("[starts]\nn = 3\ngenerations = 10\n", "leaves nothing to drop"),
    ] {
        let said = doubts(more, "");
        assert!(said.contains(words), "no `{words}` for {more}\n{said}");
    }
}

#[test]
fn limits_that_are_none_or_too_tight_are_named() {
    for (more, words) in [
        ("[budget]\nmax_generations = 5000\nseconds = 1000000\n", "no hard stop"),
        ("[budget]\nseconds = 20\n", "`agent.timeout` 300 s is above"),
        ("[budget]\nevaluations = 4\n", "`budget.evaluations` 4 ends the run before"),
    ] {
        let said = doubts(more, "");
        assert!(said.contains(words), "no `{words}` for {more}\n{said}");
    }
    let bench = Workbench::new();
    scripted(&bench, COUNTING, "[budget]\ntokens = 2\n");
    let text = bench.read("loop.toml").replace("estimate_tokens = false", "max_tokens = 500");
    bench.write("loop.toml", text);
    bench.run(&["check", "-c", "loop.toml"]).exits(0).says(&["no output fits the budget", "502"]);
}

#[test]
fn accepts_that_are_worth_little_are_named() {
    let noisy =
        "[[panel.judge]]\nname = \"noisy\"\nkind = \"http\"\nurl = \"http://127.0.0.1:9/\"\n";
    for (more, judges, words) in [
        ("[exit]\nany = [\"repeated_output\"]\n", "", "nothing accepts"),
        ("[exit]\nconfirm = 1\n", "", "say the same of the same output"),
        ("[exit]\nconfirm = 0\n", RESERVE, "are never asked"),
        ("[exit]\nconfirm = 0\nnoise_sd = 0.05\n", noisy, "a lucky score"),
        ("[exit]\nnoise_sd = 0.1\n", noisy, "lies within the judges' noise"),
        ("", noisy, "test-retest noise is not known"),
    ] {
        let said = doubts(more, judges);
        assert!(said.contains(words), "no `{words}` for {more}{judges}\n{said}");
    }
}

/// A loop of a model that is judged by another.
fn models(agent: &str, judge: &str, more: &str) -> Workbench {
    let bench = Workbench::new();
    bench.write(
        "loop.toml",
        format!(
            "{more}\n[agent]\nkind = \"llm\"\n{agent}\n[panel]\n[[panel.judge]]\nname = \"reader\"\nkind = \"llm\"\nmode = \"yes_no\"\ncriterion = \"Good?\"\n{judge}\n"
        ),
    );
    bench.write(".env", "OPENAI_API_KEY=dummy\nANTHROPIC_API_KEY=dummy\n");
    bench
}

#[test]
fn agent_and_judge_of_one_model_are_refused_and_of_one_family_doubted() {
    let same = models("model = \"openai/gpt-4.1\"", "model = \"openai/gpt-4.1\"", "");
    same.run(&["check", "-c", "loop.toml"]).exits(2).says(&["allow_self_judging"]);
    let kin = models("model = \"openai/gpt-4.1\"", "model = \"openai/gpt-4.1-mini\"", "");
    kin.run(&["check", "-c", "loop.toml"]).exits(0).says(&["family `gpt`"]);
}

#[test]
fn paid_models_without_a_limit_on_money_are_named_and_local_ones_are_not() {
    let paid = models("model = \"openai/gpt-4.1\"", "model = \"anthropic/claude-sonnet-4-5\"", "");
    let ran = paid.run(&["check", "-c", "loop.toml"]).exits(0);
    ran.says(&["no limit on money", "the agent", "`reader`"]);
    let local = "base_url = \"http://127.0.0.1:9/v1\"";
    let free = models(
        &format!("model = \"openai/a\"\n{local}"),
        &format!("model = \"openai/b\"\n{local}"),
        "",
    );
    let said = free.run(&["check", "-c", "loop.toml"]).exits(0).stderr;
    assert!(!said.contains("money"), "{said}");
}

#[test]
fn a_cap_above_the_host_s_own_is_named() {
    let bench = Workbench::new();
    scripted(&bench, COUNTING, "");
    let check =
        |host: &str| bench.run(&["check", "-c", "loop.toml", "--host", host]).exits(0).stderr;
    assert!(check("claude-code").contains("after 8 refusals in a row"));
    assert_eq!(check("codex"), "");
    let mut command = bench.command(&["check", "-c", "loop.toml", "--host", "claude-code"]);
    let output = command.env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "12").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let panel = Workbench::with_rules();
    panel.run(&["check", "--host", "codex"]).exits(2).says(&["loop files"]);
}

#[test]
fn what_is_wrong_with_a_loop_is_an_error_of_check_too() {
    let bench = Workbench::new();
    scripted(&bench, COUNTING, "[exit]\nall = []\n");
    bench.run(&["check", "-c", "loop.toml"]).exits(2).says(&["empty group"]);
    scripted(&bench, COUNTING, "");
    bench
        .run(&["check", "-c", "loop.toml", "cases.csv"])
        .exits(2)
        .says(&["no use for the data set"]);
    let text = bench.read("loop.toml").replace("task = \"count\"\n", "");
    bench.write("loop.toml", text);
    bench.run(&["check", "-c", "loop.toml"]).exits(0);
}

#[test]
fn the_noise_band_is_the_profile_s_where_it_has_measured_every_judge_that_varies() {
    let bench = Workbench::new();
    bench.write("agent.sh", COUNTING);
    let judge =
        "[[panel.judge]]\nname = \"reader\"\nkind = \"http\"\nurl = \"http://127.0.0.1:9/\"\n";
    let stall = "[exit]\nany = [\"quality_threshold\", { kind = \"improvement_stall\", min_gain = 0.0001 }]\n";
    bench.write(
        "loop.toml",
        format!("task = \"x\"\n{stall}[agent]\nkind = \"command\"\nargv = [\"sh\", \"agent.sh\"]\n[panel]\nprofile = \"p.json\"\n{judge}"),
    );
    // Two samples of each, 0.1 apart: a standard deviation of 0.0707 each.
    let profile = |samples: u32| {
        let mut judgements = "item_id,judge,score,sample\n".to_owned();
        let mut labels = "item_id,label\n".to_owned();
        for i in 0..60_u32 {
            let label = f64::from(i % 10) / 10.0;
            labels.push_str(&format!("i{i},{label}\n"));
            for sample in 0..samples {
                let score = if (i + sample) % 2 == 0 { label } else { label + 0.1 };
                judgements.push_str(&format!("i{i},reader,{score},{sample}\n"));
            }
        }
        bench.write("j.csv", judgements);
        bench.write("l.csv", labels);
        let arguments = [
            "calibrate",
            "--judgements",
            "j.csv",
            "--labels",
            "l.csv",
            "--positive",
            ">=0.5",
            "--label-scale",
            "unit",
            "--judge-scale",
            "unit",
            "--no-split",
            "-o",
            "p.json",
        ];
        bench.run(&arguments).exits(0).stdout
    };
    let said = profile(2);
    assert!(said.contains("when it judges the same output again (n = 60)"), "{said}");
    let doubts = bench.run(&["check", "-c", "loop.toml"]).exits(0).stderr;
    assert!(doubts.contains("is inside the judges' noise"), "{doubts}");
    assert!(!doubts.contains("not known") && !doubts.contains("no test-retest"), "{doubts}");
    let once = profile(1);
    assert!(!once.contains("judges the same output again"), "{once}");
    let doubts = bench.run(&["check", "-c", "loop.toml"]).exits(0).stderr;
    assert!(doubts.contains("holds no test-retest noise"), "{doubts}");
    assert!(doubts.contains("noise is not known"), "{doubts}");
}
