//! The dataset of Parquet files.

use std::collections::HashSet;
use std::sync::Arc;

use rowmill_core::ports::{Dataset, DatasetColumn, InputIdentity, RequestedDatasetPart, RowSource};
use rowmill_types::Problem;

use super::conditions::ColumnTest;
use super::source::ParquetRowSource;
use super::table::ParquetTable;
use crate::FileList;
use crate::text_dataset::content_identity;

/// Builds the dataset of Parquet files. Their footers are read now, so that problems with them are reported
/// before anything else is done.
pub(crate) fn parquet_dataset(list: FileList) -> Result<Arc<dyn Dataset>, Problem> {
    let table = Arc::new(ParquetTable::new(&list)?);
    Ok(Arc::new(ParquetDataset { list, table }))
}

#[derive(Debug)]
struct ParquetDataset {
    list: FileList,
    table: Arc<ParquetTable>,
}

impl Dataset for ParquetDataset {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        self.open_part(&RequestedDatasetPart::default())
    }

    fn is_rereadable(&self) -> bool {
        true
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        content_identity(&self.list)
    }

    fn open_part(&self, part: &RequestedDatasetPart) -> Result<Box<dyn RowSource>, Problem> {
        let all = 0..self.table.columns.len();
        let columns: Vec<usize> = match &part.columns {
            None => all.collect(),
            Some(names) => {
                let wanted = names.iter().map(|name| self.table.column(name));
                let wanted: HashSet<usize> = wanted.collect::<Result<_, _>>()?;
                all.filter(|column| wanted.contains(column)).collect()
            }
        };
        let mut tests = Vec::with_capacity(part.conditions.len());
        for condition in &part.conditions {
            self.table.column(&condition.column)?;
            let test = ColumnTest { comparison: condition.comparison, value: condition.value.clone() };
            tests.push((condition.column.clone(), test));
        }
        Ok(Box::new(ParquetRowSource::new(Arc::clone(&self.table), &columns, tests)))
    }

    fn count(&self) -> Result<Option<u64>, Problem> {
        Ok(Some(self.table.rows()))
    }

    fn columns(&self) -> Result<Option<Vec<DatasetColumn>>, Problem> {
        let described = |column: &super::table::TableColumn| DatasetColumn {
            name: column.name.clone(),
            kind: column.shape.kind(),
        };
        Ok(Some(self.table.columns.iter().map(described).collect()))
    }

    fn sql_types(&self) -> Result<Option<Vec<String>>, Problem> {
        Ok(Some(self.table.columns.iter().map(|column| column.sql_type.clone()).collect()))
    }
}
