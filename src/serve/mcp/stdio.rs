//! Standard input and output as the protocol's crate gets them: line by line, each of them
//! JSON. What is none is answered here with the error that JSON-RPC 2.0 has for it, since the
//! crate passes over it in silence and its sender would wait for ever. Says nothing about what
//! a line of JSON means.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, DuplexStream,
    duplex,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::serve::lines::next_line;

/// The longest line in bytes: what the crate takes.
const LONGEST: usize = 16 * 1024 * 1024;
/// Bytes that are on their way between the streams and the service at most.
const ON_THE_WAY: usize = 64 * 1024;
/// Refusals that wait for a client which does not read; after so many its input waits too.
const REFUSALS: usize = 16;
/// How long the last lines may take to be read by the client, at the end.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The two streams at work.
pub(super) struct Lines {
    reading: JoinHandle<()>,
    writing: JoinHandle<io::Result<()>>,
}

impl Lines {
    /// Puts itself between the streams and a service, whose own two streams come back.
    pub(super) fn between(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> (Self, (DuplexStream, DuplexStream)) {
        let (to_service, service_in) = duplex(ON_THE_WAY);
        let (service_out, from_service) = duplex(ON_THE_WAY);
        let (refusals, refused) = mpsc::channel(REFUSALS);
        let reading = tokio::spawn(read(BufReader::new(input), to_service, refusals));
        let writing = tokio::spawn(write(BufReader::new(from_service), refused, output));
        (Self { reading, writing }, (service_in, service_out))
    }

    /// Ends once the service's streams are dropped: reads nothing more, and writes what it
    /// has said.
    pub(super) async fn end(mut self) {
        self.reading.abort();
        if timeout(LAST_WORDS, &mut self.writing).await.is_err() {
            self.writing.abort();
        }
    }
}

/// Hands lines of JSON to the service, and refuses others.
async fn read(
    mut input: BufReader<impl AsyncRead + Unpin>,
    mut service: DuplexStream,
    refusals: mpsc::Sender<String>,
) {
    loop {
        let line = match next_line(&mut input, LONGEST).await {
            Ok(Some(line)) => line,
            Ok(None) => return,
            Err(error) => {
                tracing::error!("failed to read standard input: {error}");
                return;
            }
        };
        let refused = match line {
            None => format!("parse error: the line is longer than {LONGEST} bytes"),
            Some(mut line) => {
                let text = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line);
                if text.trim_ascii().is_empty() {
                    continue;
                }
                match serde_json::from_slice::<Value>(text) {
                    Ok(_) => {
                        line.push(b'\n');
                        if service.write_all(&line).await.is_err() {
                            return;
                        }
                        continue;
                    }
                    Err(error) => format!("parse error: the line is not JSON: {error}"),
                }
            }
        };
        tracing::debug!("{refused}");
        let error = json!({ "code": -32700, "message": refused });
        let answer = json!({ "jsonrpc": "2.0", "id": null, "error": error });
        if refusals.send(format!("{answer}\n")).await.is_err() {
            return;
        }
    }
}

/// Writes the service's lines and the refusals, each whole.
async fn write(
    mut service: BufReader<DuplexStream>,
    mut refused: mpsc::Receiver<String>,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut line = Vec::new();
    let (mut speaks, mut refuses) = (true, true);
    while speaks || refuses {
        tokio::select! {
            // A part of a line that was read when a refusal comes in stays in `line`.
            read = service.read_until(b'\n', &mut line), if speaks => {
                speaks = read? > 0;
                output.write_all(&line).await?;
                line.clear();
            }
            refusal = refused.recv(), if refuses => match refusal {
                Some(refusal) => output.write_all(refusal.as_bytes()).await?,
                None => refuses = false,
            },
        }
        output.flush().await?;
    }
    Ok(())
}
