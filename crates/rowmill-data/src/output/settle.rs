//! Settling an output after a resume: one envelope per row, in input order.
//!
//! A resume appends while it runs. So the file consists of a few stretches that are each in order; settling
//! merges them and leaves out envelopes that a later one replaced.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use rowmill_core::record::EnvelopeHead;
use rowmill_core::select::IdSet;
use rowmill_types::{Problem, RowId};

use super::claim::{create_replacement, install_replacement, names_open_file, write_problem};
use super::lines::{HeadFn, OutputLine, OutputLines};
use super::link_target;

/// A merge reads each stretch with a buffer of this size.
const STRETCH_BUFFER: usize = 32 * 1024;

/// The layout of the file, found in a first pass.
#[derive(Debug)]
pub(super) struct OutputLayout {
    /// How its lines are parsed.
    pub(super) head_of: HeadFn,
    /// Byte ranges within which row numbers only increase.
    pub(super) stretches: Vec<Range<u64>>,
    /// Whether there are blank lines.
    pub(super) gaps: bool,
    /// For ids that occur more than once, the offset of the last envelope.
    pub(super) last: HashMap<RowId, u64>,
}

impl Default for OutputLayout {
    fn default() -> Self {
        Self { head_of: EnvelopeHead::parse, stretches: Vec::new(), gaps: false, last: HashMap::new() }
    }
}

/// Rewrites the output if it is not settled; `true` if it had to.
///
/// The new file is complete on disk before it replaces the old one.
///
/// # Errors
///
/// The output cannot be read or written; the old file is then unchanged.
pub fn settle_output(path: &Path) -> Result<bool, Problem> {
    settle_lines(path, EnvelopeHead::parse)
}

/// The same for a run whose rows are identified by their numbers, whatever ids its envelopes have.
///
/// # Errors
///
/// The output cannot be read or written; the old file is then unchanged.
pub fn settle_by_number(path: &Path) -> Result<bool, Problem> {
    settle_lines(path, head_by_number)
}

/// Reads the head of an envelope whose row is identified by its number.
pub(super) fn head_by_number(envelope: &[u8]) -> Result<EnvelopeHead, serde_json::Error> {
    EnvelopeHead::parse(envelope).map(EnvelopeHead::with_number_as_id)
}

/// The same for a file with one line per row that is not an envelope.
pub(crate) fn settle_lines(path: &Path, head_of: HeadFn) -> Result<bool, Problem> {
    let (layout, _) = scan_layout(path, head_of)?;
    if layout.stretches.len() <= 1 && layout.last.is_empty() && !layout.gaps {
        return Ok(false);
    }
    let path = &link_target(path);
    let (beside, file) = create_replacement(path)?;
    let mut out = BufWriter::with_capacity(1 << 18, file);
    merge(path, &layout, &mut out)?;
    finish_replacement(out, &beside, path)?;
    Ok(true)
}

/// Writes the failed envelopes of a settled output to `errors`, replacing its content. A device or a pipe is
/// left alone: what was written there cannot be taken back.
///
/// # Errors
///
/// A file cannot be read or written.
pub fn rewrite_error_file(output: &Path, errors: &Path) -> Result<(), Problem> {
    if names_open_file(errors) || errors.metadata().is_ok_and(|found| !found.is_file()) {
        return Ok(());
    }
    let errors = &link_target(errors);
    let (beside, file) = create_replacement(errors)?;
    let mut out = BufWriter::with_capacity(1 << 16, file);
    let mut lines = OutputLines::open(output, 0..u64::MAX, 1 << 18)?;
    while let OutputLine::Envelope(head) = lines.next()? {
        if !head.ok {
            out.write_all(&lines.bytes).map_err(|error| write_problem(&beside, &error))?;
        }
    }
    finish_replacement(out, &beside, errors)
}

pub(super) fn finish_replacement(out: BufWriter<File>, beside: &Path, path: &Path) -> Result<(), Problem> {
    let file = out.into_inner().map_err(|error| write_problem(beside, error.error()))?;
    install_replacement(beside, file, path)
}

/// Determines the layout of the file, and which ids it has.
pub(super) fn scan_layout(path: &Path, head_of: HeadFn) -> Result<(OutputLayout, IdSet), Problem> {
    let mut layout = OutputLayout { head_of, ..OutputLayout::default() };
    let mut seen = IdSet::default();
    let mut repeated = IdSet::default();
    let (mut stand_ins, mut named) = (HashSet::new(), Vec::new());
    let (mut previous, mut previous_end) = (0, 0);
    each(path, head_of, |lines, head| {
        let end = lines.offset + lines.bytes.len() as u64;
        layout.gaps |= lines.offset != previous_end;
        previous_end = end;
        match layout.stretches.last_mut() {
            Some(stretch) if head.number > previous => stretch.end = end,
            _ => layout.stretches.push(lines.offset..end),
        }
        previous = head.number;
        if head.number_stands_in {
            stand_ins.insert(head.number);
        } else if head.id != RowId::Number(head.number) && stand_ins.contains(&head.number) {
            // The row became readable later, and has an id of its own.
            named.push((RowId::Number(head.number), lines.offset));
        }
        if !seen.insert(&head.id) {
            repeated.insert(&head.id);
        }
    })?;
    if !repeated.is_empty() {
        each(path, head_of, |lines, head| {
            if repeated.contains(&head.id) {
                layout.last.insert(head.id, lines.offset);
            }
        })?;
    }
    layout.last.extend(named);
    Ok((layout, seen))
}

