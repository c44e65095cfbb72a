//! What a person or a script is shown of a run.

use std::sync::Arc;

use serde_json::{Value, json};

use super::printer::{Printer, plain, plural, table};
use super::run::Planned;
use super::summary::{cure, decision, panel_score, vote};
use crate::calibration::InForce;
use crate::calibration::certificate::bad_units;
use crate::case::Case;
use crate::dataset::Scan;
use crate::panel::{Panel, PanelSpec};
use crate::provider::LedgerTotals;
use crate::report::words::{case_name, of_share, source_name, two};
use crate::ruling::Ruling;
use crate::run::rows::{each_ruling_at, row_numbers};
use crate::run::{JudgeTally, MOST_SOURCES, Report, SourceResult, Tally};
use crate::store::{RunRecord, Store, StoreError};
use crate::verdict::Status;

/// Cases shown in full; a run of more shows its first ones.
const SHOWN: usize = 12;
/// Characters of a case's name.
const NAME: usize = 28;
/// Cases with the widest spread that are named.
const WIDEST: usize = 5;

/// Cases worth showing.
struct Picked {
    /// With the row, where the id alone says nothing.
    first: Vec<(Ruling, Option<u64>)>,
    /// Spread and name, the widest first.
    widest: Vec<(f64, String)>,
}

/// A run with all that is said of it.
pub(super) struct Outcome<'a> {
    pub(super) run: &'a RunRecord,
    pub(super) store: &'a Store,
    pub(super) report: &'a Report,
    pub(super) totals: LedgerTotals,
    pub(super) skipped_rows: u64,
    pub(super) spec: &'a PanelSpec,
    pub(super) profile: Option<Arc<InForce>>,
    pub(super) warnings: Vec<String>,
}

