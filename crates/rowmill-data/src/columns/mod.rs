//! The columns of an input: those that are named, those that it has, and a dataset of some of them.

mod checks;
mod field_name;
mod projection;
mod sample;

pub use checks::{
    WantedColumn, check_columns, column_checking_dataset, column_list_text, find_empty_columns,
};
pub use projection::select_columns;
#[cfg(feature = "sql")]
pub(crate) use sample::{SAMPLE_ROWS, sample_rows};
