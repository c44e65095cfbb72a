//! Conditions: what of a loop's history speaks for its end.
//!
//! Pure functions of scores. A difference inside the noise band is no difference, a missing
//! score is no score, and windows that are not full say nothing.

pub mod classic;
mod progress;
mod tree;

pub use self::progress::{diverges, oscillates, plateaus, robust_slope};
pub(super) use self::tree::{Fired, View, evaluate};
