//! Intervals and certificates against a known truth, with fixed seeds. The long tables are
//! those of `cargo run --release --example coverage`.

use crate::coverage_runs::{
    ALPHA, DELTA, JUDGES, LABELS, LoopRule, certificate, loops, rate_coverage, slack,
};

#[test]
fn the_post_stratified_interval_covers_94_percent_in_all_28_settings() {
    for judge in JUDGES {
        for n in LABELS {
            let found = rate_coverage(judge, n, 1500);
            let share = found.post_stratified.share();
            assert!(share >= 0.94, "{judge:?}, {n} labels: {share}");
            if judge == (0.70, 0.90, 0.80) && n == 100 {
                let (width, alone) =
                    (found.post_stratified.mean_width(), found.labels_only.mean_width());
                assert!(width < alone, "a good judge is worth labels: {width} {alone}");
            }
        }
    }
}

#[test]
fn ppi_is_trusted_only_where_it_covers() {
    let judge = (0.97, 0.97, 0.60);
    let found = rate_coverage(judge, 50, 1500);
    assert!(found.ppi.share() < 0.8, "its interval is known to fail here");
    assert_eq!(found.ppi_trusted.of, 0, "and is never trusted");
    let found = rate_coverage((0.50, 0.80, 0.80), 200, 1500);
    assert!(found.ppi_trusted.of > 1400);
    assert!(found.ppi_trusted.share() > 0.93, "{}", found.ppi_trusted.share());
}

#[test]
fn a_certified_threshold_breaks_its_bound_no_more_often_than_promised() {
    let repeats = 2000;
    for bad in [45, 60, 100, 200] {
        for step in [None, Some(0.5)] {
            let found = certificate(bad, step, repeats);
            let most = DELTA + slack(DELTA, repeats);
            assert!(found.violation() <= most, "{bad} bad, {step:?}: {found:?}");
            assert!(found.mean_rate() < ALPHA);
            if bad == 200 && step.is_none() {
                assert!(found.mean_accepted_good() > 0.3, "{found:?}");
            }
        }
    }
    assert_eq!(certificate(44, None, 50).certified, 0, "44 bad cases certify nothing");
}

#[test]
fn a_loop_s_certificate_holds_for_the_whole_loop() {
    let repeats = 400;
    for checks in [1, 5, 10, 20] {
        for rho in [0.0, 0.5, 0.8] {
            let found = loops(LoopRule::Trajectory, checks, rho, repeats);
            let most = DELTA + slack(DELTA, repeats);
            assert!(found.violation() <= most, "K {checks}, rho {rho}: {found:?}");
            assert!(found.certified > 390, "{found:?}");
        }
    }
    let wrong = loops(LoopRule::Check, 10, 0.0, 100);
    assert!(wrong.violation() > 0.9, "checks as cases break the bound: {wrong:?}");
}
