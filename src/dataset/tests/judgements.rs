use super::*;
use crate::verdict::Status;

fn judgements(text: &str) -> Result<Vec<Judgement>, RowError> {
    JudgementReader::open(&source(text), &LabelOptions::default()).unwrap().collect()
}

#[test]
fn a_judgement_keeps_its_own_scale_and_what_was_written() {
    let text = "item_id,judge,criterion,score,raw,order,sample,reason,extra\n\
                a,gpt,tone,4,4/5,ab,1,\"too\nlong\",x\n";
    let judgement = &judgements(text).unwrap()[0];
    assert_eq!((judgement.score, judgement.status), (Some(4.0), Status::Ok));
    assert_eq!(judgement.raw, Some("4/5".into()));
    assert_eq!((judgement.order, judgement.sample), (Some(Order::Ab), 1));
    assert_eq!(judgement.feedback.as_deref(), Some("too\nlong"));
    assert_eq!(judgement.metadata["extra"], "x");
    let scale = "1-5".parse().unwrap();
    assert_eq!(judgement.score_on(&scale).unwrap().unwrap().get(), 0.75);
    assert!(judgement.score_on(&crate::score::Scale::UNIT).is_err());
}

#[test]
fn a_judgement_without_a_score_is_a_failed_measurement_and_never_zero() {
    let rows =
        judgements("case,judge,score,status\na,j,,\nb,j,,timeout\nc,j,0,ok\nd,j,0,\n").unwrap();
    let seen: Vec<_> = rows.iter().map(|j| (j.status, j.score)).collect();
    let expected = [
        (Status::Abstained, None),
        (Status::Timeout, None),
        (Status::Ok, Some(0.0)),
        (Status::Ok, Some(0.0)),
    ];
    assert_eq!(seen, expected);
    assert_eq!(rows[0].score_on(&crate::score::Scale::UNIT).unwrap(), None);
    let rows = judgements(
        "{\"case\":\"a\",\"judge\":\"j\",\"score\":null}\n{\"case\":\"a\",\"judge\":\"j\",\"status\":\"refused\"}\n",
    );
    let rows = rows.unwrap();
    assert_eq!((rows[0].status, rows[1].status), (Status::Abstained, Status::Refused));
}

#[test]
fn judgements_that_contradict_themselves_are_errors() {
    for (text, message) in [
        ("case,judge,score,status\na,j,1,timeout\n", "status `timeout` can't have a score"),
        ("case,judge,score,status\na,j,,ok\n", "status `ok` needs a score"),
        ("case,judge,score,status\na,j,,timeuot\n", "did you mean `timeout`?"),
        ("case,judge,score\na,j,nan\n", "line 2, field `score`: `nan` is no number"),
        ("case,judge,score\na,j,good\n", "`good` is no number"),
        ("{\"case\":\"a\",\"judge\":\"j\",\"score\":true}\n", "found true or false"),
        ("{\"case\":\"a\",\"judge\":\"j\"}\n", "no `score`"),
        ("case,judge,score\na,,1\n", "field `judge`: no value"),
        ("case,judge,score,order\na,j,1,first\n", "expected one of `ab`, `ba`, `pointwise`"),
        ("case,judge,score,sample\na,j,1,1.5\n", "expected a whole number from 0"),
        ("case,judge,score,sample\na,j,1,-1\n", "expected a whole number from 0"),
    ] {
        let error = judgements(text).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn a_scan_counts_statuses_and_refuses_what_is_recorded_twice() {
    let text = "case,judge,score,order,sample\na,j,1,ab,0\na,j,,ba,0\na,j,1,ab,1\na,k,1,ab,\n";
    let scan = scan_judgements(&source(text), &LabelOptions::default()).unwrap();
    assert_eq!((scan.count, scan.judges.len()), (4, 2));
    assert_eq!(scan.judges["j"].get(Status::Abstained), 1);
    assert_eq!(scan.criteria["overall"], 4);
    let twice = format!("{text}a,j,0,ab,0\n");
    let error = scan_judgements(&source(twice), &LabelOptions::default()).unwrap_err();
    assert!(error.to_string().contains("lines 2 and 6 record judge `j` on case `a`"), "{error}");
}
