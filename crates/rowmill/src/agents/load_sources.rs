//! Finds cards: files, folders and addresses.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use rowmill_cards::{CardFileFormat, has_front_matter};
use rowmill_data::{Fetcher, load_text, local_path, redacted_source};
use rowmill_types::settings::AGENT_CARD;
use rowmill_types::{Problem, ProblemCode};

/// The text of a card.
#[derive(Debug)]
pub(super) struct CardSource {
    /// The file or address, as it may be shown to the user.
    pub(super) shown: String,
    /// The text.
    pub(super) text: String,
    /// The folder of the card; a card from a remote source has none.
    pub(super) folder: Option<PathBuf>,
}

/// Finds the cards of all sources, in order. A file that two sources name is loaded once.
pub(super) async fn find_card_sources(
    sources: &[String],
    fetcher: &Fetcher<'_>,
) -> Result<Vec<CardSource>, Problem> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for source in sources {
        // A source that is not a path is an address, or something for which the text loader has a
        // better message.
        let Some(path) = local_path(source) else {
            let text = load_text(source, AGENT_CARD.into(), fetcher).await?;
            found.push(CardSource { shown: redacted_source(source), text, folder: None });
            continue;
        };
        let (files, skip) = if path.is_dir() {
            (card_files_in(&path)?, SkippedMarkdown::WithoutFrontMatter)
        } else {
            (vec![path], SkippedMarkdown::Nothing)
        };
        for file in files {
            // A missing file is reported when it is read.
            if !seen.insert(fs::canonicalize(&file).unwrap_or_else(|_| file.clone())) {
                continue;
            }
            let shown = file.to_string_lossy().into_owned();
            let text = load_text(&shown, AGENT_CARD.into(), fetcher).await?;
            let is_markdown = CardFileFormat::from_file_name(&shown) == Some(CardFileFormat::Markdown);
            if skip == SkippedMarkdown::WithoutFrontMatter && is_markdown && !has_front_matter(&text) {
                continue;
            }
            found.push(CardSource { folder: Some(folder_of(&file)), shown, text });
        }
    }
    if found.is_empty() {
        let shown: Vec<_> = sources.iter().map(|source| format!("`{}`", redacted_source(source))).collect();
        return Err(Problem::new(
            ProblemCode::InvalidCard,
            format!("there is no agent card in {}", shown.join(", ")),
        )
        .hint(
            "cards are `.yaml` or `.yml` files, or `.md` files with front matter; subfolders are not \
             searched",
        ));
    }
    Ok(found)
}

/// Whether Markdown files that are not cards are skipped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SkippedMarkdown {
    Nothing,
    WithoutFrontMatter,
}

/// The files of a folder that may be cards, sorted by name.
pub(crate) fn card_files_in(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    let unreadable = |error: std::io::Error| {
        let message = format!("cannot read the folder for {AGENT_CARD}: `{}`", folder.display());
        Problem::new(ProblemCode::TextUnreadable, message).cause(error).hint("check its permissions")
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_card =
            CardFileFormat::from_file_name(&path.to_string_lossy()).is_some() && !is_configuration(&path);
        if is_card && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a file is a configuration file of fast-agent, which may be beside cards.
fn is_configuration(path: &Path) -> bool {
    const NAMES: [&str; 6] = [
        "fast-agent.yaml",
        "fast-agent.secrets.yaml",
        "fastagent.config.yaml",
        "fastagent.secrets.yaml",
        "card-pack.yaml",
        "plugin.yaml",
    ];
    path.file_name().is_some_and(|name| NAMES.iter().any(|known| name == *known))
}

/// Absolute, because programs that a card starts may run in another folder.
fn folder_of(file: &Path) -> PathBuf {
    let folder = file.parent().unwrap_or(Path::new(""));
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}
