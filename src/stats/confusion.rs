//! The 2 x 2 table of a judge's decisions against labels, and every rate read from it.
//!
//! Counts are the truth and are carried as integers; rates are computed from them on
//! demand and never the other way round.

use serde::{Deserialize, Serialize};

use super::interval::wilson;
use super::undefined::{Defined, Reason, serialize_defined, undefined};
use super::{Estimate, agreement::kappa};

/// Decisions against truth; "positive" is truly good, respectively accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confusion {
    /// Truly good and accepted.
    pub true_positive: u64,
    /// Truly good and not accepted.
    pub false_negative: u64,
    /// Truly bad and accepted.
    pub false_positive: u64,
    /// Truly bad and not accepted.
    pub true_negative: u64,
}

fn share(part: u64, whole: u64, empty: Reason) -> Defined {
    if whole == 0 { undefined(empty) } else { Ok(part as f64 / whole as f64) }
}

impl Confusion {
    /// Counts pairs of (truth, decision).
    ///
    /// # Errors
    /// `length_mismatch` when the series differ in length.
    pub fn from_decisions(truth: &[bool], accepted: &[bool]) -> Defined<Self> {
        if truth.len() != accepted.len() {
            return undefined(Reason::LengthMismatch);
        }
        let mut table = Self::default();
        for (&good, &accept) in truth.iter().zip(accepted) {
            match (good, accept) {
                (true, true) => table.true_positive += 1,
                (true, false) => table.false_negative += 1,
                (false, true) => table.false_positive += 1,
                (false, false) => table.true_negative += 1,
            }
        }
        Ok(table)
    }

    /// Truly good cases.
    #[must_use]
    pub fn positives(&self) -> u64 {
        self.true_positive.saturating_add(self.false_negative)
    }

    /// Truly bad cases.
    #[must_use]
    pub fn negatives(&self) -> u64 {
        self.false_positive.saturating_add(self.true_negative)
    }

    /// Accepted cases.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.true_positive.saturating_add(self.false_positive)
    }

    /// All cases.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.positives().saturating_add(self.negatives())
    }

    /// TPR = TP / (TP + FN), sensitivity; in \[0,1\].
    ///
    /// # Errors
    /// `no_positives`.
    pub fn true_positive_rate(&self) -> Defined {
        share(self.true_positive, self.positives(), Reason::NoPositives)
    }

    /// TNR = TN / (TN + FP), specificity; in \[0,1\].
    ///
    /// # Errors
    /// `no_negatives`.
    pub fn true_negative_rate(&self) -> Defined {
        share(self.true_negative, self.negatives(), Reason::NoNegatives)
    }

    /// FPR = FP / (TN + FP) = P(accepted | truly bad).
    ///
    /// # Errors
    /// `no_negatives`.
    pub fn false_positive_rate(&self) -> Defined {
        share(self.false_positive, self.negatives(), Reason::NoNegatives)
    }

    /// FNR = FN / (TP + FN) = P(not accepted | truly good).
    ///
    /// # Errors
    /// `no_positives`.
    pub fn false_negative_rate(&self) -> Defined {
        share(self.false_negative, self.positives(), Reason::NoPositives)
    }

    /// FP / (TP + FP) = P(truly bad | accepted), the false discovery rate; it moves with
    /// the share of bad cases.
    ///
    /// # Errors
    /// `no_predicted_positives`.
    pub fn false_acceptance_share(&self) -> Defined {
        share(self.false_positive, self.accepted(), Reason::NoPredictedPositives)
    }

    /// Positive predictive value, TP / (TP + FP).
    ///
    /// # Errors
    /// `no_predicted_positives`.
    pub fn precision(&self) -> Defined {
        share(self.true_positive, self.accepted(), Reason::NoPredictedPositives)
    }

    /// NPV = TN / (TN + FN).
    ///
    /// # Errors
    /// `no_predicted_negatives`.
    pub fn negative_predictive_value(&self) -> Defined {
        let rejected = self.true_negative.saturating_add(self.false_negative);
        share(self.true_negative, rejected, Reason::NoPredictedNegatives)
    }

    /// (TP + TN) / n.
    ///
    /// # Errors
    /// `no_data`.
    pub fn accuracy(&self) -> Defined {
        share(self.true_positive.saturating_add(self.true_negative), self.n(), Reason::NoData)
    }

    /// (TPR + TNR) / 2; 1/2 for a constant judge.
    ///
    /// # Errors
    /// `no_positives`, `no_negatives`.
    pub fn balanced_accuracy(&self) -> Defined {
        Ok(f64::midpoint(self.true_positive_rate()?, self.true_negative_rate()?))
    }

    /// J = TPR + TNR - 1 (Youden 1950), in \[-1,1\].
    ///
    /// # Errors
    /// `no_positives`, `no_negatives`.
    pub fn youden_j(&self) -> Defined {
        Ok(self.true_positive_rate()? + self.true_negative_rate()? - 1.0)
    }

    /// F1 = 2 TP / (2 TP + FP + FN).
    ///
    /// # Errors
    /// `no_positives` when there is neither a positive nor an accepted case.
    pub fn f1(&self) -> Defined {
        let doubled = self.true_positive.saturating_mul(2);
        let whole = doubled.saturating_add(self.false_positive).saturating_add(self.false_negative);
        share(doubled, whole, Reason::NoPositives)
    }

    /// Matthews correlation (1975) = phi of the table, in \[-1,1\].
    ///
    /// # Errors
    /// `no_data`, or `constant_input` when a margin is empty.
    pub fn matthews(&self) -> Defined {
        if self.n() == 0 {
            return undefined(Reason::NoData);
        }
        let [tp, fn_, fp, tn] =
            [self.true_positive, self.false_negative, self.false_positive, self.true_negative]
                .map(|v| v as f64);
        let product = (tp + fp) * (tp + fn_) * (tn + fp) * (tn + fn_);
        if product == 0.0 {
            return undefined(Reason::ConstantInput);
        }
        Ok((tp * tn - fp * fn_) / product.sqrt())
    }

    /// Cohen's kappa of decision against truth.
    ///
    /// # Errors
    /// As [`kappa::CategoryTable::kappa`].
    pub fn kappa(&self) -> Defined {
        kappa::CategoryTable::new(vec![
            vec![self.true_negative, self.false_positive],
            vec![self.false_negative, self.true_positive],
        ])?
        .kappa(kappa::Weighting::Unweighted)
    }

    /// [`Self::false_positive_rate`] with its Wilson interval.
    ///
    /// # Errors
    /// `no_negatives`.
    pub fn false_positive_estimate(&self, level: f64) -> Defined<Estimate> {
        if self.negatives() == 0 {
            return undefined(Reason::NoNegatives);
        }
        wilson(self.false_positive, self.negatives(), level)
    }

    /// [`Self::true_positive_rate`] with its Wilson interval.
    ///
    /// # Errors
    /// `no_positives`.
    pub fn true_positive_estimate(&self, level: f64) -> Defined<Estimate> {
        if self.positives() == 0 {
            return undefined(Reason::NoPositives);
        }
        wilson(self.true_positive, self.positives(), level)
    }

    /// All rates at once, each defined or with its reason.
    #[must_use]
    pub fn rates(&self) -> ConfusionRates {
        ConfusionRates {
            true_positive_rate: self.true_positive_rate(),
            true_negative_rate: self.true_negative_rate(),
            false_positive_rate: self.false_positive_rate(),
            false_negative_rate: self.false_negative_rate(),
            precision: self.precision(),
            negative_predictive_value: self.negative_predictive_value(),
            false_acceptance_share: self.false_acceptance_share(),
            accuracy: self.accuracy(),
            balanced_accuracy: self.balanced_accuracy(),
            youden_j: self.youden_j(),
            f1: self.f1(),
            matthews: self.matthews(),
            kappa: self.kappa(),
        }
    }
}

