//! The input: its location and its format.

use std::path::{Path, PathBuf};

use rowmill_types::settings::{INPUT, INPUT_FORMAT};
use rowmill_types::{Problem, ProblemCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::csv::FieldDelimiter;
use crate::document_id_rule::DocumentIdRule;
use crate::hub_address::HubAddress;
use crate::input_format::{InputFormat, format_from_name};

/// Where and how rows are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InputSpec {
    /// Location of the data.
    pub location: InputLocation,
    /// Format; detected from the file extension by default.
    pub format: Option<InputFormat>,
    /// How documents are identified; ignored for other inputs.
    #[serde(default)]
    pub document_ids: DocumentIdRule,
    /// Delimiter of CSV and TSV; detected from the header by default.
    pub delimiter: Option<FieldDelimiter>,
}

/// Location of an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum InputLocation {
    /// Standard input.
    Stdin,
    /// A file, a folder, a named pipe or a device.
    File(PathBuf),
    /// A glob pattern with `*`, `?` or `[…]`.
    Pattern(String),
    /// A remote file that is downloaded over HTTP.
    Web(
        #[serde(with = "address_text")]
        #[schemars(with = "String")]
        rowmill_http::Url,
    ),
    /// A dataset of the Hugging Face hub.
    Hub(HubAddress),
    /// Local copies of a remote input.
    Files(FileList),
}

/// Files that contain the rows of one input, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileList {
    /// Name of the input in messages: the pattern or URL that was given.
    pub name: String,
    /// The files.
    pub files: Vec<InputFile>,
    /// Identifies this content if something better than the files is known: a revision, an entity tag.
    pub identity: Option<String>,
}

/// A local file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InputFile {
    /// Where it is.
    pub path: PathBuf,
    /// Name in messages, which also determines the extension.
    pub name: String,
    /// Fields that its folder names add to all of its rows.
    #[serde(default)]
    pub partition: Vec<PartitionField>,
}

/// A field that a folder name adds to the rows of all files in it: `year=2026`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartitionField {
    /// Its name.
    pub name: String,
    /// Its value as JSON.
    pub json: String,
}

impl PartitionField {
    /// Its name and its value as JSON.
    pub(crate) fn pair(&self) -> (&str, &str) {
        (&self.name, &self.json)
    }
}

impl InputFile {
    /// A file whose folders name no fields.
    #[must_use]
    pub fn new(path: PathBuf, name: String) -> Self {
        Self { path, name, partition: Vec::new() }
    }
}

impl InputLocation {
    /// Parses the value of `--input`: `-`, a path, a pattern or an address.
    ///
    /// # Errors
    ///
    /// It is an address of an unknown kind.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        if text == "-" {
            return Ok(Self::Stdin);
        }
        let Some((scheme, _)) = text.split_once("://") else { return Ok(Self::of_path(text)) };
        match scheme.to_ascii_lowercase().as_str() {
            "file" => {
                let path = rowmill_http::Url::parse(text).ok().and_then(|url| url.to_file_path().ok());
                path.map(Self::File).ok_or_else(|| {
                    let message = format!("input URL is not a local path: `{text}`");
                    Problem::new(ProblemCode::InputNotFound, message)
                        .hint("write it as `file:///folder/rows.jsonl`, or use the plain path")
                })
            }
            "http" | "https" => rowmill_http::Url::parse(text).map(Self::Web).map_err(|error| {
                let message = format!("invalid input URL: `{}`", crate::redacted_source(text));
                Problem::new(ProblemCode::InputNotFound, message)
                    .cause(error)
                    .hint("write it as `https://host/path/rows.jsonl`")
            }),
            "hf" => HubAddress::parse(text).map(Self::Hub),
            _ => {
                let message = format!("input from `{scheme}://` is not supported");
                Err(Problem::new(ProblemCode::InputNotFound, message).hint(
                    "use a path, a pattern, a `file://`, `https://` or `hf://datasets/…` URL, or `-` for \
                     standard input",
                ))
            }
        }
    }

    /// An existing path is not a pattern, whatever characters it contains.
    fn of_path(text: &str) -> Self {
        let path = PathBuf::from(text);
        if text.contains(['*', '?', '[']) && !path.exists() {
            Self::Pattern(text.to_owned())
        } else {
            Self::File(path)
        }
    }

    /// Its name in messages and in the run's identity.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Stdin => "-".into(),
            Self::File(path) => path.display().to_string(),
            Self::Pattern(pattern) => pattern.clone(),
            Self::Web(url) => crate::redacted_source(url.as_str()),
            Self::Hub(address) => address.to_string(),
            Self::Files(list) => list.name.clone(),
        }
    }
}

impl InputSpec {
    /// An input whose documents, if it has any, are identified by their paths.
    #[must_use]
    pub fn new(location: InputLocation, format: Option<InputFormat>) -> Self {
        Self { location, format, document_ids: DocumentIdRule::default(), delimiter: None }
    }

    /// The format that was named, or else that of the extension of `name`.
    ///
    /// # Errors
    ///
    /// The format is not named and the extension of `name` is unknown.
    pub fn format_of(&self, name: &str) -> Result<InputFormat, Problem> {
        self.format.or_else(|| format_from_name(name)).ok_or_else(|| unknown_ending(name))
    }
}

/// Serializes addresses as text.
mod address_text {
    use rowmill_http::Url;
    use rowmill_types::deserialize_text;
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(url: &Url, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(url.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
        deserialize_text(deserializer, "a URL", |text| {
            let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
            // It is not shown: addresses hold tokens.
            url.ok_or_else(|| "must be a URL such as `https://host/path/rows.jsonl`".to_owned())
        })
    }
}

/// Whether a file name is that of a spreadsheet.
pub(crate) fn is_spreadsheet(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    matches!(ending.as_deref(), Some("xlsx" | "xls" | "xlsm" | "ods"))
}

fn unknown_ending(name: &str) -> Problem {
    if is_spreadsheet(name) {
        let message = format!("cannot read rows from a spreadsheet: `{name}`");
        return Problem::new(ProblemCode::InputFormat, message).hint(format!(
            "export the sheet to a CSV file first and use that; with {input_format} the file itself is one \
             row and is sent as it is",
            input_format = INPUT_FORMAT.with_value("documents")
        ));
    }
    let endings: Vec<_> = InputFormat::ALL
        .iter()
        .flat_map(|format| format.extensions())
        .map(|ending| format!("`.{ending}`"))
        .collect();
    let message = format!(
        "the format of the input cannot be determined from its name: `{name}`; known extensions: {}",
        endings.join(", ")
    );
    let problem = Problem::new(ProblemCode::InputFormat, message);
    match Path::new(name).extension().and_then(|ending| ending.to_str()) {
        Some("bz2" | "xz" | "zip") => problem.hint(format!(
            "decompress it into a pipe and read that with {from_pipe}",
            from_pipe = INPUT.with_value("-").and(INPUT_FORMAT.with_value("jsonl"))
        )),
        _ => problem.hint(format!(
            "set it with {INPUT_FORMAT}, such as `jsonl`; with `documents`, the file itself is one row"
        )),
    }
}
