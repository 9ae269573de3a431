//! Checks that no file is both written and read, or written twice. Nothing is changed here.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use rowmill_data::output::names_open_file;
use rowmill_data::{InputSpec, input_would_read};
use rowmill_types::settings::{INPUT, RESUME};
use rowmill_types::{DiagnosticText, Problem, ProblemCode};

use super::identity::{FileIdentity, full_path};
use super::reads::{ReadPath, paths_read};
use super::writes::{WrittenKind, WrittenPath, paths_written};
use crate::spec::{OutputTarget, RunSpec};

/// Checks that no file is written that is also read or written as something else, and that `input`, if
/// it is a pattern or a folder, would not match what is written.
///
/// # Errors
///
/// The first such file, with the flags that name it.
pub(crate) fn check_paths_disjoint(
    reads: &[ReadPath],
    writes: &[WrittenPath],
    input: Option<&InputSpec>,
) -> Result<(), Problem> {
    let written = CheckedWrite::of(writes);
    // Reads come first: losing an input is the worse of two mistakes.
    for read in reads {
        written.check_read(read)?;
    }
    for at in 0..writes.len() {
        written.check_twice(at)?;
    }
    for write in writes.iter().filter(|write| matches!(write.kind, WrittenKind::File)) {
        written.check_in_folder(write)?;
    }
    input.map_or(Ok(()), |input| check_input(input, writes))
}

/// Repeats the check before files are replaced at the end of a run: a file that is written may have
/// been replaced by a link to one that is read. An output that is a file of envelopes checks this
/// itself.
///
/// # Errors
///
/// The first such file.
pub(crate) fn recheck_paths_disjoint(spec: &RunSpec, work_folder: &Path) -> Result<(), Problem> {
    let mut links = paths_written(spec, work_folder);
    let is_envelopes = |path: &Path| matches!(&spec.output, OutputTarget::File(output) if output == path);
    links.retain(|write| {
        write.path.is_symlink() && !names_open_file(&write.path) && !is_envelopes(&write.path)
    });
    if links.is_empty() {
        return Ok(());
    }
    check_paths_disjoint(&paths_read(spec), &links, None).map_err(|problem| {
        let message = format!("{}; it was replaced during the run", problem.message.with_mention_markers());
        Problem { message: message.into(), ..problem }.hint(format!(
            "remove the link, then run the same command with {RESUME} to continue; every answer is kept"
        ))
    })
}

/// What is written, indexed for lookup.
struct CheckedWrite<'w> {
    writes: &'w [WrittenPath],
    identities: Vec<Option<FileIdentity>>,
    /// The first write with this identity.
    first: HashMap<FileIdentity, usize>,
}

impl<'w> CheckedWrite<'w> {
    fn of(writes: &'w [WrittenPath]) -> Self {
        let identities: Vec<_> = writes.iter().map(|write| FileIdentity::of(&write.path)).collect();
        let mut first = HashMap::new();
        for (at, identity) in identities.iter().enumerate() {
            if let Some(identity) = identity {
                first.entry(identity.clone()).or_insert(at);
            }
        }
        Self { writes, identities, first }
    }

    fn check_read(&self, read: &ReadPath) -> Result<(), Problem> {
        let same = FileIdentity::of(&read.path).and_then(|identity| self.first.get(&identity));
        if let Some(write) = same.and_then(|&at| self.writes.get(at)) {
            return Err(same_path((&write.named_by, &write.path), (&read.named_by, &read.path)));
        }
        // A link counts at its own path, and at its target.
        let is_link = fs::symlink_metadata(&read.path).is_ok_and(|found| found.is_symlink());
        let target = is_link.then(|| full_path(&read.path));
        let places = std::iter::once(read.path.as_path()).chain(target.as_deref());
        match places.into_iter().find_map(|path| self.folder_of(path)) {
            Some(folder) => Err(could_replace(folder, &read.named_by, &read.path)),
            None => Ok(()),
        }
    }

    fn check_twice(&self, at: usize) -> Result<(), Problem> {
        let (Some(write), Some(Some(identity))) = (self.writes.get(at), self.identities.get(at)) else {
            return Ok(());
        };
        match self.first.get(identity).and_then(|&first| self.writes.get(first)) {
            Some(other) if clash(write, other) => {
                Err(same_path((&write.named_by, &write.path), (&other.named_by, &other.path)))
            }
            _ => Ok(()),
        }
    }

