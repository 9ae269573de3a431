//! What downloads ask of a fetcher.

use std::path::PathBuf;

use rowmill_types::{Problem, ProblemCode};

use crate::fetch::{FetchEvent, FetchEventKind, FetchSettings, Fetcher};

impl Fetcher<'_> {
    pub(crate) fn emit(&self, name: &str, step: FetchEventKind) {
        (self.on_event)(FetchEvent { name: name.into(), step });
    }
}

impl FetchEventKind {
    /// Another process is fetching the same file.
    pub(crate) fn waiting_for_process() -> Self {
        Self::Waiting { wait: None, reason: "another process is downloading it".into() }
    }
}

impl FetchSettings {
    /// The folder for downloads.
    pub(crate) fn downloads(&self) -> Result<PathBuf, Problem> {
        if self.cache.as_os_str().is_empty() {
            let message = "no folder for downloads: neither `HOME` nor `XDG_CACHE_HOME` is set";
            return Err(
                Problem::new(ProblemCode::FetchFailed, message).hint("set one with `ROWMILL_CACHE_DIR`")
            );
        }
        Ok(self.cache.join("downloads"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downloads_need_a_folder() {
        assert!(FetchSettings::from_environment(&|_| None).downloads().is_err());
        let known = |name: &str| (name == "ROWMILL_CACHE_DIR").then(|| "/c".to_owned());
        let folder = FetchSettings::from_environment(&known).downloads().unwrap();
        assert_eq!(folder, PathBuf::from("/c/downloads"));
    }
}
