//! Intraclass correlations of a complete targets x raters table, and Cronbach's alpha.

use serde::Serialize;

use crate::stats::distribution::f_quantile;
use crate::stats::undefined::{Defined, Reason, require_finite, require_open_unit, undefined};
use crate::stats::{Estimate, Interval, Method};

/// The six coefficients of Shrout and Fleiss (1979) with the F intervals of McGraw and
/// Wong (1996), and the mean squares they come from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct IntraclassCorrelation {
    /// Mean square between targets.
    pub mean_square_targets: f64,
    /// Mean square between raters.
    pub mean_square_raters: f64,
    /// Residual mean square.
    pub mean_square_error: f64,
    /// Mean square within targets.
    pub mean_square_within: f64,
    /// ICC(1,1): one-way, single rater.
    pub one_way: Estimate,
    /// ICC(A,1), also ICC(2,1): two-way, absolute agreement.
    pub agreement: Estimate,
    /// ICC(C,1), also ICC(3,1): two-way, consistency.
    pub consistency: Estimate,
    /// ICC(1,k): mean of the raters.
    pub one_way_mean: Estimate,
    /// ICC(A,k).
    pub agreement_mean: Estimate,
    /// ICC(C,k); equals Cronbach's alpha.
    pub consistency_mean: Estimate,
}

/// Rows are targets, columns raters.
pub type IccTable = [Vec<f64>];

struct MeanSquares {
    n: f64,
    k: f64,
    targets: f64,
    raters: f64,
    error: f64,
    within: f64,
}

fn mean_squares(table: &IccTable) -> Defined<MeanSquares> {
    let Some(first) = table.first() else { return undefined(Reason::NoData) };
    let (n, k) = (table.len(), first.len());
    if table.iter().any(|row| row.len() != k || row.iter().any(|v| v.is_nan())) {
        return undefined(Reason::MissingCells);
    }
    if k < 2 {
        return undefined(Reason::TooFewRaters);
    }
    if n < 2 {
        return undefined(Reason::TooFewValues);
    }
    table.iter().try_for_each(|row| require_finite(row))?;
    if table.iter().flatten().all(|v| *v == table[0][0]) {
        return undefined(Reason::ConstantInput);
    }
    let (nf, kf) = (n as f64, k as f64);
    let grand = table.iter().flatten().sum::<f64>() / (nf * kf);
    let row_mean: Vec<f64> = table.iter().map(|row| row.iter().sum::<f64>() / kf).collect();
    let column_mean: Vec<f64> =
        (0..k).map(|j| table.iter().map(|row| row[j]).sum::<f64>() / nf).collect();
    let square = |v: f64| v * v;
    let between: f64 = kf * row_mean.iter().map(|m| square(m - grand)).sum::<f64>();
    let raters: f64 = nf * column_mean.iter().map(|m| square(m - grand)).sum::<f64>();
    let cells = || {
        table
            .iter()
            .enumerate()
            .flat_map(|(i, row)| row.iter().enumerate().map(move |(j, v)| (i, j, *v)))
    };
    let within: f64 = cells().map(|(i, _, v)| square(v - row_mean[i])).sum();
    let error: f64 =
        cells().map(|(i, j, v)| square(v - row_mean[i] - column_mean[j] + grand)).sum();
    Ok(MeanSquares {
        n: nf,
        k: kf,
        targets: between / (nf - 1.0),
        raters: raters / (kf - 1.0),
        error: error / ((nf - 1.0) * (kf - 1.0)),
        within: within / (nf * (kf - 1.0)),
    })
}

