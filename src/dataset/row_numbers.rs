//! Which row of its file a case was.
//!
//! Cases without an id of their own are named by a hash, which says nothing to a person; the
//! row does. Most data sets have their cases in rows 1, 2, 3 and so on, so only the places are
//! kept at which this count goes on with another number: after rows that were left out, and
//! where a split was chosen.

use serde::{Deserialize, Serialize};

/// Places kept at most; a data set with more has no row numbers.
const MOST: usize = 2_000;

/// From a case's place among the cases that were read to its row in the file, both in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RowNumbers(Option<Vec<[u64; 2]>>);

impl Default for RowNumbers {
    /// Every row of the file is a case.
    fn default() -> Self {
        Self(Some(Vec::new()))
    }
}

impl RowNumbers {
    /// No row is known.
    #[must_use]
    pub fn unknown() -> Self {
        Self(None)
    }

    /// Adds the next case: its place from 0 and its row from 1, both rising.
    pub(crate) fn add(&mut self, place: u64, row: u64) {
        if self.of(place) == Some(row) {
            return;
        }
        if let Some(jumps) = &mut self.0 {
            if jumps.len() == MOST {
                self.0 = None;
            } else {
                jumps.push([place, row]);
            }
        }
    }

    /// The row, from 1 and bad rows counted, of the case in this place, from 0; `None` where
    /// that is not known.
    #[must_use]
    pub fn of(&self, place: u64) -> Option<u64> {
        let jumps = self.0.as_ref()?;
        let after = jumps.partition_point(|[from, _]| *from <= place);
        Some(match after.checked_sub(1).map(|last| jumps[last]) {
            Some([from, row]) => row + (place - from),
            None => place + 1,
        })
    }

    /// The place of the case in a row; `None` where the row is no case, or that is not known.
    #[must_use]
    pub fn place(&self, row: u64) -> Option<u64> {
        let jumps = self.0.as_ref()?;
        let after = jumps.partition_point(|[_, at]| *at <= row);
        let place = match after.checked_sub(1).map(|last| jumps[last]) {
            Some([from, at]) => from + (row - at),
            None => row.checked_sub(1)?,
        };
        (self.of(place) == Some(row)).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_on_after_those_that_were_left_out() {
        let mut rows = RowNumbers::default();
        for (place, row) in [1, 2, 4, 5, 9].into_iter().enumerate() {
            rows.add(place as u64, row);
        }
        assert_eq!(rows, RowNumbers(Some(vec![[2, 4], [4, 9]])));
        assert_eq!((0..5).filter_map(|i| rows.of(i)).collect::<Vec<_>>(), [1, 2, 4, 5, 9]);
        assert_eq!(
            [1, 2, 3, 4, 5, 6, 9].map(|row| rows.place(row)),
            [Some(0), Some(1), None, Some(2), Some(3), None, Some(4)]
        );
        assert_eq!(rows.place(0), None);
    }

    #[test]
    fn a_file_of_cases_alone_needs_no_memory_and_every_second_row_is_given_up() {
        let mut all = RowNumbers::default();
        let mut second = RowNumbers::default();
        for place in 0..10_000 {
            all.add(place, place + 1);
            second.add(place, 2 * place + 2);
        }
        assert_eq!((all.clone(), all.of(9_999)), (RowNumbers::default(), Some(10_000)));
        assert_eq!(second, RowNumbers::unknown());
        assert_eq!((second.of(0), second.place(2)), (None, None), "unknown, never a guess");
    }

    #[test]
    fn they_are_written_and_read_back() {
        let mut rows = RowNumbers::default();
        rows.add(0, 3);
        for own in [rows, RowNumbers::default(), RowNumbers::unknown()] {
            let text = serde_json::to_string(&own).unwrap();
            assert_eq!(serde_json::from_str::<RowNumbers>(&text).unwrap(), own, "{text}");
        }
    }
}
