//! Records what tools return, so that it can replace them later.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures_util::future::BoxFuture;
use ring::digest::{SHA256, digest};
use rowmill_core::ports::{ToolFailure, ToolHost, ToolPermit, ToolRequest};
use rowmill_core::redact::Redactor;
use rowmill_types::{Problem, ProblemCode, RowId, ToolOutput};
use serde_json::Value;

use super::lines::{StubFile, StubLine};
use crate::bytes_output::hex;

/// A host that calls another one and records its answers, in one file per tool, as lines that
/// [`StubTool::read`](super::StubTool::read) accepts. Calls without an answer are left out.
#[derive(Debug)]
pub struct ToolRecorder {
    inner: Arc<dyn ToolHost>,
    folder: PathBuf,
    names: HashMap<String, String>,
    redactor: OnceLock<Redactor>,
    written: Mutex<RecorderState>,
}

#[derive(Debug, Default)]
struct RecorderState {
    files: HashMap<String, File>,
    problem: Option<Problem>,
}

impl ToolRecorder {
    /// Records the answers of `inner` into `folder`, which is created if missing. Existing files are appended
    /// to. `names` are the names under which models know tools, if the host knows them by others; they are
    /// used as file names.
    ///
    /// # Errors
    ///
    /// The folder cannot be created.
    pub fn new(
        inner: Arc<dyn ToolHost>,
        folder: PathBuf,
        names: HashMap<String, String>,
    ) -> Result<Self, Problem> {
        std::fs::create_dir_all(&folder).map_err(|error| {
            let message = format!("cannot create the folder for recorded answers: `{}`", folder.display());
            Problem::new(ProblemCode::OutputPath, message).cause(error).hint("choose another folder")
        })?;
        Ok(Self { inner, folder, names, redactor: OnceLock::new(), written: Mutex::default() })
    }

    /// Removes secrets from everything that is written from now on. Only the first call has an effect.
    pub fn redact_with(&self, redactor: Redactor) {
        // A second redactor would have the same secrets.
        self.redactor.set(redactor).ok();
    }

    /// The first error of recording an answer, if there was one. The calls themselves continued.
    #[must_use]
    pub fn problem(&self) -> Option<Problem> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).problem.clone()
    }

    fn record(&self, request: ToolRequest<'_>, output: &ToolOutput) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let name = self.names.get(request.tool).map_or(request.tool, String::as_str);
        let path = self.folder.join(file_name(name));
        let redactor = self.redactor.get_or_init(Redactor::default);
        if let Err(error) = write(&mut written.files, &path, (request, output), redactor)
            && written.problem.is_none()
        {
            let message = format!("cannot record answers in `{}`", path.display());
            let problem = Problem::new(ProblemCode::WriteFailed, message).cause(error);
            written.problem =
                Some(problem.hint("free some space or correct the permissions; calls were still made"));
        }
    }
}

fn write(
    files: &mut HashMap<String, File>,
    path: &std::path::Path,
    (request, output): (ToolRequest<'_>, &ToolOutput),
    redactor: &Redactor,
) -> io::Result<()> {
    let arguments = redactor.redact_json(request.arguments);
    let (id, row) = match request.id {
        RowId::Text(id) => (Some(redactor.redact(id)), None),
        RowId::Number(_) => (None, Some(request.row)),
    };
    let line = StubLine {
        id,
        row,
        arguments: Some(serde_json::from_str(&arguments).unwrap_or_default()),
        result: Value::String(redactor.redact(&output.text).into_owned()),
        is_error: output.is_error,
        attachments: output.attachments.iter().map(StubFile::from_attachment).collect(),
    };
    let mut text = serde_json::to_vec(&line)?;
    text.push(b'\n');
    let file = match files.entry(request.tool.to_owned()) {
        std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
        std::collections::hash_map::Entry::Vacant(new) => new.insert(open(path)?),
    };
    file.write_all(&text)
}

/// Opens a file for appending. An incomplete last line of this recorder, left by a crash, is removed; any
/// other line stays, and nothing is appended to it.
fn open(path: &std::path::Path) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
    let (_, last) = text.split_at(whole);
    if last.is_empty() {
        return Ok(file);
    }
    if serde_json::from_slice::<StubLine<'_>>(last).is_ok() {
        file.write_all(b"\n")?;
        return Ok(file);
    }
    let begins = |begin: &[u8]| last.starts_with(begin) || begin.starts_with(last);
    let begins = begins(b"{\"id\":") || begins(b"{\"row\":");
    if begins && serde_json::from_slice::<serde::de::IgnoredAny>(last).is_err() {
        file.set_len(whole as u64)?;
        return Ok(file);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        "its last line is not a recorded answer and has no newline",
    ))
}

/// The file of a tool. A name that is not a valid file name gets a mark, so that two such names stay
/// distinct.
fn file_name(tool: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let short = tool.rsplit('/').next().unwrap_or(tool);
    if short == tool && tool.chars().all(is_plain) {
        return format!("{tool}.jsonl");
    }
    let plain: String = short.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    let mark = hex(digest(&SHA256, tool.as_bytes()).as_ref().get(..4).unwrap_or_default());
    format!("{plain}-{mark}.jsonl")
}

impl ToolHost for ToolRecorder {
    fn wait_until_ready<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<ToolPermit, ToolFailure>> {
        self.inner.wait_until_ready(request)
    }

    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(async move {
            let output = self.inner.call(request).await?;
            self.record(request, &output);
            Ok(output)
        })
    }

    fn release_row(&self, row: u64) -> BoxFuture<'_, ()> {
        self.inner.release_row(row)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_last_line_without_a_newline_is_completed_cut_or_left_to_its_owner() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("tool.jsonl");
        for (before, after) in [
            ("", Some("")),
            ("{\"row\":1,\"result\":\"a\"}\n", Some("{\"row\":1,\"result\":\"a\"}\n")),
            ("{\"row\":1,\"result\":\"a\"}", Some("{\"row\":1,\"result\":\"a\"}\n")),
            ("{\"row\":1,\"result\":\"a\"}\n{\"row\":2,\"re", Some("{\"row\":1,\"result\":\"a\"}\n")),
            ("notes", None),
            ("{\"mine\":1}", None),
        ] {
            fs::write(&path, before).unwrap();
            assert_eq!(open(&path).is_ok(), after.is_some(), "{before}");
            assert_eq!(fs::read_to_string(&path).unwrap(), after.unwrap_or(before), "{before}");
        }
    }
}
