//! Everything that is wrong with a configuration, at once.
//!
//! A deserializer stops at the first thing it can't take. Here what it stopped at is noted
//! and taken out of a copy (or, where a key is missing, stood in for), and the rest is read
//! again, until nothing more is found. The copy is thrown away: a configuration with a
//! problem is never used.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::place::Places;
use super::{Problem, from_value};

/// More problems than anyone reads at once.
const MOST: usize = 100;

/// What is wrong with a configuration: one problem or more, those with a position in the
/// order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl std::error::Error for Problems {}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl From<Vec<Problem>> for Problems {
    fn from(problems: Vec<Problem>) -> Self {
        Self(problems)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [problem] = self.0.as_slice() {
            return problem.fmt(f);
        }
        write!(f, "{} errors", self.0.len())?;
        self.0.iter().try_for_each(|problem| {
            let place = problem.position.map(|at| format!("{at}: ")).unwrap_or_default();
            write!(f, "\n  {place}{}", problem.to_string().replace('\n', "\n    "))
        })
    }
}

impl Problems {
    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One more.
    pub fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// Some more.
    pub fn extend(&mut self, more: impl IntoIterator<Item = Problem>) {
        self.0.extend(more);
    }

    /// The same, with what `explain` has to say of an unknown word (key or value) in place of
    /// a near miss.
    #[must_use]
    pub(crate) fn explained(mut self, explain: fn(&str) -> Option<&'static str>) -> Self {
        for problem in &mut self.0 {
            if !problem.message.starts_with("unknown ") {
                continue;
            }
            let word = problem.message.split('`').nth(1).unwrap_or_default();
            if let Some(said) = explain(word) {
                // The list of all keys would only bury it.
                let unknown = problem.message.split(": expected").next().unwrap_or_default();
                problem.message = format!("{unknown}; {said}");
                problem.suggestion = None;
            }
        }
        self
    }

    /// Those of a part of the configuration, further down a path.
    pub fn extend_inside(&mut self, prefix: &str, more: Self) {
        self.0.extend(more.0.into_iter().map(|problem| problem.inside(prefix)));
    }

    /// The same with line and column, from the text of the file, in the file's order.
    #[must_use]
    pub fn located(mut self, text: &str, extension: &str) -> Self {
        if let Some(places) = Places::of(text, &extension.to_ascii_lowercase()) {
            for problem in &mut self.0 {
                problem.position = places.find(&problem.at);
            }
        }
        // Stable: what has no position of its own (the whole file) comes first.
        self.0.sort_by_key(|problem| problem.position);
        self
    }

    /// With the file's name in front.
    pub(super) fn of_file(&self, path: &std::path::Path) -> String {
        match self.0.as_slice() {
            [problem] => {
                let place = problem.position.map(|at| format!(" {at}")).unwrap_or_default();
                format!("`{}`{place}: {problem}", path.display())
            }
            _ => format!("`{}` has {self}", path.display()),
        }
    }
}

/// As [`from_value`], with every problem that can be told apart and not only the first.
///
/// # Errors
/// As [`from_value`].
pub fn from_value_all<T: DeserializeOwned + Serialize>(mut value: Value) -> Result<T, Problems> {
    let mut problems = Vec::new();
    let given = value.clone();
    // Keys that were taken out for their value: that they are missing now is our own doing.
    let mut removed: Vec<String> = Vec::new();
    while problems.len() < MOST {
        let problem = match from_value::<T>(value.clone()) {
            Ok(read) if problems.is_empty() => {
                // A list would be taken for a table's values in the order of its keys.
                let written = serde_json::to_value(&read).unwrap_or_default();
                listed("", &given, &written, &mut problems);
                return if problems.is_empty() { Ok(read) } else { Err(Problems(problems)) };
            }
            Ok(_) => break,
            Err(problem) => problem,
        };
        let (message, at) = (problem.message.clone(), problem.at.clone());
        let word = message.split('`').nth(1).unwrap_or_default().to_owned();
        let mended = if message.starts_with("missing key") {
            let place = join(&at, &word);
            if !removed.contains(&place) {
                problems.push(problem);
            }
            stand_in::<T>(&mut value, &at, &word)
        } else if message.starts_with("unknown key") {
            // An enum that is told apart by a key swallows the last part of the path.
            let inside = get_mut(&mut value, &at).is_some_and(|v| v.get(&word).is_some());
            let place = if inside { join(&at, &word) } else { at.clone() };
            problems.push(Problem { at: place, ..problem });
            remove_unknown(&mut value, &at, &word)
        } else {
            if !removed.contains(&at) {
                problems.push(problem);
            }
            removed.push(at.clone());
            remove(&mut value, &at)
        };
        if !mended {
            break;
        }
    }
    Err(Problems(problems))
}

