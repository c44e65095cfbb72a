//! `venire label`: a person labels cases, the informative ones first, on a page or at the
//! terminal.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::Global;
use super::exit::Exit;
use super::label_terminal;
use super::printer::Printer;
use super::run::DataArgs;
#[cfg(feature = "server")]
use super::serve::ListenArgs;
use crate::dataset::{Label, Source};
use crate::label::{Book, Options, Order, Queue};
use crate::rubric::{Lang, Rubric};
use crate::score::Scale;
use crate::store::Store;

/// Label cases on a web page or at the terminal; the most informative ones come first
///
/// Labels are appended to a CSV file that `calibrate --labels` reads, each on disk before the
/// next case is shown; given again, the command goes on where the rater stopped. With `--run`
/// the judges' votes on a case are shown after it has a label, never before. Labels of cases
/// chosen because judges disagree are no random sample: for error rates of the whole data
/// label `--order random` ones.
///
/// Example: `venire label cases.jsonl --run latest --rater ana --scale 1-5`
#[derive(Debug, Args)]
pub(super) struct LabelArgs {
    /// The data set: CSV, TSV or JSON Lines, gzip or not
    #[arg(value_name = "DATA")]
    data: PathBuf,
    #[command(flatten)]
    reading: DataArgs,
    /// Who labels
    #[arg(long, value_name = "NAME", value_parser = name)]
    rater: String,
    /// What is labelled
    #[arg(long, value_name = "NAME", default_value = Label::DEFAULT_CRITERION, value_parser = name)]
    criterion: String,
    /// The file that labels are appended to; made where it is not there
    #[arg(long, value_name = "FILE", default_value = "labels.csv")]
    labels: PathBuf,
    /// A run of these data: its id, the beginning of it, or `latest`
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// The order of the cases; `informative` with `--run`, else `data`
    #[arg(long, value_enum)]
    order: Option<OrderArg>,
    /// The seed of a random order
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// The scale of a label, such as `binary`, `1-5` or `unit`; `binary` if not given
    #[arg(long, value_name = "SCALE", conflicts_with = "choices")]
    scale: Option<Scale>,
    /// Words to choose from instead of numbers, as in `good,bad`
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    choices: Vec<String>,
    /// What the person is asked; with `--rubric` the criterion's own words
    #[arg(long, value_name = "TEXT")]
    question: Option<String>,
    /// A rubric whose criterion is labelled: its words and what its levels mean are shown
    #[arg(long, value_name = "NAME|FILE")]
    rubric: Option<String>,
    /// Cases in the queue at most
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    most: u32,
    /// Ask at this terminal, or read the labels from stdin, and serve no page
    #[arg(long)]
    terminal: bool,
    #[cfg(feature = "server")]
    #[command(flatten)]
    listen: ListenArgs,
}

/// In which order cases are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OrderArg {
    /// As in the data
    Data,
    /// Those on which the judges disagree, or whose score is near the threshold
    Informative,
    /// At random: a sample from which rates can be estimated
    Random,
}

fn name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("expected a name".into()),
        _ if text.chars().any(char::is_control) => Err("expected a name on one line".into()),
        text => Ok(text.to_owned()),
    }
}

impl LabelArgs {
    fn order(&self) -> anyhow::Result<Order> {
        let usual = if self.run.is_some() { OrderArg::Informative } else { OrderArg::Data };
        Ok(match self.order.unwrap_or(usual) {
            OrderArg::Data => Order::Data,
            OrderArg::Random => Order::Random(self.seed),
            OrderArg::Informative => {
                anyhow::ensure!(
                    self.run.is_some(),
                    "which cases are informative follows from a run's votes: name it with `--run`"
                );
                Order::Informative
            }
        })
    }

    fn choices(&self) -> anyhow::Result<Vec<String>> {
        let mut choices: Vec<String> = Vec::new();
        for choice in &self.choices {
            let choice = choice.trim().to_owned();
            anyhow::ensure!(
                !choice.is_empty() && !choices.contains(&choice) && choice.parse::<f64>().is_err(),
                "`--choices {}`: expected different words, and `--scale` for numbers",
                self.choices.join(",")
            );
            choices.push(choice);
        }
        anyhow::ensure!(choices.len() != 1, "`--choices` with one word leaves no choice");
        Ok(choices)
    }

