use super::*;
use crate::score::Scale;

fn labels(text: &str) -> LabelSet {
    read_labels(&source(text), &LabelOptions::default()).unwrap()
}

fn label_error(text: &str, scales: &[&str]) -> String {
    let options = LabelOptions {
        scales: Scales::parse(scales.iter().copied()).unwrap(),
        ..LabelOptions::default()
    };
    read_labels(&source(text), &options).unwrap_err().to_string()
}

/// The scale inferred for labels of these values.
fn inferred(values: &[&str]) -> (Option<String>, String) {
    let rows: String = values.iter().enumerate().map(|(i, v)| format!("{i},{v}\n")).collect();
    let set = labels(&format!("case,label\n{rows}"));
    let scale = &set.scales["overall"];
    assert_eq!(scale.origin, ScaleOrigin::Inferred);
    (scale.scale.map(|s| s.to_string()), scale.note.clone())
}

#[test]
fn labels_in_long_form_have_defaults_for_rater_and_criterion() {
    let set = labels("item_id,label\na,4\nb,\nc,5\n");
    let first = Label {
        case: "a".into(),
        rater: "human".into(),
        criterion: "overall".into(),
        value: LabelValue::Number(4.0),
        label_source: LabelSource::Human,
    };
    assert_eq!(set.labels[0], first);
    assert_eq!((set.labels.len(), set.empty), (2, 1));
    let set = labels(
        "{\"case\":\"a\",\"annotator\":\"x\",\"criterion\":\"tone\",\"rating\":\"good\",\"label_source\":\"ground_truth\"}\n",
    );
    assert_eq!(set.labels[0].value, LabelValue::Text("good".into()));
    assert_eq!(set.labels[0].label_source, LabelSource::GroundTruth);
    assert_eq!(set.aliases.len(), 2);
    assert_eq!(
        serde_json::to_string(&first).unwrap(),
        r#"{"case":"a","rater":"human","criterion":"overall","label":4.0,"label_source":"human"}"#
    );
}

#[test]
fn labels_in_the_rows_of_cases_are_read_from_there() {
    let text = "{\"id\":\"a\",\"output\":\"x\",\"labels\":{\"tone\":3,\"facts\":null},\"oracle_label\":true}\n\
                {\"id\":\"b\",\"output\":\"y\"}\n";
    let set = read_inline_labels(&source(text), &options()).unwrap();
    assert_eq!((set.labels.len(), set.empty), (2, 1));
    assert_eq!(set.scales["overall"].scale, Some(Scale::BINARY));
    assert_eq!(
        set.labels.iter().find(|l| l.criterion == "tone").unwrap().value,
        LabelValue::Number(3.0)
    );
    let csv = "id,output,labels\na,x,\"{\"\"tone\"\": 3}\"\n";
    assert_eq!(read_inline_labels(&source(csv), &options()).unwrap().labels[0].criterion, "tone");
    let error = error_of("output,labels\na,3\n", &options());
    assert!(error.contains("field `labels`: expected an object"), "{error}");
    let error = error_of("output,label,rating\na,3,4\n", &options());
    assert!(error.contains("`label` and `rating` both mean `label`"), "{error}");
    let error = error_of("{\"output\":\"a\",\"label\":1,\"labels\":{\"overall\":2}}", &options());
    assert!(error.contains("`label` and `labels` both mean `overall`"), "{error}");
}

#[test]
fn scales_are_inferred_by_rule_and_said() {
    for (values, scale) in [
        (vec!["0", "1", "1"], Some("binary")),
        (vec!["1", "1"], Some("binary")),
        (vec!["0.0", "1.0"], Some("binary")),
        (vec!["0.25", "1"], Some("unit")),
        (vec!["1", "5", "3"], Some("1-5")),
        (vec!["2", "4"], Some("1-5")),
        (vec!["1", "2"], Some("1-2")),
        (vec!["2", "2"], Some("1-5")),
        (vec!["1", "9"], Some("1-10")),
        (vec!["3", "77"], Some("1-100")),
        (vec!["0", "1", "2"], Some("0-2")),
        (vec!["0", "8"], Some("0-10")),
        (vec!["0", "50"], Some("0-100")),
        (vec!["1.5", "5"], Some("1..5")),
        (vec!["0.5", "4"], Some("0..5")),
        (vec!["-2", "2"], Some("-2-2")),
        (vec!["-2.5", "200"], Some("-2.5..200")),
        (vec!["400", "400"], None),
        (vec!["true", "False"], Some("binary")),
        (vec!["PASS"], Some("binary")),
        (vec!["good", "bad"], None),
        (vec!["好", "坏"], None),
    ] {
        assert_eq!(inferred(&values).0.as_deref(), scale, "{values:?}");
    }
    assert_eq!(
        inferred(&["2", "4"]).1,
        "inferred `1-5` from 2 numbers between 2 and 4, none of them 1 or 5: declare the scale if it is another"
    );
    assert_eq!(inferred(&["0", "1"]).1, "inferred `binary` from 2 numbers between 0 and 1");
    assert!(inferred(&["400"]).1.contains("declare one"));
    assert_eq!(inferred(&["good", "bad"]).1, "2 categories without a scale");
}

