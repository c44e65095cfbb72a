//! The terminal that a person sits at: one dialogue at a time, lines in, text out.

use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, mpsc};

use tokio::sync::{Mutex, MutexGuard, oneshot};

/// The columns of text when the terminal does not say: what fits everywhere.
const WIDTH: usize = 80;

/// A line-based console that dialogues take in turns.
pub struct Console {
    /// Held for a whole dialogue.
    lines: Mutex<Lines>,
    /// Never held while waiting for the person.
    writer: std::sync::Mutex<Box<dyn Write + Send>>,
    quit: AtomicBool,
    width: usize,
}

type Line = io::Result<Option<String>>;

/// The side of the reading thread that dialogues hold. The thread reads only when asked, and
/// ends when this is dropped.
struct Lines {
    ask: mpsc::Sender<oneshot::Sender<Line>>,
    /// A line asked for by a dialogue that was cancelled. The next dialogue waits for this
    /// one, since the thread can't be called back from its read.
    pending: Option<oneshot::Receiver<Line>>,
}

impl std::fmt::Debug for Console {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Console").field("quit", &self.quit).finish_non_exhaustive()
    }
}

impl Console {
    /// A console on any reader and writer; text is wrapped at `width` columns.
    pub fn new(
        mut reader: impl BufRead + Send + 'static,
        writer: impl Write + Send + 'static,
        width: usize,
    ) -> Arc<Self> {
        let (ask, requests) = mpsc::channel::<oneshot::Sender<Line>>();
        // Detached: a read of a terminal can't be interrupted, and must not hold up the end
        // of the program.
        std::thread::spawn(move || {
            for request in requests {
                let mut line = Vec::new();
                let read = reader.read_until(b'\n', &mut line);
                let line = read
                    .map(|count| (count > 0).then(|| String::from_utf8_lossy(&line).into_owned()));
                let _ = request.send(line);
            }
        });
        Arc::new(Self {
            lines: Mutex::new(Lines { ask, pending: None }),
            writer: std::sync::Mutex::new(Box::new(writer)),
            quit: AtomicBool::new(false),
            width: width.max(20),
        })
    }

    /// This process's terminal: standard input and standard error. All judges share it.
    pub fn terminal() -> Arc<Self> {
        static TERMINAL: OnceLock<Arc<Console>> = OnceLock::new();
        let new = || {
            let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
            Self::new(io::BufReader::new(io::stdin()), io::stderr(), columns.unwrap_or(WIDTH))
        };
        Arc::clone(TERMINAL.get_or_init(new))
    }

    /// Waits until no other dialogue is going on.
    pub(super) async fn turn(&self) -> Turn<'_> {
        Turn { lines: self.lines.lock().await, console: self }
    }
}

/// One dialogue's hold of the console.
pub(super) struct Turn<'a> {
    lines: MutexGuard<'a, Lines>,
    console: &'a Console,
}

impl Turn<'_> {
    pub(super) fn width(&self) -> usize {
        self.console.width
    }

    pub(super) fn has_quit(&self) -> bool {
        self.console.quit.load(Ordering::Acquire)
    }

    /// The person wants no more questions: every later dialogue ends before it begins.
    pub(super) fn quit(&self) {
        self.console.quit.store(true, Ordering::Release);
    }

    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        let mut writer = self.console.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.write_all(text.as_bytes())?;
        writer.flush()
    }

    /// The next line; `None` at the end of input.
    pub(super) async fn read_line(&mut self) -> Line {
        let gone = || io::Error::other("the reading thread is gone");
        if self.lines.pending.is_none() {
            let (sender, receiver) = oneshot::channel();
            self.lines.ask.send(sender).map_err(|_| gone())?;
            self.lines.pending = Some(receiver);
        }
        // Waited for in place: if this future is dropped, the receiver stays for the next.
        let line = match self.lines.pending.as_mut() {
            Some(receiver) => receiver.await,
            None => return Err(gone()),
        };
        self.lines.pending = None;
        line.map_err(|_| gone())?
    }
}
