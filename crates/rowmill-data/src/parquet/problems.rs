//! Turns errors in a file into problems that the user can act on.

use std::fmt::Display;

use parquet::errors::{ParquetError, Result};
use rowmill_types::settings::{ACCEPT_CHANGES, COLUMNS, INPUT_FORMAT, RESUME};
use rowmill_types::{Problem, ProblemCode};

use crate::foreign_code::catch_foreign_panic;

/// Calls the decoder. If a damaged file makes it panic, that is returned as an ordinary error.
///
/// Anything that `decode` changes must not be used again after an error.
pub(super) fn catch_decoder_panic<T>(decode: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_foreign_panic(decode)
        .unwrap_or_else(|panic| Err(ParquetError::General(format!("the decoder gave up: {panic}"))))
}

pub(super) fn empty(name: &str) -> Problem {
    unreadable(format!("input file is empty, so it is not Parquet: `{name}`"))
        .hint("write or download the file again")
}

pub(super) fn not_parquet(name: &str) -> Problem {
    unreadable(format!("input file is not Parquet: `{name}`"))
        .hint(format!("set its format with {INPUT_FORMAT}, such as `jsonl` or `csv`"))
}

pub(super) fn cut_off(name: &str) -> Problem {
    unreadable(format!("input file is truncated, its footer is missing: `{name}`"))
        .hint("write or download the file again; a Parquet file can be read only if it is complete")
}

pub(super) fn encrypted(name: &str) -> Problem {
    unreadable(format!("input file is encrypted: `{name}`"))
        .hint("write it again without encryption, with the tool that has its keys")
}

pub(super) fn encrypted_columns(name: &str) -> Problem {
    unreadable(format!("columns of the input file are encrypted: `{name}`"))
        .hint(format!("read the others with {COLUMNS}, or write it again without encryption, with the tool that has its keys"))
}

pub(super) fn bad_footer(name: &str, cause: impl Display) -> Problem {
    unreadable(format!("the footer of the input file cannot be read: `{name}`"))
        .cause(cause)
        .hint("write or download the file again; its end is damaged or has an unknown format")
}

/// The problem that reading failed at `row`.
pub(super) fn stopped(name: &str, row: u64, cause: impl Display) -> Problem {
    unreadable(format!("cannot read the input file beyond row {row}: `{name}`")).cause(cause).hint(format!(
        "the file is damaged: write or download it again, then continue with {resume_changed}",
        resume_changed = RESUME.and(ACCEPT_CHANGES)
    ))
}

pub(super) fn changed(name: &str) -> Problem {
    unreadable(format!("input file changed while it was being read: `{name}`"))
        .hint("wait until it is complete, then run again")
}

fn unreadable(message: String) -> Problem {
    Problem::new(ProblemCode::InputUnreadable, message)
}
