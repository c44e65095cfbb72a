//! Trivial baselines: what a judge must beat to be worth anything.
//!
//! Expectations are computed, not drawn. A baseline by length is undefined where the data
//! hold no outputs.

use serde::Serialize;

use super::figure::{Figure, Measured};
use super::labelled::LabelledCase;
use crate::stats::auc::auc;
use crate::stats::confusion::Confusion;
use crate::stats::interval::wilson;
use crate::stats::{Defined, Reason, Undefined};

/// What a rule without judgement reaches.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Baseline {
    /// `accept_all`, `reject_all`, `random`, `longest` or `shortest`.
    pub name: &'static str,
    /// Cases.
    pub n: u64,
    /// Good ones: what the true-positive rate is of.
    pub good: u64,
    /// Bad ones: what the false-positive rate is of.
    pub bad: u64,
    /// Accepted ones; `None` where acceptance is an expectation, or undefined.
    pub accepted: Option<u64>,
    /// Share of right decisions.
    pub accuracy: Measured<Figure>,
    /// Mean of its two rates.
    pub balanced_accuracy: Measured,
    /// P(accepted | bad).
    pub false_positive_rate: Measured,
    /// P(accepted | good).
    pub true_positive_rate: Measured,
    /// P(bad | accepted).
    pub false_acceptance_share: Measured,
    /// Area under its curve.
    pub auc: Measured,
}

/// The baselines on these cases; `lengths` are characters of the outputs.
#[must_use]
pub fn baselines(cases: &[&LabelledCase], lengths: &[Option<u64>], level: f64) -> Vec<Baseline> {
    let good: Vec<bool> = cases.iter().map(|case| case.good).collect();
    let n = good.len();
    let mut all = vec![
        of("accept_all", &good, Ok(vec![true; n]), Ok(0.5), level),
        of("reject_all", &good, Ok(vec![false; n]), Ok(0.5), level),
        random(&good, level),
    ];
    let known: Option<Vec<f64>> = lengths.iter().map(|l| l.map(|l| l as f64)).collect();
    for (name, sign) in [("longest", 1.0), ("shortest", -1.0)] {
        let lengths = known
            .as_ref()
            .filter(|lengths| !lengths.is_empty())
            .ok_or(Undefined { reason: Reason::NoData });
        let scores: Defined<Vec<f64>> =
            lengths.map(|lengths| lengths.iter().map(|length| sign * length).collect());
        let area = scores.clone().and_then(|scores| auc(&scores, &good));
        all.push(of(name, &good, scores.map(|scores| top_share(&scores, &good)), area, level));
    }
    all
}

/// Accepts as many cases as are good, those with the highest scores; ties at the border are
/// all accepted.
pub(super) fn top_share(scores: &[f64], good: &[bool]) -> Vec<bool> {
    let wanted = good.iter().filter(|good| **good).count();
    let mut sorted = scores.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    match wanted.checked_sub(1).and_then(|last| sorted.get(last)) {
        Some(border) => scores.iter().map(|score| score >= border).collect(),
        None => vec![false; scores.len()],
    }
}

fn of(
    name: &'static str,
    good: &[bool],
    accepted: Defined<Vec<bool>>,
    auc: Defined,
    level: f64,
) -> Baseline {
    let confusion = accepted.and_then(|accepted| Confusion::from_decisions(good, &accepted));
    let rate = |of: fn(&Confusion) -> Defined| Measured(confusion.and_then(|c| of(&c)));
    Baseline {
        name,
        n: good.len() as u64,
        good: good.iter().filter(|good| **good).count() as u64,
        bad: good.iter().filter(|good| !**good).count() as u64,
        accepted: confusion.ok().map(|own| own.true_positive + own.false_positive),
        accuracy: confusion
            .and_then(|c| wilson(c.true_positive + c.true_negative, c.n(), level))
            .into(),
        balanced_accuracy: rate(Confusion::balanced_accuracy),
        false_positive_rate: rate(Confusion::false_positive_rate),
        true_positive_rate: rate(Confusion::true_positive_rate),
        false_acceptance_share: rate(Confusion::false_acceptance_share),
        auc: Measured(auc),
    }
}

/// Accepting with the base rate, in expectation.
fn random(good: &[bool], level: f64) -> Baseline {
    let k = good.iter().filter(|good| **good).count() as u64;
    let share = wilson(k, good.len() as u64, level);
    let rate = share.map(|share| share.point);
    let both = if k == 0 {
        Err(Undefined { reason: Reason::NoPositives })
    } else if k == good.len() as u64 {
        Err(Undefined { reason: Reason::NoNegatives })
    } else {
        Ok(())
    };
    Baseline {
        name: "random",
        n: good.len() as u64,
        good: k,
        bad: good.len() as u64 - k,
        accepted: None,
        accuracy: Measured(share.map(|share| {
            // p^2 + (1-p)^2 falls to p = 1/2 and rises after it.
            let at = |p: f64| p * p + (1.0 - p) * (1.0 - p);
            let (a, b) = (at(share.interval.lower), at(share.interval.upper));
            let inside = share.interval.contains(0.5);
            let lower = if inside { 0.5 } else { a.min(b) };
            Figure { estimate: at(share.point), lower, upper: a.max(b), ..Figure::from(share) }
        })),
        balanced_accuracy: Measured(both.map(|()| 0.5)),
        false_positive_rate: Measured(both.and(rate)),
        true_positive_rate: Measured(both.and(rate)),
        false_acceptance_share: Measured(rate.map(|rate| 1.0 - rate)),
        auc: Measured(both.map(|()| 0.5)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(good: &[bool]) -> Vec<LabelledCase> {
        good.iter()
            .enumerate()
            .map(|(i, good)| LabelledCase {
                id: i.to_string(),
                good: *good,
                target: 0.0,
                ratings: Vec::new(),
            })
            .collect()
    }

    #[test]
    fn accepting_all_has_the_base_rate_s_accuracy_and_no_skill() {
        let cases = cases(&[true, true, true, false]);
        let all: Vec<&LabelledCase> = cases.iter().collect();
        let lengths = [Some(9), Some(8), Some(1), Some(2)];
        let found = baselines(&all, &lengths, 0.95);
        assert_eq!(found[0].accuracy.value().unwrap().estimate, 0.75);
        assert_eq!(found[0].false_positive_rate.0, Ok(1.0));
        assert_eq!(
            found[1].false_acceptance_share.0.unwrap_err().reason.code(),
            "no_predicted_positives"
        );
        assert!((found[2].accuracy.value().unwrap().estimate - 0.625).abs() < 1e-12);
        let longest = &found[3];
        assert_eq!((longest.name, longest.auc.0.unwrap()), ("longest", 2.0 / 3.0));
        assert_eq!(longest.false_positive_rate.0, Ok(1.0), "three longest are accepted");
    }

    #[test]
    fn without_outputs_a_length_baseline_is_undefined() {
        let cases = cases(&[true, false]);
        let all: Vec<&LabelledCase> = cases.iter().collect();
        let found = baselines(&all, &[None, Some(3)], 0.95);
        assert_eq!(found[3].auc.0.unwrap_err().reason, Reason::NoData);
        assert_eq!(found[4].accuracy.0.unwrap_err().reason, Reason::NoData);
    }
}
