//! Checks that envelopes contain the input rows that a table needs.

use rowmill_core::record::EnvelopeHead;
use rowmill_types::settings::{FLATTEN, INCLUDE_INPUT, OVERWRITE};
use rowmill_types::{Problem, ProblemCode, grouped};

use super::cells::Envelope;
use super::draft::parse;
use crate::output::Envelopes;

/// Checks that every envelope that a resume keeps, for which `stays` is true, contains its input row.
///
/// # Errors
///
/// One of them does not, or the envelopes cannot be read.
pub fn check_input_rows(
    envelopes: &Envelopes,
    mut stays: impl FnMut(EnvelopeHead) -> bool,
) -> Result<(), Problem> {
    let (mut rows, mut lacking) = (0_u64, 0_u64);
    envelopes.each(|line| {
        let envelope: Envelope<'_> = parse(line)?;
        if EnvelopeHead::parse(line).is_ok_and(&mut stays) {
            rows += 1;
            lacking += u64::from(envelope.input.is_none());
        }
        Ok(())
    })?;
    if lacking == 0 {
        return Ok(());
    }
    let message = format!(
        "{} of the {} finished rows do not contain their input row, which {FLATTEN} and {INCLUDE_INPUT} \
         need; nothing was sent",
        grouped(lacking),
        grouped(rows)
    );
    Err(Problem::new(ProblemCode::RunUnusable, message).hint(format!(
        "omit {FLATTEN} and {INCLUDE_INPUT}, as when the run was started; or use {OVERWRITE} to send every \
         row again"
    )))
}
