//! The one case that `score` and `gate` judge, from files, text or stdin.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;

use super::Global;
use super::panel::{PanelArgs, Seated, warn};
use super::printer::Printer;
use super::stop::Stop;
use crate::case::Case;
use crate::provider::{CallContext, Client, NoReplies, Places, ReplyStore};
use crate::ruling::Ruling;
use crate::serve::hook::{Seating, Workspace};
use crate::store::Store;

/// What is judged, and by whom.
#[derive(Debug, Args)]
pub(super) struct AnswerArgs {
    #[command(flatten)]
    pub(super) panel: PanelArgs,
    /// The output to judge: a file, or `-` for stdin
    #[arg(value_name = "ANSWER_FILE", required_unless_present_any = ["case", "changes"])]
    answer: Option<PathBuf>,
    /// What was asked: text, or `@FILE`
    #[arg(long, value_name = "TEXT|@FILE")]
    input: Option<String>,
    /// A reference answer: text, or `@FILE`
    #[arg(long, value_name = "TEXT|@FILE")]
    expected: Option<String>,
    /// Material that the answer should rest on: text, or `@FILE`
    #[arg(long, value_name = "TEXT|@FILE")]
    context: Option<String>,
    /// Another output for the same input, for pairwise judges: text, or `@FILE`
    #[arg(long, value_name = "TEXT|@FILE")]
    baseline: Option<String>,
    /// A whole case as a JSON file (`-` for stdin), in place of the other parts
    #[arg(long, value_name = "FILE", conflicts_with_all = ["answer", "input", "expected", "context", "baseline"])]
    case: Option<PathBuf>,
    /// What changed in this git folder since it branched off from a revision, untracked files
    /// included, in place of an answer file; checks without a folder of their own run in it
    #[arg(long, value_name = "REVISION", conflicts_with_all = ["answer", "case"])]
    changes: Option<String>,
    /// Ask model servers again, whatever replies are kept
    #[arg(long)]
    no_cache: bool,
    /// US dollars for this case at most
    #[arg(long, value_name = "USD", value_parser = super::run::dollars)]
    cost_limit: Option<f64>,
    /// Write rows (.jsonl, .json, .csv) or a report (.md, .html, .xml for JUnit) too; may be
    /// repeated
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
}

impl AnswerArgs {
    /// The case, and the tree of the workspace where its changes are judged.
    async fn read(&self, workspace: Option<&Workspace>) -> anyhow::Result<(Case, Option<String>)> {
        if let Some(file) = &self.case {
            let text = read_file(file)?;
            let value = crate::config::json(&text).map_err(|message| {
                anyhow::anyhow!("`{}` is not JSON: {message}", file.display())
            })?;
            let case = Case::from_value(value)
                .with_context(|| format!("`{}` is not a case", file.display()))?;
            return Ok((case, None));
        }
        let mut judged_tree = None;
        let output = match (&self.answer, workspace, &self.changes) {
            (Some(answer), _, _) => read_file(answer)?,
            (None, Some(workspace), Some(revision)) => {
                let base = workspace.branched(revision).await?;
                let tree = workspace.tree().await?.unwrap_or_default();
                judged_tree = Some(tree.clone());
                workspace.changes(base, tree).await?.text
            }
            _ => anyhow::bail!("expected an answer file"),
        };
        let mut case = Case {
            output: Some(output),
            input: self.input.as_deref().map(text_or_file).transpose()?,
            expected: self.expected.as_deref().map(text_or_file).transpose()?,
            context: self.context.as_deref().map(text_or_file).transpose()?,
            baseline: self.baseline.as_deref().map(text_or_file).transpose()?,
            ..Case::default()
        };
        case.id = case.content_id();
        Ok((case, judged_tree))
    }

