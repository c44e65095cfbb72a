use std::fmt::Write as _;

use serde_json::json;

use super::*;
use crate::calibration::grouping::{Grouping, Groups, Items};
use crate::calibration::{Options, calibrate};

/// 200 cases, three judges of known quality.
fn calibration() -> Calibration {
    let mut labels = String::from("case,label\n");
    let mut judgements = String::from("case,judge,score\n");
    for i in 0..200 {
        let good = i % 2;
        writeln!(labels, "c{i},{good}").unwrap();
        for j in 0..3 {
            let wrong = (i * 7 + j * 13) % 31 < 2;
            let score = if wrong { 1 - good } else { good };
            writeln!(judgements, "c{i},j{j},{score}").unwrap();
        }
    }
    let table = crate::calibration::table::tests::table(&labels, &judgements, ">=1").unwrap();
    let items = Items::absent(200);
    let groups = Groups::assign(table.cases(), &items, &Grouping::default()).unwrap();
    calibrate(&table, &groups, &items, "case", &Options::default()).unwrap()
}

/// Fitted once, since many tests change a copy.
pub(in crate::calibration) fn profile() -> Profile {
    static FITTED: std::sync::OnceLock<Profile> = std::sync::OnceLock::new();
    FITTED.get_or_init(|| Profile::new("test", &calibration())).clone()
}

#[test]
fn a_profile_is_read_back_as_it_was_written() {
    let profile = profile();
    let read = Profile::from_text(&profile.to_text().unwrap(), "test.json").unwrap();
    assert_eq!(read, profile);
    assert_eq!(read.groups.fit.len() + read.groups.certify.len(), 200);
    assert_eq!(read.groups.fit.len(), 50);
}

#[test]
fn an_edited_profile_is_refused() {
    let text = profile().to_text().unwrap();
    let edited = text.replace("\"alpha\": 0.05", "\"alpha\": 0.01");
    assert_ne!(edited, text);
    let error = Profile::from_text(&edited, "test.json").unwrap_err();
    assert!(error.to_string().contains("was edited"), "{error}");
}

#[test]
fn other_versions_and_things_that_are_no_profile_are_refused() {
    let text = profile().to_text().unwrap();
    let newer = text.replace("\"version\": 1,\n  \"", "\"version\": 9,\n  \"");
    let mut value: Value = serde_json::from_str(&newer).unwrap();
    value["version"] = json!(9);
    let error = Profile::from_text(&value.to_string(), "p.json").unwrap_err();
    assert!(error.to_string().contains("version 9"), "{error}");
    for text in ["", "[]", "{}", "{\"version\":1}", "{\"version\":1,\"hash\":\"x\"}"] {
        assert!(Profile::from_text(text, "p.json").is_err(), "{text}");
    }
}

#[test]
fn a_profile_whose_parts_overlap_is_refused() {
    let mut profile = profile();
    profile.groups.certify.push(profile.groups.fit[0].clone());
    let error = Profile::from_text(&profile.to_text().unwrap(), "p.json").unwrap_err();
    assert!(error.to_string().contains("in its fit and in its certify part"), "{error}");
}

#[test]
fn the_hash_of_a_profile_is_the_one_that_its_file_carries() {
    let profile = profile();
    let value: Value = serde_json::from_str(&profile.to_text().unwrap()).unwrap();
    assert_eq!(value["hash"], json!(profile.hash().unwrap()));
    let read = Profile::from_text(&value.to_string(), "p.json").unwrap();
    assert_eq!(read.hash().unwrap(), profile.hash().unwrap());
}

#[test]
fn the_profile_rules_as_the_certificate_says_and_fewer_judges_by_their_own_threshold() {
    let profile = profile();
    assert!(profile.certificate.certified_key().is_some(), "{:?}", profile.certificate);
    let all = profile.rule(|_| Some(1.0));
    assert_eq!((all.decision, all.certified, all.degraded), (Decision::Accept, true, false));
    assert_eq!(profile.rule(|_| Some(0.0)).decision, Decision::Reject);
    let alone = profile.rule(|judge| (judge == "j0").then_some(1.0));
    assert_eq!((alone.decision, alone.degraded), (Decision::Undecided, true));
    let two = profile.rule(|judge| (judge != "j0").then_some(0.0));
    let own = profile.subsets.find(&["j1", "j2"]).unwrap().0.key();
    assert_eq!(two.certified, own.is_some());
    assert_ne!(two.decision, Decision::Accept);
}

/// Labels and two samples of two judges on 40 cases; `gap` is what a judge's second sample adds.
fn twice(gap: [f64; 2]) -> Calibration {
    let mut labels = String::from("case,label\n");
    let mut judgements = String::from("case,judge,score,sample\n");
    for i in 0..40 {
        let label = f64::from(i % 5) / 10.0;
        writeln!(labels, "c{i},{label}").unwrap();
        for (j, gap) in gap.iter().enumerate() {
            for sample in 0..2_u32 {
                let score = label + f64::from(sample) * gap;
                writeln!(judgements, "c{i},j{j},{score},{sample}").unwrap();
            }
        }
    }
    let table = crate::calibration::table::tests::table(&labels, &judgements, ">=0.3").unwrap();
    let items = Items::absent(40);
    let groups = Groups::assign(table.cases(), &items, &Grouping::default()).unwrap();
    let split = crate::calibration::split::SplitPlan::None;
    let options = Options { split, quorum: Some(1), ..Options::default() };
    calibrate(&table, &groups, &items, "case", &options).unwrap()
}

#[test]
fn the_panel_s_own_noise_is_that_of_its_score_and_not_of_its_judges() {
    // The lower median of two judges is the lower one: the judge that adds nothing.
    let exact = twice([0.0, 0.2]).retest.unwrap();
    assert_eq!((exact.n, exact.sd), (40, 0.0));
    let noise = twice([0.2, 0.2]);
    let scale = noise.scale.unwrap();
    let found = noise.retest.clone().unwrap();
    // Every pair lies as far apart: sqrt(d^2 / 2), with d on the labels' scale.
    let votes = &noise.panel.model.seats[0].vote;
    let gap = (votes.apply(0.3) - votes.apply(0.1)) / (scale[1] - scale[0]);
    assert!((found.sd - (gap * gap / 2.0).sqrt()).abs() < 0.05 * found.sd.max(0.01), "{found:?}");
    assert!(found.lower < found.sd && found.sd < found.upper && found.once.is_empty());
    let profile = Profile::new("noisy", &noise);
    let read = Profile::from_text(&profile.to_text().unwrap(), "noisy.json").unwrap();
    assert_eq!(read.noise, noise.retest);
}

#[test]
fn without_repeated_measurements_nothing_is_said_of_noise_and_old_profiles_are_read() {
    let profile = profile();
    assert_eq!(profile.noise, None);
    assert!(!profile.to_text().unwrap().contains("\"noise\""));
}