/// Every place where a list was given for what is written as a table.
fn listed(at: &str, given: &Value, written: &Value, problems: &mut Vec<Problem>) {
    match (given, written) {
        (Value::Array(_), Value::Object(table)) => {
            let keys: Vec<&str> = table.keys().map(String::as_str).collect();
            let such = if keys.is_empty() {
                String::new()
            } else {
                format!(" such as `{{ {} = … }}`", keys.join(" = …, "))
            };
            problems.push(Problem::new(at, format!("expected a table{such}, found a list")));
        }
        (Value::Object(given), Value::Object(written)) => {
            for (key, given) in given {
                if let Some(written) = written.get(key) {
                    listed(&join(at, key), given, written, problems);
                }
            }
        }
        (Value::Array(given), Value::Array(written)) if given.len() == written.len() => {
            for (i, (given, written)) in given.iter().zip(written).enumerate() {
                listed(&format!("{at}[{i}]"), given, written, problems);
            }
        }
        _ => {}
    }
}

fn join(at: &str, key: &str) -> String {
    if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") }
}

/// The value at a path as `serde_path_to_error` writes it.
fn get_mut<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let mut value = value;
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (number, after) = inner.split_once(']')?;
            value = value.get_mut(number.parse::<usize>().ok()?)?;
            rest = after.strip_prefix('.').unwrap_or(after);
            continue;
        }
        let table = value.as_object_mut()?;
        let key = table
            .keys()
            .filter(|key| {
                rest.strip_prefix(key.as_str())
                    .is_some_and(|after| after.is_empty() || after.starts_with(['.', '[']))
            })
            .max_by_key(|key| key.len())?
            .clone();
        rest = &rest[key.len()..];
        rest = rest.strip_prefix('.').unwrap_or(rest);
        value = table.get_mut(&key)?;
    }
    Some(value)
}

/// Takes out the value at a path; a member of a list takes the list with it, since the
/// places of the others must not move.
fn remove(value: &mut Value, path: &str) -> bool {
    let table_path = match path.rfind('[') {
        Some(bracket) if path.ends_with(']') => return remove(value, &path[..bracket]),
        _ => path.rfind('.').map_or("", |dot| &path[..dot]),
    };
    let key = path[table_path.len()..].trim_start_matches('.');
    !key.is_empty()
        && get_mut(value, table_path)
            .and_then(Value::as_object_mut)
            .is_some_and(|table| table.remove(key).is_some())
}

/// Takes out an unknown key: at its path, in the table at the path, or, where an enum has
/// swallowed the path, at the one place below it that has such a key.
fn remove_unknown(value: &mut Value, at: &str, key: &str) -> bool {
    if (at == key || at.ends_with(&format!(".{key}"))) && remove(value, at) {
        return true;
    }
    let Some(inner) = get_mut(value, at) else { return false };
    if let Some(table) = inner.as_object_mut()
        && table.remove(key).is_some()
    {
        return true;
    }
    occurrences(inner, key) == 1 && remove_anywhere(inner, key)
}

fn occurrences(value: &Value, key: &str) -> usize {
    match value {
        Value::Object(table) => {
            table.iter().map(|(name, held)| usize::from(name == key) + occurrences(held, key)).sum()
        }
        Value::Array(members) => members.iter().map(|member| occurrences(member, key)).sum(),
        _ => 0,
    }
}

