//! Duplicate keys among millions of rows in little memory.
//!
//! Sixty-four bits of a hash and the row's place are kept for each key, never the key. Equal
//! hashes are only a suspicion, which the caller settles by looking at the row again.

use std::collections::HashMap;

/// Sixty-four bits of BLAKE3 over the parts and their lengths.
pub(crate) fn hash_of(parts: &[&str]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

/// Where a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Which row of the file, from 1.
    pub(crate) number: u64,
    /// The line it begins on.
    pub(crate) line: u64,
}

/// The keys seen so far.
#[derive(Default)]
pub(crate) struct Seen(HashMap<u64, Place>);

impl Seen {
    /// Adds a key by its hash. `same` is asked whether the key really stands at the place of
    /// an equal hash; if so, that place is returned. A hash taken by another key moves on by
    /// one.
    pub(crate) fn add<E>(
        &mut self,
        mut hash: u64,
        place: Place,
        mut same: impl FnMut(Place) -> Result<bool, E>,
    ) -> Result<Option<Place>, E> {
        while let Some(&held) = self.0.get(&hash) {
            if same(held)? {
                return Ok(Some(held));
            }
            hash = hash.wrapping_add(1);
        }
        self.0.insert(hash, place);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collision_is_no_duplicate_and_hides_none() {
        let keys = ["a", "b", "c", "b"];
        let mut seen = Seen::default();
        let found: Vec<Option<u64>> = keys
            .iter()
            .enumerate()
            .map(|(i, key)| {
                let place = Place { number: i as u64, line: i as u64 };
                let same = |held: Place| Ok::<_, ()>(keys[held.number as usize] == *key);
                seen.add(7, place, same).unwrap().map(|held| held.number)
            })
            .collect();
        assert_eq!(found, [None, None, None, Some(1)]);
    }

    #[test]
    fn parts_can_not_flow_into_each_other() {
        assert_ne!(hash_of(&["ab", "c"]), hash_of(&["a", "bc"]));
        assert_eq!(hash_of(&["", "x"]), hash_of(&["", "x"]));
    }
}
