//! Files to read, and ways to read them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::data_type::DataType;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use rowmill_core::ports::{Dataset, ReadLimit, RequestedDatasetPart, RowSource};
use rowmill_data::{FileList, InputFile, InputLocation, InputSpec, open_dataset};
use rowmill_types::{Problem, Row, RowReadResult};
use tempfile::TempDir;

pub(crate) const ROOM: ReadLimit = ReadLimit { rows: usize::MAX, bytes: usize::MAX };

/// A folder for the files of a test.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes columns with these writer properties.
    pub(crate) fn write_with(
        &self,
        name: &str,
        properties: WriterProperties,
        columns: Vec<(&str, ArrayRef)>,
    ) -> PathBuf {
        let path = self.path(name);
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, array)| (name, array, true)),
        )
        .unwrap();
        let mut writer =
            ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        path
    }

    pub(crate) fn write(&self, name: &str, columns: Vec<(&str, ArrayRef)>) -> PathBuf {
        self.write_with(name, WriterProperties::builder().build(), columns)
    }

    /// Writes one column with a schema that Arrow would not write.
    pub(crate) fn write_raw<T: DataType>(
        &self,
        name: &str,
        message: &str,
        values: &[T::T],
        levels: Levels<'_>,
    ) -> PathBuf {
        let path = self.path(name);
        let schema = Arc::new(parse_message_type(message).unwrap());
        let mut writer =
            SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<T>().write_batch(values, levels.0, levels.1).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        path
    }
}

/// Definition and repetition levels.
pub(crate) struct Levels<'a>(pub(crate) Option<&'a [i16]>, pub(crate) Option<&'a [i16]>);

pub(crate) fn array(array: impl arrow_array::Array + 'static) -> ArrayRef {
    Arc::new(array)
}

pub(crate) fn open(path: &Path) -> Result<Arc<dyn Dataset>, Problem> {
    open_dataset(&InputSpec::new(
        InputLocation::File(path.to_owned()),
        Some(rowmill_data::InputFormat::Parquet),
    ))
}

pub(crate) fn open_all(paths: &[PathBuf]) -> Result<Arc<dyn Dataset>, Problem> {
    let file =
        |path: &PathBuf| InputFile::new(path.clone(), path.file_name().unwrap().to_str().unwrap().to_owned());
    let list = FileList { name: "all".into(), files: paths.iter().map(file).collect(), identity: None };
    open_dataset(&InputSpec::new(InputLocation::Files(list), None))
}

/// Reads the rest; returns the rows before a problem, and the problem.
pub(crate) fn drain(source: &mut dyn RowSource) -> (Vec<RowReadResult>, Option<Problem>) {
    let mut rows = Vec::new();
    loop {
        match source.read(&mut rows, ROOM) {
            Ok(true) => {}
            Ok(false) => return (rows, None),
            Err(problem) => return (rows, Some(problem)),
        }
    }
}

pub(crate) fn rows_of(dataset: &dyn Dataset, part: &RequestedDatasetPart) -> Vec<Row> {
    let (rows, problem) = drain(dataset.open_part(part).unwrap().as_mut());
    assert_eq!(problem, None);
    rows.into_iter().map(Result::unwrap).collect()
}

pub(crate) fn texts(path: &Path) -> Vec<String> {
    let rows = rows_of(open(path).unwrap().as_ref(), &RequestedDatasetPart::default());
    for (row, number) in rows.iter().zip(1..) {
        assert_eq!(row.number(), number);
        // The field positions are those that a parser finds.
        let parsed = Row::parse(number, row.json_text().to_owned()).unwrap();
        assert!(row.fields().eq(parsed.fields()), "{}", row.json_text());
    }
    rows.iter().map(|row| row.json_text().to_owned()).collect()
}

/// The only field `a` of every row.
pub(crate) fn values(path: &Path) -> Vec<String> {
    let rows = rows_of(open(path).unwrap().as_ref(), &RequestedDatasetPart::default());
    rows.iter().map(|row| row.field("a").unwrap().to_owned()).collect()
}
