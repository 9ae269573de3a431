//! Fits text to the screen: widths, tables, and values with control characters escaped.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::process_environment::process_environment;

/// The width if it is unknown.
const USUAL_WIDTH: usize = 80;
/// On narrower screens, lines are too long.
const LEAST_WIDTH: usize = 40;

/// The maximum width of a line: that of the terminal, or `COLUMNS`.
pub(crate) fn screen_width() -> usize {
    let message = || process_environment().variable("COLUMNS").and_then(|columns| columns.parse().ok());
    terminal_width(&std::io::stdout()).or_else(message).unwrap_or(USUAL_WIDTH).max(LEAST_WIDTH)
}

/// The current width of the terminal on standard error.
pub(crate) fn stderr_width() -> usize {
    terminal_width(&std::io::stderr()).unwrap_or(USUAL_WIDTH)
}

fn terminal_width(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// The width of a text in columns.
pub(crate) fn display_width(text: &str) -> usize {
    text.width()
}

/// Escapes everything in a text that would move the cursor, change the colour or reverse the direction
/// of writing.
pub(crate) fn escape_control(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if is_disturbing(character) {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

/// Like [`escape_control`], for a text of several lines, which are kept.
pub(crate) fn printable_lines(text: &str) -> String {
    text.split('\n')
        .map(|line| line.split('\t').map(escape_control).collect::<Vec<_>>().join("\t"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn is_disturbing(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// The text, truncated with `…` if it is wider than `most` columns.
pub(crate) fn truncate_to_width(text: &str, most: usize) -> String {
    if display_width(text) <= most {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut taken = 1;
    for character in text.chars() {
        taken += character.width().unwrap_or(0);
        if taken > most {
            break;
        }
        out.push(character);
    }
    out.push('…');
    out
}

/// The lines of a text, none wider than `most`; of a long text only the first `lines`, with the number
/// of those left out.
pub(crate) fn wrap_to_width(text: &str, most: usize, lines: usize) -> (Vec<String>, usize) {
    let mut out: Vec<String> = Vec::new();
    let mut rest = 0;
    for line in text.lines() {
        let line = escape_control(line);
        let mut piece = String::new();
        let mut taken = 0;
        let mut pieces = Vec::new();
        for character in line.chars() {
            let columns = character.width().unwrap_or(0);
            if taken + columns > most {
                pieces.push(std::mem::take(&mut piece));
                taken = 0;
            }
            piece.push(character);
            taken += columns;
        }
        pieces.push(piece);
        let room = lines.saturating_sub(out.len());
        rest += pieces.len().saturating_sub(room);
        out.extend(pieces.into_iter().take(room));
    }
    (out, rest)
}

/// Wraps a text to lines of at most `most` columns, between words; all lines but the first start with
/// `indent` spaces. A word that is wider than a line is not broken, because it may be a path.
pub(crate) fn fold_words(text: &str, most: usize, indent: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_inclusive(' ') {
        let is_over = display_width(&line) + display_width(word.trim_end()) > most;
        if is_over && !line.trim_start().is_empty() {
            lines.push(line.trim_end().to_owned());
            line = " ".repeat(indent);
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// The alignment of a cell in its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellAlign {
    Left,
    Right,
}

/// A table. Only the last column is truncated if a line would be too wide.
#[derive(Debug)]
pub(crate) struct TextTable {
    sides: Vec<CellAlign>,
    rows: Vec<RowCells>,
}

#[derive(Debug)]
struct RowCells {
    cells: Vec<String>,
    /// How many rows count for the widths of columns.
    counted: usize,
}

impl TextTable {
    pub(crate) fn new(sides: &[CellAlign]) -> Self {
        Self { sides: sides.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(RowCells { cells: cells.into_iter().map(Into::into).collect(), counted: usize::MAX });
    }

    /// Adds a row whose second cell spans all other columns.
    pub(crate) fn spanning(&mut self, first: String, rest: String) {
        self.rows.push(RowCells { cells: vec![first, rest], counted: 1 });
    }

    /// The width of the widest line without truncation.
    pub(crate) fn width(&self) -> usize {
        self.widths().iter().sum::<usize>() + 2 * self.sides.len().saturating_sub(1)
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |at: usize| {
            let counted = self.rows.iter().filter(|row| at < row.counted);
            counted.filter_map(|row| row.cells.get(at)).map(|cell| display_width(cell)).max()
        };
        (0..self.sides.len()).map(|at| widest(at).unwrap_or(0)).collect()
    }

    /// The lines, indented by `indent` spaces and at most `most` columns wide.
    pub(crate) fn lines(&self, indent: usize, most: usize) -> Vec<String> {
        let widths = self.widths();
        let line = |row: &RowCells| {
            let mut line = " ".repeat(indent);
            for (at, cell) in row.cells.iter().enumerate() {
                let (Some(wide), Some(side)) = (widths.get(at), self.sides.get(at)) else { break };
                let takes_rest = at + 1 == self.sides.len() || at >= row.counted;
                let room = if takes_rest { most.saturating_sub(display_width(&line)) } else { *wide };
                let cell = truncate_to_width(cell, room.max(8));
                let padding = " ".repeat(wide.saturating_sub(display_width(&cell)));
                match side {
                    CellAlign::Left => line.extend([&*cell, &padding]),
                    CellAlign::Right => line.extend([&*padding, &cell]),
                }
                line.push_str("  ");
            }
            line.trim_end().to_owned()
        };
        self.rows.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_and_wrapped_by_the_columns_that_they_take() {
        for (text, most, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("e\u{301}e\u{301}e\u{301}", 3, "e\u{301}e\u{301}e\u{301}"),
            ("", 0, ""),
        ] {
            assert_eq!(truncate_to_width(text, most), expected, "{text} {most}");
        }
        let (lines, rest) = wrap_to_width("abcde\n\nx\u{1b}[1m\nmore", 3, 5);
        assert_eq!((lines, rest), (["abc", "de", "", "x\\u", "{1b"].map(String::from).to_vec(), 4));
    }

    #[test]
    fn long_lines_are_folded_between_words_and_short_ones_stay() {
        assert_eq!(fold_words("cost:   $1.25, 3 calls", 40, 8), ["cost:   $1.25, 3 calls"]);
        let folded_text = fold_words("next:   the same command goes on where it was", 24, 8);
        assert_eq!(folded_text, ["next:   the same command", "        goes on where it", "        was"]);
        assert_eq!(fold_words("output: /a/very/long/path", 12, 8), ["output:", "        /a/very/long/path"]);
    }

    #[test]
    fn what_would_disturb_the_screen_is_escaped() {
        assert_eq!(printable_lines("a\tb\n\u{1b}[31m\r"), "a\tb\n\\u{1b}[31m\\r");
        assert_eq!(escape_control("a\tb\n\u{1b}[31m\u{202e}é日"), "a\\tb\\n\\u{1b}[31m\\u{202e}é日");
    }

    #[test]
    fn only_the_last_column_of_a_table_is_cut() {
        let mut table = TextTable::new(&[CellAlign::Right, CellAlign::Left, CellAlign::Left]);
        table.row(["row", "id", "message"]);
        table.row(["7", "日本", "a rather long message"]);
        assert_eq!(table.width(), 3 + 2 + 4 + 2 + 21);
        assert_eq!(table.lines(2, 25), ["  row  id    message", "    7  日本  a rather lo…"]);
    }
}
