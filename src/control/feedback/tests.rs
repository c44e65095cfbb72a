use super::*;
use crate::control::outcome::Reason;

fn directive() -> Directive {
    Directive {
        generation: 2,
        call: 2,
        wait_ms: 0,
        base: Base::Current,
        base_generation: Some(1),
        nudges: Vec::new(),
        focus: Vec::new(),
        phase: None,
        max_change: None,
        temperature_factor: None,
        note: None,
        overruled: false,
    }
}

fn version(generation: u32, output: &str, score: f64) -> Version {
    Version { generation, output: output.to_owned(), score: Score::new(score).ok() }
}

fn finding(text: &str, against: &[&str]) -> Finding {
    Finding {
        text: text.to_owned(),
        judges: vec!["strict".to_owned()],
        criterion: None,
        contradicted_by: against.iter().map(|judge| (*judge).to_owned()).collect(),
    }
}

fn material() -> Material {
    Material {
        task: "Write a poem about rain.".to_owned(),
        current: Some(version(1, "Rain falls.\nIt is wet.", 0.4)),
        other: None,
        best: Score::new(0.4).ok(),
        findings: vec![finding("It has no rhyme.", &["kind"]), finding("It is too short.", &[])],
        criteria: vec![CriterionMark {
            name: "rhyme".to_owned(),
            score: Some(Score::ZERO),
            passed: Some(false),
            required: false,
        }],
        rejected_by: Vec::new(),
        told: BTreeSet::new(),
        disputed: BTreeSet::new(),
        earlier: Vec::new(),
        directive: directive(),
    }
}

fn prompt(spec: FeedbackSpec, material: &Material) -> String {
    Feedback { spec, template: None }.prompt(material).unwrap()
}

