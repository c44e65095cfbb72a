//! text stand-in until merged
/// x
#[must_use]
pub fn normalise(t: &str) -> String {
    t.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}
/// x
#[must_use]
pub fn similarity(a: &str, b: &str) -> f64 {
    if a == b { 1.0 } else { 0.0 }
}
