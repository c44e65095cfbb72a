//! The section `[starts]`: how many independent starts, and in what their agents differ.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::Problem;
use crate::control::agent::AgentSpec;

/// Starts at most: each is a whole loop.
const MOST: u32 = 64;

/// What is added to an agent's seed from one start to the next: more than a run has calls.
const SEED_STEP: u64 = 1_000_003;

/// The section `[starts]`: several loops over one task, of which the best goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartsSpec {
    /// How many; 2 or more.
    pub n: u32,
    /// After so many outputs of each start the worse half is dropped, and again after as many,
    /// until two are left.
    #[serde(default = "two")]
    pub generations: u32,
    /// Keys of `[agent]` that differ, a table a start; `{}` for none, and a table with `kind` is
    /// an agent of its own. Without it an agent's seed, where it has one, differs alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent: Vec<Map<String, Value>>,
}

fn two() -> u32 {
    2
}

impl StartsSpec {
    /// What no single key's type can check.
    ///
    /// # Errors
    /// Fewer than two starts, too many, no output before the first drop, more tables than
    /// starts.
    pub fn check(&self) -> Result<(), Problem> {
        if !(2..=MOST).contains(&self.n) {
            return Err(Problem::new("n", format!("`{}` is not between 2 and {MOST}", self.n)));
        }
        if self.generations == 0 {
            return Err(Problem::new("generations", "expected 1 or more, found 0"));
        }
        if self.agent.len() > self.n as usize {
            let message = format!("{} tables for {} starts", self.agent.len(), self.n);
            return Err(Problem::new("agent", message));
        }
        Ok(())
    }

    /// The agent of a start, from 1.
    ///
    /// # Errors
    /// A key that the agent does not have, or that is not right.
    pub(super) fn agent_of(&self, base: &AgentSpec, start: u32) -> Result<AgentSpec, Problem> {
        let place = start as usize - 1;
        let own = self.agent.get(place).filter(|own| !own.is_empty());
        let Some(own) = own else {
            let mut agent = base.clone();
            if let AgentSpec::Llm(llm) = &mut agent {
                llm.seed = llm.seed.map(|seed| seed.wrapping_add(SEED_STEP * u64::from(start - 1)));
            }
            return Ok(agent);
        };
        let mut table = match serde_json::to_value(base) {
            Ok(Value::Object(table)) if !own.contains_key("kind") => table,
            _ => Map::new(),
        };
        table.extend(own.clone());
        crate::config::from_value(Value::Object(table))
            .map_err(|problem| problem.inside(&format!("starts.agent[{place}]")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::from_value;

    fn agent(value: Value) -> AgentSpec {
        from_value(value).unwrap()
    }

    fn starts(value: Value) -> StartsSpec {
        from_value(value).unwrap()
    }

    #[test]
    fn numbers_that_can_not_work_are_named() {
        for (bad, word) in [
            (json!({ "n": 1 }), "n"),
            (json!({ "n": 100 }), "64"),
            (json!({ "n": 2, "generations": 0 }), "generations"),
            (json!({ "n": 2, "agent": [{}, {}, {}] }), "3 tables"),
        ] {
            let error = starts(bad).check().unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        starts(json!({ "n": 2 })).check().unwrap();
    }

    #[test]
    fn agents_differ_in_what_the_file_says_or_else_in_their_seed() {
        let base = agent(json!({ "kind": "llm", "model": "openai/a", "seed": 7 }));
        let spec = starts(json!({
            "n": 4,
            "agent": [{}, { "temperature": 0.2 }, { "kind": "replay", "outputs": ["x"] }],
        }));
        let seed = |start| match spec.agent_of(&base, start).unwrap() {
            AgentSpec::Llm(llm) => (llm.seed, llm.temperature),
            _ => (None, None),
        };
        assert_eq!(seed(1), (Some(7), None));
        assert_eq!(seed(2), (Some(7), Some(0.2)));
        assert_eq!(seed(4), (Some(7 + 3 * SEED_STEP), None));
        assert!(matches!(spec.agent_of(&base, 3).unwrap(), AgentSpec::Replay(_)));
        let spec = starts(json!({ "n": 2, "agent": [{ "temprature": 0.2 }] }));
        let error = spec.agent_of(&base, 1).unwrap_err().to_string();
        assert!(error.contains("starts.agent[0]") && error.contains("temperature"), "{error}");
    }
}
