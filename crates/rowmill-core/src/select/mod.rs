//! Which rows a run takes, and how they are identified.

mod digest_set;
mod id_set;
mod ids;
mod number_set;
mod record_map;
mod row_number_digest;
mod row_ranges;
mod sample;
mod selector;

pub use id_set::IdSet;
pub use ids::{IdRule, RowIdFault, duplicate_id_error, duplicate_id_problem};
pub(crate) use record_map::RecordMap;
pub use row_number_digest::RowNumberDigest;
pub use row_ranges::{ComparedRowRange, InputRowRanges, OutputRowRanges};
pub use sample::sample_indexes;
pub use selector::{RowChoice, RowSampleSettings, RowSelection, RowSelector};
