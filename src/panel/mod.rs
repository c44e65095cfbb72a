//! Panels: judges seated together, their votes and the ruling.
//!
//! A panel asks all its judges at once (or one after the other, when `sequential`), gives
//! each a deadline, and never lets one judge's fault become another's: a panic, a hang or an
//! outage is that judge's verdict.

pub mod decide;
mod feedback;
mod foreign;
mod inverted;
mod published;
mod seat;
mod sequential;
pub mod spec;
pub mod vote;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::time::Instant;

pub use self::decide::{Rules, SeatRules};
pub use self::seat::Seat;
pub use self::spec::PanelSpec;
use self::spec::{Gathered, judge_at};
use self::vote::{Aggregate, Settings};
use crate::calibration::in_force::{Pooling, ProfileOptions, SeatedJudge, SeatedPanel};
use crate::calibration::table::SeatFacts;
use crate::calibration::{CalibrationError, InForce, Profile};
use crate::case::Case;
use crate::config::{ConfigError, Problem, read_file};
use crate::judge::process::Period;
use crate::judge::{BuildContext, BuildError};
use crate::provider::{CallContext, Client, Places};
use crate::ruling::Ruling;
use crate::verdict::{Fingerprint, Verdict};

/// The criterion that is a judge's score as a whole.
const OVERALL: &str = "overall";

/// Judges seated together.
#[derive(Debug)]
pub struct Panel {
    /// Its name in reports.
    pub name: String,
    /// The judges, in the order of the configuration.
    pub seats: Vec<Seat>,
    /// How their verdicts become a ruling.
    pub rules: Rules,
    /// Whether judges are asked one after the other.
    pub sequential: bool,
    /// Whether votes that can no longer change the decision are not waited for.
    pub early_decision: bool,
    /// The limit for all judges of one case together.
    pub timeout: Option<Duration>,
    /// The judges that are asked again about what has passed, where there are some.
    pub reserve: Option<Box<Panel>>,
    /// Measurements in flight at most, over all cases; closing it lets those in flight end
    /// and starts no other. `None` for no limit.
    pub places: Option<Places>,
}

/// Is told each new verdict as soon as it is there.
pub trait Listener: Send + Sync {
    /// A judge's verdict has come in. The panel waits for the future, so a slow listener
    /// slows the panel down.
    fn verdict<'a>(&'a self, verdict: &'a Verdict) -> BoxFuture<'a, ()>;
}

/// Hears nothing.
impl Listener for () {
    fn verdict<'a>(&'a self, _: &'a Verdict) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// What is known of a case before it is judged: from a run that was stopped.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Verdicts that stand: they are not asked for again.
    pub verdicts: Vec<Verdict>,
    /// Samples (by judge and number) to ask for afresh, whatever replies are kept.
    pub retry: Vec<(String, u32)>,
}

impl Known {
    /// The context for one sample.
    fn context(&self, context: &CallContext, judge: &str, sample: u32) -> CallContext {
        let fresh = self.retry.iter().any(|(name, n)| name == judge && *n == sample);
        CallContext { fresh: fresh || context.fresh, ..context.clone() }
    }
}

/// Why a panel can't be seated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PanelError {
    /// The configuration is not right.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A judge can't be built.
    #[error("judge `{judge}`")]
    Judge {
        /// Its name.
        judge: String,
        /// Why.
        #[source]
        source: BuildError,
    },
    /// Several judges can't be built.
    #[error("{} judges can't be seated{}", failures.len(), listed(failures))]
    Judges {
        /// Each by name, and why.
        failures: Vec<(String, BuildError)>,
    },
    /// The profile can't be read, or is not for this panel.
    #[error(transparent)]
    Profile(#[from] CalibrationError),
    /// Something that only a profile gives, and there is none.
    #[error(
        "{what} needs a profile: fit one with `venire calibrate`, and name it with `--profile FILE` or the panel's key `profile`"
    )]
    NeedsProfile {
        /// What needs it.
        what: String,
    },
}

fn listed(failures: &[(String, BuildError)]) -> String {
    failures.iter().map(|(judge, error)| format!("\n  judge `{judge}`: {}", chain(error))).collect()
}

/// An error with its causes, on one line.
fn chain(error: &BuildError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}

