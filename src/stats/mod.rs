//! Numbers in, numbers out: every statistic that venire reports.
//!
//! A pure island that knows nothing of judges, files or clocks. A statistic without a
//! value is an [`Undefined`] with its reason, never NaN and never a silent 0; counts are
//! carried as integers; seeds are parameters, and no result depends on the number of
//! threads.
//!
//! ```
//! use venire::stats::certificate::{Threshold, certify_threshold};
//! use venire::stats::interval::wilson;
//! use venire::stats::{Reason, correlation};
//!
//! let accepted = wilson(3, 60, 0.95)?;
//! assert_eq!(accepted.point, 0.05);
//! assert!(accepted.interval.upper > 0.13);
//!
//! // Forty bad cases are five too few for a bound of 5 % at 90 % confidence.
//! let bad_scores = [0.2; 40];
//! assert_eq!(
//!     certify_threshold(&bad_scores, &bad_scores, 0.05, 0.10)?,
//!     Threshold::TooFewNegatives { n: 40, missing: 5 },
//! );
//!
//! // A constant judge has no correlation, and says why.
//! let none = correlation::pearson(&[0.5; 3], &[0.1, 0.2, 0.3]).unwrap_err();
//! assert_eq!(none.reason, Reason::ConstantInput);
//! # Ok::<(), venire::stats::Undefined>(())
//! ```

pub mod aggregate;
pub mod agreement;
pub mod alternative_annotator;
pub mod auc;
pub mod bland_altman;
pub mod bootstrap;
pub mod calibration_error;
pub mod calibration_map;
pub mod certificate;
pub mod confusion;
pub mod consistency;
pub mod correlation;
pub mod dependence;
pub mod distribution;
pub mod draw;
pub mod drift;
mod estimate;
pub mod evidence;
pub mod grouped_mean;
pub mod interval;
pub mod latent;
pub mod linear;
pub mod logistic;
pub mod looping;
pub mod multiplicity;
pub mod paired;
pub mod rate;
pub mod regression;
pub mod risk;
pub mod sampling;
pub mod shrinkage;
pub mod summary;
#[cfg(test)]
mod tests;
pub mod two_sample;
mod undefined;

pub use estimate::{Estimate, Interval, Method};
pub use undefined::{Defined, Reason, Undefined, deserialize_defined, serialize_defined};
