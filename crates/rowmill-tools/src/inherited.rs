//! What processes that tools start get of rowmill's environment.

/// What every program needs to work, and nothing that could be a credential.
const EVERYONE: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    // Whoever started rowmill as a tool ends what rowmill starts, too.
    crate::survivors::VARIABLE,
];

/// The variables that everyone gets, and `more`, as far as they are set.
pub(crate) fn inherited<'n>(
    more: &'n [&'static str],
    environment: &'n dyn Fn(&str) -> Option<String>,
) -> impl Iterator<Item = (&'static str, String)> + 'n {
    EVERYONE.iter().chain(more).filter_map(|name| Some((*name, environment(name)?)))
}
