//! Agreement between raters, corrected for chance.
//!
//! Each coefficient needs the declared category domain or says so: weights depend on it.
//! Negative values are legal and never clipped.

pub mod fleiss;
pub mod gwet;
pub mod icc;
pub mod kappa;
pub mod krippendorff;

pub use fleiss::{FleissKappa, fleiss_kappa};
pub use gwet::{ChanceCorrected, WeightedAgreement, gwet_coefficients};
pub use icc::{IccTable, IntraclassCorrelation, cronbach_alpha, icc};
pub use kappa::{CategoryTable, KappaEstimate, Weighting};
pub use krippendorff::{Level, krippendorff_alpha, krippendorff_bootstrap};