    /// The cases that wait, and the file that their labels go to.
    fn queue(&self, scale: Option<Scale>, global: &Global) -> anyhow::Result<Queue> {
        let filling = Options {
            order: self.order()?,
            scale,
            choices: self.choices()?,
            most: self.most as usize,
        };
        let source = Source::open(&self.data)?;
        anyhow::ensure!(
            !crate::inputs::was_read(&self.labels),
            "`--labels {}` is the data itself: name another file",
            self.labels.display()
        );
        let run = match &self.run {
            Some(run) => Some((Store::open(&global.store)?, run.as_str())),
            None => None,
        };
        let book = Book::open(&self.labels, &self.rater, &self.criterion)
            .context("failed to open the labels")?;
        Ok(Queue::fill(&source, &self.reading.options(false)?, run, book, filling)?)
    }

    /// The question, and what labels mean.
    fn question(&self, scale: Option<Scale>) -> anyhow::Result<(String, Vec<(String, String)>)> {
        let Some(rubric) = &self.rubric else {
            let yes_and_no = [("0", "no"), ("1", "yes")];
            let words = yes_and_no.map(|(level, words)| (level.to_owned(), words.to_owned()));
            let anchors = if scale == Some(Scale::BINARY) { words.to_vec() } else { Vec::new() };
            let usual = match self.criterion.as_str() {
                Label::DEFAULT_CRITERION if scale == Some(Scale::BINARY) => {
                    "Is this output good?".to_owned()
                }
                Label::DEFAULT_CRITERION => "How good is this output?".to_owned(),
                criterion => format!("{criterion}?"),
            };
            return Ok((self.question.clone().unwrap_or(usual), anchors));
        };
        let rubric = Rubric::find(rubric, Lang::En, std::path::Path::new(""))?;
        let names = || rubric.criteria.iter().map(|own| own.name.as_str());
        let Some(criterion) = rubric.criteria.iter().find(|own| own.name == self.criterion) else {
            anyhow::bail!(
                "the rubric `{}` has no criterion `{}`: name one of {} with `--criterion`",
                rubric.name,
                self.criterion,
                names().collect::<Vec<_>>().join(", ")
            );
        };
        // Anchors say what levels of the rubric's own scale mean, and of no other.
        let anchors = if scale == Some(rubric.scale) {
            let anchors = criterion.anchors_by_level();
            anchors
                .into_iter()
                .map(|(level, words)| (level.to_string(), words.to_string()))
                .collect()
        } else {
            Vec::new()
        };
        let question = self.question.clone().unwrap_or_else(|| criterion.description.clone());
        Ok((question, anchors))
    }

    /// The scale: the one named, the rubric's, or yes and no.
    fn scale(&self) -> anyhow::Result<Option<Scale>> {
        Ok(match (&self.scale, &self.rubric) {
            (Some(scale), _) => Some(*scale),
            _ if !self.choices.is_empty() => None,
            (None, Some(rubric)) => {
                Some(Rubric::find(rubric, Lang::En, std::path::Path::new(""))?.scale)
            }
            (None, None) => Some(Scale::BINARY),
        })
    }
}

pub(super) fn run(args: &LabelArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    #[cfg(not(feature = "server"))]
    anyhow::ensure!(
        args.terminal,
        "this build has no pages: give `--terminal`, or build with `--features server`"
    );
    // What is wrong with the server is said before anything is read or written.
    #[cfg(feature = "server")]
    let options = args.listen.options(crate::serve::http::Limits::default())?;
    let scale = args.scale()?;
    let (question, anchors) = args.question(scale)?;
    let mut queue = args.queue(scale, global)?;
    let (done, total) = queue.progress();
    printer.say(&format!("{done} of {total} cases are labelled by {}", args.rater));
    if args.order()? == Order::Informative {
        printer.warn(
            "the most informative cases come first, and they are no random sample: for error rates of the whole data label cases with `--order random`",
        );
    }
    let exit = if args.terminal {
        label_terminal::ask(&mut queue, &question, &anchors, printer)?
    } else {
        #[cfg(feature = "server")]
        super::runtime()?.block_on(on_pages(
            options,
            queue,
            (question, anchors),
            global,
            printer,
        ))?;
        Exit::Done
    };
    printer.say(&format!("labels are in {}", args.labels.display()));
    Ok(exit)
}

/// Serves the queue until the program is stopped.
#[cfg(feature = "server")]
async fn on_pages(
    options: crate::serve::http::Options,
    queue: Queue,
    (question, anchors): (String, Vec<(String, String)>),
    global: &Global,
    printer: &Printer,
) -> anyhow::Result<()> {
    let labelling =
        crate::serve::http::Labelling { queue: std::sync::Mutex::new(queue), question, anchors };
    let loops = super::loop_::loops(global);
    let service = crate::serve::http::Service::new(options, None, &global.store, &loops)?;
    super::serve::serve(service.with_labelling(labelling), "/label", printer).await
}
