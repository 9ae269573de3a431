//! `--sql`: the results of a query as rows.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rowmill_core::ports::{Column, ColumnKind, Dataset, InputIdentity, Position, Room, RowSource};
use rowmill_sql::{NamedTable, Query, QueryText, ResultColumn};
use rowmill_types::settings::SQL;
use rowmill_types::{Problem, SourceRow, Words};

use super::handoff::{Handoff, WorkedSource};
use super::record::RecordWriter;
use super::shape::{ColumnType, Shape};
use super::table::DatasetTable;
use super::watch::{Notice, Watch};

/// The settings of a query besides its text.
#[derive(Debug, Clone, Copy)]
pub struct SqlSettings<'s> {
    /// The folder for temporary files; it must exist.
    pub temp: &'s Path,
    /// The declared types of columns.
    pub types: &'s [ColumnType],
}

/// The rows that a query over the table `input` returns. Row numbers count the results.
///
/// Results arrive while the input is read, unless the query has to sort or group. Temporary files are written
/// to the folder of the settings. Anything in the input that the query cannot see is reported through
/// `notice`, once.
///
/// # Errors
///
/// The query is not a single `SELECT`, is invalid, or would do more than read; or the input cannot be read.
pub fn sql_dataset(
    input: Arc<dyn Dataset>,
    sql: &str,
    settings: &SqlSettings<'_>,
    notice: Notice,
) -> Result<Arc<dyn Dataset>, Problem> {
    let (shape, watch) = Shape::watched(&*input, settings.types, notice)?;
    let dataset = SqlDataset { input, sql: sql.to_owned(), temp: settings.temp.to_owned(), shape, watch };
    dataset.query(&Arc::default())?;
    Ok(Arc::new(dataset))
}

#[derive(Debug)]
struct SqlDataset {
    input: Arc<dyn Dataset>,
    sql: String,
    temp: PathBuf,
    shape: Arc<Shape>,
    watch: Arc<Watch>,
}

impl SqlDataset {
    fn query(&self, handoff: &Arc<Handoff>) -> Result<Query, Problem> {
        let table = DatasetTable {
            input: self.input.clone(),
            shape: self.shape.clone(),
            watch: self.watch.clone(),
            handoff: handoff.clone(),
            tap: None,
        };
        let text = QueryText { text: self.sql.clone(), setting: SQL };
        Query::new(text, vec![NamedTable { name: "input", table: Arc::new(table) }], &self.temp)
    }
}

impl Dataset for SqlDataset {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        let handoff = Arc::new(Handoff::default());
        let query = self.query(&handoff)?;
        let streams = query.streams();
        let results = handoff.clone();
        let source = WorkedSource::start(handoff, move || {
            let mut writer = RecordWriter::new(&query);
            let mut number = 0;
            query.run(results.closed(), &mut |record| {
                number += 1;
                if results.push(writer.row(number, record)) {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })
        })?;
        Ok(if streams { Box::new(source) } else { Box::new(Sorted(source)) })
    }

    fn rereadable(&self) -> bool {
        true
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        self.input.identity()
    }

    fn columns(&self) -> Result<Option<Vec<Column>>, Problem> {
        let query = self.query(&Arc::default())?;
        let column = |column: &ResultColumn| Column { name: column.name.clone(), kind: ColumnKind::Mixed };
        Ok(Some(query.columns().iter().map(column).collect()))
    }

    fn sql_types(&self) -> Result<Option<Vec<String>>, Problem> {
        let query = self.query(&Arc::default())?;
        Ok(Some(query.columns().iter().map(|column| column.kind.to_string()).collect()))
    }

    fn notice(&self) -> Option<Words> {
        self.input.notice()
    }
}

/// Results that arrive only after the input was read: its progress does not measure theirs.
struct Sorted(WorkedSource);

impl RowSource for Sorted {
    fn read(&mut self, batch: &mut Vec<SourceRow>, room: Room) -> Result<bool, Problem> {
        self.0.read(batch, room)
    }

    fn position(&self) -> Position {
        Position { total: None, ..self.0.position() }
    }
}
