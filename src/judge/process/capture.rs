//! Output of a child, in bounded memory: the head and the tail are kept, the middle counted.

use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The kept part of one stream.
#[derive(Debug)]
pub(crate) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Bytes kept of each end.
    half: usize,
    total: u64,
}

impl Capture {
    /// Keeps at most `limit` bytes, half of them from each end.
    pub(crate) fn new(limit: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), half: (limit / 2).max(1), total: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let to_head = bytes.len().min(self.half - self.head.len());
        self.head.extend_from_slice(&bytes[..to_head]);
        let rest = &bytes[to_head..];
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// Bytes that were left out between head and tail.
    pub(crate) fn omitted(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// Everything that was written, `None` where a part of it was left out.
    pub(crate) fn whole(&self) -> Option<Vec<u8>> {
        (self.omitted() == 0).then(|| self.head.iter().chain(&self.tail).copied().collect())
    }

    /// What is kept as text: bytes that are not UTF-8 become U+FFFD, a gap is named.
    pub(crate) fn text(&self) -> String {
        match self.whole() {
            Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            None => {
                let tail: Vec<u8> = self.tail.iter().copied().collect();
                format!(
                    "{}\n[{} bytes left out]\n{}",
                    String::from_utf8_lossy(&self.head),
                    self.omitted(),
                    String::from_utf8_lossy(&tail)
                )
            }
        }
    }
}

/// Reads a stream to its end, so that its writer never stalls on a full pipe. A read error
/// ends it like an end of file: what came before it is kept.
pub(crate) async fn drain(stream: Option<impl AsyncRead + Unpin>, capture: &mut Capture) {
    let Some(mut stream) = stream else { return };
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count) = stream.read(&mut buffer).await {
        if count == 0 {
            break;
        }
        capture.push(&buffer[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_whole_and_long_output_keeps_both_ends() {
        let mut capture = Capture::new(8);
        capture.push(b"abc");
        capture.push(b"defgh");
        assert_eq!(capture.whole().unwrap(), b"abcdefgh");
        capture.push(b"i");
        assert_eq!((capture.whole(), capture.omitted()), (None, 1));
        assert_eq!(capture.text(), "abcd\n[1 bytes left out]\nfghi");
        capture.push(&[b'z'; 1000]);
        assert_eq!(capture.text(), "abcd\n[1001 bytes left out]\nzzzz");
    }

    proptest::proptest! {
        #[test]
        fn memory_is_bounded_and_no_byte_is_uncounted(
            chunks in proptest::collection::vec(proptest::collection::vec(0u8..255, 0..40), 0..20),
            limit in 2usize..64,
        ) {
            let mut capture = Capture::new(limit);
            chunks.iter().for_each(|chunk| capture.push(chunk));
            let all: Vec<u8> = chunks.concat();
            proptest::prop_assert!(capture.head.len() + capture.tail.len() <= limit);
            proptest::prop_assert_eq!(capture.total, all.len() as u64);
            proptest::prop_assert!(all.starts_with(&capture.head));
            let tail: Vec<u8> = capture.tail.iter().copied().collect();
            proptest::prop_assert!(all.ends_with(&tail));
            if let Some(whole) = capture.whole() {
                proptest::prop_assert_eq!(whole, all);
            }
        }
    }
}
