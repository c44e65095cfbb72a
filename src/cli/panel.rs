//! The panel that a verb works with: read, adjusted by flags, seated.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use clap::Args;

use super::printer::Printer;
use crate::judge::MOST_SAMPLES;
use crate::panel::spec::JudgeSpec;
use crate::panel::{Panel, PanelSpec};
use crate::provider::Client;

/// Flags that name and adjust a panel.
#[derive(Clone, Debug, Args)]
pub(super) struct PanelArgs {
    /// The panel: a TOML, YAML or JSON file
    #[arg(short, long, value_name = "PANEL", default_value = "panel.toml")]
    pub(super) config: PathBuf,
    /// The score that an accepted output must reach, instead of the panel's own or the
    /// profile's certified one
    #[arg(long, value_name = "SCORE", value_parser = unit)]
    pub(super) threshold: Option<f64>,
    #[command(flatten)]
    pub(super) profile: ProfileArgs,
    /// The sampling seed of judges that have none
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Ask every judge this many times over (at most 1000), to see how much of a score is noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_SAMPLES)))]
    pub(super) repeat: u32,
}

/// Flags that put a profile in force.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct ProfileArgs {
    /// Map the votes and decide by the certified threshold of this profile (from `venire
    /// calibrate`), instead of the panel's own `profile`
    #[arg(long, value_name = "FILE")]
    pub(super) profile: Option<PathBuf>,
    /// Go on with a panel that the profile was not made for, and mark every result
    /// `uncalibrated`
    #[arg(long)]
    pub(super) allow_mismatch: bool,
}

impl ProfileArgs {
    /// The profile's file, seen from where the command stands and not from the panel's folder.
    pub(super) fn absolute(&self) -> anyhow::Result<Option<PathBuf>> {
        let absolute = |profile: &PathBuf| {
            std::path::absolute(profile)
                .with_context(|| format!("no path to `{}`", profile.display()))
        };
        self.profile.as_ref().map(absolute).transpose()
    }

    /// Takes the flags over into a panel.
    pub(super) fn put(&self, profile: Option<PathBuf>, spec: &mut PanelSpec) {
        if profile.is_some() {
            spec.profile = profile;
        }
        spec.profile_options.allow_mismatch = self.allow_mismatch;
    }

    /// Refuses `--allow-mismatch` where there is nothing that could mismatch.
    pub(super) fn check(&self, has_profile: bool) -> anyhow::Result<()> {
        if self.allow_mismatch && !has_profile {
            anyhow::bail!("`--allow-mismatch` is about a profile: name one with `--profile FILE`");
        }
        Ok(())
    }
}

pub(super) fn unit(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("expected a number between 0 and 1".into()),
    }
}

/// A panel with the configuration it came from.
pub(super) struct Seated {
    pub(super) spec: PanelSpec,
    pub(super) panel: Panel,
}

impl PanelArgs {
    /// Reads and seats the panel.
    pub(super) fn seat(&self, client: Client) -> anyhow::Result<Seated> {
        self.seat_with(client, |_| {})
    }

    /// Reads the panel, lets `adjust` change it after the flags have, and seats it.
    pub(super) fn seat_with(
        &self,
        client: Client,
        adjust: impl FnOnce(&mut PanelSpec),
    ) -> anyhow::Result<Seated> {
        if !self.config.is_file() {
            anyhow::bail!(
                "no panel file `{}`: name one with `-c PANEL`, or make a first one with `venire init`",
                self.config.display()
            );
        }
        let profile = self.profile.absolute()?;
        let mut has_profile = true;
        let (spec, panel) = Panel::open(&self.config, client, |spec| {
            self.profile.put(profile, spec);
            has_profile = spec.profile.is_some();
            if let Some(threshold) = self.threshold {
                if has_profile {
                    spec.profile_options.threshold = Some(threshold);
                } else {
                    spec.threshold = threshold;
                }
            }
            spec.repeat = self.repeat;
            adjust(spec);
            let Some(seed) = self.seed else { return };
            for seat in &mut spec.judge {
                if let JudgeSpec::Llm(llm) = &mut seat.judge {
                    llm.seed.get_or_insert(seed);
                }
            }
        })?;
        self.profile.check(has_profile)?;
        if let Some(seat) = panel.seats.iter().find(|seat| seat.samples > MOST_SAMPLES) {
            anyhow::bail!(
                "`{}` would be asked {} times for each case (`samples` x `--repeat`): expected at most {MOST_SAMPLES}",
                seat.name,
                seat.samples
            );
        }
        Ok(Seated { spec, panel })
    }
}

/// Keys that are looked for and not there, where nothing is asked and so none is needed.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys {
    missing: Arc<Mutex<BTreeSet<String>>>,
}

impl Keys {
    /// A client that takes a missing key for a warning; it must not send anything.
    pub(super) fn client(&self) -> Client {
        let missing = self.missing.clone();
        Client::with_variables(move |name| {
            std::env::var(name).ok().or_else(|| {
                // Other variables, such as addresses, have no stand-in.
                if !name.ends_with("KEY") {
                    return None;
                }
                missing.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
                Some("not-set".to_owned())
            })
        })
    }

    pub(super) fn warn(&self, printer: &Printer) {
        for name in self.missing.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            printer.warn(&format!("`{name}` is not set: a run needs it"));
        }
    }
}

/// Says what a reader of the results should know.
pub(super) fn warn(panel: &Panel, printer: &Printer) {
    for warning in panel.warnings() {
        printer.warn(&warning);
    }
}