    fn check_in_folder(&self, write: &WrittenPath) -> Result<(), Problem> {
        if names_open_file(&write.path) {
            return Ok(());
        }
        match self.folder_of(&full_path(&write.path)) {
            Some(folder) => Err(could_replace(folder, &write.named_by, &write.path)),
            None => Ok(()),
        }
    }

    /// The written folder that contains this file and may replace it.
    fn folder_of(&self, path: &Path) -> Option<&WrittenPath> {
        let name = path.file_name()?.to_str()?;
        let owns = |write: &WrittenPath| match &write.kind {
            WrittenKind::Folder(names) => (names.owns)(name),
            WrittenKind::File | WrittenKind::FileInFolder => false,
        };
        // An input may be a million files, few of which have such a name.
        let mut folders =
            self.writes.iter().zip(&self.identities).filter(|(write, _)| owns(write)).peekable();
        folders.peek()?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = FileIdentity::of(parent.unwrap_or(Path::new(".")))?;
        folders.find(|(_, identity)| identity.as_ref() == Some(&parent)).map(|(write, _)| write)
    }
}

/// Whether two writes of one file are a mistake. Several flags may name standard output.
fn clash(one: &WrittenPath, other: &WrittenPath) -> bool {
    one.named_by != other.named_by && !(names_open_file(&one.path) && names_open_file(&other.path))
}

fn same_path((second, path): (&DiagnosticText, &Path), (first, other): (&DiagnosticText, &Path)) -> Problem {
    let (second, first) = (second.with_mention_markers(), first.with_mention_markers());
    let what = if path.is_dir() { "folder" } else { "file" };
    let mut message = format!("{second} must not point to the same {what} as {first}: `{}`", path.display());
    if path != other {
        message.push_str(&format!(" is `{}`", other.display()));
    }
    Problem::new(ProblemCode::SamePath, message).hint("use a different path for each")
}

fn could_replace(folder: &WrittenPath, named_by: &DiagnosticText, path: &Path) -> Problem {
    let (writer, named_by) = (folder.named_by.with_mention_markers(), named_by.with_mention_markers());
    let message = format!(
        "{writer} writes files to `{}` and could overwrite the file of {named_by}: `{}`",
        folder.path.display(),
        path.display()
    );
    Problem::new(ProblemCode::SamePath, message).hint(format!("use a separate folder for {writer}"))
}

/// Checks that the input does not match what the run writes: a resumed run would read its own results.
fn check_input(input: &InputSpec, writes: &[WrittenPath]) -> Result<(), Problem> {
    let Some(write) = writes.iter().find(|write| takes_in(input, write, &write.path)) else {
        return Ok(());
    };
    let (given, shown) = (input.location.name(), write.path.display());
    let message = format!(
        "{input} would also read what {} writes: `{shown}`",
        write.named_by.with_mention_markers(),
        input = INPUT.with_value(given)
    );
    Err(Problem::new(ProblemCode::SamePath, message).hint(elsewhere(input, write)))
}

/// Whether the input would read a written file, if it were at `path`.
fn takes_in(input: &InputSpec, write: &WrittenPath, path: &Path) -> bool {
    let path = full_path(path);
    match &write.kind {
        WrittenKind::File => input_would_read(input, &path),
        WrittenKind::FileInFolder => false,
        WrittenKind::Folder(names) => {
            names.samples.iter().any(|name| input_would_read(input, &path.join(name)))
        }
    }
}

/// A hint with a path that the input does not match.
fn elsewhere(input: &InputSpec, write: &WrittenPath) -> String {
    let name = write.path.file_name().map_or_else(|| PathBuf::from("results"), PathBuf::from);
    let places = [name.clone(), Path::new("results").join(&name), Path::new("..").join(&name)];
    match places.iter().find(|place| !takes_in(input, write, place)) {
        Some(place) => {
            format!("write it somewhere else, such as `{}`, or narrow the input", place.display())
        }
        None => "write it to another folder, or narrow the input".to_owned(),
    }
}
