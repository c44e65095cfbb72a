//! The answer of a script or service: one JSON object, read without guessing.
//!
//! `{"score": 0.8, "criteria": {"tone": 1}, "feedback": "..."}` or `{"abstain": "why"}`;
//! beside them `id`, `raw`, `notes`, `model` and `cost_usd`. An unknown or repeated key, a
//! score that is no number, and anything before or after the object make it unparseable.

use std::fmt;

use serde::de::{self, MapAccess, SeqAccess};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::port;

use crate::case::Case;
use crate::judge::process::plain;
use crate::judge::reported::MOST_USD;
use crate::score::{Scale, Score, ScoreError};
use crate::verdict::{CriterionScore, Status, Verdict};

/// Counts changes in how answers are read; part of the fingerprint.
pub(crate) const VERSION: u32 = 1;

/// Characters of an unreadable answer that are shown.
const SHOWN: usize = 200;

/// What form answers must have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerForm {
    /// The scale of every score in them.
    pub(crate) scale: Scale,
    /// Whether `id` must be there.
    pub(crate) echo_id: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    score: Option<Value>,
    #[serde(default)]
    raw: Option<Value>,
    #[serde(default)]
    criteria: Criteria,
    #[serde(default)]
    feedback: Feedback,
    #[serde(default)]
    abstain: Option<String>,
    #[serde(default)]
    notes: Map<String, Value>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    cost_usd: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Criterion {
    name: String,
    #[serde(default)]
    score: Option<Value>,
    #[serde(default)]
    raw: Option<Value>,
    #[serde(default)]
    passed: Option<bool>,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    feedback: Option<String>,
}

/// A map from name to score, or a list of criteria; in the order written.
#[derive(Debug, Default)]
struct Criteria(Vec<Criterion>);

