//! The environment variables of rowmill that tools' processes inherit.

/// The variables that every program needs, none of which can be a credential.
const COMMON_VARIABLES: &[&str] = &[
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
    // If rowmill itself runs as a tool, its caller also kills what rowmill starts.
    crate::survivors::VARIABLE,
];

/// The variables that every process gets and those in `more`, if they are set.
pub(crate) fn inherited_variables<'n>(
    more: &'n [&'static str],
    environment: &'n dyn Fn(&str) -> Option<String>,
) -> impl Iterator<Item = (&'static str, String)> + 'n {
    COMMON_VARIABLES.iter().chain(more).filter_map(|name| Some((*name, environment(name)?)))
}