    /// Judges the case.
    pub(super) async fn judge(&self, global: &Global, printer: &Printer) -> anyhow::Result<Judged> {
        let workspace =
            self.changes.as_ref().map(|_| Workspace::find(Path::new("."))).transpose()?;
        let (case, tree) = self.read(workspace.as_ref()).await?;
        let Seated { spec, mut panel } = self.panel.seat_with(Client::default(), |spec| {
            if let Some(workspace) = &workspace {
                Seating::Whole.put(spec, workspace.root());
            }
        })?;
        if let Some(file) = &self.case {
            panel
                .takes(&case)
                .with_context(|| format!("the case in `{}` can't be judged", file.display()))?;
        }
        for output in &self.output {
            anyhow::ensure!(
                output.as_os_str() != "-",
                "`-o -` has no place beside the result on stdout: use `--json`"
            );
            super::export::check(output, &super::export::RowArgs::default())?;
        }
        warn(&panel, printer);
        let replies: Arc<dyn ReplyStore> = if panel.seats.iter().any(|s| s.judge.model().is_some())
        {
            let store = Store::create(&global.store)?;
            let writer = store.writer()?;
            let scope = self.no_cache.then(super::run::new_id);
            Arc::new(store.replies(&writer, scope.as_deref())?)
        } else {
            Arc::new(NoReplies)
        };
        let ledger = Arc::new(super::run::ledger(self.cost_limit)?);
        let stop = Stop::listen(*printer, None);
        let context = CallContext {
            replies,
            ledger: ledger.clone(),
            cancel: stop.abandon.clone(),
            ..CallContext::standalone(Duration::from_secs(3600))
        };
        // A stop begins nothing more, and what is in flight ends: it is paid for.
        let places = Places::new(tokio::sync::Semaphore::MAX_PERMITS);
        panel.places = Some(places.clone());
        let judging = panel.judge(&case, &context);
        tokio::pin!(judging);
        let (ruling, interrupted) = tokio::select! {
            biased;
            ruling = &mut judging => (ruling, false),
            () = stop.stop.cancelled() => {
                places.close();
                (judging.await, true)
            }
        };
        stop.judged();
        for verdict in ruling.verdicts.iter().filter(|verdict| verdict.status.is_error()) {
            printer.warn(&format!(
                "`{}` has no vote: {}: {}",
                verdict.judge,
                verdict.status,
                verdict.detail.as_deref().unwrap_or_default()
            ));
        }
        for verdict in &ruling.verdicts {
            if let Some(words) = verdict.notes.get("model_mismatch").and_then(|note| note.as_str())
            {
                printer.warn(&format!("`{}`: {words}", verdict.judge));
            }
        }
        let judged = (case.clone(), ruling);
        for output in &self.output {
            super::export::write_one(output, &spec, &judged, printer)?;
        }
        Ok(Judged {
            ruling: judged.1,
            interrupted,
            panel: panel.fingerprint().to_string(),
            tree,
            cost_usd: ledger.totals().cost_usd(),
        })
    }
}

/// A case's ruling.
pub(super) struct Judged {
    pub(super) ruling: Ruling,
    /// Whether somebody stopped the program while it was judged: what was in flight ended and
    /// is shown, and no script goes on by it.
    interrupted: bool,
    /// The panel's fingerprint.
    pub(super) panel: String,
    /// The tree of the workspace, where its changes were judged.
    pub(super) tree: Option<String>,
    /// US dollars that it is known to have taken; `None` where no model asked has a price.
    pub(super) cost_usd: Option<f64>,
}

impl Judged {
    /// How the verb ends.
    pub(super) fn exit(&self) -> super::exit::Exit {
        if self.interrupted { super::exit::Exit::Interrupted } else { exit(&self.ruling) }
    }
}

fn read_file(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        std::io::stdin().read_to_end(&mut bytes).context("failed to read stdin")?;
    } else {
        crate::inputs::note(path);
        bytes =
            std::fs::read(path).with_context(|| format!("failed to read `{}`", path.display()))?;
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        anyhow::anyhow!("`{}` is not UTF-8 text: byte {at} is broken", path.display())
    })
}

pub(super) fn text_or_file(argument: &str) -> anyhow::Result<String> {
    match argument.strip_prefix('@') {
        Some(file) => read_file(Path::new(file)),
        None => {
            if argument.len() < 256 && Path::new(argument).is_file() {
                tracing::warn!(
                    "`{argument}` is taken as the text itself: write `@{argument}` for what stands in the file"
                );
            }
            Ok(argument.to_owned())
        }
    }
}

/// The exit of a ruling on one case.
pub(super) fn exit(ruling: &Ruling) -> super::exit::Exit {
    use super::exit::Exit;
    use crate::ruling::Decision;
    use crate::verdict::Status;
    match ruling.decision {
        Decision::Accept => Exit::Done,
        Decision::Reject => Exit::NotAccepted,
        Decision::Undecided if ruling.verdicts.iter().any(|v| v.status == Status::Cancelled) => {
            Exit::Interrupted
        }
        Decision::Undecided => Exit::Inconclusive,
    }
}
