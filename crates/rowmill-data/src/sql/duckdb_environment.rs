//! What the user's DuckDB gets of the environment: what it and Python need to work, and no keys of providers.

use std::ffi::{OsStr, OsString};

const NAMES: &[&str] = &[
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "LANGUAGE",
    "TZ",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    // Where Python finds itself and its packages.
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONUSERBASE",
    "PYENV_ROOT",
    "PYENV_VERSION",
    // Extensions are fetched when a query needs them, and a query may read files elsewhere.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    // Whoever started rowmill as a tool ends what rowmill starts, too.
    "ROWMILL_CALL",
];

/// The variables that DuckDB gets, of all there are.
pub(super) fn variables_for_duckdb(all: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    // Where a web server starts a program, whoever asks that server can set `HTTP_PROXY`.
    let is_asked_by_others = all.iter().any(|(name, _)| name == "REQUEST_METHOD");
    let is_needed = |name: &OsStr| {
        NAMES.iter().any(|known| name == *known)
            || name.to_str().is_some_and(|name| name.starts_with("LC_"))
            || (name == "HTTP_PROXY" && !is_asked_by_others)
    };
    all.iter().filter(|(name, _)| is_needed(name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duckdb_gets_what_it_needs_and_no_key() {
        let given = |names: &[&str]| {
            let all: Vec<_> = names.iter().map(|name| (OsString::from(name), OsString::from("x"))).collect();
            let handed_over = variables_for_duckdb(&all).into_iter();
            handed_over.map(|(name, _)| name.into_string().unwrap()).collect::<Vec<_>>()
        };
        let needed =
            ["PATH", "HOME", "LC_ALL", "LC_TIME", "TZ", "VIRTUAL_ENV", "HTTPS_PROXY", "SSL_CERT_FILE"];
        assert_eq!(given(&needed), needed);
        let keys = ["OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "LAB_LC_KEY", "MY_PATH"];
        assert_eq!(given(&keys), [""; 0]);
        assert_eq!(given(&["HTTP_PROXY"]), ["HTTP_PROXY"]);
        assert_eq!(given(&["HTTP_PROXY", "REQUEST_METHOD"]), [""; 0]);
    }
}