fn remove_anywhere(value: &mut Value, key: &str) -> bool {
    match value {
        Value::Object(table) => {
            table.remove(key).is_some() || table.values_mut().any(|held| remove_anywhere(held, key))
        }
        Value::Array(members) => members.iter_mut().any(|member| remove_anywhere(member, key)),
        _ => false,
    }
}

/// Puts something of the right type where a key is missing, so that the rest can be read.
fn stand_in<T: DeserializeOwned>(value: &mut Value, at: &str, key: &str) -> bool {
    let place = join(at, key);
    for candidate in [json!("x"), json!(1), json!([]), json!({}), json!(true)] {
        let Some(table) = get_mut(value, at).and_then(Value::as_object_mut) else { return false };
        table.insert(key.to_owned(), candidate);
        let fits = match from_value::<T>(value.clone()) {
            Ok(_) => true,
            Err(next) => {
                let elsewhere = !next.at.is_empty() && !next.at.starts_with(&place);
                let other_key = ["missing key", "unknown key"]
                    .iter()
                    .any(|start| next.message.starts_with(start));
                elsewhere || other_key
            }
        };
        if fits {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize, serde::Serialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        name: String,
        count: u32,
        #[serde(default)]
        share: f64,
        #[serde(default)]
        inner: Vec<Inner>,
    }

    #[derive(Debug, serde::Deserialize, serde::Serialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        rubric: String,
    }

    fn problems(value: Value) -> Vec<String> {
        let found = from_value_all::<Outer>(value).unwrap_err();
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_independent_problem_is_found_and_none_twice() {
        let found = problems(json!({
            "shar": 1, "share": "much", "inner": [{"rubrc": "a"}, {"rubric": 3}],
        }));
        let text = found.join("\n");
        for part in [
            "unknown key `shar`",
            "did you mean `share`?",
            "`share`: expected a number, found the text \"much\"",
            "unknown key `rubrc`",
            "`inner[1].rubric`: expected a text, found `3`",
            "missing key `name`",
            "missing key `count`",
        ] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
        let mut unique = found.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), found.len(), "{text}");
    }

    #[test]
    fn a_wrong_value_of_a_required_key_is_one_problem_and_not_also_a_missing_key() {
        assert_eq!(problems(json!({"name": 3, "count": 1})).len(), 1);
    }

    #[test]
    fn a_right_value_is_read_and_hopeless_ones_end() {
        assert!(from_value_all::<Outer>(json!({"name": "x", "count": 1})).is_ok());
        for value in [json!(3), json!(null), json!([]), json!("x")] {
            assert_eq!(problems(value).len(), 1);
        }
    }

    #[test]
    fn a_list_in_place_of_a_table_is_refused_wherever_it_stands() {
        let found = problems(json!({"name": "x", "count": 1, "inner": [{"rubric": "a"}, ["b"]]}));
        let said = "`inner[1]`: expected a table such as `{ rubric = … }`, found a list";
        assert_eq!(found, [said]);
        let whole = problems(json!(["x", 1, 0.5, []]));
        assert!(whole[0].starts_with("expected a table such as"), "{whole:?}");
    }

    #[test]
    fn problems_stand_in_the_order_of_the_file_with_their_lines() {
        let text = "nme = \"x\"\ncount = 1\n[[inner]]\nrubrc = \"a\"\n";
        let value: Value = toml::from_str(text).unwrap();
        let found = from_value_all::<Outer>(value).unwrap_err().located(text, "toml");
        let said = found.of_file(std::path::Path::new("a.toml"));
        assert!(said.starts_with(&format!("`a.toml` has {} errors\n", found.len())), "{said}");
        let first = said.find("line 1, column 1: `nme`").unwrap();
        assert!(first < said.find("line 4, column 1: `inner[0].rubrc`").unwrap(), "{said}");
    }
}
