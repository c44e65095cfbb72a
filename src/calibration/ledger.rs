//! The ledger of looks: which candidates were held against which labels.
//!
//! A certificate's confidence is that of one look. Who changes a prompt because the certificate
//! was poor, and asks the same labels again, chooses the luckiest of several: every further
//! candidate on the same groups halves delta, so that all certificates ever made on them hold
//! together with confidence 1 - 2 delta, and the first alone with 1 - delta. The same candidate
//! again is no further look. A sealed part is looked at once.
//!
//! The ledger keeps hashes of the labels and of what they are about, no names and no texts. It
//! knows what was calibrated with it and nothing else. Who reads it holds it until the look is
//! written: two calibrations at the same time are two looks.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::calibrate::Work;
use super::error::CalibrationError;
use super::grouping::{Groups, Items};
use super::options::Options;
use super::profile::PartGroups;
use super::split::{Part, Split, SplitPlan};
use super::table::Table;
use crate::dataset::LabelSource;

/// Version of the format written and read.
const VERSION: u32 = 1;

/// How often labels were looked at, this time included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Looks {
    /// Which candidate this is on these labels, from 1.
    pub number: u64,
    /// The delta that was asked for; the certificate carries the one that it was made with.
    pub delta_asked: f64,
    /// When the labels were looked at before, and the profile that came of it, where one did.
    pub before: Vec<(String, Option<String>)>,
}

impl Looks {
    /// The delta of this look: half of it for each further candidate.
    #[must_use]
    pub fn delta(&self) -> f64 {
        let halvings = i32::try_from(self.number.saturating_sub(1)).unwrap_or(i32::MAX);
        self.delta_asked * 0.5_f64.powi(halvings)
    }

    /// What to know of a further look; `None` of the first.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let (date, profile) = self.before.last()?;
        let profile = profile.as_ref().map_or(String::new(), |own| format!(", for `{own}`"));
        Some(format!(
            "look {} at these labels (the last before: {date}{profile}): each further candidate halves delta, to {} here; labels that no candidate was held against cost nothing",
            self.number,
            self.delta()
        ))
    }
}

/// What is to be certified, and on which labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// A hash of judges, scores, labels and everything asked for.
    pub id: String,
    /// Hashes of the labels of both parts.
    pub groups: PartGroups,
    /// Whether the certify part was sealed.
    pub sealed: bool,
}

impl Candidate {
    /// The candidate of a calibration; `None` where nothing is certified.
    ///
    /// # Errors
    /// As [`Split::make`].
    pub fn of(
        table: &Table,
        groups: &Groups,
        items: &Items,
        group: &str,
        options: &Options,
    ) -> Result<Option<Self>, CalibrationError> {
        let by_model = table.labels.sources.contains_key(&LabelSource::Model);
        if options.split == SplitPlan::None || by_model {
            return Ok(None);
        }
        let split = Split::make(options.split, options.seed, table.cases(), groups, items, group)?;
        let work = Work { table, groups, items, options, split };
        let asked = serde_json::json!([
            work.data_hash(),
            options.aggregate.name(),
            options.quorum,
            options.mode.name(),
            options.alpha,
            options.delta,
            options.seed,
            options.accept,
            options.loops.as_ref().map(|own| own.generations),
            work.split.report.certify.as_ref().map(|own| own.hash.clone()),
        ]);
        Ok(Some(Self {
            id: blake3::hash(asked.to_string().as_bytes()).to_hex()[..32].to_owned(),
            groups: PartGroups {
                fit: work.label_keys(Part::Fit),
                certify: work.label_keys(Part::Certify),
            },
            sealed: matches!(options.split, SplitPlan::Sealed(_)),
        }))
    }
}

impl Work<'_> {
    /// By which labels are known again: a case's id with all that was said of it, so that another
    /// set with the same ids is another set; its group, where it is not alone in one; and the text
    /// that was judged where the data hold it, so that the same set under new ids is the same.
    fn label_keys(&self, part: Part) -> Vec<String> {
        let labels = &self.table.labels;
        let mut keys = BTreeSet::new();
        for (i, case) in labels.cases.iter().enumerate() {
            if self.split.parts[i] != Some(part) {
                continue;
            }
            let said: Vec<(&str, u64)> = case
                .ratings
                .iter()
                .map(|own| (labels.raters[own.rater as usize].as_str(), own.value.to_bits()))
                .collect();
            let named = serde_json::json!(["label", labels.criterion, case.id, said]).to_string();
            keys.insert(PartGroups::hash(&named));
            let group = &self.groups.names[self.groups.of_case[i]];
            if *group != case.id {
                let named = serde_json::json!(["group", labels.criterion, labels.raters, group]);
                keys.insert(PartGroups::hash(&named.to_string()));
            }
            if let Some(content) = self.items.facts[i].as_ref().and_then(|own| own.content.as_ref())
            {
                keys.insert(PartGroups::hash(&format!("content {content}")));
            }
        }
        keys.into_iter().collect()
    }
}

