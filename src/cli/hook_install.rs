//! `venire hook install`: a host's settings, changed after the change was shown.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::Global;
use super::exit::Exit;
use super::hook::{EventArgs, HostArg, JudgedArg, OnLimitArg, OnUndecidedArg};
use super::panel::warn;
use super::printer::Printer;
use crate::judge::process::Period;
use crate::provider::Client;
use crate::serve::hook::{Entry, Host, Limits, Scope, merged, settings_file};

/// Write the hook into a host's settings, after showing what changes
///
/// Example: `venire hook install claude-code -c panel.toml`
#[derive(Debug, Args)]
pub(super) struct InstallArgs {
    /// Whose settings
    #[arg(value_enum)]
    host: HostArg,
    /// What each call of the hook is given, its limits among it
    #[command(flatten)]
    event: EventArgs,
    /// This project's settings, or those of all your projects
    #[arg(long, value_enum, default_value_t = ScopeArg::Project)]
    scope: ScopeArg,
    /// Write without asking
    #[arg(short, long)]
    yes: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Take the hook out again
    #[arg(long)]
    remove: bool,
    /// Judge each file that a tool writes too, by rules and commands alone (Claude Code)
    #[arg(long)]
    tools: bool,
}

/// How long a host is told to wait where nothing else is said.
const WAIT: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ScopeArg {
    /// The settings in this folder
    Project,
    /// The settings in your home folder
    User,
}

impl ScopeArg {
    fn scope(self) -> Scope {
        match self {
            Self::Project => Scope::Project,
            Self::User => Scope::User,
        }
    }
}

pub(super) fn run(args: &InstallArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    let host = args.host.host();
    let folder = match args.scope.scope() {
        Scope::Project => PathBuf::from("."),
        Scope::User => std::env::home_dir().context("no home folder is known")?,
    };
    let path = settings_file(host, &folder)?;
    let before = match std::fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => {
            return Err(error).with_context(|| format!("failed to read `{}`", path.display()));
        }
    };
    let entry = if args.remove { None } else { Some(args.entry(host, global, printer)?) };
    let after = merged(host, &path, before.as_deref(), entry.as_ref())?;
    let old = before.clone().unwrap_or_default();
    if (args.remove && before.is_none()) || old == after {
        printer.result(&format!("{} is as it should be", path.display()));
        return Ok(Exit::Done);
    }
    printer.result(diff(&path, &old, &after).trim_end());
    if args.dry_run {
        return Ok(Exit::Done);
    }
    if !args.yes && !asked(&path)? {
        printer.result("nothing was changed");
        return Ok(Exit::Interrupted);
    }
    write(&path, &after).with_context(|| format!("failed to write `{}`", path.display()))?;
    printer.result(&format!("wrote {}", path.display()));
    if let Some(note) = note(host).filter(|_| !args.remove) {
        printer.result(note);
    }
    Ok(Exit::Done)
}

/// What a person has to do beside.
fn note(host: Host) -> Option<&'static str> {
    match host {
        Host::Codex => Some(
            "next: start codex, and trust the hook with /hooks; until then it is passed over without a word",
        ),
        Host::GeminiCli => Some("next: trust the folder when gemini asks"),
        _ => None,
    }
}

impl InstallArgs {
    /// The command and its limits. The panel is seated here, where a mistake can still be
    /// told to a person.
    fn entry(&self, host: Host, global: &Global, printer: &Printer) -> anyhow::Result<Entry> {
        anyhow::ensure!(
            !self.tools || host == Host::ClaudeCode,
            "`--tools` is for `claude-code`: `{}` has no event for it that is understood",
            host.name()
        );
        anyhow::ensure!(
            self.event.on_undecided != OnUndecidedArg::Fail || host.can_end(),
            "`--on-undecided fail` needs a host that can be told to end, and `{}` can't: use `accept` or `reject`",
            host.name()
        );
        let timeout = self.wait();
        anyhow::ensure!(
            timeout >= Duration::from_secs(10),
            "`--host-timeout` is {timeout:?}: expected 10 seconds or more"
        );
        let seated = self.event.panel.seat(Client::default())?;
        warn(&seated.panel, printer);
        let blocks = self.event.max_blocks;
        if let Some(cap) = host.own_cap().filter(|cap| blocks >= *cap) {
            printer.warn(&format!(
                "`--max-blocks {blocks}`: `{}` goes on without its hook after {cap} in a row, as a success; only `venire hook status` will say that nothing was accepted",
                host.name()
            ));
        }
        Ok(Entry { command: self.command(host, global)?, timeout, blocks, tools: self.tools })
    }

