//! The last lines of a terminal, redrawn repeatedly.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::printer;
use crate::text_layout::{display_width, stderr_width, truncate_to_width};

/// The spinner at the start of the first line, which shows that the program is alive.
const SPINNER: [&str; 8] = ["⠁", "⠂", "⠄", "⡀", "⢀", "⠠", "⠐", "⠈"];
/// Columns that are not available for text: those of the spinner, and the last one, because some
/// terminals wrap the line there.
const BESIDE_TEXT: usize = 3;

/// Lines at the end of the terminal on standard error; without a terminal, nothing is drawn. Clones
/// draw the same lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveLines {
    drawn: Option<Arc<Mutex<DrawnLines>>>,
}

/// The current content of the screen.
#[derive(Debug, Default)]
struct DrawnLines {
    lines: Vec<String>,
    frames: usize,
}

impl LiveLines {
    /// Lines that are drawn.
    pub(crate) fn on_terminal() -> Self {
        Self { drawn: Some(Arc::default()) }
    }

    /// The current number of columns for a line of text.
    pub(crate) fn columns() -> usize {
        stderr_width().saturating_sub(BESIDE_TEXT).max(1)
    }

    /// Draws these lines in place of the previous ones.
    pub(crate) fn draw(&self, texts: &[String]) {
        self.change(None, |drawn| {
            let spinner = SPINNER.get(drawn.frames % SPINNER.len()).copied().unwrap_or_default();
            drawn.frames += 1;
            let marks = std::iter::once(spinner).chain(std::iter::repeat(" "));
            drawn.lines = texts.iter().zip(marks).map(|(text, mark)| format!("{mark} {text}")).collect();
        });
    }

    /// Prints a text above the lines, with the secrets of the environment masked.
    pub(crate) fn print_above(&self, text: &str) {
        self.print_above_unredacted(&printer::shown(text));
    }

    /// Prints a text above the lines, without masking.
    pub(crate) fn print_above_unredacted(&self, text: &str) {
        match &self.drawn {
            Some(_) => self.change(Some(text), |_| {}),
            None => printer::talk_as_it_is(text),
        }
    }

    /// Removes the lines.
    pub(crate) fn clear(&self) {
        self.change(None, |drawn| drawn.lines.clear());
    }

    /// Changes the lines, and prints a text above them if there is one.
    fn change(&self, above: Option<&str>, change: impl FnOnce(&mut DrawnLines)) {
        let Some(drawn) = &self.drawn else { return };
        let mut drawn = drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let columns = stderr_width();
        let mut written = erase(&drawn.lines, columns);
        change(&mut drawn);
        // The lines were fitted to a screen that may have become narrower since.
        drawn.lines = fitted(&drawn.lines, columns);
        if let Some(text) = above {
            written.push_str(text);
            written.push('\n');
        }
        written.push_str(&drawn.lines.join("\n"));
        let mut stderr = io::stderr().lock();
        // If the screen is gone, progress is not needed.
        drop(stderr.write_all(written.as_bytes()).and_then(|()| stderr.flush()));
    }
}

/// The lines, truncated so that a screen of this width does not wrap them.
fn fitted(lines: &[String], columns: usize) -> Vec<String> {
    lines.iter().map(|line| truncate_to_width(line, columns.saturating_sub(1).max(1))).collect()
}

/// The control sequence that erases lines, starting with the cursor at the end of the last one. A
/// screen that has become narrower since has wrapped them.
fn erase(lines: &[String], columns: usize) -> String {
    let rows: usize = lines.iter().map(|line| display_width(line).div_ceil(columns.max(1)).max(1)).sum();
    match rows {
        0 => String::new(),
        1 => "\r\u{1b}[J".to_owned(),
        rows => format!("\r\u{1b}[{}A\u{1b}[J", rows - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_to_the_screen_of_now() {
        let lines = ["⠁ 12% 5 rows".to_owned(), "  3".to_owned()];
        assert_eq!(fitted(&lines, 80), lines);
        assert_eq!(fitted(&lines, 8), ["⠁ 12% …", "  3"]);
    }

    #[test]
    fn as_many_rows_are_erased_as_the_lines_take_on_the_screen_of_now() {
        let lines = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        for (texts, columns, expected) in [
            (&[][..], 80, ""),
            (&["⠁ 12% 5 rows"], 80, "\r\u{1b}[J"),
            (&["⠁ 12% 5 rows", "  3 failed"], 80, "\r\u{1b}[1A\u{1b}[J"),
            (&["⠁ 12% 5 rows", "  3 failed"], 8, "\r\u{1b}[3A\u{1b}[J"),
        ] {
            assert_eq!(erase(&lines(texts), columns), expected, "{texts:?} {columns}");
        }
    }
}
