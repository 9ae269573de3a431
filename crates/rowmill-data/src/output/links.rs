//! Resolves links.

use std::fs;
use std::path::{Path, PathBuf};

/// After this many links, a path counts as leading nowhere.
const MOST_LINKS: usize = 40;

/// The file that a path leads to through links, even if it does not exist yet. A link itself is kept, and its
/// target is created, replaced or removed. Circular links lead to one of them.
#[must_use]
pub fn link_target(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("/")).join(target);
    }
    path
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_to_a_file_that_may_be_missing() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        symlink("second", at("first")).unwrap();
        symlink("folder/file", at("second")).unwrap();
        symlink("circle", at("circle")).unwrap();
        assert_eq!(link_target(&at("first")), at("folder/file"));
        assert_eq!(link_target(&at("file")), at("file"));
        assert!(link_target(&at("circle")).is_symlink());
    }
}