    /// How long the host shall wait.
    fn wait(&self) -> Duration {
        self.event.host_timeout.map_or(WAIT, Period::get)
    }

    /// The command line that the host's shell runs.
    fn command(&self, host: Host, global: &Global) -> anyhow::Result<String> {
        let event = &self.event;
        let absolute = |path: &Path| -> anyhow::Result<String> {
            let full = std::path::absolute(path)
                .with_context(|| format!("no path to `{}`", path.display()))?;
            Ok(full.to_string_lossy().into_owned())
        };
        let program = std::env::current_exe().context("the program's own path is not known")?;
        let mut words = vec![
            absolute(&program)?,
            "hook".to_owned(),
            host.name().to_owned(),
            "-c".to_owned(),
            absolute(&event.panel.config)?,
            "--host-timeout".to_owned(),
            format!("{}s", self.wait().as_secs()),
        ];
        let mut add = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
        // What is as usual is left out, so that the line stays one that people read.
        if let Some(profile) = &event.panel.profile.profile {
            add("--profile", absolute(profile)?);
        }
        if let Some(threshold) = event.panel.threshold {
            add("--threshold", threshold.to_string());
        }
        if let Some(seed) = event.panel.seed {
            add("--seed", seed.to_string());
        }
        if event.panel.repeat > 1 {
            add("--repeat", event.panel.repeat.to_string());
        }
        match event.task.as_deref().map(|task| (task, task.strip_prefix('@'))) {
            Some((_, Some(file))) => add("--task", format!("@{}", absolute(Path::new(file))?)),
            Some((task, None)) => add("--task", task.to_owned()),
            None => {}
        }
        let named = |value: Option<clap::builder::PossibleValue>| {
            value.map(|value| value.get_name().to_owned()).unwrap_or_default()
        };
        if event.judged != JudgedArg::Auto {
            add("--judged", named(event.judged.to_possible_value()));
        }
        let (limits, usual) = (event.limits(), Limits::default());
        for (flag, limit, usual) in [
            ("--max-blocks", limits.blocks, usual.blocks),
            ("--max-session-blocks", limits.session_blocks, usual.session_blocks),
            ("--max-unchanged", limits.unchanged, usual.unchanged),
        ] {
            if limit != usual {
                add(flag, limit.to_string());
            }
        }
        if limits.turn_ms != usual.turn_ms {
            add("--time-limit", format!("{}ms", limits.turn_ms));
        }
        if let Some(usd) = event.cost_limit {
            add("--cost-limit", usd.to_string());
        }
        if event.on_undecided != OnUndecidedArg::Accept {
            add("--on-undecided", named(event.on_undecided.to_possible_value()));
        }
        if event.on_limit != OnLimitArg::End {
            add("--on-limit", named(event.on_limit.to_possible_value()));
        }
        if let Some(state) = &event.state {
            add("--state", absolute(state)?);
        }
        if let Some(outcome) = &event.outcome {
            add("--outcome", absolute(outcome)?);
        }
        if let Some(session) = &event.session {
            add("--session", session.clone());
        }
        // As the workspace's own store it is found from each workspace anew.
        if global.store != Path::new(crate::store::DEFAULT_PATH) {
            add("--store", absolute(&global.store)?);
        }
        if let Some(file) = &global.env_file {
            add("--env-file", absolute(file)?);
        }
        if event.panel.profile.allow_mismatch {
            words.push("--allow-mismatch".to_owned());
        }
        if event.no_cache {
            words.push("--no-cache".to_owned());
        }
        Ok(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
    }
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=@:,+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn diff(path: &Path, before: &str, after: &str) -> String {
    let name = path.display().to_string();
    similar::TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(3)
        .header(&name, &name)
        .to_string()
}

/// Whether the person wants it.
fn asked(path: &Path) -> anyhow::Result<bool> {
    anyhow::ensure!(
        std::io::stdin().is_terminal(),
        "nobody can be asked here: look at the change above and give `--yes`"
    );
    let mut stderr = std::io::stderr();
    write!(stderr, "write {}? [y/N] ", path.display())?;
    stderr.flush()?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// Replaces the file whole, and keeps its permissions.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    // A link is followed, so that it stays one.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let Ok(metadata) = target.metadata() else { return std::fs::write(&target, text) };
    let folder = target.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_data()?;
    file.as_file().set_permissions(metadata.permissions())?;
    file.persist(&target).map_err(|error| error.error)?;
    Ok(())
}