impl PanelSpec {
    /// Reads a panel file.
    ///
    /// # Errors
    /// When it can't be read or is not a panel.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let file = read_file(path)?;
        Self::from_value(file.value.clone()).map_err(|found| ConfigError::invalid(&file, found))
    }
}

impl Panel {
    /// Seats the judges of a configuration.
    ///
    /// # Errors
    /// When a judge can't be built: a missing key, a bad pattern, a program that is not there.
    pub fn seat(spec: &PanelSpec, context: &BuildContext) -> Result<Self, PanelError> {
        let mut seats = Vec::new();
        let mut failures = Vec::new();
        for judge in &spec.judge {
            match judge.judge.build(context) {
                Ok(built) => seats.push(Seat::new(&judge.seat, built)),
                Err(error) => failures.push((judge.seat.name.clone(), error)),
            }
        }
        match failures.pop() {
            None => Self::of_seats(spec, seats, context),
            Some((judge, source)) if failures.is_empty() => {
                Err(PanelError::Judge { judge, source })
            }
            Some(last) => {
                failures.push(last);
                Err(PanelError::Judges { failures })
            }
        }
    }

    /// Reads a panel file and seats its judges. `adjust` may change the configuration before
    /// they are built.
    ///
    /// # Errors
    /// Everything that is wrong with the file and with its judges, at once and with lines.
    pub fn open(
        path: &Path,
        client: Client,
        adjust: impl FnOnce(&mut PanelSpec),
    ) -> Result<(PanelSpec, Self), PanelError> {
        let file = read_file(path)?;
        let Gathered { mut spec, judges, places, mut problems } =
            PanelSpec::gather(file.value.clone());
        if let Some(spec) = &mut spec {
            adjust(spec);
        }
        let read = spec.as_ref().map_or(&judges, |spec| &spec.judge);
        let context = BuildContext::new(path.parent().unwrap_or(Path::new("")), client);
        let mut seats = Vec::new();
        for (judge, place) in read.iter().zip(places) {
            match judge.judge.build(&context) {
                Ok(built) => seats.push(Seat::new(&judge.seat, built)),
                Err(error) => problems.push(unbuilt(judge_at(place, &judge.seat.name), &error)),
            }
        }
        match spec {
            Some(spec) if problems.is_empty() => {
                let panel = Self::of_seats(&spec, seats, &context)?;
                Ok((spec, panel))
            }
            _ => Err(ConfigError::invalid(&file, problems).into()),
        }
    }

    fn of_seats(
        spec: &PanelSpec,
        seats: Vec<Seat>,
        context: &BuildContext,
    ) -> Result<Self, PanelError> {
        let mut seats = seats.into_iter();
        let (mut main, mut reserve) = (Vec::new(), Vec::new());
        for (judge, seat) in spec.judge.iter().zip(&mut seats) {
            if judge.seat.reserve { reserve.push(seat) } else { main.push(seat) }
        }
        let mut panel = Self::plain(spec, main, spec.quorum());
        if !reserve.is_empty() {
            let votes = reserve.iter().filter(|seat| seat.rules().votes()).count() as u32;
            panel.reserve = Some(Box::new(Self::plain(spec, reserve, votes / 2 + 1)));
        }
        if spec.repeat > 1 {
            panel.repeat(spec.repeat);
        }
        match &spec.profile {
            Some(path) => {
                let profile = Profile::read(&context.resolve(path))?;
                panel.put_in_force(profile, spec.profile_options)?;
            }
            None => panel.check_without_profile()?,
        }
        Ok(panel)
    }

    /// A panel of these seats under the rules of a configuration, without a profile.
    fn plain(spec: &PanelSpec, seats: Vec<Seat>, quorum: u32) -> Self {
        let rules = Rules {
            seats: seats.iter().map(Seat::rules).collect(),
            settings: Settings {
                aggregate: spec.aggregate,
                midpoint: spec.midpoint,
                trim: spec.trim,
                threshold: spec.threshold,
            },
            threshold: spec.threshold,
            quorum,
            profile: None,
        };
        Self {
            name: spec.name.clone(),
            seats,
            rules,
            sequential: spec.sequential,
            early_decision: false,
            timeout: spec.timeout.map(Period::get),
            reserve: None,
            places: None,
        }
    }

