//! The panel that a verb works with: read, adjusted by flags, seated.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

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
    /// The score that an accepted output must reach, instead of the panel's own
    #[arg(long, value_name = "SCORE", value_parser = unit)]
    pub(super) threshold: Option<f64>,
    /// The sampling seed of judges that have none
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Ask every judge this many times over (at most 1000), to see how much of a score is noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_SAMPLES)))]
    pub(super) repeat: u32,
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
        let (spec, mut panel) = Panel::open(&self.config, client, |spec| {
            if let Some(threshold) = self.threshold {
                spec.threshold = threshold;
            }
            let Some(seed) = self.seed else { return };
            for seat in &mut spec.judge {
                if let JudgeSpec::Llm(llm) = &mut seat.judge {
                    llm.seed.get_or_insert(seed);
                }
            }
        })?;
        panel.repeat(self.repeat);
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
