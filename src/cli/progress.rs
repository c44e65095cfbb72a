//! Progress of long work on stderr: a bar on a terminal, a plain line now and then elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::printer::Printer;
use crate::run::Tally;

/// How often a line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows how far a run is.
pub(super) struct Progress {
    bar: ProgressBar,
    printer: Printer,
    total: u64,
    started: Instant,
    last_line: Instant,
    /// Cases that were there before this part of the run: no part of the rate.
    before: Option<u64>,
}

impl Progress {
    pub(super) fn new(total: u64, printer: Printer) -> Self {
        let target = if printer.quiet() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(5)
        };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let template = "{bar:24} {pos}/{len} cases  {per_sec}  {eta} left  {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let now = Instant::now();
        Self { bar, printer, total, started: now, last_line: now, before: None }
    }

    /// Shows what was counted.
    pub(super) fn update(&mut self, tally: &Tally) {
        let before = *self.before.get_or_insert(tally.cases.saturating_sub(1));
        self.bar.set_position(tally.cases);
        if !self.bar.is_hidden() {
            self.bar.set_message(message(tally));
        } else if self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            let seconds = self.started.elapsed().as_secs_f64();
            let rate = (tally.cases - before) as f64 / seconds;
            let left = if rate > 0.0 {
                format!(", {:.0} s left", (self.total.saturating_sub(tally.cases)) as f64 / rate)
            } else {
                String::new()
            };
            self.printer.say(&format!(
                "{} of {} cases, {rate:.1} a second{left}, {}",
                tally.cases,
                self.total,
                message(tally)
            ));
        }
    }

    /// Takes the bar away, so that what follows stands alone.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn message(tally: &Tally) -> String {
    let cost = match tally.run_cost_usd() {
        Some(0.0) => String::new(),
        Some(cost) => format!("  {cost:.4} USD"),
        None => "  cost unknown".into(),
    };
    let unscored = match tally.unscored() {
        0 => String::new(),
        unscored => format!("  {unscored} unscored"),
    };
    format!("{} accepted{unscored}{cost}", tally.accepted)
}
