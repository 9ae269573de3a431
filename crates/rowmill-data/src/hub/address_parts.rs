//! What the hub is asked for with an address.

use crate::hub_address::{HubAddress, RepositoryKind};

/// The default revision.
const MAIN: &str = "main";

impl RepositoryKind {
    /// The path prefix of the repository in the addresses of pages and files.
    pub(crate) fn prefix(self) -> Option<&'static str> {
        match self {
            Self::Dataset => Some("datasets"),
            Self::Model => None,
            Self::Space => Some("spaces"),
        }
    }
}

impl HubAddress {
    /// The revision, or the default one.
    pub(crate) fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or(MAIN)
    }

    /// The address of a file in the same repository.
    pub(crate) fn address_of_file(&self, path: &str) -> String {
        let marked = self.revision.as_ref().map(|revision| format!("@{}", revision.replace('/', "%2F")));
        let prefix = self.kind.prefix().map(|prefix| format!("{prefix}/")).unwrap_or_default();
        format!("hf://{prefix}{}{}/{path}", self.repository, marked.unwrap_or_default())
    }

    /// The address of a split of the same dataset.
    pub(crate) fn address_of_split(&self, config: &str, split: &str) -> String {
        format!("hf://datasets/{}?config={config}&split={split}", self.repository)
    }
}

/// Whether a revision permanently identifies one commit.
pub(crate) fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}
