//! A profile in force: votes are mapped before the vote, the calibration of the judges that
//! answered is used, and the certified threshold decides.
//!
//! Pure: votes in, a weighing out. It refuses a panel that is not the one that was calibrated,
//! naming everything that differs; overruled, it says so on every result. It never falls back
//! in silence: a threshold that nothing certifies is marked, and judges for whom the profile
//! has no threshold leave the case undecided.

use std::collections::BTreeSet;

use super::certificate::CertificateStatus;
use super::error::CalibrationError;
use super::panel::{Key, Missing, PanelAggregate, PanelModel};
use super::profile::{Profile, Standing};
pub use super::seated::{Pooling, SeatedJudge, SeatedPanel};
use super::seated::{alone, differences, stranger};
use super::subsets::Confusion;
use crate::ruling::{Bound, DecisionKey, ProfileMark};
use crate::score::Score;
use crate::verdict::Verdict;

/// What the user asks of a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProfileOptions {
    /// A threshold of the user's own for the calibrated score, in [0,1].
    pub threshold: Option<f64>,
    /// Go on with a panel that the profile is not for.
    pub allow_mismatch: bool,
}

/// A profile in force on a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct InForce {
    profile: Profile,
    hash: String,
    /// The profile's panel, with a seat for each judge that it does not know.
    model: PanelModel,
    /// For each seat of the panel its place in the model; `None` where it has no vote.
    places: Vec<Option<usize>>,
    /// For each seat of the panel that may accept alone, the calibrated score from which.
    alone: Vec<Option<f64>>,
    scale: [f64; 2],
    pooling: Pooling,
    raw_threshold: f64,
    options: ProfileOptions,
    mismatches: Vec<String>,
    unverified: Vec<String>,
    /// Why the certificate does not hold where the panel is used.
    void: Option<String>,
}

/// What the calibrated votes say of one case.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighed {
    /// The first number of the key in [0,1]: on the labels' scale, held to its ends.
    pub score: Option<Score>,
    /// The second one.
    pub tiebreak: Option<Score>,
    /// Whether the threshold is reached; why the profile can't say where it can't.
    pub reached: Result<bool, String>,
    /// The first seat that accepts alone.
    pub alone: Option<usize>,
    /// The score that must be reached, in [0,1].
    pub threshold: f64,
    /// The vote of each seat of the panel after its map, on the labels' scale.
    pub mapped: Vec<Option<f64>>,
    /// What the ruling is worth.
    pub mark: ProfileMark,
}

/// Certified keys are compared with thresholds in [0,1] beyond the rounding of scores.
const ROUNDING: f64 = 1e-9;

impl InForce {
    /// Puts a profile in force on a panel.
    ///
    /// # Errors
    /// `ProfileMismatch` with everything that differs, unless mismatches are allowed;
    /// `ProfileUnusable` when the profile lacks what the panel needs of it.
    pub fn new(
        profile: Profile,
        panel: &SeatedPanel<'_>,
        options: ProfileOptions,
    ) -> Result<Self, CalibrationError> {
        let unusable = |message: String| CalibrationError::ProfileUnusable {
            name: profile.name.clone(),
            message,
        };
        let hash = profile.hash().map_err(|error| unusable(error.to_string()))?;
        let scale = profile.scale.ok_or_else(|| {
            unusable(
                "the scale of its labels is not known: calibrate with `--label-scale`".to_owned(),
            )
        })?;
        if let Some(seat) = profile.panel.seats.iter().find(|seat| seat.unit.is_none()) {
            return Err(unusable(format!(
                "the scale of judge `{}` is not known: calibrate with `--judge-scale {}=SCALE`",
                seat.judge, seat.judge
            )));
        }
        match panel.pooling {
            Pooling::Pooled if profile.panel.stack.is_none() => {
                return Err(unusable(
                    "it has no weights for `pooled`: calibrate with `--aggregate stack` or `--aggregate logistic`".to_owned(),
                ));
            }
            Pooling::DawidSkene if profile.confusion.is_none() => {
                return Err(unusable(
                    "it has no confusion matrices for `dawid_skene`: no judge has an accept rule, since its labels are all of one class".to_owned(),
                ));
            }
            _ => {}
        }
        let (mismatches, unverified) = differences(&profile, panel);
        if !mismatches.is_empty() && !options.allow_mismatch {
            return Err(CalibrationError::ProfileMismatch {
                name: profile.name.clone(),
                changes: mismatches,
            });
        }
        let mut model = profile.panel.clone();
        let mut places = Vec::with_capacity(panel.seats.len());
        for seat in &panel.seats {
            if !seat.counted {
                places.push(None);
                continue;
            }
            let known = model.seats.iter().position(|own| own.judge == seat.name);
            places.push(Some(known.unwrap_or_else(|| {
                model.seats.push(stranger(seat.name, scale));
                if let Some(stack) = &mut model.stack {
                    stack.weights.push(0.0);
                    stack.centre.push(0.0);
                }
                model.seats.len() - 1
            })));
        }
        let alone = panel
            .seats
            .iter()
            .map(|seat| alone(&profile, seat))
            .collect::<Result<_, String>>()
            .map_err(unusable)?;
        Ok(Self {
            hash,
            model,
            places,
            alone,
            scale,
            pooling: panel.pooling,
            raw_threshold: panel.raw_threshold,
            options,
            mismatches,
            unverified,
            void: None,
            profile,
        })
    }

