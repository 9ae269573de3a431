//! Describes a pydantic model; Python is asked once before a run.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use crate::process_group::{ProcessGroup, ProcessReaper};
use crate::python::model_description::{SchemaModelDescription, SchemaModelDescriptionFailure};
use crate::python::settings::START_TIMEOUT;

const PROGRAM: &str = include_str!("../program/describe_model.py");
/// The exit code of the program if it reports a problem.
const UNUSABLE: i32 = 3;

/// Asks Python for the schema of a model named as `module.path:Class`; the process gets `variables`.
///
/// The process writes into files: a pipe would have to be read to its end, which does not come while
/// something that the user's module started holds it open. Everything that the process started is killed with
/// it.
///
/// # Errors
///
/// The interpreter could not be started.
pub async fn describe_schema_model(
    interpreter: &Path,
    model: &str,
    variables: &[(OsString, OsString)],
    temp_folder: &Path,
) -> io::Result<Result<SchemaModelDescription, SchemaModelDescriptionFailure>> {
    let (mut reported, mut errors) =
        (tempfile::tempfile_in(temp_folder)?, tempfile::tempfile_in(temp_folder)?);
    let mut command = Command::new(interpreter);
    command.args(["-c", PROGRAM, model]).stdin(Stdio::null());
    command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
    command.stdout(reported.try_clone()?).stderr(errors.try_clone()?);
    let reaper = ProcessReaper::default();
    let mut group = ProcessGroup::start(&mut command, &reaper)?;
    let ended = tokio::time::timeout(START_TIMEOUT, group.wait_for_end()).await;
    drop(group);
    reaper.reap_all().await;
    let Ok(status) = ended else { return Ok(Err(SchemaModelDescriptionFailure::TooSlow(START_TIMEOUT))) };
    let status = status.ok_or_else(|| io::Error::other("it could not be waited for"))?;
    let reported = text(&mut reported)?;
    let (first, second) = reported.trim_end().split_once('\n').unwrap_or((reported.trim_end(), ""));
    let second = (!second.is_empty()).then(|| second.to_owned());
    Ok(match status.code() {
        Some(0) if !first.is_empty() => Ok(SchemaModelDescription { schema: first.to_owned(), code: second }),
        Some(UNUSABLE) if !first.is_empty() => {
            Err(SchemaModelDescriptionFailure::Unusable { message: first.to_owned(), hint: second })
        }
        _ => {
            let errors = text(&mut errors)?;
            Err(SchemaModelDescriptionFailure::ProcessEnded {
                status,
                last_words: errors.trim().lines().last().map(str::to_owned),
            })
        }
    })
}

fn text(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