impl Outcome<'_> {
    /// The one JSON object of `run --json`.
    pub(super) fn summary(&self) -> Value {
        let tally = &self.report.tally;
        json!({
            "run": self.run.id,
            "panel": self.spec.name,
            "data": self.run.data,
            "finished": self.report.finished,
            "cases": tally.cases,
            "skipped_rows": self.skipped_rows,
            "judges": tally.judges.len(),
            "statuses": tally.statuses,
            "verdicts": tally.verdicts(),
            "unscored": tally.unscored(),
            "not_needed": tally.not_needed,
            "accepted": tally.accepted,
            "rejected": tally.rejected,
            "undecided": tally.undecided,
            "accepted_share": tally.accepted_share(),
            "degraded": tally.degraded,
            "threshold": self.threshold(),
            "profile": self.profile.as_ref().map(|own| profile(own, tally)),
            "calls": self.totals.calls_sent,
            "cached": self.totals.cached_hits,
            "cost_usd": self.totals.spent_usd(),
            "run_calls": tally.run_calls(),
            "run_cost_usd": tally.run_cost_usd(),
            "elapsed_seconds": self.report.elapsed.as_secs_f64(),
            "by_judge": tally.judges,
            "by_source": tally.by_source(),
            "warnings": self.warnings,
        })
    }

    /// The tables for a person.
    pub(super) fn print(&self, printer: &Printer) -> anyhow::Result<()> {
        let tally = &self.report.tally;
        let Picked { first, widest } = self.pick()?;
        printer.result(&self.cases(&first));
        if tally.cases as usize > first.len() {
            printer.result(&format!(
                "… and {}",
                plural(tally.cases - first.len() as u64, "more case", "more cases")
            ));
        }
        printer.result("");
        printer.result(&judges(&tally.judges));
        printer.result("");
        if let Some(sources) = sources(tally) {
            printer.result(&sources);
            printer.result("");
        }
        printer.result(&format!(
            "{} accepted, {} rejected, {} undecided of {}{}",
            tally.accepted,
            tally.rejected,
            tally.undecided,
            plural(tally.cases, "case", "cases"),
            share(tally)
        ));
        printer.result(&format!("by {}", self.rule()));
        if let Some(worth) = self.worth() {
            printer.result(&worth);
        }
        let statuses: Vec<String> =
            tally.statuses.present().map(|(status, n)| format!("{status} {n}")).collect();
        printer.result(&format!(
            "{}: {}",
            plural(tally.verdicts(), "verdict", "verdicts"),
            statuses.join(", ")
        ));
        if self.totals.calls_sent > 0 || self.totals.cached_hits > 0 {
            printer.result(&format!(
                "{} to model servers, {} from the store, {}",
                plural(self.totals.calls_sent, "call", "calls"),
                plural(self.totals.cached_hits, "reply", "replies"),
                dollars(self.totals.spent_usd())
            ));
        }
        if self.totals.reported_usd > 0.0 {
            printer.result(&format!(
                "judges of your own report {}",
                dollars(Some(self.totals.reported_usd))
            ));
        }
        if tally.run_calls() > self.totals.calls_answered {
            printer.result(&format!(
                "the run's verdicts rest on {}, in all {}",
                plural(tally.run_calls(), "reply", "replies"),
                dollars(tally.run_cost_usd())
            ));
        }
        for judge in &tally.judges {
            if let Some(failure) = &judge.failure {
                printer.result(&format!("`{}` failed, for example with {failure}", judge.name));
            }
        }
        printer.result("\nnext:");
        for line in self.next(&widest) {
            printer.result(&format!("  {line}"));
        }
        Ok(())
    }

    /// The first cases, and those on which the judges disagree most.
    fn pick(&self) -> Result<Picked, StoreError> {
        let mut first: Vec<(Ruling, u64)> = Vec::new();
        let mut widest: Vec<(f64, String, u64)> = Vec::new();
        each_ruling_at(self.store, self.run.number, |place, ruling| {
            if let Some(spread) = ruling.spread.filter(|spread| *spread > 0.0) {
                widest.push((spread, ruling.case.clone(), place));
                widest.sort_by(|a, b| b.0.total_cmp(&a.0));
                widest.truncate(WIDEST);
            }
            if first.len() < SHOWN {
                first.push((ruling, place));
            }
            Ok::<_, StoreError>(())
        })?;
        // Only the few that are shown are looked at again.
        let rows = row_numbers(self.run);
        let row = |place: u64| -> Result<Option<u64>, StoreError> {
            let case = self.store.case(self.run.number, place)?;
            Ok(case.filter(Case::has_content_id).and_then(|_| rows.of(place)))
        };
        let first = first.into_iter().map(|(ruling, place)| Ok((ruling, row(place)?)));
        let widest = widest
            .into_iter()
            .map(|(spread, id, place)| Ok((spread, case_name(&id, row(place)?, NAME))));
        Ok(Picked {
            first: first.collect::<Result<_, StoreError>>()?,
            widest: widest.collect::<Result<_, StoreError>>()?,
        })
    }

    fn cases(&self, rulings: &[(Ruling, Option<u64>)]) -> String {
        let judges = self
            .spec
            .judge
            .iter()
            .filter(|judge| !judge.seat.reserve)
            .map(|judge| judge.seat.name.as_str());
        let header: Vec<&str> =
            std::iter::once("case").chain(judges).chain(["score", "decision"]).collect();
        let numbers: Vec<usize> = (1..header.len() - 1).collect();
        let rows = rulings
            .iter()
            .map(|(ruling, at)| {
                let mut row = vec![case_name(&ruling.case, *at, NAME)];
                row.extend(ruling.votes.iter().map(vote));
                row.push(panel_score(ruling));
                row.push(format!("{}{}", decision(ruling), marks(ruling)));
                row
            })
            .collect();
        table(&header, rows, &numbers)
    }

    /// The score that must be reached: under a certificate the full panel's.
    fn threshold(&self) -> f64 {
        self.profile.as_ref().map_or(self.spec.threshold, |own| own.threshold())
    }

    fn rule(&self) -> String {
        let profile = match &self.profile {
            Some(own) => format!(", mapped by profile {}", own.profile().name),
            None => String::new(),
        };
        format!(
            "the {} of {}{profile}, threshold {:.2}, quorum {}",
            self.spec.aggregate.name().replace('_', " "),
            plural(u64::from(self.spec.counted()), "vote", "votes"),
            self.threshold(),
            self.spec.quorum()
        )
    }

    /// What the rulings are worth under the profile.
    fn worth(&self) -> Option<String> {
        let own = self.profile.as_ref()?;
        let tally = &self.report.tally;
        let certified = tally.certified;
        let mut text = format!(
            "profile {} ({}): {} certified",
            own.profile().name,
            &own.hash()[..12],
            plural(certified, "ruling", "rulings"),
        );
        if certified > 0 {
            let bound = own.bound();
            text.push_str(&format!(
                ", {} at most {} with confidence {} (from {})",
                bound.mode,
                bound.alpha,
                1.0 - bound.delta,
                bad(own)
            ));
        }
        for (n, what) in [
            (tally.uncalibrated, "uncalibrated"),
            (tally.uncertified - tally.uncalibrated, "uncertified"),
            (tally.undecided, "undecided"),
            (tally.degraded, "degraded"),
        ] {
            if n > 0 {
                text.push_str(&format!("; {n} {what}"));
            }
        }
        Some(text)
    }

    fn next(&self, widest: &[(f64, String)]) -> Vec<String> {
        let tally = &self.report.tally;
        let id = &self.run.id;
        let mut next = Vec::new();
        if !self.report.finished {
            next.push(format!("venire run --resume {id}   go on where this run was stopped"));
        }
        let failed: u64 =
            Status::ALL.iter().filter(|s| s.is_error()).map(|s| tally.statuses.get(*s)).sum();
        let again = tally.worth_asking_again();
        if again > 0 {
            next.push(format!(
                "venire run --resume {id} --retry-errors   ask again for the {} that failed and may not fail again",
                plural(again, "verdict", "verdicts")
            ));
        }
        if failed > tally.not_needed {
            for (status, n) in tally.statuses.present() {
                let of_model =
                    tally.judges.iter().any(|j| j.asks_models && j.statuses.get(status) > 0);
                if let Some(cure) = cure(status, of_model) {
                    next.push(format!("{n} {status}: {}", cure.replace("RUN", id)));
                }
            }
        }
        if !widest.is_empty() {
            let cases: Vec<String> = widest
                .iter()
                .map(|(spread, case)| format!("{} ({spread:.2})", plain(case)))
                .collect();
            next.push(format!("look first where the judges disagree most: {}", cases.join(", ")));
        }
        if tally.rejected > 0 {
            next.push(format!("venire show {id} --decision reject   the rejected cases"));
        }
        next.push(format!("venire show {id} CASE   one case: its texts, votes and reasons"));
        next.push(format!(
            "venire export {id} -o report.html   a page of all (or .csv, .jsonl, .md, .xml)"
        ));
        next
    }
}

