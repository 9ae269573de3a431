//! Finds the files of a repository that hold rows.

use rowmill_types::{Problem, ProblemCode};
use serde_json::Value;

use super::address_parts::is_commit;
use super::client::HubClient;
use super::refusal::RequestSubject;
use crate::InputFormat;
use crate::download::{ExpectedFile, FileDigest};
use crate::input_format::format_from_name;

/// How many choices a message lists.
const NAMED: usize = 5;

/// JSON files that describe a dataset or a program and hold no rows.
const NO_ROWS: &[&str] = &[
    "dataset_infos.json",
    "dataset_info.json",
    "dataset_dict.json",
    "state.json",
    "config.json",
    "configs.json",
    "croissant.json",
    "datapackage.json",
    "metadata.json",
    "package.json",
    "package-lock.json",
    "schema.json",
    "tsconfig.json",
    "stats.json",
];

/// A file of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListedFile {
    pub(super) path: String,
    pub(super) expected: ExpectedFile,
}

/// The first of some files, and their number.
#[derive(Debug, Default)]
struct FirstFew {
    first: Vec<ListedFile>,
    count: usize,
}

impl FirstFew {
    fn add(&mut self, file: ListedFile) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(file);
        }
    }
}

/// The commit to which the revision of the address currently points.
pub(super) async fn resolve_commit(hub: &HubClient<'_>) -> Result<String, Problem> {
    let revision = hub.address.revision();
    if is_commit(revision) {
        return Ok(revision.to_owned());
    }
    let description = hub.document(hub.api_url(&["revision", revision]), RequestSubject::Repository).await?;
    let commit = description.value.get("sha").and_then(Value::as_str).filter(|text| is_commit(text));
    commit.map(str::to_owned).ok_or_else(|| unlike_the_hub(hub))
}

/// The only file with rows; `None` if there is none.
pub(super) async fn single_data_file(
    hub: &HubClient<'_>,
    commit: &str,
) -> Result<Option<ListedFile>, Problem> {
    let (mut tables, mut json) = (FirstFew::default(), FirstFew::default());
    each_file(hub, commit, |file| match kind_of(&file.path) {
        Some(InputFormat::Json) => json.add(file),
        Some(_) => tables.add(file),
        None => {}
    })
    .await?;
    // If there are tables, JSON files hardly ever hold the rows.
    let found = if tables.count > 0 { tables } else { json };
    if found.count > 1 {
        return Err(several(hub, &found));
    }
    Ok(found.first.into_iter().next())
}

/// The files that match a pattern, ordered by name.
pub(super) async fn files_matching(
    hub: &HubClient<'_>,
    commit: &str,
    pattern: &str,
) -> Result<Vec<ListedFile>, Problem> {
    let wrong = |message: String| Problem::new(ProblemCode::InputNotFound, message);
    let compiled = glob::Pattern::new(pattern).map_err(|error| {
        wrong(format!("invalid pattern: `{}`", hub.address)).cause(error).hint(
            "`*` matches any characters except `/`, `**` matches folders, `[ab]` one of these characters",
        )
    })?;
    let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::default() };
    let mut found = Vec::new();
    each_file(hub, commit, |file| {
        if compiled.matches_with(&file.path, options) {
            found.push(file);
        }
    })
    .await?;
    if found.is_empty() {
        let message = format!("no file of `{}` matches `{pattern}`", hub.address.repository);
        return Err(wrong(message).hint(format!("see {} for its files", hub.page_url())));
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// Visits all files, page by page.
async fn each_file(
    hub: &HubClient<'_>,
    commit: &str,
    mut take: impl FnMut(ListedFile),
) -> Result<(), Problem> {
    let mut url = hub.api_url(&["tree", commit]);
    url.set_query(Some("recursive=true"));
    let mut next = Some(url);
    while let Some(url) = next {
        let page = hub.document(url, RequestSubject::Repository).await?;
        let Value::Array(entries) = page.value else { return Err(unlike_the_hub(hub)) };
        entries.iter().filter_map(listed).for_each(&mut take);
        next = page.next;
    }
    Ok(())
}

fn listed(entry: &Value) -> Option<ListedFile> {
    if entry.get("type")?.as_str()? != "file" {
        return None;
    }
    let large = entry.get("lfs").filter(|large| large.is_object());
    let digest =
        large.unwrap_or(entry).get("oid").and_then(Value::as_str).and_then(FileDigest::from_entity_tag);
    let size = large.unwrap_or(entry).get("size").and_then(Value::as_u64);
    Some(ListedFile {
        path: entry.get("path")?.as_str()?.to_owned(),
        expected: ExpectedFile { size, digest },
    })
}

/// The format of a file that may hold rows.
fn kind_of(path: &str) -> Option<InputFormat> {
    if path.split('/').any(|part| part.starts_with('.')) {
        return None;
    }
    let format = format_from_name(path)?;
    let name = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    (format != InputFormat::Json || !NO_ROWS.contains(&name.as_str())).then_some(format)
}

fn several(hub: &HubClient<'_>, found: &FirstFew) -> Problem {
    let named: Vec<_> = found.first.iter().map(|file| format!("`{}`", file.path)).collect();
    let rest = match found.count - found.first.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let message =
        format!("`{}` has {} files with rows: {}{rest}", hub.address, found.count, named.join(", "));
    let first = found.first.first().map(|file| file.path.as_str()).unwrap_or_default();
    let hint = format!(
        "choose one, as in `{}`, or several with `*`; or choose a split of the dataset with \
         `?config=…&split=…`",
        hub.address.address_of_file(first)
    );
    Problem::new(ProblemCode::InputAmbiguous, message).hint(hint)
}

/// The answer does not come from the hub, or the hub's interface has changed.
fn unlike_the_hub(hub: &HubClient<'_>) -> Problem {
    let message =
        format!("`{}` does not respond like the hub", crate::redacted_source(hub.endpoint().as_str()));
    Problem::new(ProblemCode::FetchFailed, message).hint("check `HF_ENDPOINT`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_rows_are_distinguished_from_those_about_them() {
        for (path, expected) in [
            ("train.jsonl", Some(InputFormat::Jsonl)),
            ("data/a.CSV.gz", Some(InputFormat::Csv)),
            ("data/rows.json", Some(InputFormat::Json)),
            ("dataset_infos.json", None),
            ("default/dataset_info.json", None),
            (".cache/x.jsonl", None),
            ("README.md", None),
        ] {
            assert_eq!(kind_of(path), expected, "{path}");
        }
    }
}
