//! The changes between a run and its resume, for users.

use std::ops::Range;

use rowmill_types::settings::ID_FIELD;
use rowmill_types::{DiagnosticText, group_digits};
use serde::{Deserialize, Serialize};

use crate::fingerprint::RunFingerprint;
use crate::ports::InputIdentity;
use crate::redact::Redactor;

/// The maximum number of bytes of a text that are kept for later comparison.
const MOST_KEPT: usize = 16 * 1024;
/// The maximum number of lines shown on each side of a change.
const MOST_LINES: usize = 3;
/// The maximum number of characters of a line shown, and of context on each side of a difference.
const MOST_LETTERS: usize = 100;
const LETTERS_AROUND: usize = 30;
/// Indents the lines of a change below its name.
const INDENT: &str = "\n    ";

/// The texts behind the digests of a fingerprint. They are kept with a run, without secrets and up to a maximum size,
/// so that a resume can show what changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTexts {
    /// The row template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The instruction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// The JSON Schema; the run header has it already, so it is not written a second time.
    #[serde(skip)]
    pub schema: Option<String>,
    /// Everything that shapes the answers of the agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<String>,
}

impl RunTexts {
    /// The texts in the form in which they may be kept.
    #[must_use]
    pub fn redact_for_header(self, redactor: &Redactor) -> Self {
        let kept = |text: Option<String>| {
            text.map(|text| {
                let text = redactor.redact(&text);
                text.get(..text.floor_char_boundary(MOST_KEPT)).unwrap_or_default().to_owned()
            })
        };
        Self {
            prompt: kept(self.prompt),
            instruction: kept(self.instruction),
            schema: self.schema,
            agents: kept(self.agents),
        }
    }
}

/// The differences between two runs, one entry for each setting: its name, then before and now.
#[must_use]
pub fn setting_changes(
    before: (&RunFingerprint, &RunTexts),
    now: (&RunFingerprint, &RunTexts),
) -> Vec<DiagnosticText> {
    let ((old, old_texts), (new, new_texts)) = (before, now);
    let mut found: Vec<DiagnosticText> = Vec::new();
    let mut value = |name: &str, old: Option<&str>, new: Option<&str>| {
        if old != new {
            found.push(format!("{name}: {} -> {}", shown(old), shown(new)).into());
        }
    };
    value("input", Some(&old.input.path), Some(&new.input.path));
    value("id field", old.id_field.as_deref(), new.id_field.as_deref());
    value("model", Some(&old.model), Some(&new.model));
    value("query", old.query.as_deref(), new.query.as_deref());
    value("delimiter", old.delimiter.as_deref(), new.delimiter.as_deref());
    value("columns", old.columns.as_deref(), new.columns.as_deref());
    value("files", old.files.as_deref(), new.files.as_deref());
    let texts = [
        ("prompt", (Some(&old.prompt), &old_texts.prompt), (Some(&new.prompt), &new_texts.prompt)),
        (
            "instruction",
            (old.instruction.as_ref(), &old_texts.instruction),
            (new.instruction.as_ref(), &new_texts.instruction),
        ),
        ("schema", (old.schema.as_ref(), &old_texts.schema), (new.schema.as_ref(), &new_texts.schema)),
        ("agent cards", (old.agents.as_ref(), &old_texts.agents), (new.agents.as_ref(), &new_texts.agents)),
    ];
    for (name, (old_digest, old), (new_digest, new)) in texts {
        if name == "schema" && old_digest != new_digest && old.is_some() && old == new {
            // A schema is kept completely, and its digest also covers the code that checks answers with it.
            found.push(
                "schema: unchanged, but the Python code of the model that checks answers has changed".into(),
            );
        } else if old_digest != new_digest {
            found.push(format!("{name}:{}", text_change((old_digest, old), (new_digest, new))).into());
        }
    }
    if old.input.path == new.input.path && old.input != new.input {
        let change = content_change(&old.input, &new.input);
        found.push(
            format!(
                "content of the input: {change}; row numbers may have shifted (with {ID_FIELD}, rows can be \
                 added and removed)"
            )
            .into(),
        );
    }
    found
}

fn shown(value: Option<&str>) -> String {
    value.map_or_else(|| "none".to_owned(), |text| format!("`{text}`"))
}

fn content_change(old: &InputIdentity, new: &InputIdentity) -> String {
    let size = |size: Option<u64>| {
        size.map_or_else(|| "unknown size".to_owned(), |size| format!("{} bytes", group_digits(size)))
    };
    match (old.size, new.size) {
        (None, None) => "changed".to_owned(),
        (before, now) if before == now => format!("{} as before, but with different content", size(now)),
        (before, now) => format!("{} -> {}", size(before), size(now)),
    }
}