/// `degraded`, `uncalibrated` or `uncertified`, in brackets.
fn marks(ruling: &Ruling) -> String {
    let marks = crate::report::words::marks(ruling);
    if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) }
}

/// What the certificate was made from.
pub(super) fn bad(own: &InForce) -> String {
    let certificate = &own.profile().certificate;
    bad_units(certificate.n_bad, &certificate.sampling, own.profile().binding.generations > 1)
}

/// The profile of a run, as it is printed.
fn profile(own: &InForce, tally: &Tally) -> Value {
    json!({
        "name": own.profile().name, "hash": own.hash(), "uncalibrated": tally.uncalibrated,
        "uncertified": tally.uncertified, "certified": tally.certified, "bound": own.bound(),
        "generations": own.profile().binding.generations,
    })
}

/// The summary of a data set without cases.
pub(super) fn nothing(panel: &Panel, spec: &PanelSpec, scan: &Scan) -> Value {
    json!({
        "run": null, "panel": spec.name, "data": scan.path, "finished": true, "cases": 0,
        "skipped_rows": scan.skipped.count,
        "judges": panel.seats.len(), "statuses": {}, "verdicts": 0, "unscored": 0,
        "not_needed": 0, "accepted": 0, "rejected": 0, "undecided": 0, "accepted_share": null, "degraded": 0,
        "threshold": spec.threshold, "profile": null, "calls": 0, "cached": 0, "cost_usd": 0.0,
        "run_calls": 0, "run_cost_usd": 0.0,
        "elapsed_seconds": 0.0, "by_judge": [], "by_source": [], "warnings": [],
    })
}

