//! What a call costs: a small table of well-known models, and the arithmetic.
//!
//! A model that is not in the table has no price, which is not the same as costing nothing.
//! Prices are each provider's standard ones, without batch, long-context or contract terms:
//! `price` in the configuration overrides them.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::verdict::Usage;

/// Columns: provider, model, input, output, cached_input, noted.
const TABLE: &str = include_str!("prices.csv");

/// US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Prompt tokens.
    pub input: f64,
    /// Completion tokens.
    pub output: f64,
    /// Prompt tokens that the provider read from its own cache; as `input` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
}

impl Price {
    /// What this much usage costs, in US dollars.
    #[must_use]
    pub fn cost_usd(&self, usage: &Usage) -> f64 {
        self.micro_dollars_exact(usage) / 1e6
    }

    /// What this much usage costs, in millionths of a US dollar, rounded up.
    #[must_use]
    pub fn micro_dollars(&self, usage: &Usage) -> u64 {
        // Dollars per million tokens are micro-dollars per token. The cast saturates.
        self.micro_dollars_exact(usage).ceil() as u64
    }

    fn micro_dollars_exact(&self, usage: &Usage) -> f64 {
        let cached = usage.tokens_cached.min(usage.tokens_in);
        let fresh = usage.tokens_in - cached;
        self.input * fresh as f64
            + self.cached_input.unwrap_or(self.input) * cached as f64
            + self.output * usage.tokens_out as f64
    }

    /// Whether every number is one that a price can be.
    pub(crate) fn is_valid(&self) -> bool {
        [self.input, self.output, self.cached_input.unwrap_or(0.0)]
            .into_iter()
            .all(|price| price.is_finite() && price >= 0.0)
    }
}

#[derive(Debug, Deserialize)]
struct Row {
    provider: String,
    model: String,
    input: f64,
    output: f64,
    cached_input: Option<f64>,
    noted: String,
}

fn table() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        // A row that does not read is left without a price; a test makes sure there is none.
        csv::Reader::from_reader(TABLE.as_bytes()).deserialize().flatten().collect()
    })
}

/// The newest date at which a price of the table was noted, as `YYYY-MM-DD`.
#[must_use]
pub fn price_table_date() -> &'static str {
    table().iter().map(|row| row.noted.as_str()).max().unwrap_or_default()
}

/// The price of a provider's model. A dated or `-latest` name has the price of the model it
/// is a snapshot of.
pub(super) fn listed(provider: &str, model: &str) -> Option<Price> {
    table()
        .iter()
        .find(|row| {
            row.provider == provider
                && model.strip_prefix(row.model.as_str()).is_some_and(is_snapshot_suffix)
        })
        .map(|row| Price { input: row.input, output: row.output, cached_input: row.cached_input })
}

/// Nothing, `-latest`, `-20250929`, `-2024-08-06`, `-001`; not `-mini` or `.5`.
fn is_snapshot_suffix(suffix: &str) -> bool {
    let Some(rest) = suffix.strip_prefix('-') else { return suffix.is_empty() };
    let digits = rest.bytes().filter(u8::is_ascii_digit).count();
    rest == "latest" || (digits >= 3 && rest.bytes().all(|b| b.is_ascii_digit() || b == b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_reads_and_is_a_price() {
        assert_eq!(table().len(), TABLE.trim().lines().count() - 1);
        for row in table() {
            assert!(listed(&row.provider, &row.model).unwrap().is_valid(), "{row:?}");
            assert!(row.noted.len() == 10, "{row:?}");
            assert!(crate::provider::service::Service::named(&row.provider).is_some(), "{row:?}");
        }
    }

    #[test]
    fn a_snapshot_costs_what_its_model_costs_and_a_sibling_does_not() {
        let mini = listed("openai", "gpt-4.1-mini").unwrap();
        assert_eq!(listed("openai", "gpt-4.1-mini-2025-04-14"), Some(mini));
        assert_ne!(listed("openai", "gpt-4.1"), Some(mini));
        assert_eq!(listed("openai", "gpt-4.1-colossal"), None);
        assert_eq!(listed("vllm", "gpt-4.1-mini"), None);
        assert!(listed("anthropic", "claude-sonnet-4-5-20250929").is_some());
        // Another version is another model, not a snapshot.
        assert_eq!(listed("anthropic", "claude-opus-5-5"), None);
    }

    #[test]
    fn cached_tokens_have_their_own_price_and_micro_dollars_are_rounded_up() {
        let price = Price { input: 2.0, output: 8.0, cached_input: Some(0.5) };
        let usage =
            Usage { tokens_in: 1_001, tokens_out: 10, tokens_cached: 1_000, ..Usage::default() };
        assert_eq!(price.micro_dollars(&usage), 2 + 500 + 80);
        let tiny = Price { input: 0.01, output: 0.0, cached_input: None };
        assert_eq!(tiny.micro_dollars(&Usage { tokens_in: 1, ..Usage::default() }), 1);
        assert_eq!(tiny.micro_dollars(&Usage::default()), 0);
        // More cached than read is a server's error, and must not go below zero.
        let odd = Usage { tokens_in: 1, tokens_cached: 5, ..Usage::default() };
        assert_eq!(price.micro_dollars(&odd), 1);
    }
}
