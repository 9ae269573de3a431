//! The repositories and files of the hub.

use std::collections::BTreeMap;
use std::sync::Arc;

use ring::digest::{Algorithm, Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

use super::server::{HubRequest, ScriptedDamage};

/// How a repository stores a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// In git: sent by the hub itself, identified by git's object name.
    Small,
    /// Outside git: sent by the other host, identified by its SHA-256.
    Large,
}

/// A plain page outside all repositories.
#[derive(Debug, Clone, Default)]
pub struct PlainPage {
    /// The status; 200 when 0.
    pub status: u16,
    /// Its headers; conditional requests use `etag` and `last-modified`.
    pub headers: Vec<(String, String)>,
    /// Its content.
    pub body: Vec<u8>,
    /// Whether byte ranges are supported.
    pub ranges: bool,
}

/// The content of a file.
#[derive(Debug)]
pub(super) struct StoredFile {
    pub(super) bytes: Vec<u8>,
    pub(super) kind: FileKind,
}

impl StoredFile {
    /// The hub's entity tag of this content.
    pub(super) fn tag(&self) -> String {
        match self.kind {
            FileKind::Small => self.git_name(),
            FileKind::Large => digest(&SHA256, &[&self.bytes]),
        }
    }

    fn git_name(&self) -> String {
        let head = format!("blob {}\0", self.bytes.len());
        digest(&SHA1_FOR_LEGACY_USE_ONLY, &[head.as_bytes(), &self.bytes])
    }
}

/// Files by their paths, at one commit.
pub(super) type FileTree = BTreeMap<String, Arc<StoredFile>>;

/// A repository of the hub.
#[derive(Debug, Default)]
pub(super) struct Repository {
    pub(super) commits: Vec<(String, FileTree)>,
    pub(super) tags: BTreeMap<String, String>,
    /// Configuration, split and its files, in order.
    pub(super) converted: Vec<(String, String, Vec<Arc<StoredFile>>)>,
    pub(super) token: Option<String>,
    pub(super) is_gated: bool,
}

impl Repository {
    /// The commit of a revision and its files.
    pub(super) fn at(&self, revision: &str) -> Option<(String, FileTree)> {
        if revision == "refs/convert/parquet" {
            return Some((commit_name("converted", self.converted.len()), self.converted_tree()));
        }
        let name = self.tags.get(revision).map_or(revision, String::as_str);
        let found = match name {
            "main" => self.commits.last(),
            name => self.commits.iter().find(|(commit, _)| commit == name),
        };
        found.cloned()
    }

    fn converted_tree(&self) -> FileTree {
        let mut tree = FileTree::new();
        for (config, split, files) in &self.converted {
            for (at, file) in files.iter().enumerate() {
                tree.insert(format!("{config}/{split}/{at:04}.parquet"), Arc::clone(file));
            }
        }
        tree
    }

    /// Adds a commit with one more file, and returns its name.
    pub(super) fn put(&mut self, path: &str, file: StoredFile) -> String {
        let mut tree = self.commits.last().map(|(_, tree)| tree.clone()).unwrap_or_default();
        let name = commit_name(&format!("{path} {}", file.tag()), self.commits.len());
        tree.insert(path.to_owned(), Arc::new(file));
        self.commits.push((name.clone(), tree));
        name
    }
}

/// The state behind the two ports.
#[derive(Debug, Default)]
pub(super) struct HubState {
    /// By kind and name, such as `datasets/owner/name`, `spaces/owner/name`, `owner/name`.
    pub(super) repositories: BTreeMap<String, Repository>,
    pub(super) pages: BTreeMap<String, PlainPage>,
    pub(super) troubles: Vec<ScriptedDamage>,
    pub(super) requests: Vec<HubRequest>,
    /// Files per page of a list.
    pub(super) page_length: usize,
}

fn commit_name(what: &str, at: usize) -> String {
    digest(&SHA1_FOR_LEGACY_USE_ONLY, &[format!("{what} {at}").as_bytes()])
}

/// A digest in hexadecimal digits.
pub(super) fn digest(algorithm: &'static Algorithm, parts: &[&[u8]]) -> String {
    let mut context = Context::new(algorithm);
    parts.iter().for_each(|part| context.update(part));
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