    /// The profile.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The profile's hash.
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// What the user asked for.
    #[must_use]
    pub fn options(&self) -> ProfileOptions {
        self.options
    }

    /// Whether a higher vote never turns an accept into a reject.
    #[must_use]
    pub fn is_increasing(&self) -> bool {
        let informative = |confusion: &Confusion| {
            confusion.seats.iter().all(|seat| seat.accepts_good >= seat.accepts_bad)
        };
        match self.pooling {
            Pooling::DawidSkene => self.profile.confusion.as_ref().is_none_or(informative),
            _ => self.model.is_increasing(),
        }
    }

    /// Holds the certificate to its number of generations.
    ///
    /// # Errors
    /// `ProfileGenerations` when a loop may run longer, unless mismatches are allowed: then
    /// every ruling is marked `uncertified`. Where nothing is certified anyway there is
    /// nothing to hold.
    pub fn allow_generations(&mut self, generations: u32) -> Result<(), CalibrationError> {
        let certified = self.profile.binding.generations;
        if generations <= certified || self.no_certificate().is_some() {
            return Ok(());
        }
        if !self.options.allow_mismatch {
            return Err(CalibrationError::ProfileGenerations {
                name: self.profile.name.clone(),
                certified,
                generations,
            });
        }
        self.void = Some(format!(
            "the certificate holds for {certified} generation(s), and the loop may run for {generations}"
        ));
        Ok(())
    }

