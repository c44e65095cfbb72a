//! Where a key stands in its file: from a path such as `judge[1].rubric` to line and column.
//!
//! The text is parsed a second time, with positions, only after something was found wrong.
//! Where a format gives no position the answer is none, never a guess.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess};
use serde_saphyr::Spanned;
use toml::de::{DeTable, DeValue};

/// A place in a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, from 1.
    pub line: u64,
    /// The character of the line, from 1.
    pub column: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A configuration as a tree of positions.
#[derive(Debug)]
pub(super) struct Places(Node);

#[derive(Debug)]
struct Node {
    at: Option<Position>,
    holds: Holds,
}

#[derive(Debug)]
enum Holds {
    /// Keys with their own position and what they hold.
    Table(Vec<(String, Option<Position>, Node)>),
    List(Vec<Node>),
    Text(String),
    Other,
}

impl Places {
    /// The places of a text in the format of this extension. JSON is read as YAML, which it
    /// is a part of.
    pub(super) fn of(text: &str, extension: &str) -> Option<Self> {
        match extension {
            "toml" => {
                let table = DeTable::parse(text).ok()?;
                let starts = line_starts(text);
                Some(Self(table_node(text, &starts, table.span().start, table.get_ref())))
            }
            "yaml" | "yml" | "json" => {
                let root: Spanned<Holds> = serde_saphyr::from_str(text).ok()?;
                let mut root = Node::from(root);
                let lines: Vec<&str> = text.lines().collect();
                root.find_keys(&lines);
                Some(Self(root))
            }
            _ => None,
        }
    }

    /// The position of what a path names, or of the innermost part of it that is there.
    pub(super) fn find(&self, path: &str) -> Option<Position> {
        let mut node = &self.0;
        let mut found = None;
        let mut rest = path;
        loop {
            rest = rest.strip_prefix('.').unwrap_or(rest);
            if rest.is_empty() {
                return found;
            }
            match &node.holds {
                Holds::Table(keys) => {
                    // Names may hold dots: the longest key that fits is the one meant.
                    let fitting = keys
                        .iter()
                        .filter(|(key, _, _)| {
                            rest.strip_prefix(key.as_str()).is_some_and(|after| {
                                after.is_empty() || after.starts_with(['.', '[', ' '])
                            })
                        })
                        .max_by_key(|(key, _, _)| key.len());
                    let Some((key, at, held)) = fitting else { return found };
                    found = at.or(held.at).or(found);
                    rest = &rest[key.len()..];
                    node = held;
                }
                Holds::List(members) => {
                    let Some((number, after)) =
                        rest.strip_prefix('[').and_then(|rest| rest.split_once(']'))
                    else {
                        return found;
                    };
                    let Some(member) = number.parse().ok().and_then(|i: usize| members.get(i))
                    else {
                        return found;
                    };
                    found = member.at.or(found);
                    rest = after;
                    // `judge[0] (gpt).model`: the name is there for people.
                    if let Some(name) = member.name()
                        && let Some(after) = rest.strip_prefix(&format!(" ({name})"))
                    {
                        rest = after;
                    }
                    node = member;
                }
                Holds::Text(_) | Holds::Other => return found,
            }
        }
    }
}

impl Node {
    /// Sets the position of each key: the parser tells only that of its value, which may begin
    /// lines below.
    fn find_keys(&mut self, lines: &[&str]) {
        let start = self.at;
        match &mut self.holds {
            Holds::Table(keys) => {
                for (key, at, held) in keys {
                    // Numbers and booleans come without a position.
                    *at = held
                        .at
                        .and_then(|value| key_before(lines, key, value))
                        .or_else(|| start.and_then(|start| key_after(lines, key, start)));
                    held.find_keys(lines);
                }
            }
            Holds::List(members) => members.iter_mut().for_each(|member| member.find_keys(lines)),
            Holds::Text(_) | Holds::Other => {}
        }
    }

    fn name(&self) -> Option<&str> {
        let Holds::Table(keys) = &self.holds else { return None };
        keys.iter().find(|(key, _, _)| key == "name").and_then(|(_, _, held)| match &held.holds {
            Holds::Text(name) => Some(name.as_str()),
            _ => None,
        })
    }
}

/// The last place at or before a value's own where its key is written.
fn key_before(lines: &[&str], key: &str, value: Position) -> Option<Position> {
    let last = usize::try_from(value.line).ok()?.min(lines.len());
    (0..last).rev().find_map(|number| {
        let line = lines[number];
        let limit = if number as u64 + 1 == value.line {
            line.char_indices()
                .nth(usize::try_from(value.column).ok()?.saturating_sub(1))
                .map_or(line.len(), |(byte, _)| byte)
        } else {
            line.len()
        };
        let found = line[..limit].rmatch_indices(key).find(|(byte, _)| {
            let before = line[..*byte].chars().next_back();
            let after = line[byte + key.len()..].trim_start_matches(['"', '\'', ' ']);
            before.is_none_or(|c| matches!(c, ' ' | '"' | '\'' | '{' | ',' | '\t'))
                && after.starts_with(':')
        });
        let (byte, _) = found?;
        let column = line[..byte].trim_end_matches(['"', '\'']).chars().count() as u64 + 1;
        Some(Position { line: number as u64 + 1, column })
    })
}

