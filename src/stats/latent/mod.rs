//! Latent-class models of judges without labels.
//!
//! Diagnostics only: they assume that judges err independently given the truth, which
//! judges of one model family do not. Nothing is certified from them.

pub mod dawid_skene;
pub mod triplet;

pub use dawid_skene::{DawidSkene, Fit, Observations, OneCoin};
pub use triplet::{TripletAccuracy, triplet, triplet_from_votes};
