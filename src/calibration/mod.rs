//! Calibration: labels x verdicts become bias, error rates, maps, a threshold with its bound,
//! and a profile that says which judges and data they hold for.
//!
//! What is fitted and what certifies are disjoint groups of cases. Judgements without a label
//! and judges without a score are counted and never guessed; a figure that the data can't give
//! is undefined with its reason; too few bad cases give *not certifiable*, never a number.
//! Labels by a model are never called calibration and certify nothing.

pub mod as_run;
pub mod baselines;
mod board_words;
mod calibrate;
pub mod certificate;
pub mod certified_alone;
pub mod compare;
pub mod compare_certified;
pub mod contender;
pub mod curves;
pub mod dependence;
pub mod drift;
pub mod drift_profile;
pub mod drift_series;
mod error;
pub mod estimate;
mod estimate_cells;
pub mod figure;
mod group_hint;
pub mod grouping;
pub mod in_force;
pub mod judge_metrics;
pub mod label_noise;
pub mod labelled;
pub mod leaderboard;
pub mod ledger;
pub mod limit;
pub mod loops;
pub mod map;
mod operating_point;
mod options;
pub mod paired_recording;
pub mod pairwise;
pub mod panel;
mod panel_report;
mod positive;
pub mod profile;
mod promises;
pub mod raters;
pub mod read;
pub mod recording;
pub mod report;
pub mod retest;
mod seated;
pub mod slices;
pub mod split;
pub mod subsets;
mod sums;
pub mod table;
pub mod table_builder;
pub mod trajectories;

pub use calibrate::{calibrate, certify};
pub use error::CalibrationError;
pub use figure::{Figure, Measured};
pub use in_force::InForce;
pub use options::Options;
pub use positive::{Accept, Positive};
pub use profile::Profile;
pub use report::Calibration;