#[test]
fn labels_become_scores_on_their_scale_or_say_why_not() {
    let set = labels("case,criterion,label\na,o,4\nb,o,1\na,w,yes\nb,w,NO\na,c,red\n");
    let score = |i: usize| set.scales[&set.labels[i].criterion].score(&set.labels[i].value);
    assert_eq!(score(0).unwrap().get(), 0.75);
    assert_eq!(score(2).unwrap().get(), 1.0);
    assert_eq!(score(3).unwrap().get(), 0.0);
    assert!(matches!(score(4), Err(LabelScoreError::NoScale(_))));
}

#[test]
fn a_label_off_its_declared_scale_is_an_error_with_line_and_field() {
    let text = "item_id,criterion,label\na,tone,5\nb,tone,6\n";
    let error = label_error(text, &["1-5"]);
    assert!(error.contains("line 3, field `label`: `6` is outside the scale 1-5"), "{error}");
    let error = label_error("case,label\na,3.5\n", &["1-5"]);
    assert!(error.contains("not a level"), "{error}");
    let error = label_error("case,label\na,good\n", &["1-5"]);
    assert!(error.contains("`good` is not on the declared scale 1-5"), "{error}");
    let options = LabelOptions {
        scales: Scales::parse(["tone=0..10", "1-5"]).unwrap(),
        on_bad_row: OnBadRow::Skip,
        ..LabelOptions::default()
    };
    let text = "case,criterion,label\na,tone,7.5\na,facts,9\nb,facts,2\n";
    let set = read_labels(&source(text), &options).unwrap();
    assert_eq!((set.labels.len(), set.skipped.count), (2, 1));
    assert_eq!(set.scales["tone"].note, "declared `0..10`");
    let inline = ReadOptions { scales: Scales::parse(["1-5"]).unwrap(), ..super::options() };
    let error = scan(&source("output,rating\na,5\nb,0\n"), &inline).unwrap_err().to_string();
    assert!(error.contains("line 3, field `rating`: `0` is outside"), "{error}");
    let words =
        LabelOptions { scales: Scales::parse(["binary"]).unwrap(), ..LabelOptions::default() };
    assert_eq!(
        read_labels(&source("case,label\na,true\nb,0\n"), &words).unwrap_err().to_string(),
        "`data` labels criterion `overall` with a number on line 3 and with the word `true` on line 2: use one kind of value"
    );
}

#[test]
fn one_rater_may_repeat_a_label_and_may_not_change_it() {
    let set = labels("case,rater,label\na,x,1\na,y,0\na,x,1\n");
    assert_eq!((set.labels.len(), set.repeated), (2, 1));
    let error = label_error("case,rater,label\na,x,1\nb,x,1\na,x,2\n", &[]);
    assert!(error.contains("lines 2 and 4") && error.contains("rater `x`"), "{error}");
}

#[test]
fn labels_that_can_not_be_used_are_errors() {
    for (text, message) in [
        ("case,label\na,NaN\n", "field `label`: `NaN` is no number"),
        ("case,label\n,1\n", "field `case`: no value: expected a name"),
        ("case,value_of\na,1\n", "no `label`; the columns are `case`, `value_of`"),
        ("{\"case\":\"a\"}\n", "no `label`; the columns are `case`"),
        ("{\"case\":\"a\",\"label\":[1]}\n", "expected a number or a word, found a list"),
        ("case,label,label_source\na,1,modle\n", "did you mean `model`?"),
    ] {
        let error = label_error(text, &[]);
        assert!(error.contains(message), "{text}: {error}");
    }
    let map = FieldMap::parse(["label=stars"]).unwrap();
    let options = LabelOptions { map, ..LabelOptions::default() };
    let set = read_labels(&source("case,label,stars\na,text,3\n"), &options).unwrap();
    assert_eq!(set.labels[0].value, LabelValue::Number(3.0));
}
