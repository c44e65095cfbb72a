//! JSON as it was written: objects keep every key, so that a key written twice is seen.
//!
//! Nothing is repaired: what the JSON grammar refuses (comments, trailing commas, single
//! quotes, NaN, numbers beyond the range of a double) is refused here.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A JSON value with its keys in order, repeated ones included.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    /// The JSON value at the start of `text` and the bytes it takes, if there is a valid one.
    pub(super) fn at_start(text: &str) -> Option<(Self, usize)> {
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Self>();
        let node = stream.next()?.ok()?;
        Some((node, stream.byte_offset()))
    }

    /// The JSON value that `text` is, white space aside.
    pub(super) fn whole(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The entries, when this is an object.
    pub(super) fn entries(&self) -> Option<&[(String, Self)]> {
        match self {
            Self::Object(entries) => Some(entries),
            _ => None,
        }
    }

    /// The same as a plain value. Of a repeated key the last stays.
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(b) => Value::Bool(*b),
            Self::Number(n) => Value::Number(n.clone()),
            Self::Text(s) => Value::String(s.clone()),
            Self::List(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(entries) => Value::Object(
                entries.iter().map(|(k, v)| (k.clone(), v.to_value())).collect::<Map<_, _>>(),
            ),
        }
    }

    /// A key that some object in here holds twice with different values.
    pub(super) fn contradictory_key(&self) -> Option<&str> {
        match self {
            Self::Object(entries) => {
                let mut seen = std::collections::HashMap::new();
                for (key, value) in entries {
                    if seen.insert(key.as_str(), value).is_some_and(|first| first != value) {
                        return Some(key);
                    }
                }
                entries.iter().find_map(|(_, value)| value.contradictory_key())
            }
            Self::List(items) => items.iter().find_map(Self::contradictory_key),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Node, E> {
        // Adding 0 turns -0 into 0.
        Number::from_f64(value + 0.0)
            .map(Node::Number)
            .ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Object(entries))
    }
}
