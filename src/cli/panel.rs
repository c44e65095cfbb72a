//! The panel that a verb works with: read, adjusted by flags, seated.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use clap::Args;

use super::printer::Printer;
use crate::judge::BuildContext;
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
    /// Ask every judge this many times over, to see how much of a score is noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
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
    /// Takes the flags over into a panel.
    pub(super) fn put(&self, spec: &mut PanelSpec) -> anyhow::Result<()> {
        if let Some(profile) = &self.profile {
            // From where the command stands, not from the panel's folder.
            let path = std::path::absolute(profile)
                .with_context(|| format!("no path to `{}`", profile.display()))?;
            spec.profile = Some(path);
        }
        if self.allow_mismatch && spec.profile.is_none() {
            anyhow::bail!("`--allow-mismatch` is about a profile: name one with `--profile FILE`");
        }
        spec.profile_options.allow_mismatch = self.allow_mismatch;
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
        if !self.config.is_file() {
            anyhow::bail!(
                "no panel file `{}`: name one with `-c PANEL`, or make a first one with `venire init`",
                self.config.display()
            );
        }
        let mut spec = PanelSpec::read(&self.config)?;
        self.profile.put(&mut spec)?;
        if let Some(threshold) = self.threshold {
            if spec.profile.is_some() {
                spec.profile_options.threshold = Some(threshold);
            } else {
                spec.threshold = threshold;
            }
        }
        spec.repeat = self.repeat;
        if let Some(seed) = self.seed {
            for seat in &mut spec.judge {
                if let JudgeSpec::Llm(llm) = &mut seat.judge {
                    llm.seed.get_or_insert(seed);
                }
            }
        }
        let base = self.config.parent().unwrap_or(Path::new("")).to_owned();
        let context = BuildContext::new(base, client);
        let panel = Panel::seat(&spec, &context)
            .with_context(|| format!("failed to seat the panel `{}`", self.config.display()))?;
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
