//! The input formats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Format of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputFormat {
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

impl InputFormat {
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
    pub fn extensions(self) -> &'static [&'static str] {
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
pub(crate) fn format_from_name(name: &str) -> Option<InputFormat> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let rest = match name.rsplit_once('.') {
        Some((rest, "gz" | "gzip" | "zst" | "zstd")) => rest,
        _ => name.as_str(),
    };
    let ending = rest.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, ending)| ending)?;
    InputFormat::ALL.iter().copied().find(|format| format.extensions().contains(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_tells_the_format_in_any_case() {
        for (name, format) in [
            ("a.jsonl", Some(InputFormat::Jsonl)),
            ("a.b.NDJSON", Some(InputFormat::Jsonl)),
            ("dir.x/a.Csv", Some(InputFormat::Csv)),
            ("a.tsv.gz", Some(InputFormat::Tsv)),
            ("a.json.ZST", Some(InputFormat::Json)),
            ("a.parquet", Some(InputFormat::Parquet)),
            ("rows", None),
            ("rows.gz", None),
            (".csv", None),
            ("a.pdf", None),
        ] {
            assert_eq!(format_from_name(name), format, "{name}");
        }
    }
}
