//! The input formats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Format of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// One JSON object per line.
    Jsonl,
    /// Comma-separated values with a header.
    Csv,
    /// Tab-separated values with a header.
    Tsv,
    /// One JSON array of objects.
    Json,
    /// Apache Parquet.
    Parquet,
    /// Each file is a row.
    Documents,
}

impl Format {
    /// Every format, in the order in which messages list them.
    pub const ALL: &'static [Self] =
        &[Self::Jsonl, Self::Csv, Self::Tsv, Self::Json, Self::Parquet, Self::Documents];

    /// Its name, as `--input-format` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Json => "json",
            Self::Parquet => "parquet",
            Self::Documents => "documents",
        }
    }

    /// Whether all values are text because the format has no other type.
    pub(crate) fn is_untyped(self) -> bool {
        matches!(self, Self::Csv | Self::Tsv)
    }

    /// The file extensions that identify it.
    #[must_use]
    pub fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Jsonl => &["jsonl", "ndjson"],
            Self::Csv => &["csv"],
            Self::Tsv => &["tsv"],
            Self::Json => &["json"],
            Self::Parquet => &["parquet"],
            Self::Documents => &[],
        }
    }
}

/// The format for a file name's extension, ignoring case: `rows.jsonl.gz` is compressed JSONL.
pub(crate) fn format_of_name(name: &str) -> Option<Format> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let rest = match name.rsplit_once('.') {
        Some((rest, "gz" | "gzip" | "zst" | "zstd")) => rest,
        _ => name.as_str(),
    };
    let ending = rest.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, ending)| ending)?;
    Format::ALL.iter().copied().find(|format| format.endings().contains(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_tells_the_format_in_any_case() {
        for (name, format) in [
            ("a.jsonl", Some(Format::Jsonl)),
            ("a.b.NDJSON", Some(Format::Jsonl)),
            ("dir.x/a.Csv", Some(Format::Csv)),
            ("a.tsv.gz", Some(Format::Tsv)),
            ("a.json.ZST", Some(Format::Json)),
            ("a.parquet", Some(Format::Parquet)),
            ("rows", None),
            ("rows.gz", None),
            (".csv", None),
            ("a.pdf", None),
        ] {
            assert_eq!(format_of_name(name), format, "{name}");
        }
    }
}
