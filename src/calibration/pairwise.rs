//! Pairs of contenders on the cases that both answered: differences, tests adjusted for
//! their number, and the smallest difference that could have been seen.
//!
//! Without groups, decisions are compared by McNemar's test and Tango's interval. With
//! groups, which those would count as independent, every comparison stands on sums over
//! groups.

use rayon::prelude::*;
use serde::Serialize;

use super::contender::Contender;
use super::figure::{Figure, Measured};
use crate::stats::bootstrap::Resampling;
use crate::stats::distribution::{normal_critical, normal_quantile, normal_two_sided};
use crate::stats::grouped_mean::GroupedMean;
use crate::stats::multiplicity::holm;
use crate::stats::paired::{mcnemar, paired_difference, smallest_visible_shift};
use crate::stats::summary::mid_ranks;
use crate::stats::{Defined, Estimate, Interval, Method, Reason, Undefined};

/// Power of the smallest difference that could have been seen.
pub const POWER: f64 = 0.8;

/// What is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Share of decisions that are right.
    #[default]
    Agreement,
    /// Area under the ROC curve.
    Auc,
    /// Mean distance of score and label; less is better.
    AbsoluteError,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Agreement, Self::Auc, Self::AbsoluteError];

    /// The name in options and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agreement => "agreement",
            Self::Auc => "auc",
            Self::AbsoluteError => "absolute_error",
        }
    }
}

/// Two contenders on the cases that both answered.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// The one.
    pub first: String,
    /// The other.
    pub second: String,
    /// Cases that both answered.
    pub n: u64,
    /// Their groups.
    pub groups: u64,
    /// First minus second.
    pub difference: Measured<Figure>,
    /// Cases on which only the first is right; for decisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_only: Option<u64>,
    /// Cases on which only the second is right; for decisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_only: Option<u64>,
    /// Two-sided p-value of no difference.
    pub p: Measured,
    /// The same, adjusted by Holm for all comparisons of the measure.
    pub p_holm: Measured,
    /// The smallest true difference that this comparison finds four times in five, at the
    /// error rate shared by all comparisons of the measure.
    pub smallest_visible: Measured,
    /// How the p-value was made.
    pub test: &'static str,
}

/// All pairs by one measure.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// What is compared.
    pub measure: Measure,
    /// Comparisons that share the error rate.
    pub comparisons: u64,
    /// The pairs.
    pub differences: Vec<Difference>,
}

/// How pairs are compared.
#[derive(Clone, Copy, Debug)]
pub struct PairOptions {
    /// Error rate of all comparisons of a measure together, in (0,1).
    pub alpha: f64,
    /// Bootstrap of differences of scores.
    pub resampling: Resampling,
}

/// Differences of decisions: right (or accepted) by group, on common cases.
#[must_use]
pub fn decisions(
    pairs: &[(usize, bool, bool)],
    alpha: f64,
    level: f64,
) -> (Measured<Figure>, Measured, Measured, [u64; 2], u64, &'static str) {
    let first_only = pairs.iter().filter(|(_, a, b)| *a && !*b).count() as u64;
    let second_only = pairs.iter().filter(|(_, a, b)| *b && !*a).count() as u64;
    let n = pairs.len() as u64;
    let value = |a: bool, b: bool| f64::from(i8::from(a) - i8::from(b));
    let mean = GroupedMean::new(pairs.iter().map(|(g, a, b)| (*g, value(*a, *b))));
    let groups = mean.groups() as u64;
    let only = [first_only, second_only];
    if groups == n || first_only + second_only == 0 {
        // Groups that never differ are as many cases as there are groups.
        let figure = paired_difference(first_only, second_only, groups, level)
            .map(|own| Figure { n, ..Figure::from(own) });
        let p = if n == 0 {
            Err(Reason::NoData.into())
        } else {
            Ok(mcnemar(first_only, second_only).mid_p)
        };
        let flips = (first_only + second_only) as f64 / n.max(1) as f64;
        let visible = if flips == 0.0 {
            Err(Undefined { reason: Reason::NoDiscordantPairs })
        } else {
            smallest_visible_shift(n, flips, alpha, POWER)
        };
        return (Measured(figure), Measured(p), Measured(visible), only, groups, "mcnemar_mid_p");
    }
    let resampling = Resampling { resamples: 0, seed: 0, level };
    let figure = mean.estimate(resampling).map(|own| Figure::from(own).clipped(-1.0, 1.0));
    // A split without net effect in each group has no variance and no difference.
    let p = mean.p();
    let visible = mean.smallest_visible(alpha, POWER);
    (Measured(figure), Measured(p), Measured(visible), only, groups, "cluster_robust_t")
}

