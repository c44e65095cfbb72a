//! Recordings of every form, good and bad.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::provider::Client;

/// A replay of a recording with this name and text.
fn try_replay(name: &str, text: &[u8], spec: Value) -> Result<BoxedJudge, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), text).unwrap();
    let mut full = json!({ "file": name });
    for (key, value) in spec.as_object().unwrap() {
        full[key] = value.clone();
    }
    let spec: ReplaySpec = crate::config::from_value(full).map_err(|e| e.to_string())?;
    build_in(folder.path(), &spec)
}

fn build_in(folder: &Path, spec: &ReplaySpec) -> Result<BoxedJudge, String> {
    spec.build(&BuildContext::new(folder, Client::default())).map_err(|e| e.to_string())
}

fn csv(text: &str, spec: Value) -> BoxedJudge {
    try_replay("r.csv", text.as_bytes(), spec).unwrap()
}

fn refused(text: &str, spec: Value) -> String {
    try_replay("r.csv", text.as_bytes(), spec).unwrap_err()
}

fn ask_sample(judge: &BoxedJudge, id: &str, sample: u32) -> Verdict {
    use futures::FutureExt;
    let case = Case { id: id.into(), ..Case::default() };
    let mut context = CallContext::standalone(std::time::Duration::from_secs(1));
    context.sample = sample;
    judge.judge(&case, &context).now_or_never().unwrap()
}

fn ask(judge: &BoxedJudge, id: &str) -> Verdict {
    ask_sample(judge, id, 0)
}

fn score(verdict: &Verdict) -> f64 {
    assert_eq!(verdict.status, Status::Ok, "{verdict:?}");
    verdict.score.unwrap().get()
}

const LONG: &str = "\u{feff}item_id,judge,criterion,score\n\
    a,gpt,overall,4\na,gpt,tone,2\na,local,overall,1\n\n\
    \"b, 好\",gpt,overall,5\n\"b, 好\",gpt,tone,\nc,gpt,overall,3.5\nc,gpt,tone,9\n";

#[test]
fn a_judges_scores_are_found_by_case_and_mapped_from_their_scale() {
    let judge = csv(LONG, json!({"judge": "gpt", "criterion": "overall", "scale": "1-5"}));
    let a = ask(&judge, "a");
    assert_eq!((score(&a), a.raw.clone()), (0.75, Some(4.0.into())));
    assert!(a.cached);
    assert_eq!(score(&ask(&judge, "b, 好")), 1.0);
    assert_eq!(ask(&judge, "c").status, Status::OutOfRange, "3.5 is between levels");
    let missing = ask(&judge, "d");
    assert_eq!(missing.status, Status::Abstained);
    let said = "no recorded verdict on the case `d`; the recording has ids such as `a`";
    assert_eq!(missing.detail.as_deref(), Some(said));
    let local = csv(LONG, json!({"judge": "local", "scale": "1-5"}));
    assert_eq!(score(&ask(&local, "a")), 0.0, "its only criterion need not be named");
}

#[test]
fn several_criteria_have_a_mean_and_a_missing_one_is_no_score() {
    let spec = json!({"judge": "gpt", "criteria": ["tone", "overall"], "scale": "1-5"});
    let judge = csv(LONG, spec);
    let a = ask(&judge, "a");
    assert_eq!(score(&a), 0.5);
    let names: Vec<_> =
        a.criteria.iter().map(|c| (c.name.as_str(), c.score.unwrap().get())).collect();
    assert_eq!(names, [("tone", 0.25), ("overall", 0.75)]);
    let b = ask(&judge, "b, 好");
    assert_eq!(b.status, Status::Abstained, "recorded without a score");
    assert!(b.detail.unwrap().contains("`tone`"));
    assert_eq!(ask(&judge, "c").status, Status::OutOfRange);
}

#[test]
fn the_seats_own_name_is_the_default() {
    let spec: ReplaySpec =
        crate::config::from_value(json!({"file": "r.csv", "criterion": "overall", "scale": "1-5"}))
            .unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("r.csv"), LONG).unwrap();
    let judge = build_in(folder.path(), &spec.clone().with_default_judge("local")).unwrap();
    assert_eq!(score(&ask(&judge, "a")), 0.0);
    let named = ReplaySpec { judge: Some("gpt".into()), ..spec };
    let judge = build_in(folder.path(), &named.with_default_judge("local")).unwrap();
    assert_eq!(score(&ask(&judge, "a")), 0.75);
}

