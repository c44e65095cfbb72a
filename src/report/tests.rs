use super::*;
use crate::panel::vote::{Aggregate, Settings};
use crate::panel::{Rules, SeatRules};
use crate::ruling::Decision;
use crate::score::Score;
use crate::verdict::{Status, Verdict};

/// Text that attacks every format at once.
const HOSTILE: &str = "</pre></details><script>alert(1)</script>]]></failure><x a=\"'|`\u{0}\u{1b}[2J\u{202e}&amp; onerror=\"x\" @all [a](javascript:b)";

fn ruled(id: &str, scores: &[Option<f64>], feedback: &str) -> (Case, Ruling) {
    let case = Case {
        id: id.into(),
        group: Some("g".into()),
        ..Case::new(format!("question {HOSTILE}"), format!("answer {HOSTILE}"))
    };
    let names: Vec<String> = (0..scores.len()).map(|i| format!("judge-{i}")).collect();
    let seats = names.iter().map(|name| SeatRules {
        name: name.clone(),
        weight: 1.0,
        required: false,
        report_only: false,
        samples: 1,
    });
    let settings =
        Settings { aggregate: Aggregate::Median, midpoint: false, trim: 0.0, threshold: 0.5 };
    let rules =
        Rules { seats: seats.collect(), settings, threshold: 0.5, quorum: 2, profile: None };
    let verdicts = names.iter().zip(scores).map(|(name, score)| {
        let verdict = match score {
            Some(score) => Verdict::ok(Score::new(*score).unwrap()),
            None => Verdict::failed(Status::ProviderError, format!("down {feedback}")),
        };
        Verdict {
            judge: name.clone(),
            feedback: vec![feedback.to_owned()],
            latency_ms: 1500,
            ..verdict
        }
    });
    let ruling = rules.rule(id, verdicts.collect());
    (case, ruling)
}

struct Several(Vec<(Case, Ruling)>);

impl Judged for Several {
    fn each(
        &self,
        visit: &mut dyn FnMut(&Case, &Ruling) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        self.0.iter().try_for_each(|(case, ruling)| visit(case, ruling))
    }
}

fn several() -> Several {
    Several(vec![
        ruled("good", &[Some(0.9), Some(0.8), Some(1.0)], "fine"),
        ruled(&format!("bad {HOSTILE}"), &[Some(0.1), Some(0.2), Some(0.9)], HOSTILE),
        ruled("unknown", &[Some(0.1), None, None], HOSTILE),
        ruled("案例", &[Some(1.0), Some(0.0), Some(0.6)], "可以"),
    ])
}

fn about() -> About {
    About {
        panel: format!("panel {HOSTILE}"),
        rule: "the median of 3 votes".into(),
        run: Some("20260102-030405-1a2b".into()),
        created: Some("2026-01-02T03:04:05Z".into()),
        data: Some(HOSTILE.into()),
        notes: vec![HOSTILE.into()],
    }
}

