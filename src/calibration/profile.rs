//! The profile: a fitted calibration as a file, `calibration/NAME.json`.
//!
//! It carries the judges' fingerprints, the data's hash, the split, the maps, the certificate
//! of the full panel and of every smaller one, and a hash of itself. It is refused when its
//! version is another, when it was edited, when its parts overlap, and when it is used with
//! other judges ([`InForce`](super::in_force::InForce)).

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::certificate::Certificate;
use super::error::CalibrationError;
use super::map::Map;
use super::panel::{Key, Missing, PanelModel};
use super::positive::Positive;
use super::report::{Binding, Calibration};
use super::retest::RetestNoise;
use super::split::SplitReport;
use super::subsets::{Confusion, OwnCertificate, Subsets};
use crate::canonical::canonical_json;
use crate::ruling::Decision;

/// Version of the format written and read.
pub const VERSION: u32 = 2;

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
    /// Version of the program that wrote it.
    pub venire: String,
    /// The profile's name.
    pub name: String,
    /// `calibration`, or `agreement_with_a_model`.
    pub kind: String,
    /// The criterion.
    pub criterion: String,
    /// Which labels are good.
    pub positive: Positive,
    /// The ends of the scale that keys are on; `None` where the data do not say, and then no
    /// panel can use the profile.
    pub scale: Option<[f64; 2]>,
    /// From the judges' scores to a key.
    pub panel: PanelModel,
    /// What holds when not every judge answers.
    pub subsets: Subsets,
    /// The threshold from which each judge's own false-positive rate is bounded.
    pub judges: BTreeMap<String, OwnCertificate>,
    /// The judges' confusion matrices, for `dawid_skene`.
    pub confusion: Option<Confusion>,
    /// The promise, or what was missing for one.
    pub certificate: Certificate,
    /// What it holds for.
    pub binding: Binding,
    /// The split.
    pub split: SplitReport,
    /// Groups of both parts.
    pub groups: PartGroups,
    /// The panel's own noise, where outputs were measured more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<RetestNoise>,
    /// The whole report.
    pub figures: Value,
}

/// What the calibrated panel says about one case.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibratedRuling {
    /// The calibrated score, on the labels' scale; `None` below the quorum.
    pub score: Option<f64>,
    /// The key that decides.
    pub key: Option<Key>,
    /// The decision by the certified threshold of the judges that answered; `undecided`
    /// without one, or without quorum.
    pub decision: Decision,
    /// Whether the threshold is certified.
    pub certified: bool,
    /// Whether a vote is missing.
    pub degraded: bool,
}

/// What holds for a set of judges.
pub(super) struct Standing<'a> {
    /// Their certified key.
    pub(super) certified: Option<Key>,
    /// Why there is none.
    pub(super) reason: Option<String>,
    /// From their key to the labels' scale.
    pub(super) map: Option<&'a Map>,
}

impl Profile {
    /// The profile of a calibration.
    #[must_use]
    pub fn new(name: &str, calibration: &Calibration) -> Self {
        Self {
            version: VERSION,
            venire: env!("CARGO_PKG_VERSION").to_owned(),
            name: name.to_owned(),
            kind: calibration.kind.to_owned(),
            criterion: calibration.criterion.clone(),
            positive: calibration.positive.clone(),
            scale: calibration.scale,
            panel: calibration.panel.model.clone(),
            subsets: calibration.subsets.clone(),
            judges: calibration
                .judges
                .iter()
                .map(|own| (own.metrics.name.clone(), own.own_certificate.clone()))
                .collect(),
            confusion: calibration.confusion.clone(),
            certificate: calibration.certificate.certificate.clone(),
            binding: calibration.certificate.binding.clone(),
            split: calibration.split.clone(),
            groups: calibration.groups.clone(),
            noise: calibration.retest.clone(),
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
        crate::inputs::note(path);
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

    /// What the calibrated panel says about one recorded case: `vote` gives each judge's score
    /// in the unit that was calibrated, `None` where it has none. A live panel is ruled by
    /// [`InForce`](super::in_force::InForce), which also looks at what the judges are.
    #[must_use]
    pub fn rule(&self, vote: impl Fn(&str) -> Option<f64>) -> CalibratedRuling {
        let votes: Vec<Option<f64>> =
            self.panel.seats.iter().map(|seat| vote(&seat.judge)).collect();
        let answered: Vec<&str> = self
            .panel
            .seats
            .iter()
            .zip(&votes)
            .filter(|(_, vote)| vote.is_some())
            .map(|(seat, _)| seat.judge.as_str())
            .collect();
        let degraded = answered.len() < votes.len();
        let key = self.panel.key(&votes, Missing::LeftOut);
        let Standing { certified: threshold, map, .. } = self.standing(&answered);
        let map = map.unwrap_or(&self.panel.map);
        let decision = match (key, threshold) {
            (Some(key), Some(threshold)) if key >= threshold => Decision::Accept,
            (Some(_), Some(_)) => Decision::Reject,
            _ => Decision::Undecided,
        };
        CalibratedRuling {
            score: key.map(|key| map.apply(key.0)),
            key,
            decision,
            certified: threshold.is_some(),
            degraded,
        }
    }

    /// What holds for the judges that answered.
    pub(super) fn standing(&self, answered: &[&str]) -> Standing<'_> {
        let panel = self.certificate.certified_key();
        if answered.len() == self.panel.seats.len() {
            let reason = self.certificate.reason.clone();
            return Standing { certified: panel, reason, map: Some(&self.panel.map) };
        }
        match self.subsets.find(answered) {
            // What the whole panel can't promise a part of it does not.
            Some((_, map)) if panel.is_none() => {
                Standing { certified: None, reason: self.certificate.reason.clone(), map }
            }
            Some((own, map)) => Standing { certified: own.key(), reason: own.reason.clone(), map },
            None => Standing {
                certified: None,
                reason: Some("the profile knows nothing of them".to_owned()),
                map: None,
            },
        }
    }

    /// The hash that the profile's file carries.
    ///
    /// # Errors
    /// When it can't be written as JSON.
    pub fn hash(&self) -> Result<String, serde_json::Error> {
        serde_json::to_value(self).map(|value| content_hash(&value))
    }
}

fn content_hash(value: &Value) -> String {
    blake3::hash(canonical_json(value).as_bytes()).to_hex()[..32].to_owned()
}

#[cfg(test)]
#[path = "profile_tests.rs"]
pub(in crate::calibration) mod tests;
