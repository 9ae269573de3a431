//! Names of trace files.

use rowmill_core::record::{RowTrace, TracedRowId};

const BEGIN: &str = "row-";
const END: &str = ".codex.jsonl";
/// The maximum letters of an id in a name, and its maximum bytes: a name may have 255 bytes.
const MOST_LETTERS: usize = 80;
const MOST_BYTES: usize = 120;
const MOST_AGENT_BYTES: usize = 60;
/// The replacement for an id or agent without characters that a name can have.
const FALLBACK: &str = "row";

/// The name of a row's trace file.
pub(super) fn trace_file_name(row: &RowTrace<'_>, agent: &str) -> String {
    let id = match &row.id {
        TracedRowId::Number(number) => number.to_string(),
        TracedRowId::Text(text) => safe(text, MOST_BYTES),
    };
    format!("{BEGIN}{:06}__id-{id}__{}{END}", row.row_number, safe(agent, MOST_AGENT_BYTES))
}

/// Whether a file with this name may be a trace file, so that it may be removed.
pub(super) fn is_trace_file_name(name: &str) -> bool {
    name.starts_with(BEGIN) && name.ends_with(END) && !name.contains(['/', '\\', '\0'])
}

/// Keeps letters, digits, `-`, `_` and `.`; any other sequence becomes a single `_`.
fn safe(text: &str, most_bytes: usize) -> String {
    let mut out = String::with_capacity(text.len().min(most_bytes));
    for letter in text.chars() {
        let kept = letter.is_alphanumeric() || matches!(letter, '-' | '.');
        match if kept { letter } else { '_' } {
            '_' if out.ends_with('_') => {}
            letter => out.push(letter),
        }
    }
    let mut bytes = 0;
    let fits = |letter: &char| {
        bytes += letter.len_utf8();
        bytes <= most_bytes
    };
    let short: String =
        out.trim_matches(['.', '_', '-']).chars().take(MOST_LETTERS).take_while(fits).collect();
    if short.is_empty() { FALLBACK.to_owned() } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_any_kind_make_names_that_any_disk_takes() {
        for (text, expected) in [
            ("r-1", "r-1"),
            ("a/b\\c: d", "a_b_c_d"),
            ("../../etc/passwd", "etc_passwd"),
            ("***#17", "17"),
            ("größe__x", "größe_x"),
            ("", "row"),
            ("...", "row"),
        ] {
            assert_eq!(safe(text, MOST_BYTES), expected, "{text}");
        }
        assert_eq!(safe(&"x".repeat(200), MOST_BYTES).len(), 80);
        assert_eq!(safe(&"語".repeat(200), MOST_BYTES).len(), 120);
        assert!(is_trace_file_name("row-000001__id-1__worker.codex.jsonl"));
        assert!(!is_trace_file_name("row-1/../../x.codex.jsonl") && !is_trace_file_name("notes.txt"));
    }
}
