//! The state of a run on a narrow screen: at most two lines, the important parts first.

use std::collections::BTreeMap;

use crate::text_layout::{display_width, truncate_to_width};

/// The maximum number of lines of progress.
const LINES: usize = 2;
/// The separator between two parts.
const BETWEEN: &str = ", ";

/// The importance of a part of the progress, most important first. If there is no room for all parts,
/// the least important is left out first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PartImportance {
    Rows,
    Failed,
    Stopping,
    Waiting,
    TimeLeft,
    Rate,
    Cost,
    InFlight,
    Retries,
    Skipped,
    Tokens,
}

/// One part of the progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProgressPart {
    pub(crate) importance: PartImportance,
    pub(crate) text: String,
}

/// All parts in one line, however long.
pub(crate) fn join_parts(parts: &[ProgressPart]) -> String {
    let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
    texts.join(BETWEEN)
}

/// The parts that fit into two lines of `columns` each, in their order. The most important parts are
/// placed first, and a part that is wider than a line is truncated.
pub(crate) fn fit_parts(parts: &[ProgressPart], columns: usize) -> Vec<String> {
    let mut by_importance: Vec<(usize, &ProgressPart)> = parts.iter().enumerate().collect();
    by_importance.sort_by_key(|(_, part)| part.importance);
    let mut shown: BTreeMap<usize, String> = BTreeMap::new();
    for (place, part) in by_importance {
        shown.insert(place, truncate_to_width(&part.text, columns));
        if filled_lines(&shown, columns).len() > LINES {
            shown.remove(&place);
        }
    }
    filled_lines(&shown, columns)
}

/// The parts in as many lines as they need.
fn filled_lines(parts: &BTreeMap<usize, String>, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for text in parts.values() {
        match lines.last_mut() {
            Some(line) if display_width(line) + BETWEEN.len() + display_width(text) <= columns => {
                line.push_str(BETWEEN);
                line.push_str(text);
            }
            _ => lines.push(text.clone()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy() -> Vec<ProgressPart> {
        let part = |importance, text: &str| ProgressPart { importance, text: text.to_owned() };
        vec![
            part(PartImportance::Rows, "12% 1,234,567 rows"),
            part(PartImportance::Rate, "83.1 rows/s"),
            part(PartImportance::Failed, "3 failed"),
            part(PartImportance::Skipped, "20 skipped"),
            part(PartImportance::Retries, "7 retries"),
            part(PartImportance::Tokens, "12,345,678 tokens"),
            part(PartImportance::InFlight, "64 in flight"),
            part(PartImportance::Cost, "$1.25"),
            part(
                PartImportance::Waiting,
                "waiting for 日本の割り当て (a-provider.a-model-with-a-very-long-name-20261117)",
            ),
            part(PartImportance::TimeLeft, "about 3m 05s left"),
        ]
    }

    #[test]
    fn what_fits_is_shown_by_importance_at_any_width() {
        for (columns, expected) in [
            (20, vec!["12% 1,234,567 rows", "3 failed, $1.25"]),
            (40, vec!["12% 1,234,567 rows, 3 failed, $1.25", "waiting for 日本の割り当て (a-provider.…"]),
            (
                77,
                vec![
                    "12% 1,234,567 rows, 83.1 rows/s, 3 failed, 7 retries, 64 in flight, $1.25",
                    "waiting for 日本の割り当て (a-provider.a-model-with-a-very-long-name-2026111…",
                ],
            ),
        ] {
            assert_eq!(fit_parts(&busy(), columns), expected, "{columns}");
        }
        assert_eq!(fit_parts(&busy(), 400), [join_parts(&busy())]);
    }

    #[test]
    fn no_line_is_wider_than_the_screen_and_there_are_never_three() {
        for columns in 1..=300 {
            let lines = fit_parts(&busy(), columns);
            assert!((1..=LINES).contains(&lines.len()), "{columns}: {lines:?}");
            for line in &lines {
                assert!(display_width(line) <= columns, "{columns}: {line}");
            }
        }
    }
}