/// The plan of `--dry-run`.
pub(super) fn plan(
    panel: &Panel,
    scan: &Scan,
    planned: &Planned,
    as_json: bool,
    printer: &Printer,
) -> anyhow::Result<()> {
    let verdicts: u64 = panel.seats.iter().map(|seat| scan.count * u64::from(seat.samples)).sum();
    let Planned { once, again } = planned;
    let reporting: Vec<&str> = panel
        .seats
        .iter()
        .filter(|seat| seat.judge.reports_cost())
        .map(|seat| seat.name.as_str())
        .collect();
    if as_json {
        // What a judge tells only with its answer makes the whole unknown.
        let whole = |cost: Option<f64>| cost.filter(|_| reporting.is_empty());
        return printer.json(&json!({
            "dry_run": true, "cases": scan.count, "skipped_rows": scan.skipped.count,
            "judges": panel.seats.len(), "verdicts": verdicts,
            "calls": once.calls, "tokens_in": once.tokens_in,
            "tokens_out": once.tokens_out, "cost_usd": whole(once.cost_usd),
            "models_cost_usd": once.cost_usd, "cost_unknown_of": reporting,
            "if_asked_again": {
                "calls": again.calls, "tokens_in": again.tokens_in,
                "tokens_out": again.tokens_out, "cost_usd": whole(again.cost_usd),
            },
        }));
    }
    printer.result(&format!(
        "{} x {} = {}",
        plural(scan.count, "case", "cases"),
        plural(panel.seats.len() as u64, "judge", "judges"),
        plural(verdicts, "verdict", "verdicts")
    ));
    printer.result(&format!(
        "{} to model servers, about {} prompt tokens, at most {} completion tokens, {}",
        plural(u64::from(once.calls), "call", "calls"),
        once.tokens_in,
        once.tokens_out,
        about(once.cost_usd)
    ));
    if again.calls > once.calls {
        printer.result(&format!(
            "more where a reply can't be read and is asked for again; if each had to be: {}, about {} prompt tokens, at most {} completion tokens, {}",
            plural(u64::from(again.calls), "call", "calls"),
            again.tokens_in,
            again.tokens_out,
            about(again.cost_usd)
        ));
    }
    if !reporting.is_empty() {
        let names: Vec<String> = reporting.iter().map(|name| format!("`{name}`")).collect();
        printer.result(&format!(
            "what {} may cost is not known before they answer, and not in these figures",
            names.join(", ")
        ));
    }
    printer.result("replies that are kept in the store are not asked for again");
    Ok(())
}

fn about(cost: Option<f64>) -> String {
    match cost {
        Some(cost) => format!("about {cost:.4} US dollars"),
        None => "price unknown: a model has no `price`".into(),
    }
}

fn dollars(cost: Option<f64>) -> String {
    cost.map_or_else(|| "price unknown".into(), |cost| format!("{cost:.4} US dollars"))
}

fn judges(judges: &[JudgeTally]) -> String {
    let rows = judges
        .iter()
        .map(|judge| {
            let votes = judge.votes;
            let others: Vec<String> = judge
                .statuses
                .present()
                .filter(|(status, _)| *status != Status::Ok)
                .map(|(status, n)| format!("{status} {n}"))
                .collect();
            let mean = judge.mean_score.map_or_else(|| "-".into(), |mean| format!("{mean:.2}"));
            let margin = judge.margin().map_or_else(|| "-".into(), |margin| format!("{margin:.2}"));
            let latency =
                judge.mean_latency_ms.map_or_else(|| "-".into(), |ms| format!("{ms:.0} ms"));
            let tokens = match judge.tokens_in + judge.tokens_out {
                0 => "-".into(),
                tokens => tokens.to_string(),
            };
            vec![
                format!("{}{}", judge.name, if judge.required { " (required)" } else { "" }),
                votes.to_string(),
                mean,
                margin,
                latency,
                tokens,
                judge.outvoted.to_string(),
                others.join(", "),
            ]
        })
        .collect();
    table(
        &["judge", "votes", "mean", "95% ±", "time", "tokens", "outvoted", "without a vote"],
        rows,
        &[1, 2, 3, 4, 5, 6],
    )
}

/// How each source fared; `None` where no case names one.
fn sources(tally: &Tally) -> Option<String> {
    if tally.has_too_many_sources() {
        return Some(format!(
            "results by source are left out: there are more than {MOST_SOURCES} of them"
        ));
    }
    let sources = tally.by_source();
    if sources.is_empty() {
        return None;
    }
    let rows = sources
        .iter()
        .map(|own: &SourceResult| {
            vec![
                source_name(own),
                own.cases.to_string(),
                own.accepted.to_string(),
                own.rejected.to_string(),
                own.undecided.to_string(),
                of_share(own.accepted_share.as_ref()),
                two(own.mean_score),
                two(own.margin),
            ]
        })
        .collect();
    let header = [
        "source",
        "cases",
        "accepted",
        "rejected",
        "undecided",
        "accepted of the decided",
        "mean score",
        "95% ±",
    ];
    Some(table(&header, rows, &[1, 2, 3, 4, 5, 6, 7]))
}

/// The accepted share with its 95% interval, or why there is none.
fn share(tally: &Tally) -> String {
    match tally.accepted_share() {
        Some(share) => {
            let groups = share
                .groups
                .map(|groups| format!(" in {}", plural(groups, "group", "groups")))
                .unwrap_or_default();
            format!(
                "; accepted of the decided: {:.2} (95% interval {:.2} to {:.2}, n = {}{groups})",
                share.point, share.lower, share.upper, share.n
            )
        }
        None if tally.accepted + tally.rejected > 1 => {
            "; no interval: all cases are of one group, and not decided alike".into()
        }
        None => String::new(),
    }
}
