//! Inversion: the verdict of a judge of a fault, turned into a vote for what is free of it.
//!
//! Everything about it turns: the score, the criteria's scores and whether they pass, and
//! which findings are something to change. Nothing is lost: the judge's own score stays in
//! `raw`, and findings that say the fault is absent stand in the note `fault_absent`.

use serde_json::Value;

use crate::score::Score;
use crate::verdict::{CriterionScore, INVERTED, Verdict};

/// The note with the findings that ask for nothing.
const FAULT_ABSENT: &str = "fault_absent";

/// Turns a verdict with a score around. `complains` says that the judge's findings are about
/// what keeps its own score from 1, as those of a rule are: after the turn that is no fault.
pub(super) fn invert(verdict: &mut Verdict, complains: bool) {
    let Some(own) = verdict.score else { return };
    for criterion in &mut verdict.criteria {
        turn(criterion);
    }
    let (mut kept, mut absent) = (Vec::new(), Vec::new());
    for text in std::mem::take(&mut verdict.feedback) {
        let of = verdict.criteria.iter().find(|criterion| is_about(&text, criterion));
        let is_fault = match of {
            _ if complains => false,
            Some(criterion) => criterion.passed == Some(false),
            None => own.get() >= 0.5,
        };
        if is_fault { kept.push(text) } else { absent.push(text) }
    }
    for criterion in verdict.criteria.iter().filter(|c| c.passed == Some(false)) {
        if !kept.iter().any(|text| is_about(text, criterion))
            && let Some(said) = &criterion.feedback
        {
            // What complains says so once, in its criterion's words.
            let said = said.clone();
            kept.push(if complains { said } else { format!("{}: {said}", criterion.name) });
        }
    }
    if kept.is_empty() && complains && own > Score::ZERO {
        kept.push("what this judge looks for is there, and must not be".to_owned());
    }
    verdict.feedback = kept;
    if !absent.is_empty() {
        verdict.notes.insert(FAULT_ABSENT.to_owned(), absent.into());
    }
    verdict.raw.get_or_insert_with(|| own.get().into());
    verdict.score = Some(own.inverted());
    verdict.notes.insert(INVERTED.to_owned(), true.into());
}

/// A criterion passes where the fault does not reach its mark.
fn turn(criterion: &mut CriterionScore) {
    if criterion.raw.is_none() {
        criterion.raw = criterion.score.map(|own| own.get().into());
    }
    criterion.score = criterion.score.map(Score::inverted);
    criterion.passed = criterion.passed.map(|passed| !passed);
    let is_silent = criterion.feedback.as_ref().is_none_or(|said| said.trim().is_empty());
    if is_silent && criterion.passed == Some(false) {
        criterion.feedback = Some(format!("`{}` holds, and must not", criterion.name));
    }
}

/// Whether a finding is a criterion's own: its words, or opened with its name.
fn is_about(text: &str, criterion: &CriterionScore) -> bool {
    let named =
        text.strip_prefix(criterion.name.as_str()).is_some_and(|rest| rest.starts_with(':'));
    named || criterion.feedback.as_deref() == Some(text)
}

/// Whether a verdict is inverted already: a recorded one keeps the mark of the seat that
/// turned it.
pub(super) fn is_inverted(verdict: &Verdict) -> bool {
    verdict.notes.get(INVERTED) == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(value: f64) -> Score {
        Score::new(value).unwrap()
    }

    fn criterion(name: &str, own: f64, feedback: Option<&str>) -> CriterionScore {
        CriterionScore {
            name: name.into(),
            score: Some(score(own)),
            raw: None,
            passed: Some(own >= 0.7),
            required: true,
            feedback: feedback.map(str::to_owned),
        }
    }

    #[test]
    fn criteria_turn_with_the_score_and_the_own_score_stays_in_raw() {
        let mut verdict = Verdict::ok(score(0.25));
        verdict.criteria = vec![criterion("rude", 0.0, None), criterion("vague", 1.0, None)];
        invert(&mut verdict, false);
        assert_eq!((verdict.score, verdict.raw.clone()), (Some(score(0.75)), Some(0.25.into())));
        let turned: Vec<_> = verdict.criteria.iter().map(|c| (c.score, c.passed)).collect();
        assert_eq!(turned, [(Some(score(1.0)), Some(true)), (Some(score(0.0)), Some(false))]);
        assert!(is_inverted(&verdict));
    }

    #[test]
    fn a_finding_that_the_fault_is_absent_asks_for_nothing_and_is_kept_as_a_note() {
        let mut verdict = Verdict::ok(score(0.0));
        verdict.criteria = vec![criterion("insults", 0.0, Some("polite throughout"))];
        verdict.feedback = vec!["insults: polite throughout".into(), "friendly".into()];
        invert(&mut verdict, false);
        assert_eq!(verdict.feedback, Vec::<String>::new());
        assert_eq!(verdict.notes[FAULT_ABSENT].as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_fault_that_was_found_is_fed_back_with_what_the_judge_said() {
        let mut verdict = Verdict::ok(score(1.0));
        verdict.criteria = vec![criterion("insults", 1.0, Some("calls the reader a fool"))];
        verdict.feedback = vec!["the last line is an insult".into()];
        invert(&mut verdict, false);
        let said = ["the last line is an insult", "insults: calls the reader a fool"];
        assert_eq!(verdict.feedback, said);
    }

    #[test]
    fn a_check_that_holds_and_must_not_says_so() {
        let mut verdict = Verdict::ok(score(0.5));
        verdict.criteria =
            vec![criterion("has TODO", 1.0, None), criterion("has XXX", 0.0, Some("no XXX"))];
        verdict.feedback = vec!["no XXX".into()];
        invert(&mut verdict, true);
        assert_eq!(verdict.feedback, ["`has TODO` holds, and must not"]);
        let mut plain = Verdict::ok(score(1.0));
        invert(&mut plain, true);
        assert_eq!(plain.feedback.len(), 1);
    }

    #[test]
    fn a_criterion_without_a_score_stays_without_one() {
        let mut verdict = Verdict::ok(score(1.0));
        let open = CriterionScore { score: None, passed: None, ..criterion("a", 0.0, None) };
        verdict.criteria = vec![open.clone()];
        invert(&mut verdict, false);
        assert_eq!(verdict.criteria, [open]);
    }
}
