use rand::RngExt as _;

use super::*;
use crate::stats::draw::stream;

const OPTIONS: CertificateOptions = CertificateOptions {
    mode: Mode::FalsePositiveRate,
    alpha: 0.05,
    delta: 0.10,
    seed: 3,
    level: 0.95,
    resamples: 100,
    loops: false,
};

fn cases(
    names: &[String],
    key: impl Fn(usize) -> f64,
    good: impl Fn(usize) -> bool,
) -> Vec<CertifyCase<'_>> {
    names
        .iter()
        .enumerate()
        .map(|(i, id)| CertifyCase {
            id,
            group: i,
            good: good(i),
            key: Some((key(i), 0.0)),
            worst: (key(i), 0.0),
            missing: false,
        })
        .collect()
}

fn names(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("c{i}")).collect()
}

#[test]
fn forty_four_bad_cases_need_one_more_and_forty_five_certify() {
    let names = names(100);
    let of = |bad: usize| {
        let cases = cases(&names, |i| i as f64, |i| i >= bad);
        Certificate::certify(&cases, OPTIONS).unwrap()
    };
    let few = of(44);
    assert_eq!(few.status, CertificateStatus::NotCertifiable);
    assert_eq!((few.labels_needed, few.threshold), (Some(1), None));
    assert!(few.reason.unwrap().contains("collect 1 more"));
    let enough = of(45);
    assert_eq!((enough.threshold, enough.k, enough.false_accepts), (Some(45.0), Some(0), Some(0)));
    assert_eq!(enough.true_positive_rate.value().unwrap().estimate, 1.0);
    assert!(enough.upper_bound.unwrap() <= 0.05);
}

#[test]
fn no_bad_case_at_all_needs_forty_five() {
    let names = names(30);
    let certificate =
        Certificate::certify(&cases(&names, |i| i as f64, |_| true), OPTIONS).unwrap();
    assert_eq!((certificate.n_bad, certificate.labels_needed), (0, Some(45)));
}

#[test]
fn all_ties_are_not_certifiable_and_no_number_of_labels_helps() {
    let names = names(200);
    let certificate =
        Certificate::certify(&cases(&names, |_| 1.0, |i| i % 2 == 0), OPTIONS).unwrap();
    assert_eq!(certificate.status, CertificateStatus::NotCertifiable);
    assert_eq!((certificate.ties, certificate.labels_needed), (Some(100), None));
    assert!(certificate.reason.unwrap().contains("finer scores"));
}

#[test]
fn too_few_that_mostly_tie_at_the_top_are_not_told_to_collect_more() {
    let names = names(60);
    // Thirty bad cases, too few at 5%; two thirds of them have the highest score.
    let of = |tied: usize| {
        let score = move |i: usize| if i < tied || i >= 30 { 1.0 } else { i as f64 / 100.0 };
        Certificate::certify(&cases(&names, score, |i| i >= 30), OPTIONS).unwrap()
    };
    let hopeless = of(20);
    assert_eq!((hopeless.ties, hopeless.labels_needed), (Some(20), None));
    assert!(hopeless.reason.unwrap().contains("no number of labels helps"));
    assert_eq!(of(1).labels_needed, Some(15), "one may be chance");
}

#[test]
fn a_few_ties_say_how_many_labels_would_do() {
    let names = names(160);
    // Two of 80 bad cases share the highest key: one may be accepted, so two are too many.
    let key = |i: usize| if (2..80).contains(&i) { 1.0 } else { 9.0 };
    let certificate = Certificate::certify(&cases(&names, key, |i| i >= 80), OPTIONS).unwrap();
    assert_eq!((certificate.k, certificate.ties), (Some(1), Some(2)));
    let more = certificate.labels_needed.unwrap();
    assert!(more > 0, "{certificate:?}");
    let size = 80 + more;
    let expected = (0.025 * size as f64).ceil() as u64;
    assert!(allowed_false_accepts(size, 0.05, 0.10).unwrap().unwrap() >= expected);
}

#[test]
fn a_group_counts_once_however_many_bad_cases_it_has() {
    let names = names(200);
    let mut cases = cases(&names, |i| i as f64, |i| i >= 100);
    for (i, case) in cases.iter_mut().enumerate() {
        case.group = i / 10;
    }
    let certificate = Certificate::certify(&cases, OPTIONS).unwrap();
    assert_eq!((certificate.n_bad, certificate.n_bad_cases), (10, 100));
    assert_eq!(certificate.sampling, "one_bad_case_a_group");
    assert_eq!(certificate.labels_needed, Some(35));
}

#[test]
fn a_missing_vote_on_a_bad_case_counts_as_the_highest() {
    let names = names(100);
    let mut cases = cases(&names, |i| i as f64, |i| i >= 50);
    for case in &mut cases[..50] {
        case.key = None;
        case.worst = (1000.0, 0.0);
        case.missing = true;
    }
    let certificate = Certificate::certify(&cases, OPTIONS).unwrap();
    assert_eq!(certificate.status, CertificateStatus::NotCertifiable, "{certificate:?}");
    assert_eq!(certificate.missing_votes, 50);
}

