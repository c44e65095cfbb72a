//! Numbers in, numbers out: every statistic that venire reports.
//!
//! A pure island that knows nothing of judges, files or clocks. A statistic without a
//! value is an [`Undefined`] with its reason, never NaN and never a silent 0; counts are
//! carried as integers; seeds are parameters, and no result depends on the number of
//! threads.

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
pub mod drift;
mod estimate;
pub mod evidence;
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
pub mod two_sample;
mod undefined;

pub use estimate::{Estimate, Interval, Method};
pub use undefined::{Defined, Reason, Undefined, deserialize_defined, serialize_defined};
