//! `venire cache`: how many replies are kept, and forgetting them.

use anyhow::Context as _;
use clap::Args;

use super::exit::Exit;
use super::printer::Printer;
use super::{Global, printer};
use crate::store::Store;

/// Show or clear the replies kept in the store
///
/// Example: `venire cache --clear --older-than 30`
#[derive(Debug, Args)]
pub(super) struct CacheArgs {
    /// Forget replies; runs, verdicts and rulings stay
    #[arg(long)]
    clear: bool,
    /// With `--clear`: only replies kept more than this many days ago
    #[arg(long, value_name = "DAYS", requires = "clear")]
    older_than: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &CacheArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    let mut store = if args.clear {
        Store::open_for_writing(&global.store)?
    } else {
        Store::open(&global.store)?
    };
    let deleted = if args.clear {
        let now = jiff::Timestamp::now().as_second();
        let before = match args.older_than {
            Some(days) => now - i64::from(days) * 24 * 3600,
            None => i64::MAX,
        };
        Some(store.delete_replies(before).context("failed to clear the cache")?)
    } else {
        None
    };
    let (replies, bytes) = store.reply_statistics()?;
    if args.json {
        printer.json(&serde_json::json!({
            "store": global.store, "replies": replies, "bytes": bytes, "deleted": deleted,
        }))?;
    } else {
        if let Some(deleted) = deleted {
            printer.result(&format!("forgot {}", printer::plural(deleted, "reply", "replies")));
        }
        printer.result(&format!(
            "{} ({bytes} bytes) in {}",
            printer::plural(replies, "reply", "replies"),
            global.store.display()
        ));
    }
    Ok(Exit::Done)
}