    /// The judges that are asked again about what has passed, as a panel of their own with the
    /// same threshold, without a profile; `None` where no seat is a `reserve`.
    #[must_use]
    pub fn reserve(&self) -> Option<&Self> {
        self.reserve.as_deref()
    }

    /// Does not wait for votes that can no longer change the decision, the reserve's included.
    pub fn decide_early(&mut self) {
        self.early_decision = true;
        if let Some(reserve) = &mut self.reserve {
            reserve.early_decision = true;
        }
    }

    /// The panel without some judges, by their names: the same rules, without a profile, and a
    /// majority of those who are left as the quorum.
    #[must_use]
    pub fn without(&self, is_left_out: impl Fn(&str) -> bool) -> Self {
        let kept = |name: &str| !is_left_out(name);
        let seats: Vec<Seat> = self.seats.iter().filter(|seat| kept(&seat.name)).cloned().collect();
        let rules: Vec<SeatRules> = seats.iter().map(Seat::rules).collect();
        let votes = rules.iter().filter(|seat| seat.votes()).count() as u32;
        Self {
            name: self.name.clone(),
            rules: Rules {
                seats: rules,
                quorum: votes / 2 + 1,
                profile: None,
                ..self.rules.clone()
            },
            seats,
            sequential: self.sequential,
            early_decision: self.early_decision,
            timeout: self.timeout,
            reserve: None,
            places: self.places.clone(),
        }
    }

    /// Puts a profile in force: votes are mapped, and its threshold decides.
    ///
    /// # Errors
    /// When it is not for this panel, or lacks what the panel needs.
    pub fn put_in_force(
        &mut self,
        profile: Profile,
        options: ProfileOptions,
    ) -> Result<(), CalibrationError> {
        let settings = &self.rules.settings;
        let panel = SeatedPanel {
            seats: self
                .seats
                .iter()
                .zip(&self.rules.seats)
                .map(|(seat, rules)| SeatedJudge {
                    name: &seat.name,
                    fingerprint: seat.judge.fingerprint(),
                    counted: rules.votes(),
                    seat: SeatFacts { invert: seat.invert, samples: seat.samples },
                    accept_alone: seat.accept_alone,
                })
                .collect(),
            pooling: match settings.aggregate {
                Aggregate::Median if settings.midpoint => Pooling::Other("median with `midpoint`"),
                Aggregate::Median => Pooling::Median,
                Aggregate::Pooled => Pooling::Pooled,
                Aggregate::DawidSkene => Pooling::DawidSkene,
                other => Pooling::Other(other.name()),
            },
            raw_threshold: self.rules.threshold,
        };
        let in_force = InForce::new(profile, &panel, options)?;
        self.rules.profile = Some(Arc::new(in_force));
        Ok(())
    }

    /// Holds a certificate to the number of generations that it was made for.
    ///
    /// # Errors
    /// When a loop may run longer than the certificate holds, unless mismatches are allowed:
    /// then every ruling is marked `uncertified`.
    pub fn allow_generations(&mut self, generations: u32) -> Result<(), CalibrationError> {
        match &mut self.rules.profile {
            Some(own) => Arc::make_mut(own).allow_generations(generations),
            None => Ok(()),
        }
    }

    fn check_without_profile(&self) -> Result<(), PanelError> {
        let aggregate = self.rules.settings.aggregate;
        let what = if aggregate.needs_profile() {
            format!("`aggregate = \"{}\"`", aggregate.name())
        } else if let Some(seat) = self.seats.iter().find(|seat| seat.accept_alone) {
            format!("`accept_alone` of judge `{}`", seat.name)
        } else {
            return Ok(());
        };
        Err(PanelError::NeedsProfile { what })
    }

    /// The profile in force.
    #[must_use]
    pub fn profile(&self) -> Option<&InForce> {
        self.rules.profile.as_deref()
    }

    /// Whether judges are asked one after the other. Under a profile only where a higher vote
    /// never lowers the key, and the votes are the judges' scores as a whole.
    #[must_use]
    pub fn asks_in_turn(&self) -> bool {
        self.sequential && self.is_increasing()
    }