/// Places of the judges' and panels' pairs, in order.
fn pairs(n: usize) -> Vec<(usize, usize)> {
    (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))).collect()
}

/// Compares all pairs of contenders by one measure. `group` and `good` are those of the cases.
#[must_use]
pub fn compare(
    measure: Measure,
    contenders: &[&Contender],
    group: &[usize],
    good: &[bool],
    options: PairOptions,
) -> Comparison {
    let usable: Vec<&Contender> = contenders
        .iter()
        .copied()
        .filter(|own| match measure {
            Measure::Agreement => own.right.iter().any(Option::is_some),
            Measure::Auc => own.metrics.auc.value().is_some(),
            Measure::AbsoluteError => own.error.is_some(),
        })
        .collect();
    let placed: Vec<Option<Placed>> = if measure == Measure::Auc {
        usable.par_iter().map(|own| Placed::new(&own.rank, good, |_| true)).collect()
    } else {
        Vec::new()
    };
    let all = pairs(usable.len());
    let alpha = options.alpha / all.len().max(1) as f64;
    let mut differences: Vec<Difference> = all
        .par_iter()
        .map(|&(a, b)| {
            let (first, second) = (usable[a], usable[b]);
            match measure {
                Measure::Agreement => by_decision(first, second, group, alpha, options),
                Measure::Auc => {
                    let areas = (&placed[a], &placed[b]);
                    by_area(first, second, areas, group, good, alpha, options)
                }
                Measure::AbsoluteError => by_error(first, second, group, alpha, options),
            }
        })
        .collect();
    adjust(&mut differences);
    Comparison { measure, comparisons: differences.len() as u64, differences }
}

/// Each contender against one other, as a family of its own.
#[must_use]
pub fn against(
    contenders: &[&Contender],
    other: &Contender,
    group: &[usize],
    options: PairOptions,
) -> Vec<Difference> {
    let usable = contenders.iter().filter(|own| own.right.iter().any(Option::is_some));
    let usable: Vec<&&Contender> = usable.collect();
    let alpha = options.alpha / usable.len().max(1) as f64;
    let mut differences: Vec<Difference> =
        usable.par_iter().map(|own| by_decision(own, other, group, alpha, options)).collect();
    adjust(&mut differences);
    differences
}

fn adjust(differences: &mut [Difference]) {
    let tested: Vec<usize> =
        (0..differences.len()).filter(|&i| differences[i].p.value().is_some()).collect();
    let p: Vec<f64> = tested.iter().filter_map(|&i| differences[i].p.value().copied()).collect();
    if let Ok(adjusted) = holm(&p) {
        for (&i, adjusted) in tested.iter().zip(adjusted) {
            differences[i].p_holm = Measured(Ok(adjusted));
        }
    }
}

fn by_decision(
    first: &Contender,
    second: &Contender,
    group: &[usize],
    alpha: f64,
    options: PairOptions,
) -> Difference {
    let common: Vec<(usize, bool, bool)> = (0..group.len())
        .filter_map(|i| Some((group[i], first.right[i]?, second.right[i]?)))
        .collect();
    let (difference, p, visible, [first_only, second_only], groups, test) =
        decisions(&common, alpha, options.resampling.level);
    Difference {
        first: first.name.clone(),
        second: second.name.clone(),
        n: common.len() as u64,
        groups,
        difference,
        first_only: Some(first_only),
        second_only: Some(second_only),
        p_holm: p.clone(),
        p,
        smallest_visible: visible,
        test,
    }
}

fn by_error(
    first: &Contender,
    second: &Contender,
    group: &[usize],
    alpha: f64,
    options: PairOptions,
) -> Difference {
    let (Some(a), Some(b)) = (&first.error, &second.error) else {
        return undefined(first, second, Reason::NoData);
    };
    let values = (0..group.len()).filter_map(|i| Some((group[i], a[i]? - b[i]?)));
    let mean = GroupedMean::new(values);
    Difference {
        n: mean.n() as u64,
        groups: mean.groups() as u64,
        difference: mean.estimate(options.resampling).into(),
        p: mean.p().into(),
        p_holm: mean.p().into(),
        smallest_visible: mean.smallest_visible(alpha, POWER).into(),
        test: "cluster_robust_t",
        ..undefined(first, second, Reason::NoData)
    }
}

