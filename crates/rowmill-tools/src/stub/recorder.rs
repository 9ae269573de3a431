//! Writes down what tools give, so that it can stand in for them later.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use ring::digest::{SHA256, digest};
use rowmill_core::ports::{ToolFailure, ToolHost, ToolRequest};
use rowmill_types::{Problem, ProblemCode, ToolOutput};
use serde_json::Value;

use super::lines::{FileLine, Line};
use crate::bytes_output::hex;

/// A host that calls another one and writes down its answers, in one file per tool, as lines
/// that [`StubTool::read`](super::StubTool::read) takes. Calls that gave nothing are left out.
#[derive(Debug)]
pub struct Recorder {
    inner: Arc<dyn ToolHost>,
    folder: PathBuf,
    names: HashMap<String, String>,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    files: HashMap<String, File>,
    problem: Option<Problem>,
}

impl Recorder {
    /// Records what `inner` gives into `folder`, which is made where it is missing. Files that
    /// exist are added to. `names` are those by which models know tools, for the tools that the
    /// host knows by others; they name the files.
    ///
    /// # Errors
    ///
    /// The folder cannot be made.
    pub fn new(
        inner: Arc<dyn ToolHost>,
        folder: PathBuf,
        names: HashMap<String, String>,
    ) -> Result<Self, Problem> {
        std::fs::create_dir_all(&folder).map_err(|error| {
            let message = format!("the folder for recorded answers cannot be made: `{}`", folder.display());
            Problem::new(ProblemCode::OutputPath, message).cause(error).hint("choose another folder")
        })?;
        Ok(Self { inner, folder, names, written: Mutex::default() })
    }

    /// The first answer that could not be written down, if there was one. The calls themselves
    /// went on.
    #[must_use]
    pub fn problem(&self) -> Option<Problem> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).problem.clone()
    }

    fn record(&self, request: ToolRequest<'_>, output: &ToolOutput) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let name = self.names.get(request.tool).map_or(request.tool, String::as_str);
        let path = self.folder.join(file_name(name));
        if let Err(error) = write(&mut written.files, &path, request, output)
            && written.problem.is_none()
        {
            let message = format!("answers could not be recorded in `{}`", path.display());
            let problem = Problem::new(ProblemCode::WriteFailed, message).cause(error);
            written.problem = Some(problem.hint("make room or correct permissions; the calls went on"));
        }
    }
}

fn write(
    files: &mut HashMap<String, File>,
    path: &std::path::Path,
    request: ToolRequest<'_>,
    output: &ToolOutput,
) -> io::Result<()> {
    let line = Line {
        row: Some(request.row),
        arguments: Some(serde_json::from_str(request.arguments).unwrap_or_default()),
        result: Value::String(output.text.clone()),
        is_error: output.is_error,
        attachments: output.attachments.iter().map(FileLine::of).collect(),
    };
    let mut text = serde_json::to_vec(&line)?;
    text.push(b'\n');
    let file = match files.entry(request.tool.to_owned()) {
        std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
        std::collections::hash_map::Entry::Vacant(new) => {
            new.insert(OpenOptions::new().append(true).create(true).open(path)?)
        }
    };
    file.write_all(&text)
}

/// The file of a tool. A name that no file can have gets a mark, so that two such names stay
/// apart.
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

impl ToolHost for Recorder {
    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(async move {
            let output = self.inner.call(request).await?;
            self.record(request, &output);
            Ok(output)
        })
    }

    fn release(&self, row: u64) -> BoxFuture<'_, ()> {
        self.inner.release(row)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}