type DigestAndText<'a> = (Option<&'a String>, &'a Option<String>);

fn text_change((old_digest, old): DigestAndText<'_>, (new_digest, new): DigestAndText<'_>) -> String {
    let is_kept = |digest: Option<&String>, text: &Option<String>| digest.is_none() || text.is_some();
    if !is_kept(old_digest, old) || !is_kept(new_digest, new) {
        return match (old_digest, new_digest) {
            (None, _) => " none before".to_owned(),
            (_, None) => " none now".to_owned(),
            _ => " has changed".to_owned(),
        };
    }
    let lines = line_changes(old.as_deref().unwrap_or_default(), new.as_deref().unwrap_or_default());
    let state = match (old_digest, new_digest) {
        (None, _) => " none before",
        (_, None) => " none now",
        _ if lines.is_empty() => {
            " differs in masked values, in trailing whitespace, or far from its beginning"
        }
        _ => "",
    };
    std::iter::once(state.to_owned()).chain(lines).collect::<Vec<_>>().join(INDENT)
}

/// The lines that only one of the texts has, with a `-` or `+` prefix.
fn line_changes(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (old.get(start..).unwrap_or_default(), new.get(start..).unwrap_or_default());
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let old = old.get(..old.len() - end).unwrap_or_default();
    let new = new.get(..new.len() - end).unwrap_or_default();
    let mut lines = side('-', old, new);
    lines.extend(side('+', new, old));
    lines
}

fn side(sign: char, lines: &[&str], others: &[&str]) -> Vec<String> {
    let shown = lines.iter().take(MOST_LINES);
    let mut shown: Vec<String> = shown.map(|line| format!("{sign} {}", excerpt(line, others))).collect();
    if lines.len() > MOST_LINES {
        shown.push(format!("{sign} … {} more lines", lines.len() - MOST_LINES));
    }
    shown
}

/// A line; if it is long, the part that differs from the most similar line on the other side.
fn excerpt(line: &str, others: &[&str]) -> String {
    let letters: Vec<char> = line.chars().collect();
    if letters.len() <= MOST_LETTERS {
        return line.to_owned();
    }
    let same = others.iter().map(|other| same_ends(&letters, other)).max_by_key(|(start, end)| start + end);
    let (start, end) = same.unwrap_or_default();
    let first = start.saturating_sub(LETTERS_AROUND);
    let last = (letters.len() - end + LETTERS_AROUND).min(letters.len());
    if last - first <= MOST_LETTERS {
        // There is room for more of the common part.
        let first = first.min(letters.len() - MOST_LETTERS);
        return cutting(&letters, first..first + MOST_LETTERS);
    }
    let half = MOST_LETTERS / 2;
    let (begin, finish) = (first..first + half, last - half..last);
    format!("{}{}", cutting(&letters, begin), cutting(&letters, finish).trim_start_matches('…'))
}

/// The lengths of the common prefix and the common suffix of both lines.
fn same_ends(line: &[char], other: &str) -> (usize, usize) {
    let other: Vec<char> = other.chars().collect();
    let start = line.iter().zip(&other).take_while(|(one, other)| one == other).count();
    let rest = line.len().min(other.len()) - start;
    let ends = line.iter().rev().zip(other.iter().rev()).take(rest);
    (start, ends.take_while(|(one, other)| one == other).count())
}

/// A part of a line, with marks where text is omitted.
fn cutting(letters: &[char], part: Range<usize>) -> String {
    let before = if part.start > 0 { "…" } else { "" };
    let after = if part.end < letters.len() { "…" } else { "" };
    let shown: String = letters.get(part).unwrap_or_default().iter().collect();
    format!("{before}{shown}{after}")
}

#[cfg(test)]
mod tests {
    use rowmill_types::Secret;

    use super::*;
    use crate::fingerprint::text_digest;

    fn run(prompt: &str, instruction: Option<&str>) -> (RunFingerprint, RunTexts) {
        let input =
            InputIdentity { path: "/a.jsonl".into(), size: Some(3), probe: Some("0123456789".into()) };
        let fingerprint = RunFingerprint {
            input,
            id_field: None,
            model: "openai.a".into(),
            prompt: text_digest(prompt),
            instruction: instruction.map(text_digest),
            schema: None,
            agents: None,
            query: None,
            delimiter: None,
            columns: None,
            files: None,
        };
        let texts = RunTexts {
            prompt: Some(prompt.to_owned()),
            instruction: instruction.map(str::to_owned),
            ..RunTexts::default()
        };
        (fingerprint, texts)
    }