#[test]
fn b_13_b_14_detailed_feedback_has_task_output_findings_and_no_empty_heading() {
    let text = prompt(FeedbackSpec::default(), &material());
    for part in ["rain", "Rain falls.", "0.40", "no rhyme", "contradicted by kind", "- rhyme: 0.00"]
    {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    assert!(!text.contains("Earlier versions") && !text.contains("best so far"));
    let bare = Material { findings: Vec::new(), criteria: Vec::new(), ..material() };
    let text = prompt(FeedbackSpec::default(), &bare);
    assert!(!text.contains("judges found") && !text.contains("not met"), "{text}");
    assert_eq!(text, prompt(FeedbackSpec::default(), &bare));
}

#[test]
fn b_11_b_12_diff_feedback_keeps_the_task_and_needs_no_earlier_version() {
    let diff = || FeedbackSpec { kind: FeedbackKind::Diff, ..FeedbackSpec::default() };
    let text = prompt(diff(), &material());
    assert!(text.contains("Write a poem") && !text.contains("What changed"));
    let long = |last: &str| format!("{}{last}\n", "the same line\n".repeat(40));
    let changed = Material {
        current: Some(version(2, &long("new"), 0.6)),
        other: Some(version(1, &long("old"), 0.4)),
        ..material()
    };
    let text = prompt(diff(), &changed);
    assert!(text.contains("-old\n+new") && text.contains("+0.20 (better)"), "{text}");
}

#[test]
fn the_budget_drops_old_tries_then_findings_and_never_task_or_output() {
    let earlier = (1..=20).map(|i| version(i, &format!("try number {i}"), 0.1)).collect();
    let full = Material { earlier, ..material() };
    let limited = |tokens| FeedbackSpec { max_feedback_tokens: tokens, ..FeedbackSpec::default() };
    let text = prompt(limited(300), &full);
    assert!(text.contains("try number 20") && !text.contains("try number 1\n"), "{text}");
    let text = prompt(limited(1), &full);
    assert!(text.contains("Rain falls.") && text.contains("Write a poem about rain."));
    assert!(!text.contains("try number") && !text.contains("no rhyme"));
}

#[test]
fn what_was_said_before_is_said_short() {
    let long = format!("It has no rhyme. {}", "Rhymes are missing. ".repeat(30));
    let mut again = Material { findings: vec![finding(&long, &[])], ..material() };
    assert!(prompt(FeedbackSpec::default(), &again).contains(&long));
    again.told.insert(long.clone());
    let text = prompt(FeedbackSpec::default(), &again);
    assert!(!text.contains(&long) && text.contains("said before"), "{text}");
}

#[test]
fn b_33_after_a_regression_the_prompt_says_so_in_both_languages() {
    let mut back = material();
    back.directive.base = Base::Best;
    back.directive.nudges = vec![Reason::Regressed];
    back.directive.max_change = Some(0.25);
    back.directive.focus = vec!["rhyme".to_owned()];
    let text = prompt(FeedbackSpec::default(), &back);
    for part in ["Best version so far", "was worse", "at most 25%", "Attend first to: rhyme"] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let text = prompt(FeedbackSpec { lang: Lang::Zh, ..FeedbackSpec::default() }, &back);
    for part in ["目前最好的版本", "变差", "25%", "请优先改进: rhyme"] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
}

#[test]
fn the_first_prompt_is_the_task_and_a_new_start_says_so() {
    let mut first = Material { current: None, ..material() };
    first.directive.generation = 1;
    assert_eq!(prompt(FeedbackSpec::default(), &first), "Write a poem about rain.");
    first.directive.generation = 4;
    assert!(prompt(FeedbackSpec::default(), &first).contains("different approach"));
}

#[test]
fn a_template_sees_the_material_and_a_misspelt_variable_is_an_error() {
    let with = |template: &str| Feedback {
        spec: FeedbackSpec::default(),
        template: Some(template.to_owned()),
    };
    let mut hostile = material();
    hostile.current = Some(version(1, "{{ task }}", 0.1));
    let text = with("{{ current.output }} / {{ best }}").prompt(&hostile).unwrap();
    assert_eq!(text, "{{ task }} / 0.4", "the output is never a template");
    assert!(with("{{ tsak }}").prompt(&material()).is_err());
}

#[test]
fn an_output_can_not_close_its_own_fence() {
    assert_eq!(fenced("a\n```\nb"), "````\na\n```\nb\n````");
}

#[test]
fn b_20_the_builder_renders_the_version_it_is_given_and_picks_none() {
    let mut own = material();
    own.other = Some(version(7, "Another poem, the best one.", 0.9));
    own.best = Score::new(0.9).ok();
    own.directive.focus = vec!["rhyme".to_owned()];
    let text = prompt(FeedbackSpec::default(), &own);
    assert!(text.contains("Rain falls.") && !text.contains("Another poem"), "{text}");
    assert!(text.contains("Attend first to: rhyme"), "{text}");
}

#[test]
fn b_41_an_earlier_version_is_one_line_cut_between_words_and_whole_characters() {
    let cut = |output: &str| {
        let mut own = material();
        own.earlier = vec![version(1, output, 0.3)];
        let text = prompt(FeedbackSpec::default(), &own);
        let line = text.lines().find(|line| line.starts_with("- 1 (0.30): ")).unwrap();
        line.trim_start_matches("- 1 (0.30): ").to_owned()
    };
    let words = "a sentence of\n\nsome words ".repeat(50);
    let short = cut(&words);
    assert!(short.chars().count() <= 200 && short.ends_with("..."), "{short}");
    let last = short.trim_end_matches("...").split(' ').next_back().unwrap();
    assert!(["a", "sentence", "of", "some", "words"].contains(&last), "{short}");
    let chinese = cut(&"春天来了，花都开了。".repeat(100));
    assert!(chinese.chars().count() <= 200 && chinese.chars().count() > 150, "{chinese}");
    // A family is one character of seven code points.
    let emoji = cut(&"👨‍👩‍👧‍👦".repeat(400));
    let whole = emoji.trim_end_matches("...");
    assert_eq!(whole.replace("👨‍👩‍👧‍👦", ""), "", "{emoji}");
    assert_eq!(cut("  short\n text "), "short text");
}

#[test]
fn findings_are_numbered_for_a_dispute_until_they_were_disputed() {
    let spec = FeedbackSpec { disputes: true, ..FeedbackSpec::default() };
    let mut own = material();
    let text = prompt(spec.clone(), &own);
    assert!(
        text.contains("- [1] strict: It has no rhyme.") && text.contains("DISPUTE 1"),
        "{text}"
    );
    own.disputed = ["It has no rhyme.".to_owned()].into();
    own.directive.overruled = true;
    let text = prompt(spec.clone(), &own);
    assert!(text.contains("- strict: It has no rhyme.") && text.contains("[2]"), "{text}");
    assert!(text.contains("the finding stands"), "{text}");
    own.disputed.insert("It is too short.".to_owned());
    assert!(!prompt(spec, &own).contains("DISPUTE"));
    assert!(!prompt(FeedbackSpec::default(), &material()).contains("DISPUTE"));
}
