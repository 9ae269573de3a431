//! The input: its location and its format.

use std::path::{Path, PathBuf};

use rowmill_types::settings::{INPUT, INPUT_FORMAT};
use rowmill_types::{Problem, ProblemCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::csv::FieldDelimiter;
use crate::documents::DocumentIds;
use crate::format::{Format, format_of_name};
use crate::hub::HubAddress;

/// Where rows are read from, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InputSpec {
    /// Where the bytes are.
    pub location: Location,
    /// How they are written; from the name's ending when it is left out.
    pub format: Option<Format>,
    /// What tells documents apart; nothing to other inputs.
    #[serde(default)]
    pub document_ids: DocumentIds,
    /// What stands between the values of CSV and TSV; recognised by the header when it is left out.
    pub delimiter: Option<FieldDelimiter>,
}

/// Where the bytes of an input are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Location {
    /// Standard input.
    Stdin,
    /// A file, a folder, a pipe with a name or a device.
    File(PathBuf),
    /// A pattern with `*`, `?` or `[…]` that names files.
    Pattern(String),
    /// Something that is fetched with HTTP.
    Web(
        #[serde(with = "address_text")]
        #[schemars(with = "String")]
        rowmill_http::Url,
    ),
    /// A dataset of the Hugging Face hub.
    Hub(HubAddress),
    /// Files of this machine that stand for something that was fetched.
    Files(FileList),
}

/// Files that hold the rows of one input, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileList {
    /// What the input is called in messages: the pattern or address that was given.
    pub name: String,
    /// The files.
    pub files: Vec<InputFile>,
    /// What tells this content from another, where something better than the files is
    /// known: a revision, an entity tag.
    pub identity: Option<String>,
}

/// A file of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InputFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it is called in messages, and what its ending is read from.
    pub name: String,
    /// What the folders that it is in say of its rows: fields that all of them have.
    #[serde(default)]
    pub partition: Vec<PartitionField>,
}

/// A field that the name of a folder gives to the rows of all files in it: `year=2026`.
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

impl Location {
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
                    let message = format!("input address is no path of this machine: `{text}`");
                    Problem::new(ProblemCode::InputNotFound, message)
                        .hint("write it as `file:///folder/rows.jsonl`, or give the path alone")
                })
            }
            "http" | "https" => rowmill_http::Url::parse(text).map(Self::Web).map_err(|error| {
                let message = format!("input address cannot be used: `{}`", crate::shown_source(text));
                Problem::new(ProblemCode::InputNotFound, message)
                    .cause(error)
                    .hint("write it as `https://host/path/rows.jsonl`")
            }),
            "hf" => HubAddress::parse(text).map(Self::Hub),
            _ => {
                let message = format!("input of kind `{scheme}://` cannot be read");
                Err(Problem::new(ProblemCode::InputNotFound, message).hint(
                    "give a path, a pattern, a `file://`, `https://` or `hf://datasets/…` address, or `-` for standard input",
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
            Self::Web(url) => crate::shown_source(url.as_str()),
            Self::Hub(address) => address.to_string(),
            Self::Files(list) => list.name.clone(),
        }
    }
}

impl InputSpec {
    /// An input whose documents, if it has any, are identified by their paths.
    #[must_use]
    pub fn new(location: Location, format: Option<Format>) -> Self {
        Self { location, format, document_ids: DocumentIds::default(), delimiter: None }
    }

    /// The format that was named, or else that of the extension of `name`.
    ///
    /// # Errors
    ///
    /// The format is not named and the extension of `name` is unknown.
    pub fn format_of(&self, name: &str) -> Result<Format, Problem> {
        self.format.or_else(|| format_of_name(name)).ok_or_else(|| unknown_ending(name))
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
        deserialize_text(deserializer, "an address", |text| {
            let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
            // The value is not shown: addresses can contain tokens.
            url.ok_or_else(|| "must be an address such as `https://host/path/rows.jsonl`".to_owned())
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
        let message = format!("the rows of a spreadsheet cannot be read: `{name}`");
        return Problem::new(ProblemCode::InputFormat, message).hint(format!(
            "export the sheet to a CSV file first and give that; with {input_format} the file itself \
             is one row, and is sent as it is",
            input_format = INPUT_FORMAT.to("documents")
        ));
    }
    let endings: Vec<_> =
        Format::ALL.iter().flat_map(|format| format.endings()).map(|ending| format!("`.{ending}`")).collect();
    let message = format!(
        "the format of the input is not known from its name: `{name}`; known endings: {}",
        endings.join(", ")
    );
    let problem = Problem::new(ProblemCode::InputFormat, message);
    match Path::new(name).extension().and_then(|ending| ending.to_str()) {
        Some("bz2" | "xz" | "zip") => problem.hint(format!(
            "unpack it into a pipe and read that with {from_pipe}",
            from_pipe = INPUT.to("-").and(INPUT_FORMAT.to("jsonl"))
        )),
        _ => problem.hint(format!(
            "name it with {INPUT_FORMAT}, such as `jsonl`; `documents` makes one row of the file itself"
        )),
    }
}