#[test]
fn a_judge_or_criterion_that_is_not_there_is_refused_with_those_that_are() {
    let message = refused(LONG, json!({"judge": "gptt"}));
    assert!(message.contains("`gpt`") && message.contains("`local`"), "{message}");
    assert!(message.contains("did you mean `gpt`?"), "{message}");
    let message = refused(LONG, json!({"judge": "gpt"}));
    assert!(message.contains("set `criterion`") && message.contains("`tone`"), "{message}");
    let message = refused(LONG, json!({"judge": "gpt", "criterion": "tonne"}));
    assert!(message.contains("`tone`"), "{message}");
    let message = refused(LONG, json!({"criterion": "overall"}));
    assert!(message.contains("`judge`") && message.contains("`local`"), "{message}");
    let message = refused("item_id,score\na,1\n", json!({"criterion": "x"}));
    assert!(message.contains("no column `criterion`"), "{message}");
}

#[test]
fn a_scale_on_which_no_score_lies_is_refused() {
    let message = refused("id,score\na,4\nb,5\n", json!({}));
    assert!(message.contains("`scale`") && message.contains("from 4 to 5"), "{message}");
    // One score on a declared one is enough: the others are measurements off the scale.
    let judge = csv("id,score\na,9\nb,1\n", json!({"scale": "1-5"}));
    assert_eq!(ask(&judge, "a").status, Status::OutOfRange);
}

const PAIRS: &str = "item_id,judge,criterion,score,order\n\
    a,j,preference,1,ab\na,j,preference,1,ba\n\
    b,j,preference,1,ab\nb,j,preference,2,ba\n\
    c,j,preference,2,ab\nc,j,preference,2,ba\n\
    d,j,preference,1,ab\n\
    e,j,preference,1,ab\ne,j,preference,,ba\n\
    f,j,preference,0,ab\nf,j,preference,0,ba\n\
    g,j,preference,7,ab\ng,j,preference,1,ba\n";

#[test]
fn two_orders_that_disagree_are_a_tie_that_counts_as_position_bias() {
    let judge = csv(PAIRS, json!({"judge": "j", "scale": "preference", "orders": "combine"}));
    for (id, expected, consistent) in
        [("a", 1.0, true), ("b", 0.5, false), ("c", 0.0, true), ("f", 0.5, true)]
    {
        let verdict = ask(&judge, id);
        assert_eq!(score(&verdict), expected, "{id}");
        assert_eq!(verdict.notes["position_consistent"], consistent, "{id}");
    }
    assert_eq!(ask(&judge, "d").status, Status::Abstained);
    assert_eq!(ask(&judge, "e").status, Status::Abstained);
    assert_eq!(ask(&judge, "g").status, Status::OutOfRange);
    let ab = csv(PAIRS, json!({"judge": "j", "scale": "preference", "orders": "ab"}));
    assert_eq!(score(&ask(&ab, "b")), 1.0);
    let ba = csv(PAIRS, json!({"judge": "j", "scale": "preference", "orders": "ba"}));
    assert_eq!(score(&ask(&ba, "b")), 0.0);
    let message = refused(PAIRS, json!({"judge": "j", "scale": "preference"}));
    assert!(message.contains("`orders`") && message.contains("combine"), "{message}");
}

#[test]
fn exported_verdicts_are_replayed_with_what_they_took() {
    let rows = [
        json!({"case": "a", "judge": "j", "sample": 0, "status": "ok", "score": 0.5, "raw": "3/5",
            "criteria": [{"name": "tone", "score": 0.25, "passed": false}], "feedback": ["too\u{1b}[31m curt"],
            "model_returned": "m-1", "tokens_in": 10, "tokens_out": 2, "cost_usd": 0.001, "latency_ms": 7}),
        json!({"case": "a", "judge": "j", "sample": 1, "status": "ok", "score": 1, "model_returned": "m-1",
            "usage": {"tokens_in": 3, "tokens_out": 4, "calls": 1}}),
        json!({"case": "b", "judge": "j", "status": "refused", "score": null, "detail": "content filter"}),
    ];
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let judge = try_replay("v.jsonl", text.as_bytes(), json!({"judge": "j"})).unwrap();
    assert_eq!((judge.samples(), judge.model()), (2, Some("m-1")));
    let first = ask_sample(&judge, "a", 0);
    assert_eq!((score(&first), first.raw.clone()), (0.5, Some("3/5".into())));
    assert_eq!(first.criteria[0].name, "tone");
    assert_eq!(first.feedback, ["too curt"]);
    assert_eq!((first.usage.tokens_in, first.usage.tokens_out), (10, 2));
    assert_eq!((first.cost_usd, first.latency_ms), (Some(0.001), 7));
    assert_eq!(first.model_returned.as_deref(), Some("m-1"));
    assert_eq!(score(&ask_sample(&judge, "a", 1)), 1.0);
    assert_eq!(ask_sample(&judge, "a", 1).usage.calls, 1);
    assert_eq!(ask_sample(&judge, "a", 2).status, Status::Abstained);
    let refused = ask(&judge, "b");
    assert_eq!(
        (refused.status, refused.detail.as_deref()),
        (Status::Refused, Some("content filter"))
    );
    assert_eq!(ask_sample(&judge, "b", 1).status, Status::Abstained);
}