    fn changed(before: &(RunFingerprint, RunTexts), now: &(RunFingerprint, RunTexts)) -> Vec<DiagnosticText> {
        setting_changes((&before.0, &before.1), (&now.0, &now.1))
    }

    #[test]
    fn values_and_texts_are_shown_as_they_were_and_as_they_are() {
        let before = run("Classify {{reveiw}}", None);
        assert!(changed(&before, &before.clone()).is_empty());
        let mut now = run("Classify {{review}}", Some("Be short."));
        now.0.model = "openai.b".into();
        assert_eq!(
            changed(&before, &now),
            [
                "model: `openai.a` -> `openai.b`",
                "prompt:\n    - Classify {{reveiw}}\n    + Classify {{review}}",
                "instruction: none before\n    + Be short.",
            ]
        );
        let mut grown = before.clone();
        grown.0.input.size = Some(4);
        assert!(changed(&before, &grown)[0].starts_with("content of the input: 3 bytes -> 4 bytes; row"));
        grown.0.input = InputIdentity { probe: Some("x".into()), ..before.0.input.clone() };
        assert!(
            changed(&before, &grown)[0]
                .starts_with("content of the input: 3 bytes as before, but with different content; row")
        );
        // A server need not report a size.
        let mut unmeasured = before.clone();
        (unmeasured.0.input.size, grown.0.input.size) = (None, None);
        assert!(changed(&unmeasured, &grown)[0].starts_with("content of the input: changed; row"));
    }

    #[test]
    fn of_long_texts_only_the_part_that_changed_is_shown() {
        let lines = |middle: &str| format!("first\n{middle}\nlast\n");
        let before = lines("1\n2\n3\n4\n5");
        assert_eq!(line_changes(&before, &lines("x")), ["- 1", "- 2", "- 3", "- … 2 more lines", "+ x"]);
        let long = |word: &str| format!("{}{word}{}", "a".repeat(500), "b".repeat(500));
        let shown = line_changes(&long("old"), &long("new"));
        assert!(shown[0].starts_with("- …aaa") && shown[0].contains("aaaold") && shown[0].ends_with("bb…"));
        assert!(shown[1].contains("aaanewbbb") && shown[1].chars().count() < 110, "{shown:?}");
    }

    #[test]
    fn of_a_long_line_the_changed_part_is_shown_wherever_it_stands_and_however_lines_moved() {
        let long = |word: &str| format!("{}{word}{}", "é".repeat(500), "b".repeat(500));
        // A line in front shifts it to another position.
        let shown = line_changes(&long("old"), &format!("Be kind.\n{}", long("new")));
        assert!(shown[0].contains("éoldb") && shown[0].ends_with("bb…"), "{shown:?}");
        assert!(shown[1] == "+ Be kind." && shown[2].contains("énewb"), "{shown:?}");
        // Of two changes in one line both are shown.
        let twice =
            |word: &str| format!("{}{word}{}{word}{}", "a".repeat(300), "m".repeat(300), "z".repeat(300));
        for (line, word) in line_changes(&twice("old"), &twice("new")).iter().zip(["old", "new"]) {
            assert!(line.contains(&format!("aa{word}m")) && line.contains(&format!("m{word}zz")), "{line}");
            assert!(line.chars().count() < 110, "{line}");
        }
        // Text that repeats before and after a change is not counted twice.
        let shown = line_changes(&"ab".repeat(200), &"ab".repeat(201));
        assert!(shown.iter().all(|line| line.chars().count() < 110), "{shown:?}");
        // Nothing is omitted at the ends.
        let shown = line_changes(&"x".repeat(150), &format!("{}y", "x".repeat(150)));
        assert!(shown[1].starts_with("+ …xx") && shown[1].ends_with("xxy"), "{shown:?}");
    }

    #[test]
    fn what_is_kept_has_no_secrets_and_a_bounded_size() {
        let redactor = Redactor::new([&Secret::new("sk-123456")]).unwrap();
        let texts = RunTexts {
            prompt: Some("key sk-123456".into()),
            instruction: Some("é".repeat(MOST_KEPT)),
            ..RunTexts::default()
        };
        let kept = texts.redact_for_header(&redactor);
        assert_eq!(kept.prompt.as_deref(), Some("key ***"));
        assert_eq!(kept.instruction.map(|text| text.len()), Some(MOST_KEPT));
        let (mut before, mut now) = (run("a", None), run("b", None));
        (before.1.prompt, now.1.prompt) = (Some("***".into()), Some("***".into()));
        assert!(changed(&before, &now)[0].starts_with("prompt: differs in masked values"));
        before.1 = RunTexts::default();
        assert_eq!(changed(&before, &now), ["prompt: has changed"], "an older version kept no texts");
    }
}