    /// What a reader of the results should know.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let name = &self.profile.name;
        let mut warnings = Vec::new();
        if !self.mismatches.is_empty() {
            warnings.push(format!(
                "every result is uncalibrated: profile `{name}` is for another panel: {}",
                self.mismatches.join("; ")
            ));
        }
        if !self.unverified.is_empty() {
            let judges: Vec<String> =
                self.unverified.iter().map(|judge| format!("`{judge}`")).collect();
            warnings.push(format!(
                "profile `{name}` does not know what {} were when it was made: matched by name only",
                judges.join(", ")
            ));
        }
        if let Some(reason) = self.no_certificate() {
            warnings.push(format!("every result is uncertified: {reason}"));
        } else if self.alone.iter().any(Option::is_some) {
            let bound = self.bound();
            warnings.push(format!(
                "the panel and each judge that accepts alone have a bound of their own: together the {} is at most {:.3}",
                bound.mode, bound.alpha
            ));
        }
        warnings
    }

    /// Why nothing that this panel says is certified; `None` where something may be.
    fn no_certificate(&self) -> Option<String> {
        if self.pooling == Pooling::DawidSkene {
            return Some(
                "`dawid_skene` takes errors for independent, and certifies nothing".to_owned(),
            );
        }
        if let Some(void) = &self.void {
            return Some(void.clone());
        }
        let certificate = &self.profile.certificate;
        if certificate.status != CertificateStatus::Certified {
            let reason = certificate.reason.as_deref().unwrap_or("nothing says why");
            return Some(format!("profile `{}` has no certificate: {reason}", self.profile.name));
        }
        let (Some(threshold), Some(key)) = (self.options.threshold, certificate.certified_key())
        else {
            return None;
        };
        self.below(threshold, key)
    }

    /// Why a user's threshold is not as strict as a certified key.
    fn below(&self, threshold: f64, key: Key) -> Option<String> {
        let certified = self.position(key.0);
        (threshold <= 0.0 || threshold <= certified + ROUNDING).then(|| {
            format!(
                "the threshold {threshold} is not above the certified one ({certified:.4}, then the tiebreak); leave `--threshold` out to use that"
            )
        })
    }

    /// The score that the full panel must reach, in [0,1].
    #[must_use]
    pub fn threshold(&self) -> f64 {
        let certified = self.profile.certificate.certified_key();
        match (self.options.threshold, certified) {
            (Some(threshold), _) => threshold,
            (None, Some(key)) if self.pooling != Pooling::DawidSkene => {
                self.position(key.0).clamp(0.0, 1.0)
            }
            (None, _) => self.raw_threshold,
        }
    }

    /// The bound of a certified ruling, over all ways to be accepted.
    #[must_use]
    pub fn bound(&self) -> Bound {
        let certificate = &self.profile.certificate;
        let ways = 1.0 + self.alone.iter().flatten().count() as f64;
        Bound {
            mode: certificate.mode.name().to_owned(),
            alpha: certificate.alpha * ways,
            delta: certificate.delta * ways,
        }
    }

    /// A key's number in [0,1] if it lies on the labels' scale, beyond it if not.
    fn position(&self, number: f64) -> f64 {
        if self.model.aggregate == PanelAggregate::Logistic {
            return 1.0 / (1.0 + (-number).exp());
        }
        let [low, high] = self.scale;
        (number - low) / (high - low)
    }

    fn score(&self, position: f64) -> Option<Score> {
        Score::from_arithmetic(position.clamp(0.0, 1.0)).ok()
    }

    /// The judge's vote in the unit that was calibrated.
    fn calibrated(&self, seat: usize, vote: Option<Score>) -> Option<f64> {
        self.model.seats[self.places[seat]?].calibrated_unit(vote?.get())
    }

    /// What the votes say, one a seat in the panel's order; votes that are not counted are
    /// passed over. The quorum is the panel's to watch.
    #[must_use]
    pub fn weigh(&self, votes: &[Option<Score>]) -> Weighed {
        let mut own = vec![None; self.model.seats.len()];
        let mut mapped = vec![None; votes.len()];
        for (seat, vote) in votes.iter().enumerate() {
            let Some(place) = self.places[seat] else { continue };
            own[place] = self.calibrated(seat, *vote);
            mapped[seat] = own[place].map(|vote| self.model.seats[place].vote.apply(vote));
        }
        let key = self.model.key_of_present(&own, Missing::LeftOut);
        let alone = (0..votes.len()).find(|&seat| {
            let least = self.alone[seat];
            least.zip(self.calibrated(seat, votes[seat])).is_some_and(|(least, v)| v >= least)
        });
        let mut weighed = Weighed {
            score: key.and_then(|key| self.score(self.position(key.0))),
            tiebreak: key.and_then(|key| {
                let [low, high] = self.scale;
                self.score((key.1 - low) / (high - low))
            }),
            reached: Err("no judge has a vote".to_owned()),
            alone,
            threshold: self.options.threshold.unwrap_or(self.raw_threshold),
            mapped,
            mark: ProfileMark {
                name: self.profile.name.clone(),
                hash: self.hash.clone(),
                uncalibrated: !self.mismatches.is_empty(),
                uncertified: false,
                reasons: self.mismatches.clone(),
                bound: None,
                key: key.map(|key| DecisionKey { score: key.0, tiebreak: key.1 }),
                certified: None,
                expected_label: None,
                raw_threshold: self.raw_threshold,
            },
        };
        if self.pooling == Pooling::DawidSkene {
            self.by_confusion(&own, &mut weighed);
        } else if let Some(key) = key {
            self.by_key(key, &own, &mut weighed);
        }
        if let Some(void) = &self.void {
            weighed.mark.uncertified = true;
            weighed.mark.reasons.push(void.clone());
        }
        // Where no vote met a threshold nothing has looked at the certificate yet.
        if !weighed.mark.uncertified
            && (weighed.mark.key.is_none()
                || self.profile.certificate.status != CertificateStatus::Certified)
            && let Some(why) = self.no_certificate()
        {
            weighed.mark.uncertified = true;
            weighed.mark.reasons.push(why);
        }
        weighed.mark.uncertified |= weighed.mark.uncalibrated;
        if !weighed.mark.uncertified {
            weighed.mark.bound = Some(self.bound());
        }
        weighed
    }

    fn by_confusion(&self, own: &[Option<f64>], weighed: &mut Weighed) {
        let vote = |judge: &str| {
            let place = self.model.seats.iter().position(|seat| seat.judge == judge)?;
            own[place]
        };
        let posterior = self.profile.confusion.as_ref().and_then(|own| own.posterior(vote));
        weighed.score = posterior.and_then(|posterior| self.score(posterior));
        weighed.mark.key = None;
        if let Some(score) = weighed.score {
            weighed.reached = Ok(score.get() >= weighed.threshold);
        }
        weighed.mark.uncertified = true;
        weighed.mark.reasons.extend(self.no_certificate());
    }

    fn by_key(&self, key: Key, own: &[Option<f64>], weighed: &mut Weighed) {
        // Seats beyond the profile's are strangers, there under a mismatch only.
        let known = &self.profile.panel.seats;
        let answered: Vec<&str> = known
            .iter()
            .zip(own)
            .filter(|(_, vote)| vote.is_some())
            .map(|(seat, _)| seat.judge.as_str())
            .collect();
        let full = answered.len() == known.len();
        let Standing { certified, reason, map } = self.profile.standing(&answered);
        let panel_is = self.profile.certificate.certified_key().is_some();
        weighed.mark.expected_label = map.map(|map| map.apply(key.0));
        let reached_score =
            |threshold: f64| weighed.score.is_some_and(|score| score.get() >= threshold);
        let why = || {
            let reason = reason.clone().unwrap_or_else(|| "nothing says why".to_owned());
            if full {
                return format!("no threshold is certified: {reason}");
            }
            let names: Vec<String> = answered.iter().map(|name| format!("`{name}`")).collect();
            format!("no threshold is certified for {} alone: {reason}", names.join(", "))
        };
        match (self.options.threshold, certified) {
            (Some(threshold), certified) => {
                weighed.reached = Ok(reached_score(threshold));
                let below = match certified {
                    Some(key) => self.below(threshold, key),
                    None => Some(why()),
                };
                weighed.mark.uncertified = below.is_some();
                weighed.mark.reasons.extend(below);
            }
            (None, Some(least)) => {
                weighed.reached = Ok(key >= least);
                weighed.threshold = self.position(least.0).clamp(0.0, 1.0);
                weighed.mark.certified = Some(DecisionKey { score: least.0, tiebreak: least.1 });
            }
            (None, None) => {
                weighed.mark.uncertified = true;
                weighed.mark.reasons.push(why());
                weighed.reached = if panel_is && !full {
                    Err(why())
                } else {
                    Ok(reached_score(self.raw_threshold))
                };
            }
        }
    }

    /// Marks a ruling whose verdicts were made by other models than those recorded.
    pub fn check_models(&self, verdicts: &[Verdict], mark: &mut ProfileMark) {
        let mut seen = BTreeSet::new();
        for verdict in verdicts {
            let (Some(model), Some(known)) =
                (&verdict.model_returned, self.profile.binding.models.get(&verdict.judge))
            else {
                continue;
            };
            if !known.contains(model) && seen.insert((&verdict.judge, model)) {
                let known: Vec<String> = known.iter().map(|own| format!("`{own}`")).collect();
                mark.reasons.push(format!(
                    "the server of judge `{}` answered with the model `{model}`, calibrated was {}",
                    verdict.judge,
                    known.join(", ")
                ));
                mark.uncalibrated = true;
                mark.uncertified = true;
                mark.bound = None;
            }
        }
    }
}

#[cfg(test)]
#[path = "in_force_tests.rs"]
mod tests;
