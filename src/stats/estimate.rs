//! A number never travels without its uncertainty.
//!
//! [`Estimate`] is a point, its interval, the count it stands on and how the interval was
//! made. Bare points exist only where a formula has no interval.

use serde::{Deserialize, Serialize};

/// A closed interval and its nominal coverage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
    /// Nominal coverage in (0,1), such as 0.95.
    pub level: f64,
}

impl Interval {
    /// `point - margin` to `point + margin`.
    #[must_use]
    pub fn around(point: f64, margin: f64, level: f64) -> Self {
        Self { lower: point - margin, upper: point + margin, level }
    }

    /// Both ends moved into `[low, high]`, for quantities that cannot leave it.
    #[must_use]
    pub fn clipped(self, low: f64, high: f64) -> Self {
        Self {
            lower: self.lower.clamp(low, high),
            upper: self.upper.clamp(low, high),
            level: self.level,
        }
    }

    /// `upper - lower`.
    #[must_use]
    pub fn width(self) -> f64 {
        self.upper - self.lower
    }

    /// Whether `value` lies inside, ends included.
    #[must_use]
    pub fn contains(self, value: f64) -> bool {
        (self.lower..=self.upper).contains(&value)
    }
}

/// How an interval was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Method {
    /// Wilson (1927) score interval.
    Wilson,
    /// Clopper and Pearson (1934), exact.
    ClopperPearson,
    /// Beta(k+1/2, n-k+1/2) quantiles.
    Jeffreys,
    /// Agresti and Coull (1998).
    AgrestiCoull,
    /// Normal approximation with an asymptotic standard error.
    Normal,
    /// Student t.
    StudentT,
    /// Normal approximation on Fisher's z scale.
    FisherZ,
    /// F quantiles.
    FisherF,
    /// DeLong, DeLong and Clarke-Pearson (1988).
    DeLong,
    /// Delta method.
    Delta,
    /// Lee et al. (2025), adjusted counts.
    Lee,
    /// Prediction-powered inference with a tuned weight.
    PpiPlusPlus,
    /// Post-stratified by cell with +1/+2 smoothing.
    PostStratified,
    /// Percentile bootstrap.
    BootstrapPercentile,
    /// Bias-corrected and accelerated bootstrap (Efron 1987).
    BootstrapBca,
    /// Jackknife over units.
    Jackknife,
    /// Order statistics of the pairwise slopes (Sen 1968).
    Sen,
    /// Score interval of a difference of paired shares (Tango 1998).
    Tango,
    /// Student t with a standard error over groups, G - 1 degrees of freedom.
    ClusterRobust,
}

/// A point with its interval, its count and its method.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The point estimate.
    pub point: f64,
    /// Its interval.
    pub interval: Interval,
    /// How many observations it stands on.
    pub n: usize,
    /// How the interval was made.
    pub method: Method,
}