impl<'de> Deserialize<'de> for Criteria {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Criteria;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`criteria` as an object of name and score, or a list of objects with `name` and `score`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Criteria, A::Error> {
                let mut criteria = Vec::new();
                while let Some((name, score)) = map.next_entry::<String, Option<Value>>()? {
                    criteria.push(Criterion {
                        name,
                        score,
                        raw: None,
                        passed: None,
                        required: false,
                        feedback: None,
                    });
                }
                Ok(Criteria(criteria))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Criteria, A::Error> {
                let mut criteria = Vec::new();
                while let Some(criterion) = list.next_element()? {
                    criteria.push(criterion);
                }
                Ok(Criteria(criteria))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Criteria, E> {
                Ok(Criteria::default())
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// One finding or a list of them.
#[derive(Debug, Default)]
struct Feedback(Vec<String>);

impl<'de> Deserialize<'de> for Feedback {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Feedback;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`feedback` as a text or a list of texts")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Feedback, E> {
                Ok(Feedback(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Feedback, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = list.next_element()? {
                    texts.push(text);
                }
                Ok(Feedback(texts))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Feedback, E> {
                Ok(Feedback::default())
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl AnswerForm {
    /// The verdict that an answer is.
    pub(crate) fn read(&self, bytes: &[u8], case: &Case) -> Verdict {
        match self.parse(bytes, case) {
            Ok(verdict) => verdict,
            Err((status, why)) => Verdict::failed(status, why),
        }
    }

    fn parse(&self, bytes: &[u8], case: &Case) -> Result<Verdict, (Status, String)> {
        let unparseable = |why: String| (Status::Unparseable, why);
        let text = std::str::from_utf8(bytes)
            .map_err(|_| unparseable("the answer is not UTF-8".to_owned()))?;
        if text.trim().is_empty() {
            return Err(unparseable("the answer is empty: expected one JSON object".to_owned()));
        }
        let answer: Answer = serde_json::from_str(text).map_err(|error| {
            let shown = plain::head(text, SHOWN);
            let hint = port::hint(text);
            let logs = if hint.is_empty() { "; logs belong on stderr" } else { "" };
            unparseable(format!(
                "the answer is not one JSON object in the expected form ({}){hint}{logs}: `{shown}`",
                crate::config::words::plain(&error.to_string())
            ))
        })?;
        match &answer.id {
            Some(id) if *id != case.id => {
                let why =
                    format!("the answer is for `{}`, expected `{}`", plain::head(id, 80), case.id);
                return Err((Status::ProviderError, why));
            }
            None if self.echo_id => {
                return Err(unparseable(
                    "the answer has no `id`, which `echo_id` asks for".to_owned(),
                ));
            }
            _ => {}
        }
        if let Some(cost) = answer.cost_usd.filter(|cost| !(0.0..=MOST_USD).contains(cost)) {
            return Err(unparseable(format!(
                "`cost_usd` is {cost}: expected US dollars, from 0 to {MOST_USD}"
            )));
        }
        let mut verdict = match (answer.abstain, answer.score) {
            (Some(_), Some(_)) => {
                return Err(unparseable("the answer has both `score` and `abstain`".to_owned()));
            }
            (Some(why), None) => Verdict::abstained(plain::head(&why, 1000)),
            (None, None) => {
                return Err(unparseable("the answer has no `score` and no `abstain`".to_owned()));
            }
            (None, Some(written)) => {
                let mut verdict = Verdict::ok(self.score("score", &written)?);
                let off_unit = self.scale != Scale::UNIT;
                verdict.raw = answer.raw.or_else(|| off_unit.then_some(written));
                verdict
            }
        };
        for criterion in answer.criteria.0 {
            if verdict.criteria.iter().any(|other| other.name == criterion.name) {
                let name = plain::head(&criterion.name, 80);
                return Err(unparseable(format!("the criterion `{name}` is there twice")));
            }
            verdict.criteria.push(self.criterion(criterion)?);
        }
        verdict.feedback = answer.feedback.0.iter().map(|text| plain::strip(text)).collect();
        verdict.feedback.retain(|text| !text.trim().is_empty());
        verdict.notes.extend(answer.notes);
        verdict.model_returned = answer.model;
        verdict.cost_usd = answer.cost_usd;
        Ok(verdict)
    }

    fn criterion(&self, criterion: Criterion) -> Result<CriterionScore, (Status, String)> {
        let field = format!("criteria.{}", plain::head(&criterion.name, 80));
        let score = criterion.score.as_ref().map(|s| self.score(&field, s)).transpose()?;
        if score.is_none() && criterion.passed.is_some() {
            let why = format!("`{field}` has `passed` and no `score`");
            return Err((Status::Unparseable, why));
        }
        let off_unit = self.scale != Scale::UNIT;
        Ok(CriterionScore {
            name: plain::strip(&criterion.name),
            raw: criterion.raw.or_else(|| criterion.score.filter(|_| off_unit)),
            score,
            passed: criterion.passed,
            required: criterion.required,
            feedback: criterion.feedback.map(|text| plain::strip(&text)),
        })
    }

    fn score(&self, field: &str, written: &Value) -> Result<Score, (Status, String)> {
        let Value::Number(number) = written else {
            let shown = plain::head(&written.to_string(), 80);
            let hint = port::score_hint(written);
            let why = format!("`{field}` is not a number: found {shown}{hint}");
            return Err((Status::Unparseable, why));
        };
        let value = number.as_f64().unwrap_or(f64::NAN);
        self.scale.score(value).map_err(|error| {
            let status = match error {
                ScoreError::NotFinite(_) => Status::Unparseable,
                _ => Status::OutOfRange,
            };
            (status, format!("`{field}`: {error}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Verdict {
        let case = Case { id: "c1".into(), ..Case::default() };
        AnswerForm { scale: Scale::UNIT, echo_id: false }.read(text.as_bytes(), &case)
    }

    #[test]
    fn a_full_answer_is_read_whole() {
        let verdict = read(
            r#" {"id":"c1","score":0.5,"raw":"ok","criteria":[{"name":"语气","score":1,"passed":true,"required":true}],
                "feedback":["too short","\u001b[31mred"],"notes":{"n":1},"model":"m","cost_usd":0.01} "#,
        );
        assert_eq!((verdict.status, verdict.score.unwrap().get()), (Status::Ok, 0.5));
        assert_eq!(verdict.raw, Some("ok".into()));
        assert_eq!(verdict.criteria[0].name, "语气");
        assert!(verdict.criteria[0].required);
        assert_eq!(verdict.feedback, ["too short", "red"]);
        assert_eq!(verdict.notes["n"], 1);
        assert_eq!(verdict.cost_usd, Some(0.01));
    }

    #[test]
    fn nothing_is_guessed_from_a_malformed_answer() {
        for (text, status) in [
            ("", Status::Unparseable),
            ("  \n", Status::Unparseable),
            ("0.5", Status::Unparseable),
            ("[0.5]", Status::Unparseable),
            ("null", Status::Unparseable),
            ("log line\n{\"score\":1}", Status::Unparseable),
            ("{\"score\":1}\n{\"score\":0}", Status::Unparseable),
            ("{\"score\":1} done", Status::Unparseable),
            ("{\"score\":1,\"score\":0}", Status::Unparseable),
            ("{\"score\":\"0.5\"}", Status::Unparseable),
            ("{\"score\":true}", Status::Unparseable),
            ("{\"score\":null}", Status::Unparseable),
            ("{\"score\":[1]}", Status::Unparseable),
            ("{\"score\":NaN}", Status::Unparseable),
            ("{\"score\":Infinity}", Status::Unparseable),
            ("{\"score\":1e999}", Status::Unparseable),
            ("{\"score\":1.0000001}", Status::OutOfRange),
            ("{\"score\":-1}", Status::OutOfRange),
            ("{\"score\":18446744073709551616}", Status::OutOfRange),
            ("{\"scroe\":1}", Status::Unparseable),
            ("{\"score\":1,\"feedbak\":\"x\"}", Status::Unparseable),
            ("{\"score\":1,\"feedback\":3}", Status::Unparseable),
            ("{\"score\":1,\"abstain\":\"no\"}", Status::Unparseable),
            ("{}", Status::Unparseable),
            ("{\"score\":1,\"criteria\":{\"a\":1,\"a\":0}}", Status::Unparseable),
            ("{\"score\":1,\"criteria\":{\"a\":2}}", Status::OutOfRange),
            ("{\"score\":1,\"criteria\":{\"a\":true}}", Status::Unparseable),
            ("{\"score\":1,\"criteria\":[{\"name\":\"a\",\"passed\":true}]}", Status::Unparseable),
            ("{\"score\":1,\"id\":\"other\"}", Status::ProviderError),
            ("{\"score\":1,\"cost_usd\":-1}", Status::Unparseable),
            ("{\"score\":1,\"cost_usd\":1e308}", Status::Unparseable),
            ("{\"abstain\":\"not code\"}", Status::Abstained),
        ] {
            let verdict = read(text);
            assert_eq!(verdict.status, status, "{text}: {:?}", verdict.detail);
            assert_eq!(verdict.score, None, "{text}");
        }
    }

    #[test]
    fn an_answer_in_another_tool_s_form_says_how_to_port_it_and_gives_no_score() {
        for (text, said) in [
            (
                r#"{"pass": true, "reason": "ok"}"#,
                &["`pass` is `score` (1", "`reason` is `feedback`"][..],
            ),
            (r#"{"pass": true, "score": 0.5, "reason": "ok"}"#, &["`pass` is `score`"]),
            (r#"{"score": true}"#, &["write 1 for true"]),
            (r#"{"score": "0.8"}"#, &["without quotes"]),
            (r#"{"score": "C"}"#, &["write 1"]),
            (
                r#"{"value": "I", "explanation": "x"}"#,
                &["`value` is `score`", "`explanation` is `feedback`"],
            ),
            (r#"{"score": 1, "success": true, "score_breakdown": {}}"#, &["`criteria`"]),
            ("true", &["{\"score\": 1}"]),
            ("0.7", &["{\"score\": 0.7}"]),
            ("[1]", &["`criteria`"]),
            (r#"{"score": 1, "namedScores": {"a": 1}}"#, &["`namedScores` is `criteria`"]),
        ] {
            let verdict = read(text);
            assert_eq!((verdict.status, verdict.score), (Status::Unparseable, None), "{text}");
            let detail = verdict.detail.unwrap();
            assert!(said.iter().all(|part| detail.contains(part)), "{text}: {detail}");
        }
    }

    #[test]
    fn an_unreadable_answer_is_shown_short_and_without_control_sequences() {
        let detail = read(&format!("\u{1b}[31m好{}", "x".repeat(10_000))).detail.unwrap();
        assert!(detail.contains("好xxx") && !detail.contains('\u{1b}'), "{detail}");
        assert!(detail.chars().count() < 500, "{detail}");
    }

    #[test]
    fn a_declared_scale_maps_the_score_and_keeps_it_as_raw() {
        let case = Case::default();
        let stars = AnswerForm { scale: "1-5".parse().unwrap(), echo_id: false };
        let verdict = stars.read(br#"{"score":4,"criteria":{"a":2}}"#, &case);
        assert_eq!(verdict.score.unwrap().get(), 0.75);
        assert_eq!(verdict.raw, Some(4.into()));
        assert_eq!(verdict.criteria[0].score.unwrap().get(), 0.25);
        assert_eq!(stars.read(br#"{"score":3.5}"#, &case).status, Status::OutOfRange);
    }

    #[test]
    fn a_missing_echo_is_refused_where_it_is_asked_for() {
        let form = AnswerForm { scale: Scale::UNIT, echo_id: true };
        let case = Case { id: "a".into(), ..Case::default() };
        assert_eq!(form.read(br#"{"score":1}"#, &case).status, Status::Unparseable);
        assert_eq!(form.read(br#"{"score":1,"id":"a"}"#, &case).status, Status::Ok);
        assert_eq!(form.read(b"\xff", &case).status, Status::Unparseable);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic_or_gives_a_score_with_a_failure(text in ".*") {
            let verdict = read(&text);
            proptest::prop_assert_eq!(verdict.score.is_some(), verdict.status == Status::Ok);
        }
    }
}
