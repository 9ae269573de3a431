//! What a run reads.

use std::path::{Path, PathBuf};

use rowmill_core::variables::Variables;
use rowmill_data::{Location, local_files, local_path};

use crate::agents::cards_in;
use crate::spec::{Prompt, RunSpec, Schema};

/// A file that is read.
#[derive(Debug)]
pub(crate) struct ReadPath {
    /// The flag that names it, as messages show it.
    pub(crate) flag: String,
    /// Where it is.
    pub(crate) path: PathBuf,
}

impl ReadPath {
    pub(crate) fn new(flag: &str, path: impl Into<PathBuf>) -> Self {
        Self { flag: flag.to_owned(), path: path.into() }
    }
}

/// Every file that the flags of a run have it read, as far as it is on this machine. A new flag
/// that reads a file belongs here.
pub(crate) fn reads(spec: &RunSpec) -> Vec<ReadPath> {
    let mut reads = input_files(spec);
    let texts = [
        ("`--template`", if let Prompt::Source(source) = &spec.prompt { Some(source) } else { None }),
        ("`--instruction`", spec.instruction.as_ref()),
        ("`--json-schema`", if let Schema::Source(source) = &spec.schema { Some(source) } else { None }),
    ];
    let mut add = |flag: &str, source: &str| {
        reads.extend(local_path(source).map(|path| ReadPath::new(flag, path)));
    };
    for (flag, source) in texts {
        source.into_iter().for_each(|source| add(flag, source));
    }
    if let Some(path) = &spec.variables.json {
        add("`--vars-json`", &path.to_string_lossy());
    }
    // An entry without a `=` is told when variables are read.
    for (_, path) in spec.variables.files.iter().filter_map(|entry| Variables::parse_file_pair(entry).ok()) {
        add("`--var-file`", path);
    }
    for (_, answers) in spec.work.agents.stubs.iter().filter_map(|stub| stub.split_once('=')) {
        if !answers.starts_with("text:") {
            add("`--stub`", answers);
        }
    }
    for source in &spec.work.agents.cards {
        let Some(path) = local_path(source) else { continue };
        // A folder that cannot be read is told when its cards are.
        let files = if path.is_dir() { cards_in(&path).unwrap_or_default() } else { vec![path] };
        reads.extend(files.into_iter().map(|file| ReadPath::new("`--agent-card`", file)));
    }
    if let Schema::PythonModel(name) = &spec.schema {
        let module = name.split(':').next().unwrap_or_default().replace('.', "/");
        let files = [format!("{module}.py"), format!("{module}/__init__.py")];
        reads.extend(files.map(|file| ReadPath::new("`--schema-model`", file)));
    }
    reads.extend(spec.config_files.iter().map(|path| ReadPath::new("the configuration", path)));
    reads
}

/// The files that agent cards were found to name.
pub(crate) fn card_files(files: &[PathBuf]) -> Vec<ReadPath> {
    files.iter().map(|path| ReadPath::new("an agent card or what it reads", path)).collect()
}

fn input_files(spec: &RunSpec) -> Vec<ReadPath> {
    match &spec.input.location {
        Location::Stdin => vec![ReadPath::new("`--input -`", "/dev/stdin")],
        Location::File(path) if !path.is_dir() => vec![ReadPath::new("`--input`", path)],
        Location::File(_) | Location::Pattern(_) | Location::Files(_) => {
            // What is wrong with the input is told when it is opened.
            let list = local_files(&spec.input).ok().flatten();
            let files = list.into_iter().flat_map(|(list, _)| list.files);
            files.map(|file| ReadPath::new("`--input`", Path::new(&file.path))).collect()
        }
        Location::Web(_) | Location::Hub(_) => Vec::new(),
    }
}
