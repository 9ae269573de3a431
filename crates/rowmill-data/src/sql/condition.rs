//! `--where`: the rows that satisfy a condition, unchanged.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rowmill_core::ports::{Column, Dataset, InputIdentity, Part, RowSource};
use rowmill_sql::{NamedTable, Query, QueryText, Table, Wanted};
use rowmill_types::settings::{SQL, WHERE};
use rowmill_types::{Problem, ProblemCode, Words};

use super::handoff::{Handoff, WorkedSource};
use super::query::SqlSettings;
use super::shape::Shape;
use super::table::{DatasetTable, Tap};
use super::watch::{Notice, Watch};

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
    notice: Notice,
) -> Result<Arc<dyn Dataset>, Problem> {
    let (shape, watch) = Shape::watched(&*input, settings.types, notice)?;
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
    shape: Arc<Shape>,
    watch: Arc<Watch>,
}

/// A condition that is ready to be evaluated for every row.
struct Filter {
    query: Query,
    rows: Arc<DatasetTable>,
    tap: Arc<Tap>,
}

impl WhereDataset {
    fn filter(&self, columns: Option<Vec<String>>) -> Result<Filter, Problem> {
        let handoff = Arc::new(Handoff::default());
        let tap = Arc::new(Tap {
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
            watch: Arc::new(Watch::new(Arc::new(|_| ()))),
            tap: None,
            ..DatasetTable::clone(&rows)
        };
        let text = QueryText { text: self.condition.clone(), setting: WHERE };
        let others = vec![NamedTable { name: "input", table: Arc::new(others) }];
        let named = NamedTable { name: ROWS, table: rows.clone() };
        let query = Query::condition(text, named, others, &self.temp)?;
        if query.copies(ROWS) {
            return Err(Problem::new(
                ProblemCode::InvalidQuery,
                format!("{WHERE} cannot be evaluated row by row"),
            )
            .hint(format!("write it as a query with {SQL}")));
        }
        Ok(Filter { query, rows, tap })
    }
}

impl Filter {
    fn run(&self) -> Result<(), Problem> {
        let tap = &self.tap;
        self.query.run(tap.handoff.closed(), &mut |_| {
            // The scan passes the row on when it moves past it.
            tap.matched.store(true, Ordering::Relaxed);
            if tap.handoff.is_closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if !tap.opened.load(Ordering::Relaxed) {
            // The condition is false for every row, whatever it contains; bad rows are still there.
            let mut scan = self.rows.scan(&Wanted::default())?;
            while scan.advance()? {}
        }
        Ok(())
    }
}

impl Dataset for WhereDataset {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        self.open_part(&Part::default())
    }

    fn open_part(&self, part: &Part) -> Result<Box<dyn RowSource>, Problem> {
        let filter = self.filter(part.columns.clone())?;
        let handoff = filter.tap.handoff.clone();
        Ok(Box::new(WorkedSource::start(handoff, move || filter.run())?))
    }

    fn rereadable(&self) -> bool {
        true
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        self.input.identity()
    }

    fn columns(&self) -> Result<Option<Vec<Column>>, Problem> {
        self.input.columns()
    }

    fn sql_types(&self) -> Result<Option<Vec<String>>, Problem> {
        self.input.sql_types()
    }

    fn untyped(&self) -> bool {
        self.input.untyped()
    }

    fn own_id(&self) -> Option<&str> {
        self.input.own_id()
    }

    fn notice(&self) -> Option<Words> {
        self.input.notice()
    }
}
