//! Servers that are known to lose writes when several calls run at once.

/// Packages whose servers read a whole file, change it and write it back with every call, so that of two
/// parallel calls one overwrites the other's changes. Looked up in November 2026.
const KEEPS_ONE_FILE: &[&str] = &[
    "@modelcontextprotocol/server-memory",
    "mcp-server-memory",
    "mcp/memory",
    "mcp-knowledge-graph",
    "@itseasy21/mcp-knowledge-graph",
    "excel-mcp-server",
    "@negokaz/excel-mcp-server",
    "office-word-mcp-server",
];

/// The package of this command line that is known to use a single file.
pub(super) fn single_file_package<'w>(words: impl IntoIterator<Item = &'w str>) -> Option<&'static str> {
    words
        .into_iter()
        .find_map(|word| KEEPS_ONE_FILE.iter().copied().find(|package| is_package(word, package)))
}

/// Whether a word is a package, possibly with a version, or a path within it.
fn is_package(word: &str, package: &str) -> bool {
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(['@', ':', '=', '/', '.']);
    if word.strip_prefix(package).is_some_and(ends) {
        return true;
    }
    let inside = format!("/{package}");
    // An image or a package of another publisher may have the same last name.
    let is_path = word.starts_with(['/', '.', '~']);
    is_path && word.split_once(&inside).is_some_and(|(_, rest)| ends(rest))
}

#[cfg(test)]
mod tests {
    use super::single_file_package;

    #[test]
    fn a_package_is_known_by_its_name_its_version_and_its_folder() {
        for line in [
            "npx -y @modelcontextprotocol/server-memory",
            "npx -y @modelcontextprotocol/server-memory@2026.1.1 --x",
            "node /opt/node_modules/@modelcontextprotocol/server-memory/dist/index.js",
            "./node_modules/.bin/mcp-server-memory",
            "docker run -i --rm mcp/memory:latest",
            "uvx excel-mcp-server==0.1.7 stdio",
        ] {
            assert!(single_file_package(line.split(' ')).is_some(), "{line}");
        }
        for line in [
            "npx -y @modelcontextprotocol/server-memory-bank",
            "uvx my-excel-mcp-server",
            "docker run acme/mcp/memory",
        ] {
            assert_eq!(single_file_package(line.split(' ')), None, "{line}");
        }
    }
}
