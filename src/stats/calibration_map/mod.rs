//! Maps from a judge's score to the labels' scale.
//!
//! Each map is fitted from paired numbers, stores its parameters, and applies them. Which
//! map a judge deserves is decided above this module.

pub mod affine;
pub mod binning;
pub mod isotonic;
pub mod sigmoid;
pub mod stack;

pub use affine::{
    AffineFit, AffineMap, Offset, SlopePrior, TheilSen, deming, fit_affine, offset,
    ordinary_least_squares, shrunk_affine, theil_sen,
};
pub use binning::HistogramBinning;
pub use isotonic::{IsotonicMap, VennAbers, pava, venn_abers};
pub use sigmoid::{
    BetaMap, LogitLine, Temperature, beta_calibration, firth_sigmoid, platt, platt_unregularised,
    temperature,
};
pub use stack::RidgeStack;
