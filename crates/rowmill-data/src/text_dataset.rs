//! Rows of text formats, from files that can be reread and streams that cannot.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicBool, Ordering};

use rowmill_core::ports::{Dataset, InputIdentity, RowSource};
use rowmill_types::{DiagnosticText, Problem, ProblemCode};
use xxhash_rust::xxh3::Xxh3;

use crate::block_reader::BlockReader;
use crate::csv::{CsvRowSource, DelimiterChoice, FieldDelimiter};
use crate::dataset::open_problem;
use crate::files_source::FilesRowSource;
use crate::json::JsonRowSource;
use crate::jsonl::JsonlRowSource;
use crate::record_placement::{RecordPlacement, TextRowSource};
use crate::{FileList, InputFile, InputFormat, InputLocation, PartitionField};

/// How many bytes at each end of a file its digest covers.
const PROBE: u64 = 64 * 1024;

/// Files that are read from their start each time they are opened.
#[derive(Debug)]
pub(crate) struct TextFilesDataset {
    list: FileList,
    format: TextFormat,
}

impl TextFilesDataset {
    /// Reads the header of the first file, so that its problems are known before any row is read.
    pub(crate) fn new(
        list: FileList,
        format: InputFormat,
        delimiter: Option<FieldDelimiter>,
    ) -> Result<Self, Problem> {
        let format = TextFormat { format, delimiter: DelimiterChoice::new(delimiter) };
        if let (InputFormat::Csv, Some(first)) = (format.format, list.files.first()) {
            format.delimiter.choose(&mut open_blocks(first)?, InputFormat::Csv)?;
        }
        Ok(Self { list, format })
    }
}

impl Dataset for TextFilesDataset {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        Ok(Box::new(FilesRowSource::open(&self.list, &self.format)?))
    }

    fn is_rereadable(&self) -> bool {
        true
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        content_identity(&self.list)
    }

    fn is_untyped(&self) -> bool {
        self.format.format.is_untyped()
    }

    fn read_notice(&self) -> Option<DiagnosticText> {
        self.format.delimiter.notice()
    }
}

/// Identifies the content of files.
pub(crate) fn content_identity(list: &FileList) -> Result<InputIdentity, Problem> {
    if let Some(known) = &list.identity {
        return Ok(InputIdentity { path: list.name.clone(), size: None, probe: Some(known.clone()) });
    }
    let path = match list.files.as_slice() {
        [only] if only.path.as_os_str() == list.name.as_str() => {
            let path = fs::canonicalize(&only.path).map_err(|error| open_problem(&only.path, &error))?;
            path.display().to_string()
        }
        _ => list.name.clone(),
    };
    let mut size = 0;
    let mut digest = Xxh3::new();
    for file in &list.files {
        let unreadable = |error: io::Error| open_problem(&file.path, &error);
        let mut bytes = File::open(&file.path).map_err(unreadable)?;
        let length = bytes.metadata().map_err(unreadable)?.len();
        probe(&mut bytes, length, &mut digest).map_err(unreadable)?;
        for PartitionField { name, json } in &file.partition {
            digest.update(format!("{name}={json}\n").as_bytes());
        }
        size += length;
    }
    Ok(InputIdentity { path, size: Some(size), probe: Some(format!("{:016x}", digest.digest())) })
}

/// Digests the first and the last bytes, enough to detect that a file was edited.
fn probe(file: &mut File, size: u64, digest: &mut Xxh3) -> io::Result<()> {
    let mut bytes = Vec::new();
    Read::by_ref(file).take(PROBE).read_to_end(&mut bytes)?;
    digest.update(&bytes);
    bytes.clear();
    file.seek(SeekFrom::Start(size.saturating_sub(PROBE)))?;
    Read::by_ref(file).take(PROBE).read_to_end(&mut bytes)?;
    digest.update(&bytes);
    Ok(())
}

/// A text format, with what is needed to split its records.
#[derive(Debug, Clone)]
pub(crate) struct TextFormat {
    pub(crate) format: InputFormat,
    pub(crate) delimiter: DelimiterChoice,
}

/// An input that can be read only once.
#[derive(Debug)]
pub(crate) struct StreamDataset {
    location: InputLocation,
    format: TextFormat,
    opened: AtomicBool,
}

impl StreamDataset {
    pub(crate) fn new(
        location: InputLocation,
        format: InputFormat,
        delimiter: Option<FieldDelimiter>,
    ) -> Self {
        let format = TextFormat { format, delimiter: DelimiterChoice::new(delimiter) };
        Self { location, format, opened: AtomicBool::new(false) }
    }
}

impl Dataset for StreamDataset {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        if self.opened.swap(true, Ordering::Relaxed) {
            let message = format!("a stream can be read only once: `{}`", self.location.name());
            return Err(Problem::new(ProblemCode::Internal, message));
        }
        let blocks = BlockReader::new(open_bytes(&self.location)?, self.location.name(), None);
        Ok(text_row_source(&self.format, blocks, RecordPlacement::default())?)
    }

    fn is_rereadable(&self) -> bool {
        false
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        Ok(InputIdentity { path: self.location.name(), size: None, probe: None })
    }

    fn is_untyped(&self) -> bool {
        self.format.format.is_untyped()
    }

    fn read_notice(&self) -> Option<DiagnosticText> {
        self.format.delimiter.notice()
    }
}

/// The bytes of a file.
pub(crate) fn open_blocks(file: &InputFile) -> Result<BlockReader, Problem> {
    let bytes = File::open(&file.path).map_err(|error| open_problem(&file.path, &error))?;
    let size = bytes.metadata().map_or(0, |found| found.len());
    Ok(BlockReader::new(Box::new(bytes), file.name.clone(), Some(size)))
}

/// The bytes of a stream.
pub(crate) fn open_bytes(location: &InputLocation) -> Result<Box<dyn Read + Send>, Problem> {
    match location {
        InputLocation::Stdin => Ok(Box::new(io::stdin())),
        InputLocation::File(path) => {
            let file = File::open(path).map_err(|error| open_problem(path, &error))?;
            Ok(Box::new(file))
        }
        _ => Err(Problem::new(ProblemCode::Internal, format!("`{}` is not a stream", location.name()))),
    }
}

/// The rows of a file or stream.
pub(crate) fn text_row_source(
    format: &TextFormat,
    blocks: BlockReader,
    place: RecordPlacement,
) -> Result<Box<dyn TextRowSource>, Problem> {
    match format.format {
        InputFormat::Jsonl => Ok(Box::new(JsonlRowSource::new(blocks, place))),
        InputFormat::Csv | InputFormat::Tsv => {
            Ok(Box::new(CsvRowSource::new(blocks, format.format, format.delimiter.clone(), place)))
        }
        InputFormat::Json => Ok(Box::new(JsonRowSource::new(blocks, place))),
        InputFormat::Parquet | InputFormat::Documents => {
            let message = format!("{} cannot be read as text", format.format.name());
            Err(Problem::new(ProblemCode::Internal, message))
        }
    }
}
