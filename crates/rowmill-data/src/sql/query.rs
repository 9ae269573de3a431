//! `--sql`: the results of a query as rows.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use rowmill_core::ports::{
    ColumnKind, Dataset, DatasetColumn, InputIdentity, InputReadProgress, ReadLimit, RowSource,
};
use rowmill_sql::{NamedTable, PreparedSqlQuery, QueryResultColumn, QueryText};
use rowmill_types::settings::SQL;
use rowmill_types::{DiagnosticText, Problem, RowReadResult};

use super::handoff::{RowHandoff, ThreadRowSource};
use super::query_warnings::QueryWarnings;
use super::result_row::ResultRowWriter;
use super::shape::SqlColumns;
use super::table::DatasetTable;
use crate::{SqlSettings, WarnFn};

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
    notice: WarnFn,
) -> Result<Arc<dyn Dataset>, Problem> {
    let (shape, watch) = SqlColumns::find_columns(&*input, settings.types, notice)?;
    let dataset = SqlDataset { input, sql: sql.to_owned(), temp: settings.temp.to_owned(), shape, watch };
    dataset.query(&Arc::default())?;
    Ok(Arc::new(dataset))
}

#[derive(Debug)]
struct SqlDataset {
    input: Arc<dyn Dataset>,
    sql: String,
    temp: PathBuf,
    shape: Arc<SqlColumns>,
    watch: Arc<QueryWarnings>,
}

impl SqlDataset {
    fn query(&self, handoff: &Arc<RowHandoff>) -> Result<PreparedSqlQuery, Problem> {
        let table = DatasetTable {
            input: self.input.clone(),
            shape: self.shape.clone(),
            watch: self.watch.clone(),
            handoff: handoff.clone(),
            tap: None,
        };
        let text = QueryText { text: self.sql.clone(), setting: SQL };
        PreparedSqlQuery::new(text, vec![NamedTable { name: "input", table: Arc::new(table) }], &self.temp)
    }
}

impl Dataset for SqlDataset {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        let handoff = Arc::new(RowHandoff::default());
        let query = self.query(&handoff)?;
        let streams = query.is_streaming();
        let results = handoff.clone();
        let source = ThreadRowSource::start(handoff, move || {
            let mut writer = ResultRowWriter::new(&query);
            let mut number = 0;
            query.run(results.closed(), &mut |record| {
                number += 1;
                if results.push(writer.make_row(number, record)) {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })
        })?;
        Ok(if streams { Box::new(source) } else { Box::new(SortedSource(source)) })
    }

    fn is_rereadable(&self) -> bool {
        true
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        self.input.identity()
    }

    fn columns(&self) -> Result<Option<Vec<DatasetColumn>>, Problem> {
        let query = self.query(&Arc::default())?;
        let column =
            |column: &QueryResultColumn| DatasetColumn { name: column.name.clone(), kind: ColumnKind::Mixed };
        Ok(Some(query.columns().iter().map(column).collect()))
    }

    fn sql_types(&self) -> Result<Option<Vec<String>>, Problem> {
        let query = self.query(&Arc::default())?;
        Ok(Some(query.columns().iter().map(|column| column.kind.to_string()).collect()))
    }

    fn read_notice(&self) -> Option<DiagnosticText> {
        self.input.read_notice()
    }
}

/// Results that arrive only after the input was read: its progress does not measure theirs.
struct SortedSource(ThreadRowSource);

impl RowSource for SortedSource {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        self.0.read(batch, room)
    }

    fn position(&self) -> InputReadProgress {
        InputReadProgress { total: None, ..self.0.position() }
    }
}
