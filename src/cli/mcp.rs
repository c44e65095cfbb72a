//! `venire mcp`: a panel as tools of a model's host.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;

use super::Global;
use super::exit::Exit;
use super::panel::{PanelArgs, Seated, warn};
use super::printer::Printer;
use super::stop::Stop;
use crate::provider::Client;
use crate::serve::mcp::{Access, Address, Recorder, Tools, serve_http, serve_stdio};
use crate::store::Store;

/// Serve a panel as tools over the Model Context Protocol
///
/// Over standard input and output, as hosts start it; with `--http` over streamable HTTP, at
/// the address printed on stdout. The tools are `score`, `gate_status` and `explain`.
///
/// Example: `claude mcp add venire -- venire mcp -c /path/to/panel.toml`
#[derive(Debug, Args)]
pub(super) struct McpArgs {
    #[command(flatten)]
    panel: PanelArgs,
    /// Listen on this address instead; port 0 takes a free one. Other addresses than this
    /// machine's own need a token in `VENIRE_TOKEN`
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:8701")]
    http: Option<SocketAddr>,
    /// With `--http`: a name under which clients reach this server, beside `localhost` and the
    /// address; may be repeated
    #[arg(long, value_name = "NAME", requires = "http")]
    allow_host: Vec<String>,
    /// Measurements in flight at most, over all calls
    #[arg(short = 'j', long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    max_concurrency: u32,
    /// Ask model servers again, whatever replies are kept
    #[arg(long)]
    no_cache: bool,
    /// US dollars for all calls together at most
    #[arg(long, value_name = "USD", value_parser = super::run::dollars)]
    cost_limit: Option<f64>,
}

pub(super) fn run(args: &McpArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    let runtime = super::runtime()?;
    let exit = runtime.block_on(serve(args, global, printer));
    // A read of standard input that is no pipe can't be cancelled, and must not be waited for.
    runtime.shutdown_background();
    exit
}

async fn serve(args: &McpArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    let Seated { spec, mut panel } = args.panel.seat(Client::default())?;
    let person = panel.seats.iter().find(|seat| seat.judge.kind() == "human");
    if let (Some(seat), None) = (person, args.http) {
        anyhow::bail!(
            "`{}` asks a person on the terminal, which the protocol takes: leave it out, or serve with `--http`",
            seat.name
        );
    }
    warn(&panel, printer);
    panel.places = Some(crate::provider::Places::new(args.max_concurrency as usize));
    let token = std::env::var("VENIRE_TOKEN").ok().filter(|_| args.http.is_some());
    let access = Access::new(args.allow_host.clone(), token.as_deref())?;
    let store = Store::create(&global.store)?;
    let writer = store.writer()?;
    let id = super::run::new_id();
    let replies = Arc::new(store.replies(&writer, args.no_cache.then_some(id.as_str()))?);
    let kept = super::run::kept(&spec)?;
    let recorder = Recorder::new(store, writer.clone(), id, serde_json::to_string(&kept)?);
    let ledger = Arc::new(super::run::ledger(args.cost_limit)?);
    let folder = global.store.parent().unwrap_or(Path::new("")).to_owned();
    let tools = Arc::new(Tools::new(panel, recorder, replies, ledger, folder));
    let stop = Stop::listen(*printer, None);
    let served = match args.http {
        None => serve_stdio(tools.clone(), stop.stop.clone()).await.map_err(anyhow::Error::from),
        Some(address) => {
            let address = Address::listen(address, access).await?;
            printer.data(&address.url());
            serve_http(tools.clone(), address, stop.stop.clone()).await.map_err(Into::into)
        }
    };
    stop.judged();
    tools.close().await;
    drop(tools);
    writer.close().await;
    served.context("failed to serve the tools")?;
    Ok(Exit::Done)
}
