//! Seat a panel of independent judges, let the median of their votes decide, and know how
//! often that decision is wrong.

pub mod calibration;
pub mod canonical;
pub mod case;
#[cfg(feature = "cli")]
pub mod cli;
pub mod config;
pub mod dataset;
pub mod judge;
pub mod panel;
pub mod provider;
pub mod rubric;
pub mod ruling;
pub mod run;
pub mod score;
pub mod stats;
pub mod store;
pub mod text;
pub mod verdict;
