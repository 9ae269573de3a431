//! Loads the texts that a run uses: templates, instructions, schemas, variables.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rowmill_http::{HttpClient, Url};
use rowmill_types::settings::{PROMPT, TEMPLATE};
use rowmill_types::{Problem, ProblemCode, Setting};

use crate::block_reader::BYTE_ORDER_MARK;
use crate::fetch::Fetcher;
use crate::hub::fetch_single_file;
use crate::hub_address::HubAddress;

/// The maximum size of a text.
const MAX_TEXT: usize = 16 * 1024 * 1024;

/// The origin of a text, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextOrigin {
    /// A setting of the run.
    Setting(Setting),
    /// A field or a placeholder of an agent card.
    OfCard(&'static str),
}

impl From<Setting> for TextOrigin {
    fn from(setting: Setting) -> Self {
        Self::Setting(setting)
    }
}

impl fmt::Display for TextOrigin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(setting) => setting.fmt(out),
            Self::OfCard(name) => write!(out, "`{name}`"),
        }
    }
}

/// Reads the text that a setting or a card names: a path, or a `file://`, `http://`, `https://` or `hf://`
/// address. Files of the hub are cached; other addresses are requested each time.
///
/// `name` identifies it in messages. A byte order mark is removed.
///
/// # Errors
///
/// There is nothing to read, or it is not UTF-8 text, or it is too long.
pub async fn load_text(source: &str, name: TextOrigin, fetcher: &Fetcher<'_>) -> Result<String, Problem> {
    let bytes = match place_of(source, name)? {
        TextLocation::File(path) => read_on_thread(path, name).await?,
        TextLocation::Web(url) => fetch(url, name, fetcher.http).await?,
        TextLocation::Hub(address) => {
            let path =
                fetch_single_file(fetcher, &address).await.map_err(|problem| for_text(problem, name))?;
            read_on_thread(path, name).await?
        }
    };
    let shown = redacted_source(source);
    if bytes.len() > MAX_TEXT {
        return Err(problem(format!("text for {name} is longer than {} MiB: `{shown}`", MAX_TEXT >> 20))
            .hint(format!("use a shorter text for {name}")));
    }
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).map(<[u8]>::to_vec).unwrap_or(bytes);
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to() + 1;
        problem(format!("text for {name} is not valid UTF-8 at byte {at}: `{shown}`"))
            .hint("save it as UTF-8")
    })
}

/// The local path that a source names: a path, or a `file://` address.
#[must_use]
pub fn local_path(source: &str) -> Option<PathBuf> {
    match source.split_once("://") {
        None => Some(source.into()),
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("file") => {
            Url::parse(source).ok().and_then(|url| url.to_file_path().ok())
        }
        Some(_) => None,
    }
}

enum TextLocation {
    File(PathBuf),
    Web(Url),
    Hub(HubAddress),
}

fn place_of(source: &str, name: TextOrigin) -> Result<TextLocation, Problem> {
    let Some((scheme, _)) = source.split_once("://") else { return Ok(TextLocation::File(source.into())) };
    let not_an_address = || {
        problem(format!("invalid URL for {name}: `{}`", redacted_source(source)))
            .hint("write it as `https://host/path` or `file:///folder/name`")
    };
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => {
            let url = Url::parse(source).map_err(|error| not_an_address().cause(error))?;
            Ok(TextLocation::Web(url))
        }
        "file" => local_path(source).map(TextLocation::File).ok_or_else(not_an_address),
        "hf" => {
            HubAddress::parse_file(source).map(TextLocation::Hub).map_err(|problem| for_text(problem, name))
        }
        _ => Err(problem(format!("text for {name} cannot be read from `{scheme}://`"))
            .hint("use a path, or a `file://`, `http://`, `https://` or `hf://` URL")),
    }
}

/// Reads a file on a separate thread, because a pipe waits until somebody writes into it.
async fn read_on_thread(path: PathBuf, name: TextOrigin) -> Result<Vec<u8>, Problem> {
    let read = tokio::task::spawn_blocking(move || read_file(&path, name)).await;
    read.map_err(|error| Problem::new(ProblemCode::Internal, "a worker thread failed").cause(error))?
}

/// Reads only enough to see that the text is too long. Named pipes work too.
fn read_file(path: &Path, name: TextOrigin) -> Result<Vec<u8>, Problem> {
    let shown = path.display();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            problem(format!("file not found for {name}: `{shown}`")).hint(missing_hint(path, name))
        }
        io::ErrorKind::IsADirectory => problem(format!("path for {name} is not a file: `{shown}`"))
            .hint(format!("pass a file to {name}")),
        _ => problem(format!("file for {name} cannot be read: `{shown}`"))
            .cause(error)
            .hint("check its permissions"),
    };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_TEXT as u64 + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    Ok(bytes)
}

/// The hint if a named file does not exist, or if the text itself was given instead of a path.
fn missing_hint(path: &Path, name: TextOrigin) -> String {
    let is_text = path.to_string_lossy().contains(['{', '\n', ' ']);
    match name {
        TextOrigin::Setting(TEMPLATE) if is_text => {
            format!("{TEMPLATE} takes a file path; use {PROMPT} for the text of a prompt")
        }
        _ if is_text => format!("{name} takes a file path: write the text to a file and pass its path"),
        _ => format!("check the path given to {name}"),
    }
}

async fn fetch(url: Url, name: TextOrigin, http: &HttpClient) -> Result<Vec<u8>, Problem> {
    let shown = redacted_source(url.as_str());
    let answer = http.get(url).await.map_err(|failure| {
        problem(format!("no response for {name} from `{shown}`"))
            .cause(failure)
            .hint("check the URL and the network, or use a file")
    })?;
    let status = answer.status();
    if !(200..300).contains(&status) {
        return Err(problem(format!("cannot get the text for {name}, status {status}: `{shown}`"))
            .hint("check that the URL opens without signing in, or use a file"));
    }
    let body = answer.body(MAX_TEXT).await.map_err(|failure| {
        problem(format!("incomplete text for {name} from `{shown}`"))
            .cause(failure)
            .hint("try again, or use a file")
    })?;
    Ok(body.into())
}

/// A path unchanged; an address without the parts that may contain a secret.
#[must_use]
pub fn redacted_source(source: &str) -> String {
    let Some((scheme, rest)) = source.split_once("://") else { return source.to_owned() };
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = path.split_once('/').map_or((path, None), |(host, path)| (host, Some(path)));
    let host = authority.rsplit('@').next().unwrap_or_default();
    match path {
        Some(path) => format!("{scheme}://{host}/{path}"),
        None => format!("{scheme}://{host}"),
    }
}

/// Adds to a problem which text could not be loaded.
fn for_text(found: Problem, name: TextOrigin) -> Problem {
    let message = format!("cannot get the text for {name}: {}", found.message.with_mention_markers()).into();
    Problem { code: ProblemCode::TextUnreadable, message, ..found }
}

fn problem(message: String) -> Problem {
    Problem::new(ProblemCode::TextUnreadable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_an_address_are_not_shown() {
        for (source, expected) in [
            ("a/b.txt", "a/b.txt"),
            ("https://host/a/b", "https://host/a/b"),
            ("https://me:word@host:8/a@b?token=x#y", "https://host:8/a@b"),
            ("https://me@host?token=x", "https://host"),
        ] {
            assert_eq!(redacted_source(source), expected);
        }
    }
}
