//! Which rows a run takes, and how they are identified.

mod digest_set;
mod id_set;
mod ids;
mod number_set;
mod record_map;
mod row_places;
mod sample;
mod selector;
mod stretches;

pub use id_set::IdSet;
pub use ids::{IdFault, IdRule, duplicate_error, duplicate_problem};
pub(crate) use record_map::RecordMap;
pub use row_places::RowPlaces;
pub use sample::sample_indexes;
pub use selector::{Choice, Sample, Selection, Selector};
pub use stretches::{InputStretches, OutputStretches, RowStretch};
