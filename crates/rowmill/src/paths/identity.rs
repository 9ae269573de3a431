//! Identifies a file independently of its path.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rowmill_data::output::link_target;

/// The identity of a file or folder: device and inode if it exists, otherwise the full path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum FileIdentity {
    /// The file exists.
    Existing { device: u64, inode: u64 },
    /// The file does not exist yet.
    Missing(PathBuf),
}

impl FileIdentity {
    /// The identity of the file that a path leads to. Devices and pipes have none: they may be used any
    /// number of times, and hold nothing that could be lost.
    pub(super) fn of(path: &Path) -> Option<Self> {
        // Missing folders will be created, and then `new/../a` leads to `a`.
        match fs::metadata(path).or_else(|_| fs::metadata(full_path(path))) {
            Ok(found) if found.is_file() || found.is_dir() => {
                Some(Self::Existing { device: found.dev(), inode: found.ino() })
            }
            Ok(_) => None,
            Err(_) => Some(Self::Missing(full_path(path))),
        }
    }
}

/// Whether two paths lead to the same file, also through links.
#[must_use]
pub fn same_file(one: &Path, other: &Path) -> bool {
    let identity = FileIdentity::of(one);
    identity.is_some() && identity == FileIdentity::of(other)
}

/// The path with links and dots resolved, as far as it exists.
pub(super) fn full_path(path: &Path) -> PathBuf {
    let path = link_target(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    let mut missing = Vec::new();
    let mut known = path.as_path();
    loop {
        if let Ok(full) = known.canonicalize() {
            return missing.into_iter().rev().fold(full, joined);
        }
        match (known.parent(), known.components().next_back()) {
            (Some(parent), Some(last)) => {
                missing.push(last.as_os_str());
                known = parent;
            }
            _ => return path,
        }
    }
}

/// Dots after a folder that does not exist are resolved literally.
fn joined(mut folder: PathBuf, name: &std::ffi::OsStr) -> PathBuf {
    if name == ".." {
        folder.pop();
    } else {
        folder.push(name);
    }
    folder
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_distinguished_by_what_they_are_and_not_by_their_names() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::write(at("a"), "").unwrap();
        fs::write(at("b"), "").unwrap();
        fs::hard_link(at("a"), at("hard")).unwrap();
        symlink("a", at("soft")).unwrap();
        symlink("new", at("dangling")).unwrap();
        for (one, other, expected) in [
            ("a", "hard", true),
            ("a", "soft", true),
            ("soft", "hard", true),
            ("a", "b", false),
            ("a", "no/../a", true),
            ("new", "dangling", true),
            ("no/deep/new", "no/./deep/../deep/new", true),
            ("new", "other", false),
        ] {
            assert_eq!(same_file(&at(one), &at(other)), expected, "{one} {other}");
        }
        assert!(!same_file(Path::new("/dev/null"), Path::new("/dev/null")), "a device is used by many");
    }
}
