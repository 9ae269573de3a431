//! What was measured, as text for people and as `docs/benchmarks.md`.

/// One thing that was measured.
#[derive(Debug, Default)]
pub(super) struct Section {
    pub(super) title: &'static str,
    /// What is measured and how.
    pub(super) about: &'static str,
    /// The commands that were run.
    pub(super) commands: Vec<String>,
    /// Numbers, one line each.
    pub(super) numbers: Vec<String>,
    pub(super) verdicts: Vec<Verdict>,
}

/// A target and whether it was reached.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) target: &'static str,
    pub(super) measured: String,
    pub(super) reached: bool,
}

impl Verdict {
    pub(super) fn word(&self) -> &'static str {
        if self.reached { "PASS" } else { "FAIL" }
    }
}

/// The whole document.
pub(super) fn document(facts: &[(&'static str, String)], sections: &[Section]) -> String {
    let mut out = String::from(
        "<!-- Written by `cargo xtask bench`; do not edit. -->\n\
         # Benchmarks\n\n\
         Made with `cargo xtask bench`, which builds rowmill and its simulator, runs the simulator as a second\n\
         process on the same machine, and measures rowmill beside `wrk`, a load generator in C that only sends\n\
         and receives. Client and server share the cores, and so does whatever else the machine does: ratios\n\
         are steadier than times, and times than rates.\n\n\
         | | |\n|---|---|\n",
    );
    for (name, value) in facts {
        out.push_str(&format!("| {name} | {value} |\n"));
    }
    out.push_str("\n## Targets\n\n| target | measured | |\n|---|---|---|\n");
    for verdict in sections.iter().flat_map(|section| &section.verdicts) {
        out.push_str(&format!("| {} | {} | {} |\n", verdict.target, verdict.measured, verdict.word()));
    }
    for section in sections {
        out.push_str(&format!("\n## {}\n\n{}\n\n```sh\n", section.title, section.about));
        for command in &section.commands {
            out.push_str(&format!("{command}\n"));
        }
        out.push_str("```\n\n");
        for line in &section.numbers {
            out.push_str(&format!("- {line}\n"));
        }
    }
    out
}

/// Values in the order in which they were measured.
pub(super) fn list(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:.1}")).collect::<Vec<_>>().join(", ")
}

/// A whole number with separators.
pub(super) fn whole(value: f64) -> String {
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
    fn large_numbers_are_readable_and_missed_targets_are_said() {
        assert_eq!(whole(1_234_567.4), "1,234,567");
        assert_eq!(whole(999.0), "999");
        let verdict = Verdict { target: "at most 3", measured: "3.4".into(), reached: false };
        let section = Section { title: "A", verdicts: vec![verdict], ..Section::default() };
        assert!(document(&[("CPU", "x".into())], &[section]).contains("| at most 3 | 3.4 | FAIL |"));
    }
}