#[test]
fn lists_in_csv_are_read_as_json() {
    let text = "case,score,criteria,feedback\n\
        a,0.5,\"{\"\"tone\"\":0.25}\",\"[\"\"one\"\",\"\"two\"\"]\"\nb,0.5,,\"[not a list\"\n";
    let judge = csv(text, json!({}));
    let a = ask(&judge, "a");
    assert_eq!(a.criteria[0].score.unwrap().get(), 0.25);
    assert_eq!(a.feedback, ["one", "two"]);
    assert_eq!(ask(&judge, "b").feedback, ["[not a list"]);
}

#[test]
fn a_gzip_file_is_read_whatever_its_name() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(LONG.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    for name in ["r.csv.gz", "r.csv"] {
        let judge = try_replay(name, &packed, json!({"judge": "local", "scale": "1-5"})).unwrap();
        assert_eq!(score(&ask(&judge, "a")), 0.0);
    }
    let cut = &packed[..packed.len() / 2];
    assert!(try_replay("r.csv.gz", cut, json!({"judge": "local", "scale": "1-5"})).is_err());
}

#[test]
fn a_row_that_makes_no_sense_is_refused_with_its_line() {
    for (text, line, said) in [
        ("id,score\na,1\nb,high\n", "line 3", "not a number"),
        ("id,score\na,1\n\nb,True\n", "line 4", "not a number"),
        ("id,score\na,inf\n", "line 2", "not a number"),
        ("id,score\r\n\r\na,1\r\n\r\nb,True", "line 5", "not a number"),
        ("id,score\n\"a\n\nb\",1\n\"c\nd\",True\n", "line 5", "not a number"),
        ("id,score\na,1\n,0.5\n", "line 3", "no case"),
        ("id,item_id,score\na,b,1\n", "line 2", "`item_id` is `b`"),
        ("id,score\na,1\nb,0\na,1\n", "lines 2 and 4", "same verdict"),
        ("id,score,status\na,,ok\n", "line 2", "no `score`"),
        ("id,score,status\na,1,refused\n", "line 2", "there is a `score`"),
        ("id,score,status\na,,refusd\n", "line 2", "did you mean `refused`?"),
        ("id,score,sample\na,1,-1\n", "line 2", "`sample`"),
        ("id,score,sample\na,1,70000\n", "line 2", "`sample`"),
        ("id,score,cost_usd\na,1,-2\n", "line 2", "`cost_usd`"),
        ("id,score\na,1,2\n", "line 2", "fields"),
        ("id,score,judge\na,1,j\nb,1,\n", "line 3", "no `judge`"),
        ("id,score,criteria\na,1,{\n", "line 2", "not JSON"),
        ("id,score\n", "r.csv", "no rows"),
        ("", "r.csv", "no rows"),
    ] {
        let message = refused(text, json!({}));
        assert!(message.contains(line) && message.contains(said), "{text:?}: {message}");
    }
    for (text, said) in [
        ("{\"id\":\"a\",\"score\":\"0.5\"}", "not a number"),
        ("{\"id\":\"a\",\"score\":true}", "not a number"),
        ("{\"id\":[1],\"score\":1}", "not a text"),
        ("[1]", "not a JSON object"),
        ("{\"id\":\"a\",\"score\":NaN}", "not a JSON object"),
        ("{\"id\":\"a\",\"score\":1,\"feedback\":3}", "`feedback`"),
    ] {
        let message =
            try_replay("r.jsonl", format!("\n{text}\n").as_bytes(), json!({})).unwrap_err();
        assert!(message.contains("line 2") && message.contains(said), "{text}: {message}");
    }
    let message = try_replay("r.txt", b"a", json!({})).unwrap_err();
    assert!(message.contains(".jsonl"), "{message}");
    let missing = ReplaySpec {
        file: "none.csv".into(),
        ..serde_json::from_value(json!({"file": ""})).unwrap()
    };
    assert!(build_in(Path::new("/"), &missing).unwrap_err().contains("none.csv"));
}

