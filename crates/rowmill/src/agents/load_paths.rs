//! Finds the files of a card: in its folder, or else in the current one.

use std::path::{Path, PathBuf};

use rowmill_cards::AgentCard;

/// Finds the files that a card names, and remembers the paths as written.
pub(super) struct PathFinder<'a> {
    /// The card's folder.
    folder: &'a Path,
    home: Option<&'a Path>,
    card: &'a str,
    /// Paths as the card has them, by the path that was found.
    written: Vec<(PathBuf, String)>,
    /// Notices about files that were not found where they belong.
    pub(super) notices: Vec<String>,
}

impl<'a> PathFinder<'a> {
    pub(super) fn new(folder: &'a Path, home: Option<&'a Path>, card: &'a str) -> Self {
        Self { folder, home, card, written: Vec::new(), notices: Vec::new() }
    }

    /// Resolves a path. The card's folder comes before the current one, so that a card means the same
    /// wherever it is used from.
    pub(super) fn find(&mut self, named_by: &str, path: &Path) -> PathBuf {
        let found = match (path.strip_prefix("~"), self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            // An absolute path stays as it is.
            _ => self.in_folders(named_by, path),
        };
        self.written.push((found.clone(), path.to_string_lossy().into_owned()));
        found
    }

    fn in_folders(&mut self, named_by: &str, path: &Path) -> PathBuf {
        let beside = self.folder.join(path);
        if beside.exists() || !path.exists() {
            return beside;
        }
        let found = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        // A card in the current folder names the same file either way.
        if found != beside {
            let text = format!(
                "`{}` in `{named_by}` of `{}` is read from the current folder, because it is not in the \
                 card's folder",
                path.display(),
                self.card
            );
            if !self.notices.contains(&text) {
                self.notices.push(text);
            }
        }
        found
    }

    /// Resolves all paths of a card.
    pub(super) fn resolve(&mut self, card: &mut AgentCard) {
        card.map_paths(&mut |field, path| self.find(field, path));
    }

    /// A path as the card has it.
    pub(super) fn path_as_written(&self, path: &Path) -> &str {
        self.written.iter().find(|(found, _)| found == path).map_or("", |(_, written)| written)
    }
}
