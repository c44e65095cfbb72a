//! Feedback: what several judges found, as one list.
//!
//! Near-duplicates are folded into the first that said so; a finding about a criterion that
//! other judges passed says who contradicts it. Nothing is dropped or reworded.

use std::collections::{BTreeMap, BTreeSet};

use super::decide::SeatRules;
use crate::ruling::Finding;
use crate::text;
use crate::verdict::{Status, Verdict};

/// Word overlap from which two findings count as the same.
const SAME: f64 = 0.8;

/// The findings of all counted judges that measured something, in the panel's order.
pub(super) fn merge(seats: &[SeatRules], verdicts: &[Verdict]) -> Vec<Finding> {
    let silent: BTreeSet<&str> =
        seats.iter().filter(|s| s.report_only).map(|s| s.name.as_str()).collect();
    // A check that an output keeps from ending has no score and all the same a finding.
    let says = |v: &&Verdict| {
        (v.status == Status::Ok || v.status == Status::Timeout)
            && !silent.contains(v.judge.as_str())
    };
    let spoken = || verdicts.iter().filter(says);
    let passed = passes(spoken());
    let mut findings: Vec<Finding> = Vec::new();
    let mut keys: Vec<(String, Option<String>)> = Vec::new();
    for verdict in spoken() {
        let of_criteria =
            verdict.criteria.iter().filter(|c| c.passed == Some(false)).filter_map(|criterion| {
                Some((criterion.feedback.clone()?, Some(criterion.name.clone())))
            });
        let general = verdict.feedback.iter().map(|finding| about(finding, verdict));
        for (text, criterion) in of_criteria.chain(general) {
            let text = text.trim().to_owned();
            if text.is_empty() {
                continue;
            }
            let key = text::normalise(&text);
            let same = keys.iter().position(|(other, of)| {
                let related = *of == criterion || of.is_none() || criterion.is_none();
                related && (*other == key || text::similarity(other, &key) >= SAME)
            });
            match same {
                Some(i) => {
                    if !findings[i].judges.contains(&verdict.judge) {
                        findings[i].judges.push(verdict.judge.clone());
                    }
                    if findings[i].criterion.is_none() {
                        findings[i].criterion.clone_from(&criterion);
                        keys[i].1.clone_from(&criterion);
                    }
                }
                None => {
                    keys.push((key, criterion.clone()));
                    findings.push(Finding {
                        text,
                        judges: vec![verdict.judge.clone()],
                        criterion,
                        contradicted_by: Vec::new(),
                    });
                }
            }
        }
    }
    for finding in &mut findings {
        let Some(judges) = finding.criterion.as_ref().and_then(|name| passed.get(name.as_str()))
        else {
            continue;
        };
        finding.contradicted_by = judges
            .iter()
            .filter(|judge| !finding.judges.iter().any(|own| own == *judge))
            .map(|judge| (*judge).to_owned())
            .collect();
    }
    findings
}

/// A finding, and the criterion it is about where it opens with the name of one.
fn about(finding: &str, verdict: &Verdict) -> (String, Option<String>) {
    let named = verdict.criteria.iter().find_map(|criterion| {
        let rest = finding.strip_prefix(criterion.name.as_str())?.strip_prefix(':')?;
        Some((rest.trim().to_owned(), Some(criterion.name.clone())))
    });
    named.unwrap_or_else(|| (finding.to_owned(), None))
}

/// Which judges passed each criterion.
fn passes<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut passed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for verdict in verdicts {
        for criterion in verdict.criteria.iter().filter(|c| c.passed == Some(true)) {
            passed.entry(&criterion.name).or_default().insert(&verdict.judge);
        }
    }
    passed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::Score;
    use crate::verdict::CriterionScore;

    fn seat(name: &str, report_only: bool) -> SeatRules {
        SeatRules { name: name.into(), weight: 1.0, required: false, report_only, samples: 1 }
    }

    fn verdict(judge: &str, feedback: &[&str], criteria: &[(&str, bool, &str)]) -> Verdict {
        let criteria = criteria.iter().map(|(name, passed, feedback)| CriterionScore {
            name: (*name).into(),
            score: Some(Score::ZERO),
            raw: None,
            passed: Some(*passed),
            required: false,
            feedback: Some((*feedback).into()),
        });
        Verdict {
            judge: judge.into(),
            feedback: feedback.iter().map(|text| (*text).to_owned()).collect(),
            criteria: criteria.collect(),
            ..Verdict::ok(Score::ZERO)
        }
    }

    #[test]
    fn the_same_finding_of_two_judges_is_one_finding_with_both_names() {
        let seats = [seat("a", false), seat("b", false), seat("c", false)];
        let verdicts = [
            verdict("a", &["The total is wrong."], &[]),
            verdict("b", &["the  total is wrong."], &[]),
            verdict("c", &["No source is given for the price."], &[]),
        ];
        let findings = merge(&seats, &verdicts);
        assert_eq!(findings.len(), 2);
        assert_eq!(findings[0].judges, ["a", "b"]);
        assert_eq!(findings[0].text, "The total is wrong.");
    }

    #[test]
    fn a_finding_that_names_its_criterion_is_the_criterion_s_finding() {
        let judged = verdict("a", &["tone: too curt"], &[("tone", false, "too curt")]);
        let findings = merge(&[seat("a", false)], &[judged]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].criterion.as_deref(), Some("tone"));
    }

    #[test]
    fn numbers_keep_findings_apart() {
        let seats = [seat("a", false), seat("b", false)];
        let verdicts =
            [verdict("a", &["costs 41 dollars"], &[]), verdict("b", &["costs 42 dollars"], &[])];
        assert_eq!(merge(&seats, &verdicts).len(), 2);
    }

    #[test]
    fn a_contradiction_is_marked_and_both_sides_are_kept() {
        let seats = [seat("a", false), seat("b", false)];
        let verdicts = [
            verdict("a", &[], &[("accuracy", false, "the year is wrong")]),
            verdict("b", &[], &[("accuracy", true, "all facts hold")]),
        ];
        let findings = merge(&seats, &verdicts);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].contradicted_by, ["b"]);
    }

    #[test]
    fn judges_that_are_only_reported_stay_silent() {
        let seats = [seat("a", true)];
        assert!(merge(&seats, &[verdict("a", &["secret"], &[])]).is_empty());
    }
}