/// The rates of a [`Confusion`]; each is the function of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "each field is documented at the function of its name")]
pub struct ConfusionRates {
    #[serde(serialize_with = "serialize_defined")]
    pub true_positive_rate: Defined,
    #[serde(serialize_with = "serialize_defined")]
    pub true_negative_rate: Defined,
    #[serde(serialize_with = "serialize_defined")]
    pub false_positive_rate: Defined,
    #[serde(serialize_with = "serialize_defined")]
    pub false_negative_rate: Defined,
    #[serde(serialize_with = "serialize_defined")]
    pub precision: Defined,
    #[serde(serialize_with = "serialize_defined")]
    pub negative_predictive_value: Defined,
    #[serde(serialize_with = "serialize_defined")]
    pub false_acceptance_share: Defined,
    #[serde(serialize_with = "serialize_defined")]
    pub accuracy: Defined,
    #[serde(serialize_with = "serialize_defined")]
    pub balanced_accuracy: Defined,
    #[serde(serialize_with = "serialize_defined")]
    pub youden_j: Defined,
    #[serde(serialize_with = "serialize_defined")]
    pub f1: Defined,
    #[serde(serialize_with = "serialize_defined")]
    pub matthews: Defined,
    #[serde(serialize_with = "serialize_defined")]
    pub kappa: Defined,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_class_makes_its_rates_undefined_and_leaves_the_others() {
        let table = Confusion::from_decisions(&[true, true], &[true, false]).unwrap();
        let rates = table.rates();
        assert_eq!(rates.true_positive_rate, Ok(0.5));
        assert_eq!(rates.false_positive_rate.unwrap_err().reason, Reason::NoNegatives);
        assert_eq!(rates.balanced_accuracy.unwrap_err().reason, Reason::NoNegatives);
        let json = serde_json::to_value(rates).unwrap();
        assert_eq!(json["false_positive_rate"]["undefined"], "no_negatives");
    }

    #[test]
    fn a_constant_judge_has_kappa_zero_and_no_matthews() {
        let table = Confusion::from_decisions(&[true, false, true], &[true; 3]).unwrap();
        assert_eq!(table.kappa(), Ok(0.0));
        assert_eq!(table.matthews().unwrap_err().reason, Reason::ConstantInput);
    }

    #[test]
    fn nothing_defines_no_rate() {
        let table = Confusion::from_decisions(&[], &[]).unwrap();
        assert!(table.accuracy().is_err() && table.f1().is_err() && table.kappa().is_err());
        assert!(Confusion::from_decisions(&[true], &[]).is_err());
    }
}