/// One look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Look {
    date: String,
    candidate: String,
    profile: Option<String>,
    sealed: bool,
    fit: Vec<String>,
    certify: Vec<String>,
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A ledger that nobody else can look at.
#[derive(Debug)]
pub struct Held {
    path: PathBuf,
    /// The ledger.
    pub ledger: Ledger,
    _lock: File,
}

impl Held {
    /// Writes the ledger where it was read.
    ///
    /// # Errors
    /// As [`Ledger::write`].
    pub fn write(&self) -> Result<(), CalibrationError> {
        self.ledger.write(&self.path)
    }
}

/// Every look that was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    version: u32,
    looks: Vec<Look>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { version: VERSION, looks: Vec::new() }
    }
}

impl Ledger {
    /// Reads a ledger for a look that will be written: others wait until it is, or until this is
    /// dropped. One that is not there is empty.
    ///
    /// # Errors
    /// As [`Self::read`], and when it can't be held.
    pub fn hold(path: &Path) -> Result<Held, CalibrationError> {
        let failed = |source| CalibrationError::Ledger {
            action: "hold",
            path: path.display().to_string(),
            source,
        };
        std::fs::create_dir_all(folder_of(path)).map_err(failed)?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".lock");
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let lock = options.open(path.with_file_name(name)).map_err(failed)?;
        match lock.lock() {
            // Where there are no locks, nobody can be told to wait.
            Err(error) if error.kind() != std::io::ErrorKind::Unsupported => {
                return Err(failed(error));
            }
            _ => {}
        }
        Ok(Held { path: path.to_owned(), ledger: Self::read(path)?, _lock: lock })
    }

    /// Reads a ledger; one that is not there is empty.
    ///
    /// # Errors
    /// When it can't be read, is none, or is of another version.
    pub fn read(path: &Path) -> Result<Self, CalibrationError> {
        let failed = |source| CalibrationError::Ledger {
            action: "read",
            path: path.display().to_string(),
            source,
        };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(failed(error)),
        };
        let wrong =
            |text: String| failed(std::io::Error::new(std::io::ErrorKind::InvalidData, text));
        let own: Self = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if own.version != VERSION {
            return Err(wrong(format!("version {} where {VERSION} is understood", own.version)));
        }
        Ok(own)
    }

    /// Writes the ledger; folders are made, and the file appears whole.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn write(&self, path: &Path) -> Result<(), CalibrationError> {
        let failed = |source| CalibrationError::Ledger {
            action: "write",
            path: path.display().to_string(),
            source,
        };
        let folder = folder_of(path);
        std::fs::create_dir_all(folder).map_err(failed)?;
        let text = serde_json::to_string(self).map_err(|error| failed(error.into()))?;
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        std::io::Write::write_all(&mut file, text.as_bytes()).map_err(failed)?;
        file.persist(path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// How often the candidate's labels were looked at.
    ///
    /// # Errors
    /// For a sealed part that another candidate opened, or whose groups were used before.
    pub fn looks(&self, candidate: &Candidate, delta: f64) -> Result<Looks, CalibrationError> {
        let own: HashSet<&String> = candidate.groups.certify.iter().collect();
        let common = |groups: &[String]| groups.iter().filter(|group| own.contains(group)).count();
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut before = Vec::new();
        for look in &self.looks {
            if look.candidate == candidate.id {
                continue;
            }
            let certified = common(&look.certify);
            if candidate.sealed && certified + common(&look.fit) > 0 {
                return Err(if look.sealed && certified > 0 {
                    CalibrationError::SealOpened {
                        date: look.date.clone(),
                        profile: look.profile.clone(),
                    }
                } else {
                    CalibrationError::SealBroken { date: look.date.clone() }
                });
            }
            if certified > 0 && seen.insert(&look.candidate) {
                before.push((look.date.clone(), look.profile.clone()));
            }
        }
        Ok(Looks { number: before.len() as u64 + 1, delta_asked: delta, before })
    }

    /// Records a look; the same candidate again keeps its first date.
    pub fn record(&mut self, candidate: &Candidate, date: &str, profile: Option<&str>) {
        if let Some(held) = self.looks.iter_mut().find(|own| own.candidate == candidate.id) {
            held.profile = profile.map(str::to_owned).or(held.profile.take());
            return;
        }
        self.looks.push(Look {
            date: date.to_owned(),
            candidate: candidate.id.clone(),
            profile: profile.map(str::to_owned),
            sealed: candidate.sealed,
            fit: candidate.groups.fit.clone(),
            certify: candidate.groups.certify.clone(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(id: &str, certify: &[&str], sealed: bool) -> Candidate {
        let owned = |names: &[&str]| names.iter().map(|own| (*own).to_owned()).collect();
        let groups = PartGroups { fit: owned(&["f"]), certify: owned(certify) };
        Candidate { id: id.to_owned(), groups, sealed }
    }

    #[test]
    fn every_further_candidate_on_the_same_groups_halves_delta_and_the_same_one_does_not() {
        let mut ledger = Ledger::default();
        let first = candidate("a", &["g1", "g2"], false);
        assert_eq!(ledger.looks(&first, 0.1).unwrap().delta(), 0.1);
        ledger.record(&first, "monday", Some("one"));
        ledger.record(&first, "tuesday", None);
        let again = ledger.looks(&first, 0.1).unwrap();
        assert_eq!((again.number, again.delta()), (1, 0.1));
        let second = ledger.looks(&candidate("b", &["g2", "g3"], false), 0.1).unwrap();
        assert_eq!((second.number, second.delta()), (2, 0.05));
        assert_eq!(second.before, [("monday".to_owned(), Some("one".to_owned()))]);
        ledger.record(&candidate("b", &["g2", "g3"], false), "friday", None);
        assert_eq!(ledger.looks(&candidate("c", &["g2"], false), 0.1).unwrap().delta(), 0.025);
        let fresh = ledger.looks(&candidate("c", &["g9"], false), 0.1).unwrap();
        assert_eq!(fresh.number, 1, "labels that nobody has seen cost nothing");
    }

    #[test]
    fn all_looks_together_spend_less_than_twice_delta() {
        let delta = |number| Looks { number, delta_asked: 0.1, before: Vec::new() }.delta();
        assert!((1..200).map(delta).sum::<f64>() <= 0.2);
        assert_eq!(delta(5000), 0.0, "and never become negative or infinite");
    }

    #[test]
    fn a_sealed_part_certifies_one_candidate_and_only_unseen_groups() {
        let mut ledger = Ledger::default();
        let sealed = candidate("a", &["s1"], true);
        ledger.record(&sealed, "monday", Some("one"));
        assert!(ledger.looks(&sealed, 0.1).is_ok(), "the same candidate again");
        let other = ledger.looks(&candidate("b", &["s1"], true), 0.1);
        assert!(matches!(other, Err(CalibrationError::SealOpened { .. })), "{other:?}");
        ledger.record(&candidate("c", &["g1"], false), "friday", None);
        let used = ledger.looks(&candidate("d", &["g1", "f"], true), 0.1);
        assert!(matches!(used, Err(CalibrationError::SealBroken { .. })), "{used:?}");
    }

    #[test]
    fn looks_at_the_same_time_are_counted_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("looks.json");
        let numbers: BTreeSet<u64> = std::thread::scope(|scope| {
            let look = |i: usize| {
                let path = &path;
                move || {
                    let mut held = Ledger::hold(path).unwrap();
                    let own = candidate(&i.to_string(), &["g"], false);
                    let number = held.ledger.looks(&own, 0.1).unwrap().number;
                    held.ledger.record(&own, "today", None);
                    held.write().unwrap();
                    number
                }
            };
            let all: Vec<_> = (0..8).map(|i| scope.spawn(look(i))).collect();
            all.into_iter().map(|own| own.join().unwrap()).collect()
        });
        assert_eq!(numbers, (1..=8).collect());
    }

    #[test]
    fn a_ledger_is_read_as_written_and_a_broken_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/looks.json");
        assert_eq!(Ledger::read(&path).unwrap(), Ledger::default());
        let mut ledger = Ledger::default();
        ledger.record(&candidate("a", &["g"], false), "monday", None);
        ledger.write(&path).unwrap();
        assert_eq!(Ledger::read(&path).unwrap(), ledger);
        for broken in ["", "{}", r#"{"version": 2, "looks": []}"#] {
            std::fs::write(&path, broken).unwrap();
            assert!(Ledger::read(&path).is_err(), "{broken}");
        }
    }
}
