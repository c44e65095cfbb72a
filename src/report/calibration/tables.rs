//! The tables of the report, the same for every format.

use super::sheet::{Judge, Metrics, Sheet};
use crate::calibration::figure::{Figure, Measured};
use crate::report::chart::{percent, short};
use crate::verdict::StatusCounts;

/// Subsets of judges that are listed.
const SUBSETS: usize = 12;

/// Rows of slices that are listed.
const SLICES: usize = 300;

/// One cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cell {
    /// What stands there.
    pub(super) text: String,
    /// Interval and n, smaller.
    pub(super) detail: String,
    /// What it is sorted by, where not by its text.
    pub(super) sort: Option<f64>,
    /// Whether the text came from the data.
    pub(super) name: bool,
}

impl Cell {
    fn name(text: &str) -> Self {
        Self { text: text.to_owned(), name: true, ..Self::default() }
    }

    fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    fn count(n: u64) -> Self {
        Self { text: n.to_string(), sort: Some(n as f64), ..Self::default() }
    }

    fn figure(own: &Measured<Figure>, show: fn(f64) -> String) -> Self {
        match &own.0 {
            Ok(own) => Self {
                text: show(own.estimate),
                detail: format!("[{}, {}] n={}", show(own.lower), show(own.upper), own.n),
                sort: Some(own.estimate),
                name: false,
            },
            Err(undefined) => {
                Self { text: "-".to_owned(), detail: undefined.to_string(), ..Self::default() }
            }
        }
    }

    fn plain(own: &Measured, n: u64, show: fn(f64) -> String) -> Self {
        match own.value() {
            Some(value) => Self {
                text: show(*value),
                detail: format!("n={n}"),
                sort: Some(*value),
                name: false,
            },
            None => Self { text: "-".to_owned(), ..Self::default() },
        }
    }
}

/// One table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) says: String,
    /// Names of columns, and whether they hold numbers.
    pub(super) columns: Vec<(&'static str, bool)>,
    pub(super) rows: Vec<Vec<Cell>>,
}

