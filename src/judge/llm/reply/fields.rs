//! From a JSON object to the answers asked for.
//!
//! Field names come from closed lists. A field that is there and can't be read fails the
//! whole object: no answer is made from the rest of it.

use super::super::shape::{Answer, Place, ReadFailure, Reading, Shape};
use super::json::Node;
use super::text;
use crate::rubric::folded;
use crate::score::Scale;
use crate::verdict::Status;

const SCORE: &[&str] = &["score", "rating", "grade", "评分", "分数", "得分"];
const ANSWER: &[&str] = &["answer", "verdict", "答案", "回答"];
const CHOICE: &[&str] = &["choice", "label", "answer", "选择"];
const WINNER: &[&str] = &["preferred", "winner", "answer", "verdict", "胜者"];
const CRITERIA: &[&str] = &["criteria", "scores", "标准", "评分"];
const ANSWERS: &[&str] = &["answers", "questions", "回答", "答案"];
const REASON: &[&str] = &[
    "reason",
    "why",
    "analysis",
    "reasoning",
    "explanation",
    "rationale",
    "summary",
    "feedback",
    "理由",
    "原因",
];
const ABSTAIN: &[&str] = &["abstain"];
const NAME: &[&str] = &["name", "criterion", "名称"];

type Entries<'a> = &'a [(String, Node)];

/// The inner object of an object that holds nothing else, such as `{"result": {...}}`.
pub(super) fn unwrapped(node: &Node) -> &Node {
    const WRAPPERS: &[&str] =
        &["result", "verdict", "evaluation", "judgement", "judgment", "response", "output", "结果"];
    match node {
        Node::Object(entries) => match entries.as_slice() {
            [(key, inner @ Node::Object(_))] if WRAPPERS.contains(&folded(key).as_str()) => inner,
            _ => node,
        },
        _ => node,
    }
}

/// Whether an object has the fields asked for, whatever they hold.
pub(super) fn is_verdict(node: &Node, shape: &Shape) -> bool {
    let Some(entries) = node.entries() else { return false };
    let has = |names: &[&str]| entries.iter().any(|(key, _)| names.contains(&folded(key).as_str()));
    if has(ABSTAIN) {
        return true;
    }
    match shape {
        Shape::YesNo => has(ANSWER),
        Shape::Score { .. } => has(SCORE),
        Shape::Choice { .. } => has(CHOICE),
        Shape::Pairwise => has(WINNER),
        Shape::Checklist { questions } => {
            has(ANSWERS) || (1..=*questions).any(|i| has(&[format!("q{i}").as_str()]))
        }
        Shape::Rubric { criteria, .. } => {
            has(&["criteria", "scores", "标准"])
                || criteria.iter().any(|name| has(&[folded(name).as_str()]))
        }
    }
}

/// What a shape asks for, in words for the model.
pub(super) fn wanted(shape: &Shape) -> String {
    match shape {
        Shape::YesNo => "`answer` of `yes` or `no`".into(),
        Shape::Score { scale } => format!("`score` on the scale {scale}"),
        Shape::Choice { choices } => {
            let labels: Vec<String> = choices.iter().map(|c| format!("`{}`", c.label)).collect();
            format!("`choice` that is one of {}", labels.join(", "))
        }
        Shape::Checklist { questions } => format!("`answers` with `q1` to `q{questions}`"),
        Shape::Rubric { criteria, .. } => {
            let names: Vec<String> = criteria.iter().map(|c| format!("`{c}`")).collect();
            format!("`criteria` with {}", names.join(", "))
        }
        Shape::Pairwise => "`preferred` that is `A`, `B` or `tie`".into(),
    }
}

/// Reads the answers out of an object.
pub(super) fn reading(node: &Node, shape: &Shape, place: Place) -> Result<Reading, ReadFailure> {
    let Some(entries) = node.entries() else {
        return Err(ReadFailure::unparseable("expected a JSON object"));
    };
    if let Some(key) = node.contradictory_key() {
        return Err(ReadFailure::unparseable(format!(
            "`{key}` is there twice with different values"
        )));
    }
    let answers = answers(entries, shape);
    if let Some(why) = abstention(entries) {
        // An object that also scores says two things at once.
        let scored = answers.as_ref().map_or_else(
            |failure| failure.status == Status::OutOfRange,
            |answers| answers.iter().any(|a| a.score.is_some()),
        );
        if scored {
            return Err(ReadFailure::unparseable("the reply both abstains and answers"));
        }
        return Err(ReadFailure::new(Status::Abstained, why));
    }
    let answers = answers?;
    let reason = reason(entries);
    if answers.iter().all(|a| a.score.is_none()) {
        let why = reason.unwrap_or_else(|| "the judge left every answer empty".into());
        return Err(ReadFailure::new(Status::Abstained, why));
    }
    Ok(Reading {
        answers,
        reason,
        overall: named(entries, &["overall", "total", "总分"]),
        passed: named(entries, &["passed", "pass", "通过"]),
        place,
        mass: None,
    })
}