fn undefined(first: &Contender, second: &Contender, reason: Reason) -> Difference {
    Difference {
        first: first.name.clone(),
        second: second.name.clone(),
        n: 0,
        groups: 0,
        difference: Measured::undefined(reason),
        first_only: None,
        second_only: None,
        p: Measured::undefined(reason),
        p_holm: Measured::undefined(reason),
        smallest_visible: Measured::undefined(reason),
        test: "cluster_robust_t",
    }
}

/// An area with what each case adds to its deviation (DeLong et al. 1988, by case).
struct Placed {
    area: f64,
    part: Vec<Option<f64>>,
    complete: bool,
}

impl Placed {
    /// Of the scored cases that are `used`; `None` without both classes twice.
    fn new(rank: &[Option<f64>], good: &[bool], used: impl Fn(usize) -> bool) -> Option<Self> {
        let of = |class: bool| -> Vec<usize> {
            (0..rank.len()).filter(|&i| rank[i].is_some() && good[i] == class && used(i)).collect()
        };
        let (positive, negative) = (of(true), of(false));
        if positive.len() < 2 || negative.len() < 2 {
            return None;
        }
        let values = |rows: &[usize]| rows.iter().filter_map(|&i| rank[i]).collect::<Vec<f64>>();
        let (x, y) = (values(&positive), values(&negative));
        let (m, n) = (x.len() as f64, y.len() as f64);
        let pooled = mid_ranks(&x.iter().chain(&y).copied().collect::<Vec<f64>>());
        let (own, other) = (mid_ranks(&x), mid_ranks(&y));
        let v10: Vec<f64> = own.iter().zip(&pooled).map(|(r, p)| (p - r) / n).collect();
        let v01: Vec<f64> =
            other.iter().zip(&pooled[x.len()..]).map(|(r, p)| 1.0 - (p - r) / m).collect();
        let area = v10.iter().sum::<f64>() / m;
        let mut part = vec![None; rank.len()];
        // The factor makes the sum of squares DeLong's variance.
        for (&i, v) in positive.iter().zip(&v10) {
            part[i] = Some((v - area) / (m * (m - 1.0)).sqrt());
        }
        for (&i, v) in negative.iter().zip(&v01) {
            part[i] = Some((v - area) / (n * (n - 1.0)).sqrt());
        }
        let complete = rank.iter().all(Option::is_some);
        Some(Self { area, part, complete })
    }
}

fn by_area(
    first: &Contender,
    second: &Contender,
    placed: (&Option<Placed>, &Option<Placed>),
    group: &[usize],
    good: &[bool],
    alpha: f64,
    options: PairOptions,
) -> Difference {
    let fresh;
    let (a, b) = match placed {
        (Some(a), Some(b)) if a.complete && b.complete => (a, b),
        _ => {
            let both = |i: usize| first.rank[i].is_some() && second.rank[i].is_some();
            let of = |own: &Contender| Placed::new(&own.rank, good, both);
            match (of(first), of(second)) {
                (Some(a), Some(b)) => {
                    fresh = (a, b);
                    (&fresh.0, &fresh.1)
                }
                _ => return undefined(first, second, Reason::TooFewValues),
            }
        }
    };
    let parts: Vec<(usize, f64)> =
        (0..group.len()).filter_map(|i| Some((group[i], a.part[i]? - b.part[i]?))).collect();
    let point = a.area - b.area;
    let (error, groups) = deviation(&parts);
    let level = options.resampling.level;
    let n = parts.len();
    let figure = |error: f64| {
        let interval =
            Interval::around(point, normal_critical(level) * error, level).clipped(-1.0, 1.0);
        Figure::from(Estimate { point, interval, n, method: Method::DeLong })
    };
    let z = normal_quantile(1.0 - alpha / 2.0) + normal_quantile(POWER);
    // Equal rankings differ by nothing, and are no evidence either.
    let p = if point == 0.0 { Ok(1.0) } else { error.map(|e| normal_two_sided(point / e)) };
    Difference {
        n: n as u64,
        groups,
        difference: Measured(error.map(figure)),
        p: Measured(p),
        p_holm: Measured(p),
        smallest_visible: Measured(error.map(|e| z * e)),
        test: "delong",
        ..undefined(first, second, Reason::NoData)
    }
}

