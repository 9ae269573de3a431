//! Inputs for queries, and their results.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rowmill_core::ports::{Dataset, ReadLimit, RowSource};
use rowmill_data::{ColumnTypeSetting, InputLocation, InputSpec, SqlSettings, WarnFn, open_dataset};
use rowmill_types::{Problem, RowReadResult};

/// A folder with one input file, and the notices about it.
pub(crate) struct Input {
    folder: tempfile::TempDir,
    path: PathBuf,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Input {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        Self::of_bytes(name, text.as_bytes())
    }

    pub(crate) fn of_bytes(name: &str, bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        Self { folder, path, heard: Arc::default() }
    }

    pub(crate) fn dataset(&self) -> Arc<dyn Dataset> {
        open_dataset(&InputSpec::new(InputLocation::File(self.path.clone()), None)).unwrap()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn temp(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn notice(&self) -> WarnFn {
        let heard = self.heard.clone();
        Arc::new(move |text| heard.lock().unwrap().push(text.to_string()))
    }

    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    pub(crate) fn sql(&self, sql: &str) -> Result<Arc<dyn Dataset>, Problem> {
        self.typed_sql(sql, &[])
    }

    /// A query over columns with declared types.
    pub(crate) fn typed_sql(&self, sql: &str, types: &[(&str, &str)]) -> Result<Arc<dyn Dataset>, Problem> {
        let typed = |(column, type_name): &(&str, &str)| ColumnTypeSetting {
            column: (*column).to_owned(),
            type_name: (*type_name).to_owned(),
        };
        let types: Vec<_> = types.iter().map(typed).collect();
        rowmill_data::sql_dataset(self.dataset(), sql, &self.settings(&types), self.notice())
    }

    pub(crate) fn settings<'s>(&'s self, types: &'s [ColumnTypeSetting]) -> SqlSettings<'s> {
        SqlSettings { temp: self.temp(), types }
    }

    pub(crate) fn filtered(&self, condition: &str) -> Result<Arc<dyn Dataset>, Problem> {
        rowmill_data::where_dataset(self.dataset(), condition, &self.settings(&[]), self.notice())
    }

    /// The text of the rows that a query returns.
    pub(crate) fn rows(&self, sql: &str) -> Vec<String> {
        texts(&*self.sql(sql).unwrap())
    }
}

pub(crate) fn read_all(source: &mut dyn RowSource) -> Result<Vec<RowReadResult>, Problem> {
    let mut rows = Vec::new();
    while source.read(&mut rows, ReadLimit { rows: 7, bytes: 10_000 })? {}
    Ok(rows)
}

/// Every row as text; a bad row as its message.
pub(crate) fn texts(dataset: &dyn Dataset) -> Vec<String> {
    let rows = read_all(&mut *dataset.open().unwrap()).unwrap();
    rows.into_iter().map(|row| row.map_or_else(|bad| bad.message, |row| row.json_text().to_owned())).collect()
}

/// The number of every row, bad ones included.
pub(crate) fn numbers(dataset: &dyn Dataset) -> Vec<u64> {
    let rows = read_all(&mut *dataset.open().unwrap()).unwrap();
    rows.iter().map(|row| row.as_ref().map_or_else(|bad| bad.number, rowmill_types::Row::number)).collect()
}
