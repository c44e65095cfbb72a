//! judge/rule.
