use super::*;
use crate::calibration::error::CalibrationError;
use crate::calibration::labelled::Target;
use crate::calibration::table_builder::TableBuilder;
use crate::dataset::{JudgementReader, LabelOptions, Source, read_labels};
use crate::verdict::Status;

pub(crate) fn table(
    labels: &str,
    judgements: &str,
    positive: &str,
) -> Result<Table, CalibrationError> {
    let labels = Source::spool(labels.as_bytes(), "labels.csv").unwrap();
    let judgements = Source::spool(judgements.as_bytes(), "judgements.csv").unwrap();
    let set = read_labels(&labels, &LabelOptions::default())?;
    let positive: Positive = positive.parse()?;
    let criterion = crate::calibration::labelled::resolve_criterion(&set, None)?;
    let labels = Labels::collect(&set, &criterion, &positive)?;
    let options = TableOptions { criterion, ..TableOptions::default() };
    let mut builder = TableBuilder::new(labels, positive, options);
    let mut reader = JudgementReader::open(&judgements, &LabelOptions::default())?;
    while let Some(judgement) = reader.next() {
        builder.judgement(&judgement?, reader.line())?;
    }
    builder.finish()
}

#[test]
fn what_can_t_be_joined_is_counted_and_never_guessed() {
    let labels = "case,label\na,1\nb,0\nc,1\n";
    let judgements =
        "case,judge,score,status\na,j,1,\nb,j,,timeout\nx,j,1,\ny,j,0,\nx,k,1,\na,k,0,\n";
    let table = table(labels, judgements, ">=1").unwrap();
    assert_eq!(table.cases().len(), 2, "c was not judged");
    let counts = &table.counts;
    assert_eq!((counts.judgements, counts.judgements_without_label), (6, 3));
    assert_eq!((counts.cases_without_label, counts.cases_without_judgement), (2, 1));
    assert_eq!((counts.judgements_without_score, counts.good, counts.bad), (1, 1, 1));
    assert_eq!(table.judges[0].scores, [Some(1.0), None]);
    assert_eq!(table.judges[0].statuses_bad.get(Status::Timeout), 1);
    assert_eq!((table.judges[1].missing, table.judges[1].scores[1]), (1, None));
}

#[test]
fn raters_are_averaged_for_numbers_and_counted_for_categories() {
    let labels = "case,rater,label\na,r,5\na,s,2\nb,r,4\nb,s,4\n";
    let judgements = "case,judge,score\na,j,3\nb,j,5\n";
    let graded = table(labels, judgements, ">=4").unwrap();
    assert_eq!(graded.labels.target, Target::LabelScale);
    let truth: Vec<_> = graded.cases().iter().map(|c| (c.target, c.good)).collect();
    assert_eq!(truth, [(3.5, false), (4.0, true)]);
    assert_eq!(graded.judges[0].kind, JudgeKind::Graded);

    let labels = "case,rater,label\na,r,yes\na,s,no\nb,r,yes\nb,s,yes\nb,t,no\n";
    let words = table(labels, "case,judge,score\na,j,1\nb,j,0\n", "=yes").unwrap();
    assert_eq!(
        (words.cases().len(), words.counts.tied_labels),
        (1, 1),
        "an even split is no label"
    );
    assert!((words.cases()[0].target - 2.0 / 3.0).abs() < 1e-12 && words.cases()[0].good);
}

#[test]
fn a_judge_that_names_the_label_s_categories_accepts_its_positive_ones() {
    let labels = "case,label\na,0\nb,1\nc,2\n";
    let table = table(labels, "case,judge,score\na,j,0\nb,j,2\nc,j,2\na,k,1.5\n", "=2").unwrap();
    assert_eq!(table.judges[0].kind, JudgeKind::Binary);
    assert_eq!(table.judges[0].scores, [Some(0.0), Some(1.0), Some(1.0)]);
    assert_eq!(table.judges[0].categories.as_ref().unwrap()[1], Some(2.0));
    assert_eq!(table.judges[1].kind, JudgeKind::Graded);
}

#[test]
fn both_orders_of_a_pair_are_one_vote_and_half_a_pair_is_none() {
    let labels = "case,label\na,1\nb,1\nc,2\n";
    let judgements =
        "case,judge,score,order\na,j,1,ab\na,j,1,ba\nb,j,1,ab\nb,j,2,ba\nc,j,1,ab\nc,j,,ba\n";
    let table = table(labels, judgements, "=1").unwrap();
    assert_eq!(table.judges[0].scores, [Some(1.0), Some(0.5), None]);
    assert_eq!(table.judges[0].orders, (2, 1));
}

#[test]
fn samples_make_one_vote_by_their_lower_median_and_are_kept_for_the_noise() {
    let labels = "case,label\na,1\nb,3\n";
    let judgements = "case,judge,score,sample\na,j,1,0\na,j,4,1\na,j,3,2\nb,j,2,0\nb,j,5,1\n";
    let table = table(labels, judgements, ">=3").unwrap();
    assert_eq!(table.judges[0].scores, [Some(3.0), Some(2.0)]);
    assert_eq!(table.judges[0].repeats.len(), 2);
}

#[test]
fn a_repeated_judgement_and_unrelated_files_are_refused() {
    let twice = table("case,label\na,1\n", "case,judge,score\na,j,1\na,j,0\n", ">=1").unwrap_err();
    assert!(twice.to_string().contains("lines 2 and 3"), "{twice}");
    let apart = table("case,label\na,1\n", "case,judge,score\nb,j,1\n", ">=1").unwrap_err();
    assert!(apart.to_string().contains("no case has both"), "{apart}");
    let other =
        table("case,criterion,label\na,good,1\n", "case,judge,score\na,j,1\n", ">=1").unwrap_err();
    assert!(other.to_string().contains("its criteria are `overall`"), "{other}");
    let words = table("case,label\na,great\n", "case,judge,score\na,j,1\n", ">=1").unwrap_err();
    assert!(words.to_string().contains("name the good ones"), "{words}");
}
