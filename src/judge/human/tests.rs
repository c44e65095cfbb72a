//! Dialogues with a scripted person.

use std::io::{self, Cursor, Write};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::provider::Client;

/// What the person sees.
#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Screen {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn judge_on(spec: Value, console: Arc<Console>) -> BoxedJudge {
    let spec: HumanSpec = crate::config::from_value(spec).unwrap();
    spec.build_with(&BuildContext::new("/", Client::default()), console).unwrap()
}

fn typing(spec: Value, typed: &str) -> (BoxedJudge, Screen) {
    let screen = Screen::default();
    let console = Console::new(Cursor::new(typed.to_owned()), screen.clone(), 60);
    (judge_on(spec, console), screen)
}

async fn answer(spec: Value, typed: &str) -> (Verdict, String) {
    let (judge, screen) = typing(spec, typed);
    let context = CallContext::standalone(Duration::from_secs(10));
    let verdict = judge.judge(&Case::new("Say hello", "你好"), &context).await;
    (verdict, screen.text())
}

#[tokio::test]
async fn a_level_and_a_comment_are_a_verdict() {
    let spec = json!({"question": "How polite?", "anchors": {"1": "rude", "5": "kind"}});
    let (verdict, screen) = answer(spec, "4\n a bit \u{1b}[31mstiff \n").await;
    assert_eq!((verdict.status, verdict.score.unwrap().get()), (Status::Ok, 0.75));
    assert_eq!(verdict.raw, Some(4.0.into()));
    assert_eq!(verdict.feedback, ["a bit stiff"]);
    for part in ["Say hello", "你好", "How polite?", "1: rude", "5: kind", "1 2 3 4 5"] {
        assert!(screen.contains(part), "{part} in {screen}");
    }
}

#[tokio::test]
async fn what_is_not_on_the_scale_is_asked_again() {
    let (verdict, screen) = answer(json!({}), "good\n7\n3.5\nNaN\n\n2\n\n").await;
    assert_eq!(verdict.score.unwrap().get(), 0.25);
    assert_eq!(screen.matches("(s skips, q quits)").count(), 6, "{screen}");
    assert!(verdict.feedback.is_empty());
    let (verdict, _) = answer(json!({"scale": "binary", "comment": false}), "Y\n").await;
    assert_eq!(verdict.score.unwrap().get(), 1.0);
}

#[tokio::test]
async fn criteria_are_asked_one_by_one_and_weighted() {
    let spec = json!({"comment": false, "criteria": [
        {"name": "tone", "weight": 3, "pass": 3, "required": true},
        {"name": "facts", "description": "Are the facts right?", "scale": "binary"},
    ]});
    let (verdict, screen) = answer(spec, "2\ny\n").await;
    assert_eq!(verdict.score.unwrap().get(), (3.0 * 0.25 + 1.0) / 4.0);
    assert_eq!(verdict.criteria[0].passed, Some(false));
    assert!(verdict.criteria[0].required);
    assert_eq!(verdict.criteria[1].passed, None);
    assert!(screen.contains("Are the facts right?"));
    assert_eq!(verdict.raw, None);
}

#[tokio::test]
async fn skip_abstains_quit_and_end_of_input_cancel_what_follows_too() {
    assert_eq!(answer(json!({}), "s\n").await.0.status, Status::Abstained);
    for typed in ["q\n", ""] {
        let (judge, screen) = typing(json!({}), &format!("{typed}5\n\n"));
        let context = CallContext::standalone(Duration::from_secs(10));
        let case = Case::new("a", "b");
        if typed.is_empty() {
            assert_eq!(answer(json!({}), "").await.0.status, Status::Cancelled);
            continue;
        }
        assert_eq!(judge.judge(&case, &context).await.status, Status::Cancelled);
        let shown = screen.text().len();
        assert_eq!(judge.judge(&case, &context).await.status, Status::Cancelled);
        assert_eq!(screen.text().len(), shown, "no further question");
    }
}