    /// Whether a higher vote never lowers what decides, so that open votes can be bounded.
    fn is_increasing(&self) -> bool {
        self.profile().is_none_or(|own| own.is_increasing() && own.profile().criterion == OVERALL)
    }

    /// Asks for every sample again `times` times over: how much of a score is noise.
    pub fn repeat(&mut self, times: u32) {
        for (seat, rules) in self.seats.iter_mut().zip(&mut self.rules.seats) {
            seat.samples = seat.samples.saturating_mul(times.max(1));
            rules.samples = seat.samples;
        }
    }

    /// Replaces the threshold of the configuration.
    pub fn set_threshold(&mut self, threshold: f64) {
        self.rules.threshold = threshold;
        self.rules.settings.threshold = threshold;
        if let Some(reserve) = &mut self.reserve {
            reserve.set_threshold(threshold);
        }
    }

    /// What makes this panel this panel: its judges and its rules.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let seats: Vec<_> = self
            .seats
            .iter()
            .map(|seat| {
                serde_json::json!({
                    "name": seat.name, "judge": seat.judge.fingerprint(), "weight": seat.weight,
                    "required": seat.required, "report_only": seat.report_only,
                    "invert": seat.invert, "samples": seat.samples,
                })
            })
            .collect();
        let settings = &self.rules.settings;
        Fingerprint::of(
            "panel",
            &self.with_profile(serde_json::json!({
                "seats": seats, "aggregate": settings.aggregate, "midpoint": settings.midpoint,
                "trim": settings.trim, "threshold": self.rules.threshold,
                "quorum": self.rules.quorum, "sequential": self.sequential,
            })),
        )
    }

    /// A panel under a profile is another panel; one without keeps its fingerprint.
    fn with_profile(&self, mut identity: serde_json::Value) -> serde_json::Value {
        if let (Some(own), Some(map)) = (self.profile(), identity.as_object_mut()) {
            let alone: Vec<&str> = self
                .seats
                .iter()
                .filter(|seat| seat.accept_alone)
                .map(|seat| seat.name.as_str())
                .collect();
            let profile = serde_json::json!({
                "hash": own.hash(), "threshold": own.options().threshold, "accept_alone": alone,
            });
            map.insert("profile".to_owned(), profile);
        }
        identity
    }

    /// What a reader of the results should know: judges of one model family, and what the
    /// profile can't promise.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.families();
        let reserve = self.reserve.iter().flat_map(|panel| &panel.seats);
        for seat in self.seats.iter().chain(reserve) {
            let own = seat.judge.warnings();
            warnings.extend(own.into_iter().map(|said| format!("`{}`: {said}", seat.name)));
        }
        warnings.extend(self.profile().map(InForce::warnings).unwrap_or_default());
        warnings.extend(self.idle_weights());
        warnings.extend(self.outage());
        if self.sequential && !self.asks_in_turn() {
            warnings.push(
                "`sequential` has no effect under this profile: a higher vote may lower its key, or it is about one criterion; every judge is asked".to_owned(),
            );
        }
        warnings
    }

    /// Whether the votes that ask no model fill the quorum, so that in an outage of all models
    /// they decide alone.
    fn outage(&self) -> Option<String> {
        let votes = || self.seats.iter().filter(|seat| seat.rules().votes());
        let models = votes().filter(|seat| seat.judge.kind() == "llm").count() as u32;
        let others = votes().count() as u32 - models;
        (models > 0 && others >= self.rules.quorum).then(|| {
            format!(
                "the judges that ask no model fill the quorum of {}, so in an outage of all models they decide alone (the ruling then says `degraded`): `quorum = {}` leaves such a case undecided",
                self.rules.quorum,
                others + 1
            )
        })
    }

    /// Judges whose weight the aggregator does not look at.
    fn idle_weights(&self) -> Option<String> {
        let aggregate = self.rules.settings.aggregate;
        if aggregate.uses_weights() {
            return None;
        }
        let weighted: Vec<String> = self
            .seats
            .iter()
            .filter(|seat| seat.weight != 1.0 && seat.weight > 0.0)
            .map(|seat| format!("`{}`", seat.name))
            .collect();
        (!weighted.is_empty()).then(|| {
            format!(
                "the `weight` of {} has no effect: `aggregate = \"{}\"` counts every vote once, `weighted_median` and `mean` use weights",
                weighted.join(", "),
                aggregate.name()
            )
        })
    }

    fn families(&self) -> Vec<String> {
        let mut families: Vec<(String, Vec<&str>)> = Vec::new();
        for seat in self.seats.iter().filter(|seat| !seat.report_only) {
            let Some(family) = seat.judge.model().map(family) else { continue };
            match families.iter_mut().find(|(known, _)| *known == family) {
                Some((_, names)) => names.push(&seat.name),
                None => families.push((family, vec![&seat.name])),
            }
        }
        families
            .into_iter()
            .filter(|(_, names)| names.len() > 1)
            .map(|(family, names)| {
                format!(
                    "{} share the model family `{family}`: judges of one family err together, so their votes tell less than as many independent ones (each is still counted in full)",
                    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
                )
            })
            .collect()
    }

    /// Whether a judge looks at outputs, so that a case without one can't be judged.
    #[must_use]
    pub fn needs_output(&self) -> bool {
        self.seats.iter().any(|seat| seat.judge.needs_output())
    }

    /// Refuses a case that the panel can't judge: one without `output` where a judge looks at
    /// outputs. The empty text is an output.
    ///
    /// # Errors
    /// The field that is missing.
    pub fn takes(&self, case: &Case) -> Result<(), crate::config::Problem> {
        if case.output.is_some() || !self.needs_output() {
            return Ok(());
        }
        Err(crate::config::Problem::new("output", "is missing: expected the text to be judged"))
    }

    /// Judges a case: every judge, every sample, one ruling.
    pub async fn judge(&self, case: &Case, context: &CallContext) -> Ruling {
        self.judge_with(case, context, Known::default(), &()).await
    }

    /// As [`Panel::judge`], going on from what is known already, with a listener.
    pub async fn judge_with(
        &self,
        case: &Case,
        context: &CallContext,
        known: Known,
        listener: &dyn Listener,
    ) -> Ruling {
        let mut context = context.clone();
        if let Some(timeout) = self.timeout {
            context.deadline = context.deadline.min(Instant::now() + timeout);
        }
        if self.asks_in_turn() {
            return sequential::judge(self, case, &context, known, listener).await;
        }
        if self.early_decision && self.is_increasing() {
            return sequential::judge_early(self, case, &context, known, listener).await;
        }
        let mut open = FuturesUnordered::new();
        for seat in &self.seats {
            for sample in seat.open_samples(&known.verdicts) {
                let context = known.context(&context, &seat.name, sample);
                open.push(seat.judge(case, context, sample, self.places.as_ref()));
            }
        }
        let mut verdicts = known.verdicts.clone();
        while let Some(verdict) = open.next().await {
            listener.verdict(&verdict).await;
            verdicts.push(verdict);
        }
        self.rules.rule(&case.id, verdicts)
    }
}

