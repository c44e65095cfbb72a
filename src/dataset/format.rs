//! File formats, told by extension or, for standard input, by the first bytes.

use std::fmt;
use std::path::Path;

/// How rows are laid out in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Comma-separated values with a header, quoted as in RFC 4180.
    Csv,
    /// As CSV, with semicolons: what spreadsheets write where the comma is the decimal mark.
    SemicolonCsv,
    /// As CSV, with tabs.
    Tsv,
    /// One JSON object a line.
    JsonLines,
    /// One JSON list of objects.
    Json,
}

impl Format {
    /// Whether rows are cells, which have no lists or objects inside.
    #[must_use]
    pub fn is_table(self) -> bool {
        matches!(self, Self::Csv | Self::SemicolonCsv | Self::Tsv)
    }

    /// The format that a file's name says, and whether the name says gzip; `None` for an
    /// extension that is none of `.jsonl`, `.ndjson`, `.json`, `.csv`, `.tsv`, with or
    /// without `.gz`.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<(Self, bool)> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let (name, gzip) = match name.strip_suffix(".gz") {
            Some(name) => (name, true),
            None => (name.as_str(), false),
        };
        let (_, extension) = name.rsplit_once('.')?;
        let format = match extension {
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "jsonl" | "ndjson" => Self::JsonLines,
            "json" => Self::Json,
            _ => return None,
        };
        Some((format, gzip))
    }

    /// The format that the beginning of the data says: `{` begins JSON Lines, `[` a JSON
    /// list; else it is CSV, or where the first line holds no comma, what its tab or semicolon
    /// says.
    pub(crate) fn sniff(beginning: &[u8]) -> Self {
        match beginning.trim_ascii_start().first() {
            Some(b'{') => Self::JsonLines,
            Some(b'[') => Self::Json,
            _ => {
                let line = beginning.split(|&b| b == b'\n').next().unwrap_or_default();
                match line {
                    line if line.contains(&b',') => Self::Csv,
                    line if line.contains(&b'\t') => Self::Tsv,
                    line if line.contains(&b';') => Self::SemicolonCsv,
                    _ => Self::Csv,
                }
            }
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Csv => "CSV",
            Self::SemicolonCsv => "CSV with semicolons",
            Self::Tsv => "TSV",
            Self::JsonLines => "JSON Lines",
            Self::Json => "JSON",
        })
    }
}