#[tokio::test]
async fn one_person_has_one_question_at_a_time() {
    let typed: String = (0..5).map(|_| "4\nfine\n").collect();
    let (judge, screen) = typing(json!({}), &typed);
    let context = CallContext::standalone(Duration::from_secs(10));
    let cases: Vec<Case> = (0..5).map(|i| Case::new("task", format!("out {i}"))).collect();
    let verdicts = futures::future::join_all(cases.iter().map(|c| judge.judge(c, &context))).await;
    assert!(verdicts.iter().all(|v| v.feedback == ["fine"]), "{verdicts:?}");
    let screen = screen.text();
    let order: Vec<&str> = screen
        .lines()
        .filter_map(|line| {
            let seen = line.contains("out ") || line.contains("comment");
            seen.then(|| if line.contains("comment") { "comment" } else { "case" })
        })
        .collect();
    // The prompt has no line end of its own, so the next case's page follows on its line.
    assert_eq!(
        order,
        [
            "case", "comment", "case", "comment", "case", "comment", "case", "comment", "case",
            "comment"
        ]
    );
}

/// A person who never types.
struct Silence(std::sync::mpsc::Receiver<u8>);

impl io::Read for Silence {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.recv() {
            Ok(byte) => {
                buffer[0] = byte;
                Ok(1)
            }
            Err(_) => Ok(0),
        }
    }
}

#[tokio::test]
async fn a_person_who_is_late_or_not_wanted_any_more_loses_no_later_line() {
    let (keyboard, silence) = std::sync::mpsc::channel();
    let console = Console::new(io::BufReader::new(Silence(silence)), Screen::default(), 60);
    let judge = judge_on(json!({"comment": false}), console);
    let case = Case::new("a", "b");
    let soon = CallContext::standalone(Duration::from_millis(50));
    assert_eq!(judge.judge(&case, &soon).await.status, Status::Timeout);
    let context = CallContext::standalone(Duration::from_secs(10));
    let cancel = context.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    });
    assert_eq!(judge.judge(&case, &context).await.status, Status::Cancelled);
    b"5\n".iter().for_each(|byte| keyboard.send(*byte).unwrap());
    let context = CallContext::standalone(Duration::from_secs(10));
    assert_eq!(judge.judge(&case, &context).await.score.unwrap().get(), 1.0);
}

#[test]
fn without_a_terminal_the_judge_is_refused_with_what_to_do() {
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        eprintln!("SKIPPED: the tests run on a terminal");
        return;
    }
    let spec: HumanSpec = crate::config::from_value(json!({})).unwrap();
    let message = spec.build(&BuildContext::new("/", Client::default())).unwrap_err().to_string();
    assert!(message.contains("replay"), "{message}");
}

#[test]
fn a_configuration_that_can_not_work_is_refused_by_key() {
    for (spec, key) in [
        (json!({"anchors": {"9": "x"}}), "anchors"),
        (json!({"anchors": {"good": "x"}}), "anchors"),
        (json!({"question": "x", "criteria": [{"name": "a"}]}), "question"),
        (json!({"anchors": {"1": "x"}, "criteria": [{"name": "a"}]}), "anchors"),
        (json!({"criteria": [{"name": "a"}, {"name": "a"}]}), "criteria[1].name"),
        (json!({"criteria": [{"name": " "}]}), "criteria[0].name"),
        (json!({"criteria": [{"name": "a", "weight": 0}]}), "criteria[0].weight"),
        (json!({"criteria": [{"name": "a", "required": true}]}), "criteria[0].required"),
        (json!({"criteria": [{"name": "a", "pass": 6}]}), "criteria[0].pass"),
    ] {
        let parsed: HumanSpec = crate::config::from_value(spec.clone()).unwrap();
        let console = Console::new(Cursor::new(""), Screen::default(), 80);
        let context = BuildContext::new("/", Client::default());
        let message = parsed.build_with(&context, console).unwrap_err().to_string();
        assert!(message.contains(&format!("`{key}`")), "{spec}: {message}");
    }
}
