//! What the input is: its place and its format.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rowmill_types::{Problem, ProblemCode};

/// Where rows are read from, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputSpec {
    /// Where the bytes are.
    pub location: Location,
    /// How they are written; from the name's ending when `None`.
    pub format: Option<Format>,
}

/// Where the bytes of an input are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// Standard input.
    Stdin,
    /// A file, a pipe with a name or a device.
    File(PathBuf),
}

impl Location {
    /// Reads the value of `--input`: `-`, a path or a `file://` address.
    ///
    /// # Errors
    ///
    /// It is an address of a kind that cannot be read.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        if text == "-" {
            return Ok(Self::Stdin);
        }
        if text.starts_with("file://") {
            let path = rowmill_http::Url::parse(text).ok().and_then(|url| url.to_file_path().ok());
            return path.map(Self::File).ok_or_else(|| {
                let message = format!("input address is no path of this machine: `{text}`");
                Problem::new(ProblemCode::InputNotFound, message)
                    .hint("write it as `file:///folder/rows.jsonl`, or give the path alone")
            });
        }
        if let Some((scheme, _)) = text.split_once("://") {
            let message = format!("input of kind `{scheme}://` cannot be read");
            return Err(Problem::new(ProblemCode::InputNotFound, message)
                .hint("give a path, a `file://` address, or `-` for standard input"));
        }
        Ok(Self::File(text.into()))
    }

    /// What it is called in messages and in the run's identity.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Stdin => "-".into(),
            Self::File(path) => path.display().to_string(),
        }
    }
}

/// How rows are written in an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line.
    Jsonl,
    /// Values between commas, with a header.
    Csv,
    /// Values between tabs, with a header.
    Tsv,
}

impl Format {
    /// Every format, in the order in which messages list them.
    pub const ALL: &'static [Self] = &[Self::Jsonl, Self::Csv, Self::Tsv];

    /// Its name, as `--input-format` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
        }
    }

    /// The endings of names by which it is known.
    #[must_use]
    pub fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Jsonl => &["jsonl", "ndjson"],
            Self::Csv => &["csv"],
            Self::Tsv => &["tsv"],
        }
    }

    /// The format that a path's ending tells, in whatever case.
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Self> {
        let ending = path.extension().and_then(OsStr::to_str)?.to_ascii_lowercase();
        Self::ALL.iter().copied().find(|format| format.endings().contains(&ending.as_str()))
    }
}

impl InputSpec {
    /// The format that was named, or that the ending tells.
    ///
    /// # Errors
    ///
    /// Neither is there.
    pub fn format(&self) -> Result<Format, Problem> {
        if let Some(format) = self.format {
            return Ok(format);
        }
        match &self.location {
            Location::Stdin => Err(Problem::new(ProblemCode::Usage, "standard input needs `--input-format`")
                .hint("add `--input-format jsonl`, `csv` or `tsv`")),
            Location::File(path) => Format::of_path(path).ok_or_else(|| unknown_ending(path)),
        }
    }
}

fn unknown_ending(path: &Path) -> Problem {
    let endings: Vec<_> =
        Format::ALL.iter().flat_map(|format| format.endings()).map(|ending| format!("`.{ending}`")).collect();
    let message = format!(
        "the format of the input is not known from its name: `{}`; known endings: {}",
        path.display(),
        endings.join(", ")
    );
    let problem = Problem::new(ProblemCode::InputFormat, message);
    match path.extension().and_then(OsStr::to_str).map(str::to_ascii_lowercase).as_deref() {
        Some("gz" | "zst" | "bz2" | "xz" | "zip") => {
            problem.hint("unpack it into a pipe and read that with `--input - --input-format jsonl`")
        }
        _ => problem.hint("name it with `--input-format jsonl`, `csv` or `tsv`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> InputSpec {
        InputSpec { location: Location::File(path.into()), format: None }
    }

    #[test]
    fn the_ending_tells_the_format_in_any_case() {
        for (path, format) in [
            ("a.jsonl", Format::Jsonl),
            ("a.b.NDJSON", Format::Jsonl),
            ("dir.x/a.Csv", Format::Csv),
            ("a.tsv", Format::Tsv),
        ] {
            assert_eq!(file(path).format(), Ok(format));
        }
    }

    #[test]
    fn an_unknown_ending_lists_those_that_are_known() {
        for path in ["rows", "rows.json", "rows.jsonl.gz", ".csv"] {
            let problem = file(path).format().unwrap_err();
            assert_eq!(problem.code, ProblemCode::InputFormat);
            assert!(problem.message.contains(&format!("`{path}`")), "{}", problem.message);
            assert!(problem.message.ends_with("`.jsonl`, `.ndjson`, `.csv`, `.tsv`"), "{}", problem.message);
        }
        assert!(file("rows.jsonl.gz").format().unwrap_err().hint.unwrap().starts_with("unpack"));
    }

    #[test]
    fn a_named_format_wins_over_the_ending() {
        let spec = InputSpec { format: Some(Format::Tsv), ..file("a.csv") };
        assert_eq!(spec.format(), Ok(Format::Tsv));
    }

    #[test]
    fn standard_input_needs_a_named_format() {
        let problem = InputSpec { location: Location::Stdin, format: None }.format().unwrap_err();
        assert_eq!(problem.code, ProblemCode::Usage);
        assert!(problem.message.contains("--input-format"));
    }

    #[test]
    fn locations_are_paths_file_addresses_or_a_dash() {
        assert_eq!(Location::parse("-"), Ok(Location::Stdin));
        assert_eq!(Location::parse("a/b.csv"), Ok(Location::File("a/b.csv".into())));
        assert_eq!(Location::parse("file:///a%20b.csv"), Ok(Location::File("/a b.csv".into())));
        for text in ["hf://datasets/a/b", "https://host/rows.jsonl", "s3://x/y.csv", "file://host/a"] {
            assert_eq!(Location::parse(text).unwrap_err().code, ProblemCode::InputNotFound, "{text}");
        }
    }
}