fn named(entries: Entries<'_>, names: &[&str]) -> Option<serde_json::Value> {
    let (_, node) = entries.iter().find(|(key, _)| names.contains(&folded(key).as_str()))?;
    Some(node.to_value())
}

fn abstention(entries: Entries<'_>) -> Option<String> {
    match entries.iter().find(|(key, _)| ABSTAIN.contains(&folded(key).as_str()))?.1 {
        Node::Text(ref why) if says_something(why) => Some(why.trim().to_owned()),
        Node::Text(ref why) if !why.trim().is_empty() => {
            Some("the judge abstained without a reason".into())
        }
        Node::Bool(true) => {
            Some(reason(entries).unwrap_or_else(|| "the judge abstained without a reason".into()))
        }
        _ => None,
    }
}

fn reason(entries: Entries<'_>) -> Option<String> {
    REASON.iter().find_map(|name| {
        entries.iter().find_map(|(key, node)| match node {
            Node::Text(text) if folded(key) == *name && says_something(text) => {
                Some(text.trim().to_owned())
            }
            _ => None,
        })
    })
}

/// Whether a reason is one: not empty, not dots, and not the words that stand in its place in
/// the form that was asked for.
fn says_something(text: &str) -> bool {
    const FORM: [&str; 2] = ["one or two sentences", "一两句话"];
    let words = text.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    !words.is_empty() && !FORM.contains(&words.as_str())
}

/// The one value under any of several names; an error when they differ.
fn field<'a>(entries: Entries<'a>, names: &[&str]) -> Result<Option<&'a Node>, ReadFailure> {
    let mut found: Option<&Node> = None;
    for (key, node) in entries {
        if names.contains(&folded(key).as_str()) {
            if found.is_some_and(|first| first != node) {
                return Err(ReadFailure::unparseable(format!(
                    "`{key}` differs from another field of the same meaning"
                )));
            }
            found = Some(node);
        }
    }
    Ok(found)
}

fn missing(name: &str) -> Answer {
    Answer { name: name.to_owned(), raw: None, score: None, reason: None }
}

fn answers(entries: Entries<'_>, shape: &Shape) -> Result<Vec<Answer>, ReadFailure> {
    let one = |names: &[&str], name: &str, read: &dyn Fn(&Node) -> Result<Answer, ReadFailure>| {
        match field(entries, names)? {
            Some(Node::Null) => Ok(vec![missing(name)]),
            Some(node) => Ok(vec![read(node)?]),
            None => Err(ReadFailure::unparseable(format!("the reply holds no {}", wanted(shape)))),
        }
    };
    match shape {
        Shape::YesNo => one(ANSWER, "answer", &|node| yes_no("answer", node)),
        Shape::Score { scale } => one(SCORE, "score", &|node| scored("score", node, *scale)),
        Shape::Choice { .. } => one(CHOICE, "choice", &|node| word(node, shape)),
        Shape::Pairwise => one(WINNER, "preferred", &|node| word(node, shape)),
        Shape::Rubric { scale, criteria } => {
            // An object under `评分` holds the criteria; a number there is a score.
            let list = match field(entries, CRITERIA)? {
                Some(Node::Object(inner)) => {
                    Some(inner.iter().map(|(k, v)| (k.as_str(), v)).collect())
                }
                Some(Node::List(items)) => Some(named_items(items)?),
                _ => None,
            };
            let list: Vec<(&str, &Node)> =
                list.unwrap_or_else(|| entries.iter().map(|(k, v)| (k.as_str(), v)).collect());
            criteria
                .iter()
                .map(|name| match entry(&list, name)? {
                    Some(node) => part(name, node, SCORE, &|node| scored(name, node, *scale)),
                    None => Ok(missing(name)),
                })
                .collect()
        }
        Shape::Checklist { questions } => {
            let names: Vec<String> = (1..=*questions).map(|i| format!("q{i}")).collect();
            let list: Vec<(&str, &Node)> = match field(entries, ANSWERS)? {
                Some(Node::Object(inner)) => inner.iter().map(|(k, v)| (k.as_str(), v)).collect(),
                Some(Node::List(items)) if items.len() == *questions => {
                    names.iter().map(String::as_str).zip(items).collect()
                }
                Some(Node::List(items)) => {
                    return Err(ReadFailure::unparseable(format!(
                        "`answers` holds {} answers: expected {questions}",
                        items.len()
                    )));
                }
                _ => entries.iter().map(|(k, v)| (k.as_str(), v)).collect(),
            };
            names
                .iter()
                .map(|name| match entry(&list, name)? {
                    Some(node) => part(name, node, ANSWER, &|node| yes_no(name, node)),
                    None => Ok(missing(name)),
                })
                .collect()
        }
    }
}

