//! Formats the measurements as text for the terminal and for `docs/benchmarks.md`.

use crate::printer;

/// One thing that was measured.
#[derive(Debug, Default)]
pub(super) struct ReportSection {
    pub(super) title: &'static str,
    /// What is measured and how.
    pub(super) about: &'static str,
    /// The commands that were run.
    pub(super) commands: Vec<String>,
    /// Numbers for comparison.
    pub(super) table: Option<ReportTable>,
    /// Numbers, one line each.
    pub(super) numbers: Vec<String>,
    pub(super) verdicts: Vec<TargetVerdict>,
}

/// Numbers in rows and columns.
#[derive(Debug, Default)]
pub(super) struct ReportTable {
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// A target and whether it was reached.
#[derive(Debug)]
pub(super) struct TargetVerdict {
    pub(super) target: &'static str,
    pub(super) measured: String,
    pub(super) reached: bool,
}

impl TargetVerdict {
    pub(super) fn word(&self) -> &'static str {
        if self.reached { "PASS" } else { "FAIL" }
    }
}

/// The part of the document that a suite writes.
pub(super) fn suite_text(head: &str, facts: &[(&'static str, String)], sections: &[ReportSection]) -> String {
    let mut out = format!("{head}\n\n| | |\n|---|---|\n");
    for (name, value) in facts {
        out.push_str(&format!("| {name} | {value} |\n"));
    }
    out.push_str("\n### Targets\n\n| target | measured | |\n|---|---|---|\n");
    for verdict in sections.iter().flat_map(|section| &section.verdicts) {
        out.push_str(&format!("| {} | {} | {} |\n", verdict.target, verdict.measured, verdict.word()));
    }
    for section in sections {
        out.push_str(&format!("\n### {}\n\n{}\n\n```sh\n", section.title, section.about));
        for command in &section.commands {
            out.push_str(&format!("{command}\n"));
        }
        out.push_str("```\n\n");
        if let Some(table) = &section.table {
            out.push_str(&grid(table));
        }
        if section.table.is_some() && !section.numbers.is_empty() {
            out.push('\n');
        }
        for line in &section.numbers {
            out.push_str(&format!("- {line}\n"));
        }
    }
    out
}

fn grid(table: &ReportTable) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(table.head.len()));
    let rows: String = table.rows.iter().map(|row| line(row)).collect();
    format!("{}{rule}{rows}", line(&table.head))
}

/// Prints what was measured.
pub(super) fn print(section: &ReportSection) {
    for line in section.table.iter().flat_map(|table| &table.rows) {
        printer::say(format_args!("  {}", line.join(" | ")));
    }
    for line in &section.numbers {
        printer::say(format_args!("  {line}"));
    }
    for verdict in &section.verdicts {
        printer::say(format_args!("  {} {}: {}", verdict.word(), verdict.target, verdict.measured));
    }
}

/// Values in the order in which they were measured.
pub(super) fn values_text(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:.1}")).collect::<Vec<_>>().join(", ")
}

/// A whole number with separators.
pub(super) fn whole_number_text(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_readable_and_missed_targets_are_reported() {
        assert_eq!(whole_number_text(1_234_567.4), "1,234,567");
        assert_eq!(whole_number_text(999.0), "999");
        let verdict = TargetVerdict { target: "at most 3", measured: "3.4".into(), reached: false };
        let table =
            ReportTable { head: vec!["run".into(), "used".into()], rows: vec![vec!["a".into(), "9".into()]] };
        let section = ReportSection {
            title: "A",
            table: Some(table),
            verdicts: vec![verdict],
            ..ReportSection::default()
        };
        let part = suite_text("## B", &[("CPU", "x".into())], &[section]);
        assert!(part.contains("| at most 3 | 3.4 | FAIL |"), "{part}");
        assert!(part.contains("| run | used |\n|---|---|\n| a | 9 |\n"), "{part}");
    }
}
