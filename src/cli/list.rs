//! `venire list`: what is there to choose from, each with a line on what it is.
//!
//! Descriptions and keys come from the JSON Schemas, and so from the types themselves;
//! examples from `docs/judges.md`, whose every panel is tested.

use clap::{Args, ValueEnum};
use schemars::schema_for;
use serde::Serialize;
use serde_json::Value;

use super::Global;
use super::describe::{self, Key};
use super::exit::Exit;
use super::printer::{Printer, table};
use crate::control::log::Kept;
use crate::panel::spec::{JudgeSpec, KINDS, SeatKeys};
use crate::panel::vote::Aggregate;
use crate::report::words::shortened;
use crate::rubric::{BUILTIN_NAMES, Lang, Rubric};
use crate::store::{RunState, Store, StoreError};
use crate::verdict::Status;

/// List runs, loops, judge kinds, rules, rubrics, providers, aggregators or statuses
///
/// With a NAME the whole of one: a judge kind's or rule's keys with an example, a rubric's
/// criteria with their anchors.
///
/// Example: `venire list rules length`
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// What to list
    #[arg(value_enum)]
    what: Listed,
    /// One of them
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// The language of a rubric
    #[arg(long, value_enum, default_value_t)]
    lang: LangArg,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Listed {
    /// The runs in the store and the loops beside it, the newest first
    Runs,
    /// The loops alone
    Loops,
    /// The kinds of judges
    Judges,
    /// The rules that a judge of kind `rule` can be
    Rules,
    /// The built-in rubrics
    Rubrics,
    /// The model providers known by name
    Providers,
    /// How votes can become one score
    Aggregators,
    /// What can become of a verdict
    Statuses,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum LangArg {
    /// English
    #[default]
    En,
    /// Chinese
    Zh,
}

impl LangArg {
    fn lang(self) -> Lang {
        match self {
            Self::En => Lang::En,
            Self::Zh => Lang::Zh,
        }
    }
}

/// A name with what it is.
#[derive(Debug, Serialize)]
struct Named {
    name: String,
    description: String,
}

pub(super) fn run(args: &ListArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    match (args.what, &args.name) {
        (Listed::Runs, None) => return runs(args, global, printer),
        (Listed::Loops, None) => return loops(args, global, printer),
        (Listed::Loops, Some(run)) => {
            anyhow::bail!(
                "one loop is shown by `venire report` on its log (`venire list loops` has it); what `{run}` asks, by `venire review`"
            )
        }
        (Listed::Runs, Some(run)) => {
            anyhow::bail!("the cases of a run are shown by `venire show {run}`")
        }
        _ => {}
    }
    let rows = rows(args.what, args.lang.lang())?;
    if let Some(name) = &args.name {
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        let Some(row) = rows.iter().find(|row| row.name == *name) else {
            let near = crate::config::nearest(name, names.iter().copied())
                .map(|name| format!("; did you mean `{name}`?"))
                .unwrap_or_default();
            anyhow::bail!("no `{name}` among {}{near}", names.join(", "));
        };
        return one(args, row, printer);
    }
    if args.json {
        printer.json(&rows)?;
        return Ok(Exit::Done);
    }
    let lines = rows.into_iter().map(|row| vec![row.name, row.description]).collect();
    printer.result(&table(&["name", "what it is"], lines, &[]));
    match args.what {
        Listed::Judges => printer.say("\nkeys and an example: venire list judges NAME"),
        Listed::Rules => printer.say("\nkeys and an example: venire list rules NAME"),
        Listed::Rubrics => printer.say("\ncriteria and anchors: venire list rubrics NAME"),
        _ => {}
    }
    Ok(Exit::Done)
}

fn rows(what: Listed, lang: Lang) -> anyhow::Result<Vec<Named>> {
    let described = |schema: &schemars::Schema, names: Vec<&str>, tag: Option<&str>| {
        names
            .into_iter()
            .map(|name| Named {
                name: name.to_owned(),
                description: describe::variant(schema.as_value(), tag, name)
                    .and_then(describe::description)
                    .unwrap_or_default(),
            })
            .collect()
    };
    Ok(match what {
        Listed::Runs | Listed::Loops => Vec::new(),
        Listed::Judges => described(&schema_for!(JudgeSpec), KINDS.to_vec(), Some("kind")),
        Listed::Rules => described(
            &schema_for!(crate::judge::rule::RuleSpec),
            crate::judge::rule::RULES.to_vec(),
            Some("rule"),
        ),
        Listed::Rubrics => BUILTIN_NAMES
            .iter()
            .map(|name| {
                let rubric = Rubric::find(name, lang, std::path::Path::new(""))?;
                Ok(Named { name: rubric.name, description: rubric.description })
            })
            .collect::<anyhow::Result<_>>()?,
        Listed::Providers => crate::provider::providers()
            .map(|provider| Named {
                name: provider.name.to_owned(),
                description: format!(
                    "{}; key: {}",
                    provider.base_url.unwrap_or("your own address in `base_url`"),
                    match provider.variables {
                        [] => "none needed".to_owned(),
                        variables => variables.join(" or "),
                    }
                ),
            })
            .collect(),
        Listed::Aggregators => {
            let names = Aggregate::ALL.iter().map(|aggregate| aggregate.name()).collect();
            described(&schema_for!(Aggregate), names, None)
        }
        Listed::Statuses => {
            described(&schema_for!(Status), Status::ALL.map(Status::name).to_vec(), None)
        }
    })
}

/// All of one thing.
fn one(args: &ListArgs, row: &Named, printer: &Printer) -> anyhow::Result<Exit> {
    let (schema, tag, heading) = match args.what {
        Listed::Rubrics => return rubric(args, &row.name, printer),
        Listed::Judges => (schema_for!(JudgeSpec), "kind", format!("## {}", row.name)),
        Listed::Rules => {
            (schema_for!(crate::judge::rule::RuleSpec), "rule", format!("### {}", row.name))
        }
        Listed::Runs
        | Listed::Loops
        | Listed::Providers
        | Listed::Aggregators
        | Listed::Statuses => {
            if args.json {
                printer.json(row)?;
            } else {
                printer.result(&format!("{}: {}", row.name, row.description));
            }
            return Ok(Exit::Done);
        }
    };
    let keys = describe::keys(schema.as_value(), tag, &row.name);
    let example = describe::example(&heading).unwrap_or_default();
    if args.json {
        printer.json(&serde_json::json!({
            "name": row.name, "description": row.description, "keys": keys, "example": example,
        }))?;
        return Ok(Exit::Done);
    }
    printer.result(&format!("{}: {}\n", row.name, row.description));
    if args.what == Listed::Judges && row.name == "rule" {
        printer.result("The keys depend on the rule: venire list rules, venire list rules NAME\n");
    } else if keys.is_empty() {
        printer.result("It has no keys of its own.\n");
    } else {
        printer.result(&format!("{}\n", key_table(&keys)));
    }
    if args.what == Listed::Judges {
        let seat = schema_for!(SeatKeys);
        let keys = describe::properties(seat.as_value(), seat.as_value(), None);
        printer.result(&format!("Keys of every judge:\n\n{}\n", key_table(&keys)));
    }
    printer.result(example.trim_end());
    Ok(Exit::Done)
}

fn key_table(keys: &[Key]) -> String {
    let rows = keys
        .iter()
        .map(|key| {
            let default = match &key.default {
                _ if key.required => "needed".to_owned(),
                Some(value) if !value.is_null() => value.to_string(),
                _ => "-".to_owned(),
            };
            vec![key.name.clone(), key.holds.clone(), default, key.description.clone()]
        })
        .collect();
    table(&["key", "value", "default", "meaning"], rows, &[])
}

fn rubric(args: &ListArgs, name: &str, printer: &Printer) -> anyhow::Result<Exit> {
    let rubric = Rubric::find(name, args.lang.lang(), std::path::Path::new(""))?;
    if args.json {
        printer.json(&rubric)?;
        return Ok(Exit::Done);
    }
    printer.result(&format!(
        "{} (version {}, scale {})\n{}",
        rubric.name, rubric.version, rubric.scale, rubric.description
    ));
    let total: f64 = rubric.criteria.iter().map(|criterion| criterion.weight).sum();
    for criterion in &rubric.criteria {
        let required = if criterion.required { ", required" } else { "" };
        printer.result(&format!(
            "\n{}  weight {:.0}%, pass mark {}{required}\n  {}",
            criterion.name,
            100.0 * criterion.weight / total,
            criterion.pass_mark,
            criterion.description
        ));
        for (level, text) in criterion.anchors_by_level() {
            printer.result(&format!("    {level}  {text}"));
        }
    }
    printer.say(&format!(
        "\nused by `rubric = \"{name}\"`; for one of your own: venire list rubrics {name} --json > mine.json, and `rubric = \"mine.json\"`"
    ));
    Ok(Exit::Done)
}

fn runs(args: &ListArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    let loops = crate::control::log::kept(&super::loop_::loops(global));
    let mut runs = match Store::open(&global.store) {
        // Loops without a model need no store.
        Err(StoreError::Missing { .. }) if !loops.is_empty() => Vec::new(),
        store => store?.runs()?,
    };
    for run in runs.iter_mut().filter(|run| run.state == RunState::Running) {
        // Its process died before it could say so.
        if !super::run::is_held(&global.store, &run.id) {
            run.state = RunState::Interrupted;
        }
    }
    if args.json {
        printer.json(&runs)?;
        return Ok(Exit::Done);
    }
    let no_runs = runs.is_empty();
    let rows = runs
        .into_iter()
        .map(|run| {
            let summary = run.summary.as_deref().and_then(|text| serde_json::from_str(text).ok());
            let count = |key: &str| {
                let value: Option<&Value> = summary.as_ref().and_then(|s: &Value| s.get(key));
                value.map_or_else(|| "-".to_owned(), Value::to_string)
            };
            vec![
                run.id,
                run.state.name().to_owned(),
                shortened(&run.panel_name, 30),
                count("cases"),
                count("accepted"),
                count("rejected"),
                count("undecided"),
                shortened(&run.data, 40),
                run.created,
            ]
        })
        .collect();
    if no_runs && !loops.is_empty() {
        list_loops(&loops, printer);
        return Ok(Exit::Done);
    }
    printer.result(&table(
        &["run", "state", "panel", "cases", "accepted", "rejected", "undecided", "data", "started"],
        rows,
        &[3, 4, 5, 6],
    ));
    if !loops.is_empty() {
        printer.result("");
        list_loops(&loops, printer);
    }
    Ok(Exit::Done)
}

fn loops(args: &ListArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    let loops = crate::control::log::kept(&super::loop_::loops(global));
    if args.json {
        printer.json(&loops)?;
    } else if loops.is_empty() {
        printer.say("no loops are kept here");
    } else {
        list_loops(&loops, printer);
    }
    Ok(Exit::Done)
}

/// Loops of `venire loop`: each is a log of its own beside the store.
fn list_loops(loops: &[Kept], printer: &Printer) {
    let rows = loops
        .iter()
        .map(|kept| {
            vec![
                kept.run.clone(),
                kept.end.name().to_owned(),
                kept.generations.to_string(),
                shortened(&kept.task, 40),
                // To the second: the rest is for machines, and stands in the JSON.
                kept.time
                    .split('.')
                    .next()
                    .map(|time| format!("{}Z", time.trim_end_matches('Z')))
                    .unwrap_or_default(),
                kept.path.display().to_string(),
            ]
        })
        .collect();
    let header = ["loop", "state", "generations", "task", "started", "log"];
    printer.result(&table(&header, rows, &[2]));
    printer.say("\na log is one event a line; its figures: venire replay LOG --policy loop.toml");
}