/// The value under a name; an error when two spellings of the name differ.
fn entry<'a>(list: &[(&str, &'a Node)], name: &str) -> Result<Option<&'a Node>, ReadFailure> {
    let wanted = folded(name);
    let mut found: Option<&Node> = None;
    for (key, node) in list {
        if folded(key) == wanted {
            if found.is_some_and(|first| first != *node) {
                return Err(ReadFailure::unparseable(format!(
                    "`{name}` is there twice with different values"
                )));
            }
            found = Some(node);
        }
    }
    Ok(found)
}

/// A list of objects that each name their criterion.
fn named_items(items: &[Node]) -> Result<Vec<(&str, &Node)>, ReadFailure> {
    items
        .iter()
        .map(|item| match item.entries().map(|e| field(e, NAME)).transpose()?.flatten() {
            Some(Node::Text(name)) => Ok((name.as_str(), item)),
            _ => Err(ReadFailure::unparseable("an entry of `criteria` names no criterion")),
        })
        .collect()
}

/// A bare value, or an object with the value and a reason.
fn part(
    name: &str,
    node: &Node,
    names: &[&str],
    read: &dyn Fn(&Node) -> Result<Answer, ReadFailure>,
) -> Result<Answer, ReadFailure> {
    let Node::Object(entries) = node else {
        return match node {
            Node::Null => Ok(missing(name)),
            other => read(other),
        };
    };
    let reason = reason(entries);
    let answer = match field(entries, names)? {
        Some(Node::Null) => missing(name),
        Some(value) => read(value)?,
        None => return Err(ReadFailure::unparseable(format!("`{name}` holds no `{}`", names[0]))),
    };
    Ok(Answer { reason, ..answer })
}

fn scored(name: &str, node: &Node, scale: Scale) -> Result<Answer, ReadFailure> {
    let value = match node {
        Node::Number(number) => number.as_f64(),
        Node::Text(text) => text::number(text, scale),
        _ => None,
    };
    match value {
        Some(value) => text::scored(name, value, scale),
        None => Err(ReadFailure::unparseable(format!(
            "`{name}` is {}: expected a number on the scale {scale}",
            shown(node)
        ))),
    }
}

fn yes_no(name: &str, node: &Node) -> Result<Answer, ReadFailure> {
    let yes = match node {
        Node::Bool(yes) => Some(*yes),
        Node::Text(word) => text::yes_no(word),
        _ => None,
    };
    yes.map(|yes| text::yes_no_answer(name, yes)).ok_or_else(|| {
        ReadFailure::unparseable(format!("`{name}` is {}: expected `yes` or `no`", shown(node)))
    })
}

fn word(node: &Node, shape: &Shape) -> Result<Answer, ReadFailure> {
    match node {
        Node::Text(text) => text::word(shape, text),
        _ => None,
    }
    .ok_or_else(|| {
        ReadFailure::unparseable(format!("found {}: expected {}", shown(node), wanted(shape)))
    })
}

/// A value for an error message: short, and never the whole of a long text.
fn shown(node: &Node) -> String {
    match node {
        Node::Object(_) => "an object".into(),
        Node::List(_) => "a list".into(),
        Node::Text(text) if text.chars().count() > 40 => "a long text".into(),
        other => format!("`{}`", other.to_value()),
    }
}
