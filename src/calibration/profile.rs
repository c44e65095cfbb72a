//! The profile: a fitted calibration as a file, `calibration/NAME.json`.
//!
//! It carries the judges' fingerprints, the data's hash, the split, the maps and the
//! certificate, and a hash of itself. It is refused when its version is another, when it was
//! edited, when its parts overlap, and when it is used with other judges.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::certificate::{Certificate, CertificateStatus};
use super::error::CalibrationError;
use super::panel::{Key, Missing, PanelModel};
use super::positive::Positive;
use super::report::{Binding, Calibration};
use super::split::SplitReport;
use crate::canonical::canonical_json;
use crate::ruling::Decision;
use crate::verdict::Fingerprint;

/// Version of the format written and read.
pub const VERSION: u32 = 1;

/// Hashes of the groups of both parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartGroups {
    /// Groups that were fitted on.
    pub fit: Vec<String>,
    /// Groups that certify.
    pub certify: Vec<String>,
}

impl PartGroups {
    /// A group as it is kept: its name may be a question or a person.
    #[must_use]
    pub fn hash(name: &str) -> String {
        blake3::hash(name.as_bytes()).to_hex()[..12].to_owned()
    }

    fn overlap(&self) -> Option<&String> {
        let fit: std::collections::HashSet<&String> = self.fit.iter().collect();
        self.certify.iter().find(|group| fit.contains(group))
    }
}

/// A fitted calibration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Version of the format.
    pub version: u32,
    /// The profile's name.
    pub name: String,
    /// `calibration`, or `agreement_with_a_model`.
    pub kind: String,
    /// The criterion.
    pub criterion: String,
    /// Which labels are good.
    pub positive: Positive,
    /// From the judges' scores to a key.
    pub panel: PanelModel,
    /// The promise, or what was missing for one.
    pub certificate: Certificate,
    /// What it holds for.
    pub binding: Binding,
    /// The split.
    pub split: SplitReport,
    /// Groups of both parts.
    pub groups: PartGroups,
    /// The whole report.
    pub figures: Value,
}

/// How a profile fits the judges of a panel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileFit {
    /// Judges whose fingerprint the profile does not know, matched by name only.
    pub unverified: Vec<String>,
}

/// What the calibrated panel says about one case.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibratedRuling {
    /// The calibrated score, on the labels' scale; `None` below the quorum.
    pub score: Option<f64>,
    /// The key that decides.
    pub key: Option<Key>,
    /// The decision by the certified threshold; `undecided` without one, or without quorum.
    pub decision: Decision,
    /// Whether the threshold is certified.
    pub certified: bool,
    /// Whether a vote is missing.
    pub degraded: bool,
}

impl Profile {
    /// The profile of a calibration.
    #[must_use]
    pub fn new(name: &str, calibration: &Calibration) -> Self {
        Self {
            version: VERSION,
            name: name.to_owned(),
            kind: calibration.kind.to_owned(),
            criterion: calibration.criterion.clone(),
            positive: calibration.positive.clone(),
            panel: calibration.panel.model.clone(),
            certificate: calibration.certificate.certificate.clone(),
            binding: calibration.certificate.binding.clone(),
            split: calibration.split.clone(),
            groups: calibration.groups.clone(),
            figures: calibration.to_json(),
        }
    }

