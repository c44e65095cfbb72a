//! The calibrated panel's own noise: how far apart it scores one output when it is asked twice.
//!
//! From outputs that judges have measured more than once, without any label. Each judge's
//! samples are halved into two votes, the panel is ruled on both, and half of the mean squared
//! difference is the variance of one score (Dahlberg, 1940). A vote of half as many samples is
//! noisier than a whole one, so the figure is an upper one where votes have several samples.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::calibrate::Work;
use super::panel::{Missing, PanelAggregate, PanelModel};
use crate::stats::distribution::normal_quantile;

/// Outputs below which no figure is given: its interval would be wider than itself.
const LEAST: usize = 10;

/// The standard deviation of the panel's score over repeated judgements of one output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RetestNoise {
    /// On the labels' scale brought to [0,1], as the scores of rulings are.
    pub sd: f64,
    /// The lower end of its interval, for normal errors.
    pub lower: f64,
    /// The upper end.
    pub upper: f64,
    /// Outputs that it stands on.
    pub n: u64,
    /// Judges that measured nothing twice: it holds where these give the same each time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub once: Vec<String>,
}

/// Quantile of the chi-squared distribution (Wilson and Hilferty, 1931); to the third digit from
/// 10 degrees of freedom on.
fn chi_squared_quantile(share: f64, degrees: f64) -> f64 {
    let part = 2.0 / (9.0 * degrees);
    degrees * (1.0 - part + normal_quantile(share) * part.sqrt()).powi(3)
}

impl Work<'_> {
    /// The panel's own noise; `None` where too few outputs were measured twice, or the scale
    /// of the labels is not known.
    pub(super) fn retest(&self, model: &PanelModel) -> Option<RetestNoise> {
        let [low, high] = self.scale()?;
        let judges = &self.table.judges;
        let twice: Vec<BTreeMap<usize, [f64; 2]>> = judges
            .iter()
            .map(|judge| judge.retests.iter().map(|own| (own.case, own.votes)).collect())
            .collect();
        let cases: BTreeSet<usize> = twice.iter().flat_map(|own| own.keys().copied()).collect();
        let position = |number: f64| match model.aggregate {
            PanelAggregate::Logistic => 1.0 / (1.0 + (-number).exp()),
            _ => ((number - low) / (high - low)).clamp(0.0, 1.0),
        };
        let squares: Vec<f64> = cases
            .into_iter()
            .filter_map(|case| {
                let votes = |which: usize| -> Option<Vec<Option<f64>>> {
                    let each = judges.iter().zip(&twice).map(|(judge, own)| {
                        match (own.get(&case), judge.scores[case]) {
                            (Some(votes), _) => Some(Some(votes[which])),
                            // Measured once here and twice elsewhere: half of the noise is
                            // missing.
                            (None, Some(_)) if !own.is_empty() => None,
                            (None, once) => Some(once),
                        }
                    });
                    each.collect()
                };
                let (first, second) = (votes(0)?, votes(1)?);
                let key = |votes: &[Option<f64>]| model.key(votes, Missing::LeftOut);
                Some((position(key(&first)?.0) - position(key(&second)?.0)).powi(2))
            })
            .collect();
        let n = squares.len();
        if n < LEAST {
            return None;
        }
        let sum = squares.iter().sum::<f64>() / 2.0;
        let end = |share: f64| (sum / chi_squared_quantile(share, n as f64)).sqrt();
        let tail = (1.0 - self.options.level) / 2.0;
        Some(RetestNoise {
            sd: (sum / n as f64).sqrt(),
            lower: end(1.0 - tail),
            upper: end(tail),
            n: n as u64,
            once: judges
                .iter()
                .zip(&twice)
                .filter(|(_, own)| own.is_empty())
                .map(|(judge, _)| judge.name.clone())
                .collect(),
        })
    }
}