#[test]
fn the_share_of_bad_among_the_accepted_is_certified_by_a_fixed_sequence() {
    let names = names(400);
    let options = CertificateOptions { mode: Mode::FalseAcceptanceShare, ..OPTIONS };
    // The 200 good cases are above all bad ones but for one in the middle.
    let key = |i: usize| if i == 0 { 250.5 } else { i as f64 };
    let certificate = Certificate::certify(&cases(&names, key, |i| i >= 200), options).unwrap();
    assert_eq!(certificate.status, CertificateStatus::Certified);
    let accepted = certificate.k.unwrap();
    let bad = certificate.false_accepts.unwrap();
    assert!(accepted >= 200 && exact_p(bad, accepted, 0.05).unwrap() <= 0.10);
    let hopeless = cases(&names, |i| (i % 20) as f64, |i| i >= 200);
    let none = Certificate::certify(&hopeless, options).unwrap();
    assert_eq!(none.status, CertificateStatus::NotCertifiable);
}

#[test]
fn the_expected_mode_agrees_with_its_formula_and_needs_nineteen() {
    let names = names(60);
    let options = CertificateOptions { mode: Mode::Expected, ..OPTIONS };
    let of = |bad: usize| {
        Certificate::certify(&cases(&names, |i| i as f64, |i| i >= bad), options).unwrap()
    };
    assert_eq!(of(18).labels_needed, Some(1));
    for bad in [19, 20, 39, 40, 59] {
        let keys: Vec<Key> = (0..60).map(|i| (f64::from(i), 0.0)).collect();
        let expected =
            crate::stats::certificate::expected_threshold(&keys[..bad], &keys, 0.05).unwrap();
        assert_eq!(of(bad).certified_key(), expected, "{bad}");
    }
}

#[test]
fn bad_levels_are_refused() {
    let names = names(10);
    let cases = cases(&names, |i| i as f64, |i| i > 5);
    for mode in [Mode::FalsePositiveRate, Mode::FalseAcceptanceShare, Mode::Expected] {
        for alpha in [0.0, 1.0, f64::NAN] {
            let options = CertificateOptions { mode, alpha, ..OPTIONS };
            assert!(Certificate::certify(&cases, options).is_err(), "{mode:?} {alpha}");
        }
    }
}

/// Grouped bad cases with strongly shared scores: the violation of a bound of 5 % at
/// confidence 90 % stays at most 10 % plus three standard errors, where treating all rows as
/// independent does not.
#[test]
fn the_violation_stays_within_delta_for_grouped_cases() {
    const DRAWS: u64 = 400;
    let names = names(240 * 4);
    let (mut grouped, mut pooled) = (0, 0);
    for draw in 0..DRAWS {
        let mut rng = stream(17, draw);
        let shared: Vec<f64> = (0..240).map(|_| rng.random::<f64>()).collect();
        let mut keys: Vec<f64> =
            (0..960).map(|i| 0.97 * shared[i / 4] + 0.03 * rng.random::<f64>()).collect();
        keys.iter_mut().for_each(|key| *key = key.min(1.0));
        let mut cases = cases(&names, |i| keys[i], |_| false);
        for (i, case) in cases.iter_mut().enumerate() {
            case.group = i / 4;
        }
        // The true rate of accepting from t: the tail of the mixture, by its own formula.
        let rate = |t: f64| {
            (0..1000)
                .map(|u| {
                    let u = (f64::from(u) + 0.5) / 1000.0;
                    ((0.97 + 0.03 * u - t) / 0.97).clamp(0.0, 1.0)
                })
                .sum::<f64>()
                / 1000.0
        };
        let options = CertificateOptions { seed: draw, ..OPTIONS };
        let own = Certificate::certify(&cases, options).unwrap();
        grouped += u64::from(rate(own.threshold.unwrap()) > 0.05);
        for (i, case) in cases.iter_mut().enumerate() {
            case.group = i;
        }
        let naive = Certificate::certify(&cases, options).unwrap();
        pooled += u64::from(rate(naive.threshold.unwrap()) > 0.05);
    }
    let limit = 0.10 + 3.0 * (0.1 * 0.9 / DRAWS as f64).sqrt();
    let share = |n: u64| n as f64 / DRAWS as f64;
    assert!(share(grouped) <= limit, "{}", share(grouped));
    assert!(share(pooled) > limit, "{}", share(pooled));
}

#[test]
fn groups_are_called_groups_and_loops_loops_with_the_right_plural() {
    let said = |n, sampling, loops| bad_units(n, sampling, loops);
    assert_eq!(said(1, "every_bad_case", false), "1 bad case");
    assert_eq!(said(0, "every_bad_case", false), "0 bad cases");
    assert_eq!(said(13, "one_bad_case_a_group", false), "13 groups with a bad case");
    assert_eq!(said(1, "one_bad_case_a_group", true), "1 group with a bad loop");
    assert_eq!(said(2, "every_bad_case", true), "2 bad loops");
}
