//! The files that a run reads.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use rowmill_core::variables::InstructionVariables;
use rowmill_data::{InputLocation, local_input_files, local_path};
use rowmill_types::{DiagnosticText, Setting};

use crate::agents::{LoadedCards, card_files_in, server_files};
use crate::environment::RunEnvironment;
use crate::spec::{PromptSource, ResultSchemaSource, RunSpec};
use rowmill_types::settings::{
    AGENT_CARD, INPUT, INSTRUCTION, JSON_SCHEMA, SCHEMA_MODEL, STUB, TEMPLATE, VAR_FILE, VARS_JSON,
};

/// The maximum number of input files whose names are stored with the run; for more files, their folders
/// are.
pub(super) const MOST_NAMED: usize = 1000;

/// A file that is read.
#[derive(Debug)]
pub(crate) struct ReadPath {
    /// The flag that names the file, as messages show it.
    pub(crate) named_by: DiagnosticText,
    /// The path.
    pub(crate) path: PathBuf,
}

impl ReadPath {
    pub(crate) fn new(named_by: impl Display, path: impl Into<PathBuf>) -> Self {
        Self { named_by: named_by.to_string().into(), path: path.into() }
    }
}

/// Every local file that the flags of a run name for reading. A new flag that reads a file belongs
/// here.
pub(crate) fn paths_read(spec: &RunSpec) -> Vec<ReadPath> {
    let mut reads = input_files(spec);
    reads.extend(named_files(spec));
    reads
}

/// Everything but the input.
fn named_files(spec: &RunSpec) -> Vec<ReadPath> {
    let mut reads = Vec::new();
    let texts = [
        (TEMPLATE, if let PromptSource::Source(source) = &spec.prompt { Some(source) } else { None }),
        (INSTRUCTION, spec.instruction.as_ref()),
        (
            JSON_SCHEMA,
            if let ResultSchemaSource::Source(source) = &spec.schema { Some(source) } else { None },
        ),
    ];
    let mut add = |setting: Setting, source: &str| {
        reads.extend(local_path(source).map(|path| ReadPath::new(setting, path)));
    };
    for (setting, source) in texts {
        source.into_iter().for_each(|source| add(setting, source));
    }
    if let Some(path) = &spec.variables.json {
        add(VARS_JSON, &path.to_string_lossy());
    }
    // An entry without a `=` is reported when variables are read.
    for (_, path) in
        spec.variables.files.iter().filter_map(|entry| InstructionVariables::split_file_pair(entry).ok())
    {
        add(VAR_FILE, path);
    }
    for (_, answers) in spec.work.agents.stubs.iter().filter_map(|stub| stub.split_once('=')) {
        if !answers.starts_with("text:") {
            add(STUB, answers);
        }
    }
    for source in &spec.work.agents.cards {
        let Some(path) = local_path(source) else { continue };
        // A folder that cannot be read is reported when its cards are.
        let files = if path.is_dir() { card_files_in(&path).unwrap_or_default() } else { vec![path] };
        reads.extend(files.into_iter().map(|file| ReadPath::new(AGENT_CARD, file)));
    }
    if let ResultSchemaSource::PythonModel(name) = &spec.schema {
        let module = name.split(':').next().unwrap_or_default().replace('.', "/");
        let files = [format!("{module}.py"), format!("{module}/__init__.py")];
        reads.extend(files.map(|file| ReadPath::new(SCHEMA_MODEL, file)));
    }
    reads.extend(spec.config_files.iter().map(|path| ReadPath::new("the configuration", path)));
    reads
}

/// The files that agent cards name, and the files with which their MCP servers are started.
pub(crate) fn card_files(spec: &RunSpec, cards: &LoadedCards, environment: &RunEnvironment) -> Vec<ReadPath> {
    let mut reads: Vec<ReadPath> =
        cards.files.iter().map(|path| ReadPath::new("an agent card or a file that it reads", path)).collect();
    reads.extend(server_files(&spec.work, cards, environment));
    reads
}

/// The sources that are stored with a run, so that no later output made from its results overwrites
/// them: full paths of files, or of folders if the input has very many files.
pub(crate) fn source_paths(
    spec: &RunSpec,
    cards: Option<&LoadedCards>,
    environment: &RunEnvironment,
) -> Vec<String> {
    let input = match &spec.input.location {
        // Copies of remote files, and streams, which cannot be found again.
        InputLocation::Files(_) | InputLocation::Stdin => Vec::new(),
        _ => input_files(spec),
    };
    let folder_of = |read: &ReadPath| read.path.parent().map_or_else(PathBuf::new, Path::to_owned);
    let mut paths: BTreeSet<PathBuf> = match input.len() {
        many if many > MOST_NAMED => input.iter().map(folder_of).collect(),
        _ => input.into_iter().map(|read| read.path).collect(),
    };
    paths.extend(named_files(spec).into_iter().map(|read| read.path));
    let of_cards = cards.into_iter().flat_map(|cards| card_files(spec, cards, environment));
    paths.extend(of_cards.map(|read| read.path));
    header_paths(paths)
}

/// Paths in the form that a header stores: in full, independent of the current folder.
pub(crate) fn header_paths(paths: impl IntoIterator<Item = PathBuf>) -> Vec<String> {
    let in_full = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    // A path that is not valid UTF-8 cannot be stored in a header.
    paths.into_iter().filter_map(|path| in_full(path).to_str().map(str::to_owned)).collect()
}

/// The files that [`made_from`] stored.
pub(crate) fn source_paths_from_header(kept: &[String]) -> Vec<ReadPath> {
    let files = kept.iter().flat_map(|kept| match fs::read_dir(kept) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(_) => vec![PathBuf::from(kept)],
    });
    files.map(|file| ReadPath::new("a file that the run was made from", file)).collect()
}

fn input_files(spec: &RunSpec) -> Vec<ReadPath> {
    match &spec.input.location {
        InputLocation::Stdin => vec![ReadPath::new(INPUT.with_value("-"), "/dev/stdin")],
        InputLocation::File(path) if !path.is_dir() => vec![ReadPath::new(INPUT, path)],
        InputLocation::File(_) | InputLocation::Pattern(_) | InputLocation::Files(_) => {
            // Problems with the input are reported when it is opened.
            let list = local_input_files(&spec.input).ok().flatten();
            let files = list.into_iter().flat_map(|(list, _)| list.files);
            files.map(|file| ReadPath::new(INPUT, Path::new(&file.path))).collect()
        }
        InputLocation::Web(_) | InputLocation::Hub(_) => Vec::new(),
    }
}
