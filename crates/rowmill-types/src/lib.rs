//! What a run is made of. Data only: no I/O, no decisions.

mod chat;
mod error_kind;
mod exit;
mod fault;
mod problem;
mod problem_code;
mod row;
mod row_scan;
mod secret;
mod usage;

pub use chat::{Completion, Finish, Message, Request, Role};
pub use error_kind::{ErrorKind, RowError};
pub use exit::ExitCode;
pub use fault::{CallError, CallFailure, Fault};
pub use problem::Problem;
pub use problem_code::ProblemCode;
pub use row::{BadRow, Field, Row, RowId, SourceRow};
pub use secret::Secret;
pub use usage::{CallTiming, Usage};
