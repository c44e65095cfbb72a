//! From readings to a verdict: weights, pass marks, both orders of a pair.

use serde_json::{Map, Value, json};

use super::judging::Judging;
use super::shape::{Answer, Place, Reading, Shape};
use crate::rubric::{Rubric, weighted_mean};
use crate::score::{Scale, Score};
use crate::verdict::{CriterionScore, Verdict};

/// How far, in [0,1], a judge's own overall score may lie from the weighted mean of its
/// criteria before the two are said to contradict each other. Half a level of five is 0.125.
const CONTRADICTION: f64 = 0.15;

/// The verdict of one reading, in every mode but `pairwise`.
pub(super) fn single(judging: &Judging, reading: &Reading) -> Verdict {
    match (judging.shape(), judging.rubric()) {
        (Shape::Rubric { scale, .. }, Some(rubric)) => by_rubric(rubric, *scale, reading),
        (Shape::Checklist { .. }, _) => checklist(judging, reading),
        _ => one_answer(reading),
    }
}

fn one_answer(reading: &Reading) -> Verdict {
    let Some(Answer { score: Some(score), raw, .. }) = reading.answers.first() else {
        return Verdict::abstained("the judge gave no answer");
    };
    Verdict {
        raw: raw.clone(),
        feedback: reading.reason.iter().cloned().collect(),
        ..Verdict::ok(*score)
    }
}

fn by_rubric(rubric: &Rubric, scale: Scale, reading: &Reading) -> Verdict {
    let criteria: Vec<CriterionScore> = rubric
        .criteria
        .iter()
        .zip(&reading.answers)
        .map(|(criterion, answer)| CriterionScore {
            name: criterion.name.clone(),
            score: answer.score,
            raw: answer.raw.clone(),
            passed: answer.score.map(|score| criterion.passes(score)),
            required: criterion.required,
            feedback: answer.reason.clone(),
        })
        .collect();
    let scores: Vec<Option<Score>> = criteria.iter().map(|c| c.score).collect();
    let verdict = match rubric.overall(&scores) {
        Ok(score) => Verdict::ok(score),
        Err(too_little) => Verdict::abstained(too_little.to_string()),
    };
    let contradiction = contradiction(reading, verdict.score, scale, &criteria);
    let mut verdict = with_criteria(verdict, reading, criteria);
    if let Some(words) = contradiction {
        verdict = verdict.note("contradiction", words);
    }
    verdict
}

fn checklist(judging: &Judging, reading: &Reading) -> Verdict {
    let questions = &judging.spec().questions;
    let criteria: Vec<CriterionScore> = questions
        .iter()
        .zip(&reading.answers)
        .map(|(question, answer)| CriterionScore {
            name: question.text.clone(),
            score: answer.score,
            raw: answer.raw.clone(),
            passed: answer.score.map(|score| score == Score::ONE),
            required: question.required,
            feedback: answer.reason.clone(),
        })
        .collect();
    let weights: Vec<f64> = questions.iter().map(|q| q.weight).collect();
    let scores: Vec<Option<Score>> = criteria.iter().map(|c| c.score).collect();
    let verdict = match weighted_mean(&weights, &scores) {
        Ok(score) => Verdict::ok(score),
        Err(too_little) => Verdict::abstained(too_little.to_string()),
    };
    with_criteria(verdict, reading, criteria)
}

fn with_criteria(
    mut verdict: Verdict,
    reading: &Reading,
    criteria: Vec<CriterionScore>,
) -> Verdict {
    verdict.feedback = criteria
        .iter()
        .filter(|c| c.passed == Some(false))
        .filter_map(|c| Some(format!("{}: {}", c.name, c.feedback.as_ref()?)))
        .chain(reading.reason.iter().cloned())
        .collect();
    let by_name: Map<String, Value> =
        criteria.iter().map(|c| (c.name.clone(), c.raw.clone().unwrap_or(Value::Null))).collect();
    let mut raw = json!({ "criteria": by_name });
    if let Some(overall) = &reading.overall {
        raw["overall"] = overall.clone();
    }
    if let Some(passed) = &reading.passed {
        raw["passed"] = passed.clone();
    }
    verdict.raw = Some(raw);
    verdict.criteria = criteria;
    verdict
}

