//! What stands in the database's log is copied into the file beside the writing, by a thread
//! and a connection of its own: on a slow disk that takes long, and every reply would wait.
//!
//! What is written meanwhile is little. The writer copies that itself, and the log begins anew.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use super::StoreError;
use super::sqlite::Database;

/// Rows that make the log worth copying: some 8 to 16 MB.
const ROWS: usize = 8192;

/// Copies a store's log into its file now and then.
#[derive(Debug)]
pub(super) struct Checkpoints {
    path: PathBuf,
    /// Rows written since the last copy began.
    rows: usize,
    copier: Option<Copier>,
}

#[derive(Debug)]
struct Copier {
    begin: Sender<()>,
    done: Arc<AtomicBool>,
    thread: JoinHandle<()>,
    copying: bool,
}

impl Copier {
    fn start(path: &Path) -> Result<Self, StoreError> {
        let database = Database::create(path)?;
        let (begin, begun) = channel();
        let done = Arc::new(AtomicBool::new(false));
        let is_done = done.clone();
        let run = move || {
            while begun.recv().is_ok() {
                database.checkpoint();
                is_done.store(true, Ordering::Release);
            }
        };
        let thread = std::thread::Builder::new()
            .name("store-checkpoint".into())
            .spawn(run)
            .map_err(|error| StoreError::Start { message: error.to_string() })?;
        Ok(Self { begin, done, thread, copying: false })
    }
}

impl Checkpoints {
    /// For the store at this path, whose writer copies nothing by itself.
    pub(super) fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), rows: 0, copier: None }
    }

    /// Takes note of rows that the writer has written, and does what is due.
    pub(super) fn written(&mut self, rows: usize, writer: &Database) {
        self.rows += rows;
        if let Some(copier) = self.copier.as_mut().filter(|copier| copier.copying) {
            if copier.done.swap(false, Ordering::Acquire) {
                copier.copying = false;
                writer.checkpoint();
            }
            return;
        }
        if self.rows < ROWS {
            return;
        }
        self.rows = 0;
        if self.copier.is_none() {
            match Copier::start(&self.path) {
                Ok(copier) => self.copier = Some(copier),
                Err(error) => tracing::debug!("the log is copied by the writer: {error}"),
            }
        }
        match &mut self.copier {
            Some(copier) => copier.copying = copier.begin.send(()).is_ok(),
            None => writer.checkpoint(),
        }
    }

    /// Waits until the last copy is made.
    pub(super) fn end(self) {
        if let Some(Copier { begin, thread, .. }) = self.copier {
            drop(begin);
            // One that panicked has nothing left to do.
            let _ = thread.join();
        }
    }
}
