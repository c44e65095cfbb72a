//! Figures over many loops as a table, beside what they should reach.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::exit::Exit;
use super::printer::table;
use crate::control::replay::{Held, Metrics, Standing, TargetsSpec};

/// The targets in force, and whether the exit code depends on them.
#[derive(Debug)]
pub(super) struct Targets {
    spec: TargetsSpec,
    bind: bool,
}

/// Figures, and how they stand to their targets.
#[derive(Debug, Serialize)]
pub(super) struct Judged {
    #[serde(flatten)]
    metrics: Metrics,
    targets: BTreeMap<&'static str, Held>,
}

impl Targets {
    /// From `--targets`: shown only without it, the program's own with it, or a file's.
    pub(super) fn of(given: Option<&Option<PathBuf>>) -> anyhow::Result<Self> {
        let spec = match given {
            Some(Some(file)) => TargetsSpec::read(file)?,
            Some(None) | None => TargetsSpec::own()?,
        };
        Ok(Self { spec, bind: given.is_some() })
    }

    pub(super) fn judge(&self, metrics: Metrics) -> Judged {
        Judged { targets: self.spec.judge(&metrics), metrics }
    }

    pub(super) fn exit(&self, judged: &Judged) -> Exit {
        let missed = judged.targets.values().any(|own| own.standing == Standing::Missed);
        if self.bind && missed { Exit::NotAccepted } else { Exit::Done }
    }
}

impl Judged {
    pub(super) fn text(&self) -> String {
        let metrics = &self.metrics;
        let rows = metrics
            .named()
            .into_iter()
            .map(|(name, metric)| {
                let show = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.3}"));
                vec![
                    name.to_owned(),
                    show(metric.value),
                    show(metric.lower),
                    show(metric.upper),
                    metric.n.to_string(),
                    self.targets.get(name).map(in_words).unwrap_or_default(),
                ]
            })
            .collect();
        format!(
            "{}\n\n{} of {} loops accepted, {} censored: their recordings end before the policy does{}",
            table(&["metric", "value", "lower", "upper", "n", "target"], rows, &[1, 2, 3, 4]),
            metrics.accepted,
            metrics.tasks,
            metrics.censored,
            if metrics.groups == metrics.tasks {
                String::new()
            } else {
                format!("\nintervals are drawn over {} groups of loops", metrics.groups)
            }
        )
    }
}

fn in_words(own: &Held) -> String {
    let bound = match (own.target.above, own.target.below) {
        (Some(bound), _) => format!("> {bound}"),
        (None, Some(bound)) => format!("< {bound}"),
        (None, None) => String::new(),
    };
    format!("{bound} {}", own.standing.name())
}
