//! Checks that envelopes contain the input rows that a table needs.

use rowmill_core::record::EnvelopeHead;
use rowmill_types::settings::{FLATTEN, INCLUDE_INPUT, OVERWRITE};
use rowmill_types::{Problem, ProblemCode, group_digits};

use super::cells::EnvelopeParts;
use super::draft::parse_envelope;
use crate::output::EnvelopeReader;

/// Checks that every envelope that a resume keeps, for which `stays` is true, contains its input row.
///
/// # Errors
///
/// One of them does not, or the envelopes cannot be read.
pub fn check_envelopes_contain_input(
    envelopes: &EnvelopeReader,
    mut stays: impl FnMut(EnvelopeHead) -> bool,
) -> Result<(), Problem> {
    let (mut rows, mut lacking) = (0_u64, 0_u64);
    envelopes.for_each(|line| {
        let envelope: EnvelopeParts<'_> = parse_envelope(line)?;
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
        group_digits(lacking),
        group_digits(rows)
    );
    Err(Problem::new(ProblemCode::RunUnusable, message).hint(format!(
        "omit {FLATTEN} and {INCLUDE_INPUT}, as when the run was started; or use {OVERWRITE} to send every \
         row again"
    )))
}
