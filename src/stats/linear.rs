//! The little linear algebra the fits need: symmetric solves of a handful of unknowns.
//!
//! Matrices are rows of `Vec<f64>`; nothing here is meant for more than some dozens of
//! columns.

use super::undefined::{Defined, Reason, undefined};

/// Solves `A x = b` by Gaussian elimination with partial pivoting.
///
/// # Errors
/// `singular_matrix` when a pivot vanishes relative to its column's scale.
pub fn solve(matrix: &[Vec<f64>], right: &[f64]) -> Defined<Vec<f64>> {
    let columns: Vec<Vec<f64>> = right.iter().map(|&b| vec![b]).collect();
    Ok(eliminate(matrix, columns)?.into_iter().map(|row| row[0]).collect())
}

/// The inverse of a square matrix.
///
/// # Errors
/// `singular_matrix`.
pub fn inverse(matrix: &[Vec<f64>]) -> Defined<Vec<Vec<f64>>> {
    let n = matrix.len();
    let identity =
        (0..n).map(|i| (0..n).map(|j| if i == j { 1.0 } else { 0.0 }).collect()).collect();
    eliminate(matrix, identity)
}

fn eliminate(matrix: &[Vec<f64>], mut right: Vec<Vec<f64>>) -> Defined<Vec<Vec<f64>>> {
    let n = matrix.len();
    if n == 0 || matrix.iter().any(|row| row.len() != n) || right.len() != n {
        return undefined(Reason::LengthMismatch);
    }
    let mut a: Vec<Vec<f64>> = matrix.to_vec();
    let scale = a.iter().flatten().fold(0.0f64, |m, v| m.max(v.abs()));
    if !scale.is_finite() {
        return undefined(Reason::NotFinite);
    }
    // Column scales, so that badly scaled but regular problems (a length of 1e5 beside an
    // intercept of 1) are not called singular.
    let column_scale: Vec<f64> =
        (0..n).map(|j| a.iter().fold(0.0f64, |m, row| m.max(row[j].abs()))).collect();
    for col in 0..n {
        let pivot =
            (col..n).max_by(|&i, &j| a[i][col].abs().total_cmp(&a[j][col].abs())).unwrap_or(col);
        if a[pivot][col].abs() <= 1e-13 * column_scale[col] {
            return undefined(Reason::SingularMatrix);
        }
        a.swap(col, pivot);
        right.swap(col, pivot);
        let (head, tail) = a.split_at_mut(col + 1);
        let (right_head, right_tail) = right.split_at_mut(col + 1);
        let (pivot_row, pivot_right) = (&head[col], &right_head[col]);
        for (row, right_row) in tail.iter_mut().zip(right_tail) {
            let factor = row[col] / pivot_row[col];
            if factor != 0.0 {
                row.iter_mut().zip(pivot_row).for_each(|(v, p)| *v -= factor * p);
                right_row.iter_mut().zip(pivot_right).for_each(|(v, p)| *v -= factor * p);
            }
        }
    }
    for col in (0..n).rev() {
        let (head, tail) = right.split_at_mut(col + 1);
        for (k, value) in head[col].iter_mut().enumerate() {
            let known: f64 = a[col][col + 1..].iter().zip(tail.iter()).map(|(m, x)| m * x[k]).sum();
            *value = (*value - known) / a[col][col];
        }
    }
    Ok(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverse_times_matrix_is_identity() {
        let m = vec![vec![4.0, 1.0, 0.5], vec![1.0, 3.0, 0.2], vec![0.5, 0.2, 2.0]];
        let inv = inverse(&m).unwrap();
        for (i, row) in m.iter().enumerate() {
            for j in 0..3 {
                let v: f64 = row.iter().zip(&inv).map(|(a, b)| a * b[j]).sum();
                assert!((v - f64::from(u8::from(i == j))).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn a_singular_matrix_is_refused() {
        let m = vec![vec![1.0, 2.0], vec![2.0, 4.0]];
        assert_eq!(solve(&m, &[1.0, 2.0]).unwrap_err().reason, Reason::SingularMatrix);
        assert!(solve(&[], &[]).is_err());
    }
}
