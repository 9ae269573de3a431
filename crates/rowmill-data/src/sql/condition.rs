//! `--where`: the rows that satisfy a condition, unchanged.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rowmill_core::ports::{Dataset, DatasetColumn, InputIdentity, RequestedDatasetPart, RowSource};
use rowmill_sql::{NamedTable, PreparedSqlQuery, QueryText, ScanRequest, SqlTable};
use rowmill_types::settings::{SQL, WHERE};
use rowmill_types::{DiagnosticText, Problem, ProblemCode};

use super::handoff::{RowHandoff, ThreadRowSource};
use super::query_warnings::QueryWarnings;
use super::shape::SqlColumns;
use super::table::{DatasetTable, RowTap};
use crate::{SqlSettings, WarnFn};

/// The name of the table whose rows are returned. Subqueries of the condition read `input`.
const ROWS: &str = "rowmill_rows";

/// The rows of `input` that satisfy a condition, with their text and numbers unchanged. Unreadable rows are
/// kept as bad rows, so that none is lost.
///
/// # Errors
///
/// The condition is invalid or would do more than read; or the input cannot be read.
pub fn where_dataset(
    input: Arc<dyn Dataset>,
    condition: &str,
    settings: &SqlSettings<'_>,
    notice: WarnFn,
) -> Result<Arc<dyn Dataset>, Problem> {
    let (shape, watch) = SqlColumns::find_columns(&*input, settings.types, notice)?;
    let temp = settings.temp.to_owned();
    let dataset = WhereDataset { input, condition: condition.to_owned(), temp, shape, watch };
    dataset.filter(None)?;
    Ok(Arc::new(dataset))
}

#[derive(Debug)]
struct WhereDataset {
    input: Arc<dyn Dataset>,
    condition: String,
    temp: PathBuf,
    shape: Arc<SqlColumns>,
    watch: Arc<QueryWarnings>,
}

/// A condition that is ready to be evaluated for every row.
struct ConditionFilter {
    query: PreparedSqlQuery,
    rows: Arc<DatasetTable>,
    tap: Arc<RowTap>,
}

impl WhereDataset {
    fn filter(&self, columns: Option<Vec<String>>) -> Result<ConditionFilter, Problem> {
        let handoff = Arc::new(RowHandoff::default());
        let tap = Arc::new(RowTap {
            handoff: handoff.clone(),
            matched: AtomicBool::new(false),
            opened: AtomicBool::new(false),
            columns,
        });
        let rows = Arc::new(DatasetTable {
            input: self.input.clone(),
            shape: self.shape.clone(),
            watch: self.watch.clone(),
            handoff,
            tap: Some(tap.clone()),
        });
        // A subquery reads the input separately, and its bad rows were already passed on.
        let others = DatasetTable {
            handoff: Arc::default(),
            watch: Arc::new(QueryWarnings::new(Arc::new(|_| ()))),
            tap: None,
            ..DatasetTable::clone(&rows)
        };
        let text = QueryText { text: self.condition.clone(), setting: WHERE };
        let others = vec![NamedTable { name: "input", table: Arc::new(others) }];
        let named = NamedTable { name: ROWS, table: rows.clone() };
        let query = PreparedSqlQuery::from_condition(text, named, others, &self.temp)?;
        if query.needs_table_copy(ROWS) {
            return Err(Problem::new(
                ProblemCode::InvalidQuery,
                format!("{WHERE} cannot be evaluated row by row"),
            )
            .hint(format!("write it as a query with {SQL}")));
        }
        Ok(ConditionFilter { query, rows, tap })
    }
}

impl ConditionFilter {
    fn run(&self) -> Result<(), Problem> {
        let tap = &self.tap;
        self.query.run(tap.handoff.closed(), &mut |_| {
            // The scan passes the row on when it moves past it.
            tap.matched.store(true, Ordering::Relaxed);
            if tap.handoff.is_closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if !tap.opened.load(Ordering::Relaxed) {
            // The condition is false for every row, whatever it contains; bad rows are still there.
            let mut scan = self.rows.scan(&ScanRequest::default())?;
            while scan.advance()? {}
        }
        Ok(())
    }
}

impl Dataset for WhereDataset {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        self.open_part(&RequestedDatasetPart::default())
    }

    fn open_part(&self, part: &RequestedDatasetPart) -> Result<Box<dyn RowSource>, Problem> {
        let filter = self.filter(part.columns.clone())?;
        let handoff = filter.tap.handoff.clone();
        Ok(Box::new(ThreadRowSource::start(handoff, move || filter.run())?))
    }

    fn is_rereadable(&self) -> bool {
        true
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        self.input.identity()
    }

    fn columns(&self) -> Result<Option<Vec<DatasetColumn>>, Problem> {
        self.input.columns()
    }

    fn sql_types(&self) -> Result<Option<Vec<String>>, Problem> {
        self.input.sql_types()
    }

    fn is_untyped(&self) -> bool {
        self.input.is_untyped()
    }

    fn default_id_field(&self) -> Option<&str> {
        self.input.default_id_field()
    }

    fn read_notice(&self) -> Option<DiagnosticText> {
        self.input.read_notice()
    }
}
