//! JUnit XML, as build servers read it: every case a test case.
//!
//! A rejected case is a `failure` with its feedback. An undecided one is an `error`: like a
//! test that could not be run it fails the build and is no verdict on the output; as
//! `skipped` an outage would be green. Written as a stream; totals come from a first reading.

use std::io::Write;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};

use super::escape::xml_characters;
use super::words::{beginning, finding, marks, panel_score, profile, reason, vote};
use super::{About, Beside, Judged, ReportError, Worth, Written, totals};
use crate::case::Case;
use crate::ruling::{Decision, Ruling};

/// Characters of a message and of a test case's texts: servers show, and keep, little more.
const MESSAGE: usize = 300;
const TEXT: usize = 8_000;

type Xml<'a> = Writer<&'a mut dyn Write>;

/// Writes the report.
///
/// # Errors
/// When the cases can't be read or the report can't be written.
pub fn write(
    out: &mut dyn Write,
    about: &About,
    cases: &dyn Judged,
) -> Result<Written, ReportError> {
    let mut seconds = 0.0;
    cases.each(&mut |_, ruling| {
        seconds += time(ruling);
        Ok(())
    })?;
    let (tally, worth) = totals(cases)?;
    let mut xml: Xml<'_> = Writer::new_with_indent(out, b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let counts = [
        ("tests", tally.cases.to_string()),
        ("failures", tally.rejected.to_string()),
        ("errors", tally.undecided.to_string()),
        ("time", format!("{seconds:.3}")),
    ];
    let counts = || counts.iter().map(|(name, value)| (*name, value.as_str()));
    let name = xml_characters(&about.panel);
    let mut root = BytesStart::new("testsuites");
    root.push_attribute(("name", "venire"));
    root.extend_attributes(counts());
    xml.write_event(Event::Start(root))?;
    let mut suite = BytesStart::new("testsuite");
    suite.push_attribute(("name", name.as_str()));
    suite.extend_attributes(counts());
    suite.push_attribute(("skipped", "0"));
    if let Some(created) = &about.created {
        suite.push_attribute(("timestamp", created.trim_end_matches('Z')));
    }
    xml.write_event(Event::Start(suite))?;
    properties(&mut xml, about, &worth)?;
    let mut written = Written::default();
    cases.each_beside(&mut |case, ruling, beside| {
        written.cases += 1;
        test_case(&mut xml, &name, case, ruling, beside)
    })?;
    xml.write_event(Event::End(BytesEnd::new("testsuite")))?;
    xml.write_event(Event::End(BytesEnd::new("testsuites")))?;
    writeln!(xml.get_mut())?;
    Ok(written)
}

/// Seconds that a case took: its judges are asked at the same time, and what was recorded
/// takes none.
fn time(ruling: &Ruling) -> f64 {
    let asked = ruling.verdicts.iter().filter(|verdict| !verdict.cached);
    asked.map(|verdict| verdict.latency_ms).max().unwrap_or(0) as f64 / 1000.0
}

fn properties(xml: &mut Xml<'_>, about: &About, worth: &Worth) -> Result<(), ReportError> {
    xml.write_event(Event::Start(BytesStart::new("properties")))?;
    let (rule, line) = (Some(worth.rule(&about.rule)), worth.line());
    let pairs = [("run", &about.run), ("data", &about.data), ("rule", &rule), ("worth", &line)];
    for (name, value) in pairs {
        if let Some(value) = value {
            let mut property = BytesStart::new("property");
            property.push_attribute(("name", name));
            property.push_attribute(("value", xml_characters(value).as_str()));
            xml.write_event(Event::Empty(property))?;
        }
    }
    Ok(xml.write_event(Event::End(BytesEnd::new("properties")))?)
}

fn test_case(
    xml: &mut Xml<'_>,
    suite: &str,
    case: &Case,
    ruling: &Ruling,
    beside: Beside,
) -> Result<(), ReportError> {
    let mut element = BytesStart::new("testcase");
    // Build servers follow a test by its name, so the row is no part of it.
    element.push_attribute(("name", xml_characters(&case.id).as_str()));
    element.push_attribute(("classname", suite));
    element.push_attribute(("time", format!("{:.3}", time(ruling)).as_str()));
    xml.write_event(Event::Start(element))?;
    let (tag, kind) = match ruling.decision {
        Decision::Accept => (None, ""),
        Decision::Reject => (Some("failure"), "reject"),
        Decision::Undecided => (Some("error"), "undecided"),
    };
    if let Some(tag) = tag {
        let message = format!("{kind}: score {}, {}", panel_score(ruling), reason(ruling));
        let mut outcome = BytesStart::new(tag);
        outcome.push_attribute(("type", kind));
        let (message, _) = beginning(&message, MESSAGE);
        outcome.push_attribute(("message", xml_characters(message).as_str()));
        xml.write_event(Event::Start(outcome))?;
        text(xml, &why(ruling))?;
        xml.write_event(Event::End(BytesEnd::new(tag)))?;
    }
    xml.write_event(Event::Start(BytesStart::new("system-out")))?;
    text(xml, &votes(case, ruling, beside))?;
    xml.write_event(Event::End(BytesEnd::new("system-out")))?;
    Ok(xml.write_event(Event::End(BytesEnd::new("testcase")))?)
}

fn text(xml: &mut Xml<'_>, whole: &str) -> Result<(), ReportError> {
    let (shown, left) = beginning(whole, TEXT);
    let more = if left > 0 { format!("… ({left} more characters)") } else { String::new() };
    let shown = xml_characters(&format!("{shown}{more}"));
    Ok(xml.write_event(Event::Text(BytesText::new(&shown)))?)
}

/// What to change, or why there is no decision.
fn why(ruling: &Ruling) -> String {
    let mut lines = Vec::new();
    if ruling.decision == Decision::Undecided {
        for verdict in ruling.verdicts.iter().filter(|verdict| verdict.score.is_none()) {
            let detail = verdict.detail.as_deref().unwrap_or_default();
            lines.push(format!("{}: {} {detail}", verdict.judge, verdict.status));
        }
    }
    lines.extend(ruling.feedback.iter().map(finding));
    lines.join("\n")
}

fn votes(case: &Case, ruling: &Ruling, beside: Beside) -> String {
    let row = beside.row.map(|row| format!("row {row}"));
    let mut lines: Vec<String> = row.into_iter().chain(beside.words()).collect();
    lines.extend(ruling.votes.iter().map(|v| format!("{}: {}", v.judge, vote(v))));
    if !marks(ruling).is_empty() {
        lines.push(marks(ruling).join(", "));
    }
    lines.extend(profile(ruling));
    if let Some(output) = &case.output {
        lines.push(format!("output: {output}"));
    }
    lines.join("\n")
}
