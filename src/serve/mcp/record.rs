//! Keeps what the tool `score` said, as a run of its own in the store: what other verbs show
//! and export like any run.
//!
//! The run is begun with the first ruling, so that a server nobody asks leaves none. A ruling
//! is on disk before it is answered with.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tokio::sync::Mutex;

use crate::case::Case;
use crate::panel::Panel;
use crate::ruling::Ruling;
use crate::store::{ONE_BY_ONE, RunRecord, RunState, Store, StoreError, Writer};

/// Keeps rulings in a store.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    store: Store,
    /// `None` once closed.
    writer: Option<Writer>,
    record: RunRecord,
    begun: bool,
    /// The next position.
    next: u64,
    /// How often each case was judged.
    times: HashMap<String, u32>,
}

impl Recorder {
    /// Keeps rulings through `writer` in the run that `id` names and `panel`, the panel's
    /// configuration as JSON, describes.
    #[must_use]
    pub fn new(store: Store, writer: Writer, id: String, panel: String) -> Self {
        let record = RunRecord {
            number: 0,
            id,
            created: String::new(),
            state: RunState::Running,
            panel_name: String::new(),
            panel_fingerprint: String::new(),
            panel,
            data: ONE_BY_ONE.into(),
            data_hash: String::new(),
            options: "{}".into(),
            summary: None,
        };
        let path = store.path().to_owned();
        let kept = Kept {
            store,
            writer: Some(writer),
            record,
            begun: false,
            next: 0,
            times: HashMap::new(),
        };
        Self { path, kept: Mutex::new(kept) }
    }

    /// The store's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run, once something is kept in it.
    pub async fn run(&self) -> Option<String> {
        let kept = self.kept.lock().await;
        kept.begun.then(|| kept.record.id.clone())
    }

    /// Keeps a ruling on a case and gives the run's id. A case that was judged before gets
    /// another id (`ID-2`), since both rulings stand.
    pub(super) async fn keep(
        &self,
        panel: &Panel,
        case: &mut Case,
        ruling: &mut Ruling,
    ) -> Result<String, StoreError> {
        let mut kept = self.kept.lock().await;
        let kept = &mut *kept;
        let Some(writer) = &kept.writer else {
            return Err(StoreError::Ended { message: "the server is stopping".into() });
        };
        if !kept.begun {
            let now = jiff::Timestamp::now();
            kept.record.created = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            kept.record.panel_name.clone_from(&panel.name);
            kept.record.panel_fingerprint = panel.fingerprint().to_string();
            kept.record.number = kept.store.add_run(&kept.record)?;
            kept.begun = true;
        }
        let times = kept.times.entry(case.id.clone()).or_insert(0);
        *times += 1;
        if *times > 1 {
            case.id = format!("{}-{times}", case.id);
            ruling.case.clone_from(&case.id);
        }
        let (run, position) = (kept.record.number, kept.next);
        kept.next += 1;
        writer.case(run, position, case).await?;
        for verdict in &ruling.verdicts {
            let seat = panel.seats.iter().position(|seat| seat.name == verdict.judge);
            let seat = u32::try_from(seat.unwrap_or_default()).unwrap_or(u32::MAX);
            writer.verdict(run, position, seat, verdict).await?;
        }
        writer.ruling(run, position, ruling).await?;
        writer.flush().await?;
        Ok(kept.record.id.clone())
    }

    /// Says in the record that the run has ended, and lets go of the writer.
    pub(super) async fn close(&self) {
        let mut kept = self.kept.lock().await;
        let Some(writer) = kept.writer.take() else { return };
        if kept.begun
            && let Err(error) = writer.run_state(kept.record.number, RunState::Finished, None).await
        {
            tracing::warn!("the run's end is not noted: {error}");
        }
    }
}
