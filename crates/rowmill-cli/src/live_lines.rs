//! The last lines of a terminal, drawn over and over.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::layout::{cut, stderr_width, width};
use crate::printer;

/// What turns round at the beginning of the first line, to show that the program lives.
const SPINNER: [&str; 8] = ["⠁", "⠂", "⠄", "⡀", "⢀", "⠠", "⠐", "⠈"];
/// Columns that the text cannot have: those of the spinner, and the last one, where some terminals
/// begin a new line.
const BESIDE_TEXT: usize = 3;

/// Lines at the end of the terminal on standard error; where there is none, nothing is drawn. Clones
/// draw the same lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveLines {
    drawn: Option<Arc<Mutex<Drawn>>>,
}

/// What is on the screen.
#[derive(Debug, Default)]
struct Drawn {
    lines: Vec<String>,
    frames: usize,
}

impl LiveLines {
    /// Lines that are drawn.
    pub(crate) fn on_terminal() -> Self {
        Self { drawn: Some(Arc::default()) }
    }

    /// How many columns a line of text can have now.
    pub(crate) fn columns() -> usize {
        stderr_width().saturating_sub(BESIDE_TEXT).max(1)
    }

    /// Draws these lines in the place of those before.
    pub(crate) fn draw(&self, texts: &[String]) {
        self.change(None, |drawn| {
            let spinner = SPINNER.get(drawn.frames % SPINNER.len()).copied().unwrap_or_default();
            drawn.frames += 1;
            let marks = std::iter::once(spinner).chain(std::iter::repeat(" "));
            drawn.lines = texts.iter().zip(marks).map(|(text, mark)| format!("{mark} {text}")).collect();
        });
    }

    /// Prints a text above the lines, without the secrets of the environment.
    pub(crate) fn talk(&self, text: &str) {
        self.talk_as_it_is(&printer::shown(text));
    }

    /// Prints a text above the lines, whatever is in it.
    pub(crate) fn talk_as_it_is(&self, text: &str) {
        match &self.drawn {
            Some(_) => self.change(Some(text), |_| {}),
            None => printer::talk_as_it_is(text),
        }
    }

    /// Takes the lines away.
    pub(crate) fn clear(&self) {
        self.change(None, |drawn| drawn.lines.clear());
    }

    /// Changes the lines, with a text above them if there is one.
    fn change(&self, above: Option<&str>, change: impl FnOnce(&mut Drawn)) {
        let Some(drawn) = &self.drawn else { return };
        let mut drawn = drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let columns = stderr_width();
        let mut written = erase(&drawn.lines, columns);
        change(&mut drawn);
        // They were fitted to a screen that may have become narrower since.
        drawn.lines = fitted(&drawn.lines, columns);
        if let Some(text) = above {
            written.push_str(text);
            written.push('\n');
        }
        written.push_str(&drawn.lines.join("\n"));
        let mut stderr = io::stderr().lock();
        // A screen that is gone needs no progress.
        drop(stderr.write_all(written.as_bytes()).and_then(|()| stderr.flush()));
    }
}

/// The lines, none of them so wide that a screen of so many columns would break it.
fn fitted(lines: &[String], columns: usize) -> Vec<String> {
    lines.iter().map(|line| cut(line, columns.saturating_sub(1).max(1))).collect()
}

/// What takes lines off a screen, with the cursor at the end of the last one. A screen that has
/// become narrower since has broken them.
fn erase(lines: &[String], columns: usize) -> String {
    let rows: usize = lines.iter().map(|line| width(line).div_ceil(columns.max(1)).max(1)).sum();
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
