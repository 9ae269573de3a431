//! What a run is made of. Data only: no I/O, no decisions.

mod attachment;
mod chat;
mod comparison;
mod error_kind;
mod exit;
mod fault;
mod grouped;
mod money;
mod open_files;
mod problem;
mod problem_code;
mod rate;
mod row;
mod row_columns;
mod row_scan;
mod secret;
mod tool;
mod usage;

pub use attachment::{Attachment, AttachmentKind, AttachmentRules};
pub use chat::{AnswerVerdict, Completion, Finish, Message, Request, Role};
pub use comparison::{Comparison, Scalar};
pub use error_kind::{ErrorKind, RowError};
pub use exit::ExitCode;
pub use fault::{CallError, CallFailure, Fault};
pub use grouped::grouped;
pub use money::Money;
pub use open_files::open_files_used_up;
pub use problem::Problem;
pub use problem_code::ProblemCode;
pub use rate::{RateLimits, RateWindow};
pub use row::{BadRow, Field, Row, RowId, SourceRow};
pub use row_columns::{RowColumns, RowTextWriter};
pub use secret::Secret;
pub use tool::{Answered, Citation, Echo, Hosted, ToolCall, ToolOutput, ToolSpec};
pub use usage::{CallTiming, Usage};