fn each(
    path: &Path,
    head_of: HeadFn,
    mut saw: impl FnMut(&OutputLines, EnvelopeHead),
) -> Result<(), Problem> {
    let mut lines = OutputLines::open(path, 0..u64::MAX, 1 << 18)?.with_head(head_of);
    while let OutputLine::Envelope(head) = lines.next()? {
        saw(&lines, head);
    }
    Ok(())
}

fn merge(path: &Path, layout: &OutputLayout, out: &mut impl Write) -> Result<(), Problem> {
    let mut fronts = open_stretches(path, layout)?;
    while let Some(front) = next_stretch(&mut fronts) {
        out.write_all(&front.lines.bytes).map_err(|error| write_problem(path, &error))?;
        front.advance(&layout.last)?;
    }
    Ok(())
}

/// Passes every line that settling would leave out to `saw`.
pub(crate) fn for_each_replaced(path: &Path, mut saw: impl FnMut(&[u8])) -> Result<(), Problem> {
    let (layout, _) = scan_layout(path, EnvelopeHead::parse)?;
    if layout.last.is_empty() {
        return Ok(());
    }
    each(path, layout.head_of, |lines, head| {
        if layout.last.get(&head.id).is_some_and(|&offset| offset != lines.offset) {
            saw(&lines.bytes);
        }
    })
}

/// Opens every stretch at its first line.
pub(super) fn open_stretches(path: &Path, layout: &OutputLayout) -> Result<Vec<StretchReader>, Problem> {
    let mut fronts = Vec::new();
    for range in &layout.stretches {
        let lines = OutputLines::open(path, range.clone(), STRETCH_BUFFER)?.with_head(layout.head_of);
        let mut front = StretchReader { lines, number: None };
        front.advance(&layout.last)?;
        fronts.push(front);
    }
    Ok(fronts)
}

/// The front with the next line in order.
pub(super) fn next_stretch(fronts: &mut [StretchReader]) -> Option<&mut StretchReader> {
    // There are only a few stretches: checking each front beats a heap.
    fronts.iter_mut().filter(|front| front.number.is_some()).min_by_key(|front| front.number)
}

/// A stretch that is being read.
pub(super) struct StretchReader {
    pub(super) lines: OutputLines,
    /// The row number of the pending line; `None` at the end.
    pub(super) number: Option<u64>,
}

impl StretchReader {
    /// Moves to the next line that no later one replaces.
    pub(super) fn advance(&mut self, last: &HashMap<RowId, u64>) -> Result<(), Problem> {
        self.number = None;
        while let OutputLine::Envelope(head) = self.lines.next()? {
            if last.get(&head.id).is_none_or(|&offset| offset == self.lines.offset) {
                self.number = Some(head.number);
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn line(id: &str, number: u64, ok: bool) -> String {
        format!("{{\"id\":\"{id}\",\"row_number\":{number},\"ok\":{ok},\"result\":null,\"error\":null}}\n")
    }

    fn settled(lines: &[String]) -> (bool, String) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("out.jsonl");
        fs::write(&path, lines.concat()).unwrap();
        let changed = settle_output(&path).unwrap();
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "no litter");
        (changed, fs::read_to_string(&path).unwrap())
    }

    #[test]
    fn an_output_in_order_is_left_alone() {
        let lines = [line("a", 1, true), line("b", 2, false), line("c", 9, true)];
        assert_eq!(settled(&lines), (false, lines.concat()));
    }

    #[test]
    fn later_envelopes_replace_earlier_ones_and_order_is_restored() {
        let lines = [
            line("a", 1, true),
            line("b", 2, false),
            line("d", 4, false),
            line("b", 2, true),
            line("c", 3, true),
            line("d", 4, false),
            line("e", 5, true),
            line("d", 4, true),
        ];
        let expected = [
            line("a", 1, true),
            line("b", 2, true),
            line("c", 3, true),
            line("d", 4, true),
            line("e", 5, true),
        ];
        assert_eq!(settled(&lines), (true, expected.concat()));
    }

    #[test]
    fn rows_that_are_known_by_their_numbers_have_one_envelope_whatever_ids_it_had() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("out.jsonl");
        let numbered = |number: u64, ok| line("n", number, ok).replace("\"n\"", &number.to_string());
        let lines = [line("a", 1, true), line("b", 2, false), numbered(2, true), numbered(3, true)];
        fs::write(&path, lines.concat()).unwrap();
        assert!(settle_by_number(&path).unwrap());
        let expected = [line("a", 1, true), numbered(2, true), numbered(3, true)].concat();
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }

    #[test]
    fn blank_lines_are_removed() {
        let (a, b) = (line("a", 1, true), line("b", 2, true));
        assert_eq!(settled(&["\n".into(), a.clone(), b.clone()]), (true, [a.as_str(), &b].concat()));
        assert_eq!(settled(&[a.clone(), " \n\n".into(), b.clone()]), (true, [a, b].concat()));
    }

    #[test]
    fn the_errors_file_holds_the_failures_that_are_left() {
        let home = tempfile::tempdir().unwrap();
        let (output, errors) = (home.path().join("out"), home.path().join("errors"));
        fs::write(&output, [line("a", 1, true), line("b", 2, false)].concat()).unwrap();
        fs::write(&errors, "stale\n").unwrap();
        rewrite_error_file(&output, &errors).unwrap();
        assert_eq!(fs::read_to_string(&errors).unwrap(), line("b", 2, false));
    }
}