/// All tables that have a row, the leaderboard first.
pub(super) fn tables(sheet: &Sheet) -> Vec<Table> {
    let all = [
        leaderboard(sheet),
        slices(sheet),
        check_first(sheet),
        noise(sheet),
        maps(sheet),
        statuses(sheet),
        subsets(sheet),
        people(sheet),
        generations(sheet),
    ];
    all.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

/// The places of the judges, best balanced accuracy first; undefined ones last.
pub(super) fn ranked(sheet: &Sheet) -> Vec<&Metrics> {
    let mut all: Vec<&Metrics> = sheet.judges.iter().map(|judge| &judge.metrics).collect();
    all.push(&sheet.panel.metrics);
    all.push(&sheet.panel.plain_median);
    all.extend(&sheet.panel.as_run);
    let value = |own: &Metrics| {
        own.interval("balanced_accuracy").value().map_or(f64::NEG_INFINITY, |own| own.estimate)
    };
    all.sort_by(|a, b| value(b).total_cmp(&value(a)));
    all
}

fn leaderboard(sheet: &Sheet) -> Table {
    let of = |name: &str| sheet.judges.iter().find(|judge| judge.metrics.name == name);
    let price = |judge: Option<&Judge>| match judge.and_then(|judge| judge.price_usd) {
        Some(price) => Cell { text: format!("{price:.5}"), sort: Some(price), ..Cell::default() },
        None => Cell::words("-"),
    };
    let time = |judge: Option<&Judge>| match judge.and_then(|judge| judge.latency_ms) {
        Some(ms) => Cell { text: format!("{ms:.0}"), sort: Some(ms), ..Cell::default() },
        None => Cell::words("-"),
    };
    let mut rows: Vec<Vec<Cell>> = ranked(sheet)
        .into_iter()
        .map(|own| {
            vec![
                Cell::name(&own.name.replace('_', " ")).kept(&own.name, of(&own.name).is_some()),
                Cell::figure(&own.interval("balanced_accuracy"), percent),
                Cell::figure(&own.false_positive_rate, percent),
                Cell::figure(&own.true_positive_rate, percent),
                Cell::figure(&own.false_acceptance_share, percent),
                Cell::figure(&own.interval("auc"), short),
                Cell::figure(&own.interval("cohen_kappa"), short),
                Cell::figure(&own.bias, short),
                Cell::words(own.operating_point.as_ref().map_or_else(
                    || "nothing fitted".to_owned(),
                    |point| match (point.origin.as_str(), point.threshold) {
                        ("binary", _) | ("majority", None) => point.accept.clone(),
                        (origin, Some(threshold)) => {
                            format!("from {} ({origin})", short(threshold))
                        }
                        (_, None) => point.accept.clone(),
                    },
                )),
                price(of(&own.name)),
                time(of(&own.name)),
            ]
        })
        .collect();
    for own in &sheet.baselines {
        if own.accuracy.value().is_none() {
            continue;
        }
        rows.push(vec![
            Cell::words(format!("({})", own.name.replace('_', " "))),
            Cell::plain(&own.balanced_accuracy, own.n, percent),
            Cell::plain(&own.false_positive_rate, own.bad, percent),
            Cell::plain(&own.true_positive_rate, own.good, percent),
            Cell::plain(&own.false_acceptance_share, own.accepted.unwrap_or(own.n), percent),
            Cell::plain(&own.auc, own.n, short),
            Cell::words("-"),
            Cell::words("-"),
            Cell::words("a rule without judgement"),
            Cell::words("-"),
            Cell::words("-"),
        ]);
    }
    let mut columns = vec![
        ("judge", false),
        ("balanced accuracy", true),
        ("bad accepted (FPR)", true),
        ("good accepted (TPR)", true),
        ("bad among accepted", true),
        ("AUC", true),
        ("kappa", true),
        ("bias", true),
        ("accepts", false),
        ("US dollars", true),
        ("ms", true),
    ];
    // What no judge has would only make the table wider.
    for optional in ["ms", "US dollars"] {
        let place = columns.iter().position(|(name, _)| *name == optional);
        if let Some(place) = place.filter(|&at| rows.iter().all(|row| row[at].sort.is_none())) {
            columns.remove(place);
            for row in &mut rows {
                row.remove(place);
            }
        }
    }
    Table {
        id: "leaderboard",
        title: "Leaderboard",
        says: format!(
            "On {}. By balanced accuracy, the mean of good answers accepted and bad ones refused. Judges whose intervals overlap widely are not told apart by these data. In brackets: rules without judgement, which a judge has to beat.",
            sheet.certify()
        ),
        columns,
        rows,
    }
}

impl Cell {
    /// A judge's name as it is; the panel's own rows may be written in words.
    fn kept(self, name: &str, judge: bool) -> Self {
        if judge { Self::name(name) } else { Self { name: false, ..self } }
    }
}

fn check_first(sheet: &Sheet) -> Table {
    let yes = |yes: bool| Cell::words(if yes { "yes" } else { "no" });
    Table {
        id: "labels",
        title: "Labels to check first",
        says: format!(
            "Of {}: cases on which every judge contradicts the label, {} of the {} that all of them decided. Either they share an error, or the label is wrong; only a second look can tell. The first {} are listed.",
            sheet.whole(),
            sheet.label_noise.suspects_total,
            sheet.label_noise.compared,
            sheet.label_noise.check_first.len()
        ),
        columns: vec![
            ("case", false),
            ("the label says", false),
            ("label", true),
            ("judges against it", true),
            ("raters disagree", false),
        ],
        rows: sheet
            .label_noise
            .check_first
            .iter()
            .map(|own| {
                let row = own.row.map_or_else(String::new, |row| format!("row {row}"));
                vec![
                    Cell { detail: row, ..Cell::name(&own.case) },
                    Cell::words(if own.label_good { "good" } else { "bad" }),
                    Cell { text: short(own.label), sort: Some(own.label), ..Cell::default() },
                    Cell::count(own.judges),
                    yes(own.raters_disagree),
                ]
            })
            .collect(),
    }
}

fn noise(sheet: &Sheet) -> Table {
    let n = sheet.panel.metrics.false_positive_rate.value().map_or(0, |own| own.n);
    let known = sheet
        .label_noise
        .sensitivity
        .iter()
        .filter(|own| own.false_positive_rate.value().is_some());
    Table {
        id: "noise",
        title: "If labels are wrong",
        says: format!(
            "What the panel's rate of bad answers accepted (n={n}, {}) would be if that share of the answers labelled bad were good.",
            sheet.certify()
        ),
        columns: vec![("wrong among the bad labels", true), ("bad accepted (FPR)", true)],
        rows: known
            .map(|own| {
                vec![
                    Cell {
                        text: percent(own.mislabelled_share),
                        sort: Some(own.mislabelled_share),
                        ..Cell::default()
                    },
                    Cell::plain(&own.false_positive_rate, n, percent),
                ]
            })
            .collect(),
    }
}

/// Raw and shrunk figures of every judge in every slice, the panel first.
fn slices(sheet: &Sheet) -> Table {
    let rows = sheet.slices.iter().flat_map(|by| {
        by.judges.iter().flat_map(move |judge| judge.slices.iter().map(move |own| (by, judge, own)))
    });
    Table {
        id: "slices",
        title: "By slices",
        says: format!(
            "On {}. Shrunk figures are pulled towards the mean of all slices as far as the slice's own cases say little: compare these, and read the raw ones with their n. p: the slice accepts no more bad ones than the others do (Fisher, Holm).",
            sheet.certify()
        ),
        columns: vec![
            ("field", false),
            ("slice", false),
            ("judge", false),
            ("bias", true),
            ("shrunk bias", true),
            ("bad accepted", true),
            ("shrunk", true),
            ("p", true),
        ],
        rows: rows
            .take(SLICES)
            .map(|(by, judge, own)| {
                vec![
                    Cell::name(&by.field),
                    Cell::name(&own.slice),
                    Cell::name(&judge.judge),
                    Cell::figure(&own.bias, short),
                    Cell::figure(&own.shrunk_bias, short),
                    Cell::figure(&own.false_positive_rate, percent),
                    Cell::plain(&own.shrunk_false_positive_rate, own.bad, percent),
                    Cell::plain(&own.p_holm, own.bad, short),
                ]
            })
            .collect(),
    }
}

fn maps(sheet: &Sheet) -> Table {
    Table {
        id: "maps",
        title: "Maps of the judges",
        says: format!(
            "Fitted on {} alone. The offset is what has to be added to a score.",
            sheet.fit()
        ),
        columns: vec![
            ("judge", false),
            ("map", false),
            ("labels", true),
            ("offset", true),
            ("why", false),
        ],
        rows: sheet
            .judges
            .iter()
            .map(|judge| {
                vec![
                    Cell::name(&judge.metrics.name),
                    Cell::words(judge.map.map.kind()),
                    Cell::count(judge.map.n),
                    Cell::figure(&judge.map.offset, short),
                    Cell::words(judge.map.reason.clone()),
                ]
            })
            .collect(),
    }
}

fn statuses(sheet: &Sheet) -> Table {
    let failed = |counts: &StatusCounts| {
        let present: Vec<(crate::verdict::Status, u64)> = counts.present().collect();
        let all: u64 = present.iter().map(|(_, n)| n).sum();
        let scored: u64 = present
            .iter()
            .filter(|(status, _)| *status == crate::verdict::Status::Ok)
            .map(|(_, n)| n)
            .sum();
        (all - scored, all)
    };
    let cell = |counts: &StatusCounts| {
        let (without, all) = failed(counts);
        let kinds: Vec<String> = counts
            .present()
            .filter(|(status, _)| *status != crate::verdict::Status::Ok)
            .map(|(status, n)| format!("{status} {n}"))
            .collect();
        Cell {
            text: format!("{without} of {all}"),
            detail: kinds.join(", "),
            sort: Some(without as f64),
            name: false,
        }
    };
    let some = sheet.judges.iter().any(|judge| {
        judge.missing > 0
            || failed(&judge.statuses_by_class.good).0 > 0
            || failed(&judge.statuses_by_class.bad).0 > 0
    });
    let rows = sheet.judges.iter().filter(|_| some).map(|judge| {
        vec![
            Cell::name(&judge.metrics.name),
            cell(&judge.statuses_by_class.good),
            cell(&judge.statuses_by_class.bad),
            Cell::count(judge.missing),
        ]
    });
    Table {
        id: "statuses",
        title: "Measurements without a score",
        says: format!(
            "On {}, by the truth: where the two shares differ, failures are not at random.",
            sheet.whole()
        ),
        columns: vec![
            ("judge", false),
            ("on good cases", true),
            ("on bad cases", true),
            ("cases without a row", true),
        ],
        rows: rows.collect(),
    }
}

fn subsets(sheet: &Sheet) -> Table {
    let own = &sheet.panel.dependence;
    let mut best: Vec<_> = own.subsets.iter().collect();
    best.sort_by(|a, b| {
        b.accuracy
            .estimate
            .total_cmp(&a.accuracy.estimate)
            .then(a.judges.len().cmp(&b.judges.len()))
    });
    best.truncate(SUBSETS);
    Table {
        id: "subsets",
        title: "Smaller panels",
        says: format!(
            "By plain majority on {}, since a panel that is chosen here must not have been chosen on the cases that certify it: the best of {} compared, on the cases that all judges compared decided (n). The best of many looks better than it is.",
            sheet.fit(),
            own.subsets_compared
        ),
        columns: vec![
            ("judges", false),
            ("size", true),
            ("accuracy", true),
            ("bad accepted (FPR)", true),
            ("good accepted (TPR)", true),
        ],
        rows: best
            .into_iter()
            .map(|set| {
                vec![
                    Cell::name(&set.judges.join(" + ")),
                    Cell::count(set.judges.len() as u64),
                    Cell::figure(&Measured(Ok(set.accuracy)), percent),
                    Cell::plain(&set.false_positive_rate, set.bad, percent),
                    Cell::plain(&set.true_positive_rate, set.good, percent),
                ]
            })
            .collect(),
    }
}

fn people(sheet: &Sheet) -> Table {
    let own = &sheet.raters;
    let several = own.count > 1;
    Table {
        id: "raters",
        title: "People against each other",
        says: format!(
            "On {}. {} raters; {} cases have several of them. Krippendorff's alpha of good or bad: {}.",
            sheet.whole(),
            own.count,
            own.cases_with_several,
            own.krippendorff_alpha_nominal
                .value()
                .map_or_else(|| "undefined".to_owned(), |alpha| short(*alpha))
        ),
        columns: vec![
            ("rater", false),
            ("labels", true),
            ("says good", true),
            ("agrees with the others", true),
        ],
        rows: own
            .raters
            .iter()
            .filter(|_| several)
            .map(|rater| {
                vec![
                    Cell::name(&rater.name),
                    Cell::count(rater.n),
                    Cell::figure(&rater.share_good, percent),
                    Cell::figure(&rater.agreement, percent),
                ]
            })
            .collect(),
    }
}

fn generations(sheet: &Sheet) -> Table {
    let (says, rows) = match &sheet.loops {
        Some(own) => (
            format!(
                "On {}: {} loops, {} of which are never good.",
                sheet.certify(),
                own.loops,
                own.never_complete
            ),
            own.by_generation
                .iter()
                .map(|row| {
                    vec![
                        Cell::count(u64::from(row.generation)),
                        Cell::count(row.reached),
                        Cell::count(row.accepted),
                        Cell::count(row.bad),
                        Cell::figure(&row.false_acceptance_share, percent),
                    ]
                })
                .collect(),
        ),
        None => (String::new(), Vec::new()),
    };
    Table {
        id: "generations",
        title: "Acceptance by generation",
        says,
        columns: vec![
            ("generation", true),
            ("loops that reach it", true),
            ("accepted", true),
            ("bad of these", true),
            ("bad among accepted", true),
        ],
        rows,
    }
}