    /// The profile as text, with its own hash.
    ///
    /// # Errors
    /// When it can't be written as JSON.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        let mut value = serde_json::to_value(self)?;
        let hash = content_hash(&value);
        if let Some(map) = value.as_object_mut() {
            map.insert("hash".to_owned(), Value::String(hash));
        }
        serde_json::to_string_pretty(&value).map(|text| text + "\n")
    }

    /// Writes the profile; folders are made.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn write(&self, path: &Path) -> Result<(), CalibrationError> {
        let failed = |source| CalibrationError::ProfileFile {
            action: "write",
            path: path.display().to_string(),
            source,
        };
        let text = self.to_text().map_err(|error| failed(std::io::Error::other(error)))?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        std::fs::write(path, text).map_err(failed)
    }

    /// Reads a profile.
    ///
    /// # Errors
    /// When it can't be read, is none, is of another version, was edited, or its parts share
    /// a group.
    pub fn read(path: &Path) -> Result<Self, CalibrationError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| {
            CalibrationError::ProfileFile { action: "read", path: name.clone(), source }
        })?;
        Self::from_text(&text, &name)
    }

    /// Reads a profile's text; `path` is for messages.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn from_text(text: &str, path: &str) -> Result<Self, CalibrationError> {
        let shape =
            |message: String| CalibrationError::ProfileShape { path: path.to_owned(), message };
        let mut value = crate::config::json(text).map_err(shape)?;
        let version = value.get("version").and_then(Value::as_u64);
        let version = version.ok_or_else(|| shape("it has no `version`".to_owned()))?;
        if version != u64::from(VERSION) {
            return Err(CalibrationError::ProfileVersion {
                path: path.to_owned(),
                found: version,
                supported: u64::from(VERSION),
            });
        }
        let held = value.as_object_mut().and_then(|map| map.remove("hash"));
        let expected = match held {
            Some(Value::String(hash)) => hash,
            _ => return Err(shape("it has no `hash`".to_owned())),
        };
        let found = content_hash(&value);
        if found != expected {
            return Err(CalibrationError::ProfileEdited { path: path.to_owned(), found, expected });
        }
        let profile: Self =
            crate::config::from_value(value).map_err(|problem| shape(problem.to_string()))?;
        if let Some(group) = profile.groups.overlap() {
            return Err(shape(format!("group {group} is in its fit and in its certify part")));
        }
        Ok(profile)
    }

    /// Whether the profile is for these judges, given by name and fingerprint.
    ///
    /// # Errors
    /// With what changed: judges added, missing, or with another fingerprint.
    pub fn check(&self, judges: &[(&str, &Fingerprint)]) -> Result<ProfileFit, CalibrationError> {
        let mut fit = ProfileFit::default();
        let mut changes = Vec::new();
        for (name, fingerprint) in judges {
            match self.binding.fingerprints.get(*name) {
                None => changes.push(format!("judge `{name}` is new")),
                Some(None) => fit.unverified.push((*name).to_owned()),
                Some(Some(known)) if known != *fingerprint => changes.push(format!(
                    "judge `{name}` is another: its fingerprint was {} and is {}",
                    known.as_str(),
                    fingerprint.as_str()
                )),
                Some(Some(_)) => {}
            }
        }
        for name in self.binding.fingerprints.keys() {
            if !judges.iter().any(|(judge, _)| judge == name) {
                changes.push(format!("judge `{name}` is missing"));
            }
        }
        if changes.is_empty() {
            Ok(fit)
        } else {
            Err(CalibrationError::ProfileMismatch { changes })
        }
    }

    /// What the calibrated panel says about one case: `vote` gives each judge's score in the
    /// unit that was calibrated, `None` where it has none.
    #[must_use]
    pub fn rule(&self, vote: impl Fn(&str) -> Option<f64>) -> CalibratedRuling {
        let votes: Vec<Option<f64>> =
            self.panel.seats.iter().map(|seat| vote(&seat.judge)).collect();
        let key = self.panel.key(&votes, Missing::LeftOut);
        let threshold = self.certificate.certified_key();
        let decision = match (key, threshold) {
            (Some(key), Some(threshold)) if key >= threshold => Decision::Accept,
            (Some(_), Some(_)) => Decision::Reject,
            _ => Decision::Undecided,
        };
        CalibratedRuling {
            score: key.map(|key| self.panel.map.apply(key.0)),
            key,
            decision,
            certified: self.certificate.status == CertificateStatus::Certified,
            degraded: votes.iter().any(Option::is_none),
        }
    }
}

fn content_hash(value: &Value) -> String {
    blake3::hash(canonical_json(value).as_bytes()).to_hex()[..32].to_owned()
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
