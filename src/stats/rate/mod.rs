//! The true rate of good cases behind a judge's verdicts.
//!
//! Post-stratified is the default; the others have conditions under which they are wrong
//! or undefined, and say so.

pub mod post_stratified;
pub mod prediction_powered;
pub mod rogan_gladen;

pub use post_stratified::{Cell, PostStratified, post_stratified};
pub use prediction_powered::{
    Divisor, PredictionPowered, inverse_probability, optimal_weight, ppi_plus_plus, ppi_with_weight,
};
pub use rogan_gladen::{
    Allocation, JudgeCounts, RoganGladen, allocate_labels, judge_bootstrap, lee_interval,
    rogan_gladen,
};
