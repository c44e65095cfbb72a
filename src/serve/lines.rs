//! Lines of what others send, each within a limit: a line without an end would take all memory.

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// The next line without its end; `Some(None)` for one that is longer than `most` bytes,
/// which is passed over.
pub(crate) async fn next_line<R: AsyncBufRead + Unpin>(
    reader: &mut R,
    most: usize,
) -> std::io::Result<Option<Option<Vec<u8>>>> {
    let mut line = Some(Vec::new());
    let mut begun = false;
    loop {
        let buffer = reader.fill_buf().await?;
        if buffer.is_empty() {
            return Ok(begun.then_some(line));
        }
        begun = true;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        match &mut line {
            Some(own) if own.len() + part.len() <= most => own.extend_from_slice(part),
            _ => line = None,
        }
        let taken = end.map_or(buffer.len(), |end| end + 1);
        reader.consume(taken);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}