#[test]
fn a_recorded_nan_is_a_missing_score() {
    let judge = csv("id,score\na,NaN\nb,1\n", json!({}));
    let verdict = ask(&judge, "a");
    assert_eq!((verdict.status, verdict.score), (Status::Abstained, None));
    assert_eq!(verdict.detail.as_deref(), Some("recorded without a score"));
}

#[test]
fn a_recording_without_a_column_of_scores_is_refused_with_its_columns() {
    let message = refused("item_id,judge,rating\na,j,4\nb,j,5\n", json!({"judge": "j"}));
    for part in ["no column `score`", "`item_id`, `judge`, `rating`"] {
        assert!(message.contains(part), "no {part} in {message}");
    }
    let judge = csv("id,score\nT-1000,1\n", json!({}));
    let verdict = ask(&judge, "f1d9");
    assert!(verdict.detail.unwrap().contains("ids such as `T-1000`"));
}

#[test]
fn a_raw_value_is_kept_where_it_says_more_than_the_score() {
    let judge = csv("id,score,raw\na,1,True\nb,0.5,0.50\nc,,garbage\n", json!({}));
    assert_eq!(ask(&judge, "a").raw, Some("True".into()));
    assert_eq!(ask(&judge, "b").raw, None);
    assert_eq!(ask(&judge, "c").raw, Some("garbage".into()));
}

#[test]
fn the_fingerprint_follows_content_and_reading() {
    let print = |text: &str, spec: Value| csv(text, spec).fingerprint().clone();
    let base = print("id,score\na,1\n", json!({}));
    assert_eq!(base, print("id,score\na,1\n", json!({})));
    assert_ne!(base, print("id,score\na,0\n", json!({})));
    assert_ne!(base, print("id,score\na,1\n", json!({"scale": "0..2"})));
}

#[test]
fn an_entry_takes_forty_eight_bytes_at_most() {
    assert!(size_of::<Entry>() <= 48, "{}", size_of::<Entry>());
}

proptest::proptest! {
    #[test]
    fn every_recorded_score_comes_back(scores in proptest::collection::vec(0.0..=1.0f64, 1..60)) {
        let mut text = String::from("id,score\n");
        for (i, score) in scores.iter().enumerate() {
            text.push_str(&format!("case {i},{score}\n"));
        }
        let judge = csv(&text, json!({}));
        for (i, expected) in scores.iter().enumerate() {
            proptest::prop_assert_eq!(score(&ask(&judge, &format!("case {i}"))), *expected);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "(id|score|judge|,|\\n|\"|[0-9]|好)*") {
        let _ = try_replay("r.csv", text.as_bytes(), json!({}));
        let _ = try_replay("r.jsonl", text.as_bytes(), json!({}));
    }
}

#[test]
fn scores_of_another_scale_are_refused_though_some_lie_on_the_declared_one() {
    let rows = |scores: &[&str]| {
        let mut text = String::from("item_id,judge,score\n");
        for (i, score) in scores.iter().enumerate() {
            text.push_str(&format!("c{i},gpt,{score}\n"));
        }
        text
    };
    let said = refused(&rows(&["1", "2", "5", "4", "1"]), json!({"judge": "gpt"}));
    assert!(said.contains("3 of 5 recorded scores do not lie"), "{said}");
    assert!(said.contains("scores run from 1 to 5: `scale = \"1-5\"`?"), "{said}");
    // One slip among many is no other scale.
    let mut many = vec!["0.5"; 30];
    many.extend(["0.25", "7"]);
    let judge = csv(&rows(&many), json!({"judge": "gpt"}));
    assert_eq!(ask(&judge, "c31").status, Status::OutOfRange);
    csv(&rows(&["1", "5"]), json!({"judge": "gpt", "scale": "1-5"}));
}