/// Where the judge's own overall score or word on passing does not follow from its criteria.
fn contradiction(
    reading: &Reading,
    computed: Option<Score>,
    scale: Scale,
    criteria: &[CriterionScore],
) -> Option<String> {
    let all_passed = criteria.iter().filter(|c| c.score.is_some()).all(|c| c.passed == Some(true));
    if let Some(own) = reading.passed.as_ref().and_then(Value::as_bool)
        && own != all_passed
    {
        return Some(format!(
            "the judge says `passed` is {own}, while {}",
            if all_passed {
                "every criterion reaches its pass mark"
            } else {
                "a criterion misses its pass mark"
            }
        ));
    }
    let computed = computed?;
    let value = reading.overall.as_ref()?.as_f64()?;
    match scale.position(value) {
        Ok(own) if (own.get() - computed.get()).abs() <= CONTRADICTION => None,
        Ok(own) => Some(format!(
            "the judge says `overall` is {value} ({:.2}), and its criteria make {:.2}",
            own.get(),
            computed.get()
        )),
        Err(_) => Some(format!("the judge says `overall` is {value}, off its own scale {scale}")),
    }
}

/// The verdict of a pair asked in both orders.
///
/// With log-probabilities in both, the score is the mean of the two probabilities that the
/// output is preferred, which takes a preference for one place out of it. Else the two picks
/// must agree: 1 for the output, 0 for the baseline, 0.5 for a tie or for picks that differ.
pub(super) fn pairwise(given: &Reading, swapped: &Reading) -> Verdict {
    let score = |reading: &Reading| reading.answers.first().and_then(|answer| answer.score);
    let (Some(first_given), Some(first_swapped)) = (score(given), score(swapped)) else {
        return Verdict::abstained("the judge gave no answer");
    };
    let output_given = first_given;
    let output_swapped = first_swapped.inverted();
    let consistent = pick(output_given) == pick(output_swapped);
    let picked_first =
        [first_given, first_swapped].into_iter().filter(|s| pick(*s).is_gt()).count();
    let mean = |a: Score, b: Score| Score::from_arithmetic((a.get() + b.get()) / 2.0);
    let probabilities = given.place == Place::Logprobs && swapped.place == Place::Logprobs;
    let combined = if probabilities {
        mean(output_given, output_swapped)
    } else if consistent {
        Ok(match pick(output_given) {
            std::cmp::Ordering::Greater => Score::ONE,
            std::cmp::Ordering::Less => Score::ZERO,
            std::cmp::Ordering::Equal => half(),
        })
    } else {
        Ok(half())
    };
    let Ok(combined) = combined else {
        return Verdict::failed(crate::verdict::Status::Internal, "the mean of two scores is none");
    };
    let raw = |reading: &Reading| {
        reading.answers.first().and_then(|answer| answer.raw.clone()).unwrap_or(Value::Null)
    };
    let mut feedback: Vec<String> = Vec::new();
    for reason in given.reason.iter().chain(&swapped.reason) {
        if !feedback.contains(reason) {
            feedback.push(reason.clone());
        }
    }
    let mut verdict = Verdict {
        raw: Some(json!({ "given": raw(given), "swapped": raw(swapped) })),
        feedback,
        ..Verdict::ok(combined)
    };
    if probabilities && let Ok(first) = mean(first_given, first_swapped) {
        verdict = verdict.note("p_first", first.get());
    }
    verdict.note("position_consistent", consistent).note("picked_first", picked_first)
}

/// Which side a score is on: above, at or below one half.
fn pick(score: Score) -> std::cmp::Ordering {
    score.get().total_cmp(&0.5)
}

/// A tie.
fn half() -> Score {
    Score::from_arithmetic(0.5).unwrap_or(Score::ZERO)
}

#[cfg(test)]
mod tests;
