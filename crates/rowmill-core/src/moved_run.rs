//! Runs whose files were moved: to another folder, or because their disk is mounted elsewhere.

use std::path::{Component, Path};

use crate::ports::InputIdentity;
use crate::run_header::RunHeader;

impl RunHeader {
    /// The header of an earlier run for comparison with `now`: an input of which only the path differs is the same
    /// input. Inputs without a digest of their content, such as streams, are known by their paths alone.
    #[must_use]
    pub fn follow_moved_input(mut self, now: &Self) -> Self {
        let (old, new) = (self.input_content(), now.input_content());
        let is_same = new.probe.is_some() && (&old.size, &old.probe) == (&new.size, &new.probe);
        // Rows that were recorded under another path are not found again, so other rows would be recorded.
        if is_same && self.recorded_rows == now.recorded_rows {
            self.fingerprint.input.path.clone_from(&now.fingerprint.input.path);
        }
        self
    }

    fn input_content(&self) -> &InputIdentity {
        self.input.as_ref().unwrap_or(&self.fingerprint.input)
    }

    /// Whether `path` is the file that the run has known as `known`: at the same path, or at the same place as seen
    /// from its work folder, if that was moved to `folder`.
    #[must_use]
    pub fn is_same_file(&self, known: &str, (path, folder): (&str, &str)) -> bool {
        let before = self.folder.as_deref().filter(|before| *before != folder);
        known == path || before.is_some_and(|before| seen_from(before, known) == seen_from(folder, path))
    }
}

/// A path relative to a folder: how many folders up, and then what.
fn seen_from<'p>(folder: &str, path: &'p str) -> (usize, Vec<Component<'p>>) {
    let mut ups = Path::new(folder).components().peekable();
    let mut rest = Path::new(path).components().peekable();
    while ups.peek().is_some() && ups.peek() == rest.peek() {
        ups.next();
        rest.next();
    }
    (ups.count(), rest.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::RunFingerprint;

    fn header(path: &str, content: &str, id_field: Option<&str>) -> RunHeader {
        let input = InputIdentity { path: path.into(), size: Some(3), probe: Some(content.into()) };
        let in_fingerprint = match id_field {
            Some(_) => InputIdentity { size: None, probe: None, ..input.clone() },
            None => input.clone(),
        };
        let fingerprint = RunFingerprint {
            input: in_fingerprint,
            id_field: id_field.map(str::to_owned),
            model: "openai.a".into(),
            prompt: "p".into(),
            instruction: None,
            schema: None,
            agents: None,
            query: None,
            delimiter: None,
            columns: None,
            files: None,
        };
        RunHeader { input: Some(input), ..RunHeader::new("r", "now", &fingerprint, None) }
    }

    #[test]
    fn an_input_with_the_same_content_elsewhere_is_no_change_and_any_other_is_one() {
        for id_field in [None, Some("id")] {
            let before = header("/a/in.jsonl", "x", id_field);
            let changes = |now: &RunHeader| before.clone().follow_moved_input(now).setting_changes(now).len();
            assert_eq!(changes(&header("/b/in.jsonl", "x", id_field)), 0);
            assert_eq!(changes(&header("/b/in.jsonl", "y", id_field)), 1);
            // With ids the content may change, as long as the input stays where it is.
            let at_home = header("/a/in.jsonl", "y", id_field);
            assert_eq!(changes(&at_home), usize::from(id_field.is_none()));
            let recorded =
                RunHeader { recorded_rows: Some("rows".into()), ..header("/b/in.jsonl", "x", id_field) };
            assert_eq!(changes(&recorded), 1, "other rows may have been recorded");
        }
    }

    #[test]
    fn an_input_whose_content_is_unknown_is_known_by_its_path() {
        let unknown = |path: &str| {
            let mut header = header(path, "x", Some("id"));
            header.input = None;
            header
        };
        let now = unknown("/b/in.jsonl");
        assert_eq!(unknown("/a/in.jsonl").follow_moved_input(&now).setting_changes(&now).len(), 1);
        // Headers of earlier versions have the content in the fingerprint, if rows have no ids.
        let earlier = RunHeader { input: None, ..header("/a/in.jsonl", "x", None) };
        let now = header("/b/in.jsonl", "x", None);
        assert_eq!(earlier.follow_moved_input(&now).setting_changes(&now).len(), 0);
    }

    #[test]
    fn a_file_beside_a_work_folder_that_was_moved_is_the_same_file() {
        let header = RunHeader { folder: Some("/a/p/.out.rowmill".into()), ..header("/a/in", "x", None) };
        for (known, path, folder, expected) in [
            ("/a/p/t.jsonl", "/a/p/t.jsonl", "/a/p/.out.rowmill", true),
            ("/a/p/t.jsonl", "/b/p/t.jsonl", "/b/p/.out.rowmill", true),
            ("/a/t.jsonl", "/b/t.jsonl", "/b/p/.out.rowmill", true),
            ("/a/p/t.jsonl", "/b/p/u.jsonl", "/b/p/.out.rowmill", false),
            ("/a/p/t.jsonl", "/b/t.jsonl", "/b/p/.out.rowmill", false),
            ("/a/p/t.jsonl", "/b/p/t.jsonl", "/a/p/.out.rowmill", false),
            ("/logs/t.jsonl", "/logs/t.jsonl", "/b/p/.out.rowmill", true),
        ] {
            assert_eq!(header.is_same_file(known, (path, folder)), expected, "{known} {path} {folder}");
        }
    }
}