/// All six intraclass correlations. At most 1; negative values are legal.
///
/// # Errors
/// `missing_cells` for ragged rows or NaN (a complete table is needed), `too_few_raters`,
/// `too_few_values` below two targets, `constant_input`, `zero_denominator` when the mean
/// squares leave a ratio 0/0.
pub fn icc(table: &IccTable, level: f64) -> Defined<IntraclassCorrelation> {
    require_open_unit(level)?;
    let MeanSquares { n, k, targets, raters, error, within } = mean_squares(table)?;
    let ratio = |a: f64, b: f64| {
        if b == 0.0 { undefined(Reason::ZeroDenominator) } else { Ok(a / b) }
    };
    let upper_tail = f64::midpoint(1.0, level);
    let estimate = |point: f64, lower: f64, upper: f64| Estimate {
        point,
        interval: Interval { lower, upper, level },
        n: table.len(),
        method: Method::FisherF,
    };
    // Single-rater and mean forms of an F ratio; an infinite F (no error) gives 1.
    let single = |f: f64| if f.is_infinite() { 1.0 } else { (f - 1.0) / (f + k - 1.0) };
    let averaged = |f: f64| 1.0 - 1.0 / f;
    let one_way = ratio(targets - within, targets + (k - 1.0) * within)?;
    let consistency = ratio(targets - error, targets + (k - 1.0) * error)?;
    let agreement = ratio(targets - error, targets + (k - 1.0) * error + k * (raters - error) / n)?;
    let f1 = targets / within;
    let (df1, df1_within) = (n - 1.0, n * (k - 1.0));
    let (f1_low, f1_high) = (
        f1 / f_quantile(upper_tail, df1, df1_within),
        f1 * f_quantile(upper_tail, df1_within, df1),
    );
    let f3 = targets / error;
    let df_error = (n - 1.0) * (k - 1.0);
    let (f3_low, f3_high) =
        (f3 / f_quantile(upper_tail, df1, df_error), f3 * f_quantile(upper_tail, df_error, df1));
    // Satterthwaite degrees of freedom of the denominator of ICC(A,1).
    let fj = raters / error;
    let (low, high) = if fj.is_finite() {
        let top = df_error
            * (k * agreement * fj + n * (1.0 + (k - 1.0) * agreement) - k * agreement).powi(2);
        let bottom = df1 * (k * agreement * fj).powi(2)
            + (n * (1.0 + (k - 1.0) * agreement) - k * agreement).powi(2);
        let v = top / bottom;
        let (fl, fu) = (f_quantile(upper_tail, df1, v), f_quantile(upper_tail, v, df1));
        let base = k * raters + (k * n - k - n) * error;
        // With almost no degrees of freedom left the quantiles are infinite; these are the
        // limits of the quotients.
        let low = if fl.is_finite() {
            n * (targets - fl * error) / (fl * base + n * targets)
        } else {
            -n * error / base
        };
        let high = if fu.is_finite() {
            n * (fu * targets - error) / (base + n * fu * targets)
        } else {
            1.0
        };
        (low, high)
    } else {
        // Without residual the only disagreement is the raters' shift.
        let v = k - 1.0;
        let (fl, fu) = (f_quantile(upper_tail, df1, v), f_quantile(upper_tail, v, df1));
        (
            n * targets / (fl * k * raters + n * targets),
            n * fu * targets / (k * raters + n * fu * targets),
        )
    };
    let spearman_brown = |r: f64| k * r / (1.0 + (k - 1.0) * r);
    Ok(IntraclassCorrelation {
        mean_square_targets: targets,
        mean_square_raters: raters,
        mean_square_error: error,
        mean_square_within: within,
        one_way: estimate(one_way, single(f1_low), single(f1_high)),
        agreement: estimate(agreement, low, high),
        consistency: estimate(consistency, single(f3_low), single(f3_high)),
        one_way_mean: estimate(
            ratio(targets - within, targets)?,
            averaged(f1_low),
            averaged(f1_high),
        ),
        agreement_mean: estimate(
            ratio(targets - error, targets + (raters - error) / n)?,
            spearman_brown(low),
            spearman_brown(high),
        ),
        consistency_mean: estimate(
            ratio(targets - error, targets)?,
            averaged(f3_low),
            averaged(f3_high),
        ),
    })
}

/// Cronbach's alpha (1951): `k/(k-1) (1 - sum var_j / var(total))` over targets x items;
/// at most 1, negative values legal.
///
/// # Errors
/// As [`icc`]; `zero_denominator` when the totals do not vary.
pub fn cronbach_alpha(table: &IccTable) -> Defined {
    let squares = mean_squares(table)?;
    if squares.targets == 0.0 {
        return undefined(Reason::ZeroDenominator);
    }
    // Identical to ICC(C,k), which avoids cancellation between the variances.
    Ok((squares.targets - squares.error) / squares.targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perfect_agreement_is_one() {
        let t = vec![vec![1.0, 1.0], vec![2.0, 2.0], vec![4.0, 4.0]];
        let r = icc(&t, 0.95).unwrap();
        assert_eq!((r.one_way.point, r.agreement.point, r.consistency.point), (1.0, 1.0, 1.0));
    }

    #[test]
    fn holes_and_constants_are_undefined() {
        let hole = vec![vec![1.0, f64::NAN], vec![2.0, 2.0]];
        assert_eq!(icc(&hole, 0.95).unwrap_err().reason, Reason::MissingCells);
        let flat = vec![vec![1.0, 1.0], vec![1.0, 1.0]];
        assert_eq!(icc(&flat, 0.95).unwrap_err().reason, Reason::ConstantInput);
        assert_eq!(icc(&[vec![1.0, 2.0]], 0.95).unwrap_err().reason, Reason::TooFewValues);
        assert_eq!(
            cronbach_alpha(&[vec![1.0], vec![2.0]]).unwrap_err().reason,
            Reason::TooFewRaters
        );
    }
}
