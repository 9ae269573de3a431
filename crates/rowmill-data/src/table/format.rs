//! How a table is written.

use rowmill_types::{CargoFeature, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TableFormat {
    /// One JSON object per line.
    Jsonl,
    /// Comma-separated values with a header.
    Csv,
    /// Tab-separated values with a header.
    Tsv,
    /// Apache Parquet with typed columns.
    Parquet,
}

impl TableFormat {
    /// Every format, in the order in which messages list them.
    pub const ALL: &'static [Self] = &[Self::Jsonl, Self::Csv, Self::Tsv, Self::Parquet];

    /// Its name, as `--output-format` takes it; also the file extension.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Parquet => "parquet",
        }
    }

    /// Checks that this build can write the format.
    ///
    /// # Errors
    ///
    /// The format is Parquet, and the library was built without it.
    pub fn check_built(self) -> Result<(), Problem> {
        match self {
            Self::Parquet if !cfg!(feature = "parquet") => Err(CargoFeature::Parquet.missing_problem()),
            Self::Jsonl | Self::Csv | Self::Tsv | Self::Parquet => Ok(()),
        }
    }

    /// The format for the extension of a name, ignoring case; JSONL if the extension is unknown.
    ///
    /// ```
    /// # use rowmill_data::table::TableFormat;
    /// assert_eq!(TableFormat::of_name("results.CSV"), TableFormat::Csv);
    /// assert_eq!(TableFormat::of_name("results"), TableFormat::Jsonl);
    /// ```
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let known = Self::ALL.iter().find(|format| ending.as_deref() == Some(format.name()));
        known.copied().unwrap_or(Self::Jsonl)
    }
}
