//! Files and streams as datasets.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rowmill_core::ports::{Dataset, InputIdentity, RowSource};
use rowmill_types::{Problem, ProblemCode};
use xxhash_rust::xxh3::Xxh3;

use crate::blocks::Blocks;
use crate::csv::CsvSource;
use crate::jsonl::JsonlSource;
use crate::{Format, InputSpec, Location};

/// How much of each end of a file its digest covers.
const PROBE: u64 = 64 * 1024;

/// Makes the dataset of an input, once it is known to be there.
///
/// # Errors
///
/// The input is missing, no file or not readable, or its format is not known.
pub fn dataset(spec: &InputSpec) -> Result<Arc<dyn Dataset>, Problem> {
    let Location::File(path) = &spec.location else {
        return Ok(Arc::new(StreamDataset::new(spec.location.clone(), spec.format()?)));
    };
    let metadata = fs::metadata(path).map_err(|error| cannot_open(path, &error))?;
    if metadata.is_dir() {
        let message = format!("input path is not a file: `{}`", path.display());
        return Err(Problem::new(ProblemCode::InputNotFound, message)
            .hint("name one file; to read several, join them into a pipe to `--input -`"));
    }
    let format = spec.format()?;
    if !metadata.is_file() {
        return Ok(Arc::new(StreamDataset::new(spec.location.clone(), format)));
    }
    File::open(path).map_err(|error| cannot_open(path, &error))?;
    Ok(Arc::new(FileDataset { path: path.clone(), identity_name: None, format }))
}

/// A file that is read from its start each time it is opened.
#[derive(Debug)]
pub(crate) struct FileDataset {
    pub(crate) path: PathBuf,
    /// What the input was called before it was copied here.
    pub(crate) identity_name: Option<String>,
    pub(crate) format: Format,
}

impl Dataset for FileDataset {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        let file = File::open(&self.path).map_err(|error| cannot_open(&self.path, &error))?;
        let total = file.metadata().ok().map(|metadata| metadata.len());
        Ok(source(self.format, Blocks::new(Box::new(file), self.path.display().to_string(), total)))
    }

    fn rereadable(&self) -> bool {
        true
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        let unreadable = |error: io::Error| cannot_open(&self.path, &error);
        let path = match &self.identity_name {
            Some(name) => name.clone(),
            None => fs::canonicalize(&self.path).map_err(unreadable)?.display().to_string(),
        };
        let mut file = File::open(&self.path).map_err(unreadable)?;
        let size = file.metadata().map_err(unreadable)?.len();
        let probe = probe(&mut file, size).map_err(unreadable)?;
        Ok(InputIdentity { path, size: Some(size), probe: Some(probe) })
    }
}

/// An input that flows by once: standard input, a pipe with a name, a device.
#[derive(Debug)]
pub(crate) struct StreamDataset {
    location: Location,
    format: Format,
    opened: AtomicBool,
}

impl StreamDataset {
    pub(crate) fn new(location: Location, format: Format) -> Self {
        Self { location, format, opened: AtomicBool::new(false) }
    }
}

impl Dataset for StreamDataset {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        if self.opened.swap(true, Ordering::Relaxed) {
            let message = format!("a stream can be read only once: `{}`", self.location.name());
            return Err(Problem::new(ProblemCode::Internal, message));
        }
        Ok(source(self.format, Blocks::new(open_bytes(&self.location)?, self.location.name(), None)))
    }

    fn rereadable(&self) -> bool {
        false
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        Ok(InputIdentity { path: self.location.name(), size: None, probe: None })
    }
}

/// The bytes of an input.
pub(crate) fn open_bytes(location: &Location) -> Result<Box<dyn Read + Send>, Problem> {
    match location {
        Location::Stdin => Ok(Box::new(io::stdin())),
        Location::File(path) => {
            let file = File::open(path).map_err(|error| cannot_open(path, &error))?;
            Ok(Box::new(file))
        }
    }
}

fn source(format: Format, blocks: Blocks) -> Box<dyn RowSource> {
    match format {
        Format::Jsonl => Box::new(JsonlSource::new(blocks)),
        Format::Csv | Format::Tsv => Box::new(CsvSource::new(blocks, format)),
    }
}

/// Tells a missing input from one that may not be read.
fn cannot_open(path: &Path, error: &io::Error) -> Problem {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Problem::new(ProblemCode::InputNotFound, format!("input file not found: `{shown}`"))
                .hint("check the path given to `--input`")
        }
        io::ErrorKind::PermissionDenied => {
            Problem::new(ProblemCode::InputUnreadable, format!("input file may not be read: `{shown}`"))
                .cause(error)
                .hint("give yourself permission to read it")
        }
        _ => Problem::new(ProblemCode::InputUnreadable, format!("input file cannot be read: `{shown}`"))
            .cause(error)
            .hint("check the path given to `--input` and the disk that it is on"),
    }
}

/// A digest of the first and the last bytes, enough to tell that a file was edited.
fn probe(file: &mut File, size: u64) -> io::Result<String> {
    let mut digest = Xxh3::new();
    let mut bytes = Vec::new();
    Read::by_ref(file).take(PROBE).read_to_end(&mut bytes)?;
    digest.update(&bytes);
    bytes.clear();
    file.seek(SeekFrom::Start(size.saturating_sub(PROBE)))?;
    Read::by_ref(file).take(PROBE).read_to_end(&mut bytes)?;
    digest.update(&bytes);
    Ok(format!("{:016x}", digest.digest()))
}