fn written(format: Format) -> String {
    let mut bytes = Vec::new();
    let done = write(format, &mut bytes, &about(), &several()).unwrap();
    assert_eq!(done, Written { cases: 4, left_out: 0 });
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_extension_says_the_format() {
    let of = |name: &str| Format::from_path(Path::new(name));
    assert_eq!(of("a.MD"), Some(Format::Markdown));
    assert_eq!(of("a.html"), Some(Format::Html));
    assert_eq!(of("b/a.xml"), Some(Format::JUnit));
    assert_eq!(of("a.csv"), None);
    assert_eq!(of("md"), None);
}

#[test]
fn a_page_holds_hostile_text_as_text_and_asks_for_nothing() {
    let page = written(Format::Html);
    // Ours: one style, one script, and nothing that loads.
    assert_eq!(page.matches("<script").count(), 1, "a script of the output got through");
    assert_eq!(page.matches("<style").count(), 1);
    assert!(!page.contains("</pre></details>"), "the output closed our elements");
    assert!(!page.contains("onerror=\""), "a quote of the output got through");
    for loads in ["src=", "href=", "url(", "@import", "http://", "https://"] {
        assert!(!page.contains(loads), "the page loads by `{loads}`");
    }
    assert!(!page.contains('\u{202e}') && !page.contains('\u{1b}') && !page.contains('\u{0}'));
    assert_eq!(page.matches("<tbody data-decision").count(), 4);
    assert!(page.contains("案例") && page.contains("&lt;script&gt;alert(1)"));
}

#[test]
fn the_page_s_policy_names_the_hashes_of_its_own_style_and_script() {
    use base64::Engine as _;
    use sha2::Digest as _;
    let page = written(Format::Html);
    for (open, close, directive) in
        [("<style>", "</style>", "style-src"), ("<script>", "</script>", "script-src")]
    {
        let text = page.split(open).nth(1).unwrap().split(close).next().unwrap();
        let hash = sha2::Sha256::digest(text.as_bytes());
        let hash = base64::engine::general_purpose::STANDARD.encode(hash);
        assert!(page.contains(&format!("{directive} 'sha256-{hash}'")), "{directive}");
    }
}

#[test]
fn a_page_holds_no_more_than_it_can_and_says_so() {
    struct Many(Case, Ruling, u64);
    impl Judged for Many {
        fn each(
            &self,
            visit: &mut dyn FnMut(&Case, &Ruling) -> Result<(), ReportError>,
        ) -> Result<(), ReportError> {
            (0..self.2).try_for_each(|_| visit(&self.0, &self.1))
        }
    }
    let (case, ruling) = ruled("a", &[Some(0.5), Some(0.5)], &"x".repeat(20_000));
    let mut bytes = Vec::new();
    let cases =
        Many(Case { output: Some("y".repeat(100_000)), ..case }, ruling, html::MOST_CASES + 3);
    let done = html::write(&mut bytes, &about(), &cases).unwrap();
    assert_eq!(done, Written { cases: html::MOST_CASES, left_out: 3 });
    let page = String::from_utf8(bytes).unwrap();
    assert!(page.contains("3 more are not on it"));
    assert!(page.contains("92000 more characters are not shown"));
}

#[test]
fn a_build_server_sees_a_reject_as_failure_and_an_undecided_case_as_error() {
    use quick_xml::Reader;
    use quick_xml::events::Event;
    let xml = written(Format::JUnit);
    let mut reader = Reader::from_str(&xml);
    let (mut open, mut seen) = (Vec::new(), Vec::new());
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) => {
                let name = tag.name().as_ref().to_owned();
                for attribute in tag.attributes() {
                    let attribute = attribute.unwrap();
                    let value = quick_xml::escape::unescape(&attribute.value).unwrap();
                    seen.push(format!("{name}.{}={value}", attribute.key.as_ref()));
                }
                open.push(name);
            }
            Event::End(tag) => {
                assert_eq!(open.pop().unwrap(), tag.name().as_ref());
            }
            Event::Eof => break,
            _ => {}
        }
    }
    assert!(open.is_empty());
    for expected in [
        "testsuites.tests=4",
        "testsuite.failures=1",
        "testsuite.errors=1",
        "testsuite.skipped=0",
        "testsuite.time=6.000",
        "testsuite.timestamp=2026-01-02T03:04:05",
        "testcase.name=good",
        "testcase.name=案例",
        "failure.type=reject",
        "error.type=undecided",
    ] {
        assert!(seen.iter().any(|s| s == expected), "no `{expected}` in {seen:#?}");
    }
    let allowed = |c: char| matches!(c, '\t' | '\n' | '\r') || !c.is_control();
    assert!(xml.chars().all(allowed), "a character that XML can't hold");
}

#[test]
fn markdown_is_a_summary_and_a_row_a_case_whatever_the_outputs_say() {
    use pulldown_cmark::{Event, Options, Parser, Tag};
    let text = written(Format::Markdown);
    let mut rows = 0;
    for event in Parser::new_ext(&text, Options::ENABLE_TABLES | Options::ENABLE_GFM) {
        match event {
            Event::Start(Tag::TableRow) => rows += 1,
            Event::Html(html) | Event::InlineHtml(html) => panic!("HTML got through: {html}"),
            Event::Start(Tag::Link { dest_url, .. }) => panic!("a link got through: {dest_url}"),
            _ => {}
        }
    }
    assert_eq!(rows, 3 + 4, "judges and cases: {text}");
    assert!(text.contains("**2 accepted, 1 rejected, 1 undecided** of 4 cases"), "{text}");
}

#[test]
fn no_share_is_given_where_all_cases_are_of_one_group() {
    let (tally, _) = totals(&several()).unwrap();
    assert_eq!((tally.accepted, tally.rejected, tally.undecided), (2, 1, 1));
    assert_eq!(markdown::share(&tally), None);
    let (case, ruling) = ruled("x", &[Some(1.0), Some(1.0)], "");
    assert_eq!(ruling.decision, Decision::Accept);
    let alone = (Case { group: None, ..case }, ruling);
    let said = markdown::share(&totals(&alone).unwrap().0).unwrap();
    assert!(said.contains("n = 1, by case"), "{said}");
}

#[test]
fn a_score_is_shown_on_its_own_side_of_the_threshold() {
    for (score, shown) in
        [(0.4978, "0.498"), (0.499_96, "0.49996"), (0.5, "0.50"), (0.5021, "0.50"), (0.25, "0.25")]
    {
        let (_, ruling) = ruled("a", &[Some(score), Some(score)], "");
        assert_eq!(super::words::panel_score(&ruling), shown);
    }
    let (_, undecided) = ruled("a", &[None, None], "");
    assert_eq!(super::words::panel_score(&undecided), "-");
}