/// The deviation of a sum of parts, over groups (Obuchowski 1997); and how many groups.
fn deviation(parts: &[(usize, f64)]) -> (Defined, u64) {
    let mut sums: std::collections::HashMap<usize, f64> = std::collections::HashMap::new();
    for (group, part) in parts {
        *sums.entry(*group).or_default() += part;
    }
    let groups = sums.len();
    let mut sums: Vec<f64> = sums.into_values().collect();
    // The order of a hash map must not show in the last digit.
    sums.sort_unstable_by(f64::total_cmp);
    let mut square: f64 = sums.iter().map(|sum| sum * sum).sum();
    if groups < parts.len() {
        if groups < 2 {
            return (Err(Reason::TooFewValues.into()), groups as u64);
        }
        square *= groups as f64 / (groups as f64 - 1.0);
    }
    let error = if square > 0.0 { Ok(square.sqrt()) } else { Err(Reason::ZeroVariance.into()) };
    (error, groups as u64)
}

/// Letters: contenders that share one can't be told apart, and two that are told apart share
/// none (insert and absorb, Piepho 2004). `different` says which pairs of the places
/// `0..n` differ. `None` where it takes more than 256 letters.
#[must_use]
pub fn letters(n: usize, different: impl Fn(usize, usize) -> bool) -> Option<Vec<Vec<usize>>> {
    let mut columns: Vec<Vec<bool>> = vec![vec![true; n]];
    for (a, b) in pairs(n).into_iter().filter(|&(a, b)| different(a, b)) {
        let mut next: Vec<Vec<bool>> = Vec::with_capacity(columns.len() + 1);
        for column in columns {
            if column[a] && column[b] {
                for gone in [b, a] {
                    let mut part = column.clone();
                    part[gone] = false;
                    next.push(part);
                }
            } else {
                next.push(column);
            }
        }
        columns = absorb(next);
        if columns.len() > 256 {
            return None;
        }
    }
    columns.sort_by_key(|column| {
        let first = column.iter().position(|held| *held).unwrap_or(n);
        (first, column.iter().rposition(|held| *held))
    });
    Some(
        (0..n).map(|i| (0..columns.len()).filter(|&letter| columns[letter][i]).collect()).collect(),
    )
}

/// Without the columns that lie inside another one.
fn absorb(columns: Vec<Vec<bool>>) -> Vec<Vec<bool>> {
    let inside = |a: &[bool], b: &[bool]| a.iter().zip(b).all(|(a, b)| !a || *b);
    let mut kept: Vec<Vec<bool>> = Vec::with_capacity(columns.len());
    for column in columns {
        if kept.iter().any(|own| inside(&column, own)) {
            continue;
        }
        kept.retain(|own| !inside(own, &column));
        kept.push(column);
    }
    kept
}

/// The name of a letter: `a` to `z`, then `aa`, `ab`, and so on.
#[must_use]
pub fn letter(mut place: usize) -> String {
    let mut text = Vec::new();
    loop {
        text.push(char::from(b'a' + (place % 26) as u8));
        if place < 26 {
            break;
        }
        place = place / 26 - 1;
    }
    text.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn letters_say_exactly_which_pairs_differ(
            n in 1usize..9, bits in prop::collection::vec(any::<bool>(), 36)
        ) {
            let place = |a: usize, b: usize| a.min(b) * 8 - a.min(b) * (a.min(b) + 1) / 2 + a.max(b) - 1;
            let different = |a: usize, b: usize| bits[place(a, b) % 36];
            let own = letters(n, different).unwrap();
            for (a, b) in pairs(n) {
                let shared = own[a].iter().any(|letter| own[b].contains(letter));
                prop_assert_eq!(shared, !different(a, b));
            }
        }
    }

    #[test]
    fn letters_go_on_after_z() {
        assert_eq!([0, 25, 26, 27, 701, 702].map(letter), ["a", "z", "aa", "ab", "zz", "aaa"]);
    }

    #[test]
    fn copies_of_cases_in_their_group_are_no_evidence() {
        let once: Vec<(usize, bool, bool)> = (0..40).map(|i| (i, i % 4 != 0, i % 3 != 0)).collect();
        let copied: Vec<(usize, bool, bool)> =
            once.iter().flat_map(|own| std::iter::repeat_n(*own, 5)).collect();
        let (_, alone, ..) = decisions(&once, 0.05, 0.95);
        let (_, grouped, ..) = decisions(&copied, 0.05, 0.95);
        let apart: Vec<(usize, bool, bool)> =
            copied.iter().enumerate().map(|(i, own)| (i, own.1, own.2)).collect();
        let (_, pooled, ..) = decisions(&apart, 0.05, 0.95);
        let p = |own: &Measured| *own.value().unwrap();
        assert!((p(&alone) - p(&grouped)).abs() < 0.05);
        assert!(p(&pooled) < p(&grouped) / 2.0, "five copies look like evidence");
    }
}
