//! Which rows a run takes, and what names them.

mod ids;
mod sample;
mod selector;

pub use ids::{IdFault, IdRule, IdSet, duplicate_error, duplicate_problem};
pub use sample::sample_indexes;
pub use selector::{Choice, Sample, Selection, Selector};
