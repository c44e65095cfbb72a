//! `venire serve`: a panel behind an address, with its runs and queues.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::Global;
use super::exit::Exit;
use super::panel::{PanelArgs, Seated, warn};
use super::printer::{Printer, plural};
use super::stop::Stop;
use crate::judge::process::Period;
use crate::provider::{Client, NoReplies};
use crate::serve::http::{
    self, Judging, Limits, Options, RewardAs, RewardOptions, Server, Service, Tokens,
};
use crate::store::Store;

/// Serve a panel over HTTP: rulings, rewards, runs, loops, an OpenAPI document, metrics
///
/// Prints the address on stdout once it listens. Ctrl-C lets requests in hand end.
///
/// Example: `venire serve -c panel.toml --listen 127.0.0.1:8700`
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    panel: PanelArgs,
    /// Serve runs, loops and queues alone, and judge nothing
    #[arg(long, conflicts_with_all = ["config", "threshold", "profile", "allow_mismatch", "seed", "repeat", "cost_limit", "no_cache"])]
    no_panel: bool,
    #[command(flatten)]
    listen: ListenArgs,
    /// Cases in judgement at a time
    #[arg(short = 'j', long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    max_concurrency: u32,
    /// Requests that may wait beyond those; one more is answered 429
    #[arg(long, value_name = "N", default_value_t = 256)]
    queue: u32,
    /// The time for one case; judges without an answer by then end as `timeout`
    #[arg(long, value_name = "TIME", default_value = "120s")]
    case_time: Period,
    /// Bytes of one request's body, and of one line of a batch
    #[arg(long, value_name = "BYTES", default_value_t = 1024 * 1024, value_parser = clap::value_parser!(u64).range(1..=1024 * 1024 * 1024))]
    max_body: u64,
    /// Bytes of a whole batch; it lies on disk while it is judged
    #[arg(long, value_name = "BYTES", default_value_t = 256 * 1024 * 1024, value_parser = clap::value_parser!(u64).range(1..))]
    max_batch: u64,
    /// The time that requests in hand have to end when the server is stopped
    #[arg(long, value_name = "TIME", default_value = "30s")]
    drain_time: Period,
    /// Ask model servers again, whatever replies are kept
    #[arg(long)]
    no_cache: bool,
    /// US dollars for all requests together, until the server is stopped
    #[arg(long, value_name = "USD", value_parser = super::run::dollars)]
    cost_limit: Option<f64>,
    /// Which number the reward routes give
    #[arg(long, value_enum, default_value_t)]
    reward: RewardArg,
    /// What `/verify` puts beside `mask_sample: true`, for hosts whose types ask for a number;
    /// null if not given
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = finite)]
    masked_reward: Option<f64>,
    /// Let `/get_reward` say null for what was not decided, instead of answering 503
    #[arg(long)]
    null_rewards: bool,
}

/// Where a server listens, and who may ask.
#[derive(Clone, Debug, Args)]
pub(super) struct ListenArgs {
    /// The address; port 0 takes a free one. Any but this machine's own needs a token
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8700", value_parser = address)]
    listen: SocketAddr,
    /// A file of bearer tokens, one a line; `VENIRE_TOKEN` is one more
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A name of a host under which the server is reached, beside addresses and `localhost`;
    /// may be repeated
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
}

/// Which number a reward is.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum RewardArg {
    /// The panel's score, and 0 where a required judge or criterion rejects
    #[default]
    Gated,
    /// The panel's score, whatever the decision
    Score,
    /// 1 for accepted, 0 for rejected
    Decision,
}

/// The variable with a token.
const TOKEN: &str = "VENIRE_TOKEN";

fn finite(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| "expected a finite number".into())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let expected = || format!("`{text}` is no address: expected such as `127.0.0.1:8700`");
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    // Of other names it could not be said whether only this machine reaches them.
    if !text.starts_with("localhost:") {
        return Err(expected());
    }
    text.to_socket_addrs().ok().and_then(|mut found| found.next()).ok_or_else(expected)
}

impl ListenArgs {
    /// The options of a server with these limits.
    pub(super) fn options(&self, limits: Limits) -> anyhow::Result<Options> {
        let mut tokens = Tokens::default();
        if let Some(file) = &self.token_file {
            tokens.read(file)?;
        }
        if let Ok(token) = std::env::var(TOKEN) {
            tokens.add(&token, &format!("`{TOKEN}`"))?;
        }
        let options =
            Options { tokens, hosts: self.allow_host.clone(), limits, ..Options::new(self.listen) };
        options.check()?;
        Ok(options)
    }
}

pub(super) async fn run(
    args: &ServeArgs,
    global: &Global,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let limits = Limits {
        body_bytes: usize::try_from(args.max_body)?,
        batch_bytes: args.max_batch,
        concurrency: args.max_concurrency as usize,
        queue: args.queue as usize,
        case_time: args.case_time.get(),
        drain_time: args.drain_time.get(),
        ..Limits::default()
    };
    let mut options = args.listen.options(limits)?;
    options.reward = RewardOptions {
        reward: match args.reward {
            RewardArg::Gated => RewardAs::Gated,
            RewardArg::Score => RewardAs::Score,
            RewardArg::Decision => RewardAs::Decision,
        },
        masked: args.masked_reward,
        null_rewards: args.null_rewards,
    };
    let judging = if args.no_panel { None } else { Some(judging(args, global, printer)?) };
    let writer = judging.as_ref().and_then(|judging| judging.writer.clone());
    let service = Service::new(options, judging, &global.store, &super::loop_::loops(global))?;
    serve(service, "", printer).await?;
    if let Some(writer) = writer {
        writer.close().await;
    }
    Ok(Exit::Done)
}

fn judging(args: &ServeArgs, global: &Global, printer: &Printer) -> anyhow::Result<Judging> {
    let Seated { panel, .. } = args.panel.seat(Client::default())?;
    warn(&panel, printer);
    let asks_models = panel.seats.iter().any(|seat| seat.judge.model().is_some());
    let mut judging = Judging {
        panel: Arc::new(panel),
        replies: Arc::new(NoReplies),
        writer: None,
        ledger: Arc::new(super::run::ledger(args.cost_limit)?),
    };
    if asks_models {
        let store = Store::create(&global.store)?;
        let writer = store.writer()?;
        let scope = args.no_cache.then(super::run::new_id);
        judging.replies = Arc::new(store.replies(&writer, scope.as_deref())?);
        judging.writer = Some(writer);
    }
    Ok(judging)
}

/// Listens, says where (with the path to begin at), and answers until a signal.
pub(super) async fn serve(service: Service, path: &str, printer: &Printer) -> anyhow::Result<()> {
    let service = Arc::new(service);
    let listen = service.options().listen;
    let server = Server::bind(service.clone())
        .await
        .with_context(|| format!("failed to listen on `{listen}`"))?;
    let stop = Stop::listen(*printer, None);
    printer.data(&format!("http://{}{path}", server.address()));
    let router = http::router(service);
    let drained = server.run(router, stop.stop.clone(), stop.abandon.clone()).await;
    stop.judged();
    if drained.cut_off > 0 {
        let connections = plural(drained.cut_off as u64, "connection was", "connections were");
        printer.warn(&format!("{connections} cut off: the time to drain ran out"));
    }
    Ok(())
}