/// A judge that can't be built, as a problem of its table.
fn unbuilt(place: String, error: &BuildError) -> Problem {
    match error {
        BuildError::Invalid { field, reason } => {
            Problem::new(field.as_str(), reason.as_str()).inside(&place)
        }
        BuildError::File { field, .. } | BuildError::Feature { field, .. } => {
            Problem::new(field.as_str(), chain(error)).inside(&place)
        }
        BuildError::Endpoint(_) => Problem::new(place, chain(error)),
    }
}

/// The family of a model written as `provider/model`: the leading letters of its own name,
/// such as `gpt` of `openai/gpt-4.1-mini` and `qwen` of `openai/Qwen2.5-Coder`.
#[must_use]
pub fn family(model: &str) -> String {
    let own = model.rsplit(['/', ':']).find(|part| !part.is_empty()).unwrap_or(model);
    let own = match own.chars().next() {
        // `ollama/llama3:8b`: the part after the colon is a size, the name stands before it.
        Some(first) if first.is_ascii_digit() => model.rsplit(['/', ':']).nth(1).unwrap_or(own),
        _ => own,
    };
    let family: String =
        own.chars().take_while(|c| c.is_alphabetic()).collect::<String>().to_lowercase();
    if family.is_empty() { own.to_lowercase() } else { family }
}

#[cfg(test)]
mod tests;