/// The first place at or after the start of its table where a key is written.
fn key_after(lines: &[&str], key: &str, start: Position) -> Option<Position> {
    let first = usize::try_from(start.line).ok()?.saturating_sub(1);
    lines.iter().enumerate().skip(first).find_map(|(number, line)| {
        let end = Position { line: number as u64 + 1, column: line.chars().count() as u64 + 1 };
        key_before(&lines[..=number], key, end).filter(|at| at.line == end.line)
    })
}

/// The byte at which each line begins.
fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

fn position(text: &str, starts: &[usize], byte: usize) -> Option<Position> {
    let line = starts.partition_point(|start| *start <= byte);
    let start = starts.get(line.checked_sub(1)?)?;
    let column = text.get(*start..byte)?.chars().count() as u64 + 1;
    Some(Position { line: line as u64, column })
}

fn table_node(text: &str, starts: &[usize], byte: usize, table: &DeTable<'_>) -> Node {
    let keys = table
        .iter()
        .map(|(key, value)| {
            let at = position(text, starts, key.span().start);
            (key.get_ref().to_string(), at, value_node(text, starts, value))
        })
        .collect();
    Node { at: position(text, starts, byte), holds: Holds::Table(keys) }
}

fn value_node(text: &str, starts: &[usize], value: &toml::Spanned<DeValue<'_>>) -> Node {
    let byte = value.span().start;
    let holds = match value.get_ref() {
        DeValue::Table(table) => return table_node(text, starts, byte, table),
        DeValue::Array(members) => {
            Holds::List(members.iter().map(|member| value_node(text, starts, member)).collect())
        }
        DeValue::String(text) => Holds::Text(text.to_string()),
        _ => Holds::Other,
    };
    Node { at: position(text, starts, byte), holds }
}

impl From<Spanned<Holds>> for Node {
    fn from(spanned: Spanned<Holds>) -> Self {
        Self { at: known(spanned.referenced), holds: spanned.value }
    }
}

fn known(location: serde_saphyr::Location) -> Option<Position> {
    let (line, column) = (location.line(), location.column());
    (line > 0).then_some(Position { line, column })
}

impl<'de> Deserialize<'de> for Holds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Holds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Holds, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Spanned<Holds>>()? {
                    keys.push((key, None, value.into()));
                }
                Ok(Holds::Table(keys))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Holds, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = list.next_element::<Spanned<Holds>>()? {
                    members.push(member.into());
                }
                Ok(Holds::List(members))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Holds, E> {
                Ok(Holds::Text(text.to_owned()))
            }

            fn visit_bool<E: de::Error>(self, _: bool) -> Result<Holds, E> {
                Ok(Holds::Other)
            }

            fn visit_i64<E: de::Error>(self, _: i64) -> Result<Holds, E> {
                Ok(Holds::Other)
            }

            fn visit_u64<E: de::Error>(self, _: u64) -> Result<Holds, E> {
                Ok(Holds::Other)
            }

            fn visit_f64<E: de::Error>(self, _: f64) -> Result<Holds, E> {
                Ok(Holds::Other)
            }

            fn visit_unit<E: de::Error>(self) -> Result<Holds, E> {
                Ok(Holds::Other)
            }

            fn visit_none<E: de::Error>(self) -> Result<Holds, E> {
                Ok(Holds::Other)
            }

            fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Holds, D::Error> {
                Holds::deserialize(inner)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, extension: &str, path: &str) -> Option<(u64, u64)> {
        Places::of(text, extension).unwrap().find(path).map(|at| (at.line, at.column))
    }

    #[test]
    fn a_path_is_found_in_every_format() {
        let toml = "a = 1\n[[judge]]\nname = \"x (y).z\"\n[[judge]]\nname = \"二\"\n  rubric = 3\n";
        assert_eq!(find(toml, "toml", "a"), Some((1, 1)));
        assert_eq!(find(toml, "toml", "judge[1] (二).rubric"), Some((6, 3)));
        assert_eq!(find(toml, "toml", "judge[0] (x (y).z).name"), Some((3, 1)));
        let yaml = "a: 1\njudge:\n  - name: x\n  - name: other\n    rubric: 3\n";
        assert_eq!(find(yaml, "yaml", "judge[1] (other).rubric"), Some((5, 5)));
        let json = "{\n \"judge\": [\n  {\"name\": \"y\", \"rubric\": 3}]}";
        assert_eq!(find(json, "json", "judge[0] (y).rubric").map(|at| at.0), Some(3));
    }

    #[test]
    fn what_is_missing_is_where_it_should_be() {
        let toml = "a = 1\n\n[[judge]]\nname = \"x\"\n";
        assert_eq!(find(toml, "toml", "judge[0] (x).kind").map(|at| at.0), Some(3));
        assert_eq!(find(toml, "toml", ""), None);
        assert_eq!(find(toml, "toml", "nothing[3].here"), None);
    }
}
