//! Tokens in a file that only its owner can read.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use rmcp::transport::auth::{AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials};
use rowmill_core::redact::Redactor;

use super::token_client::redact_tokens;

/// The tokens of one server.
#[derive(Debug, Clone)]
pub(super) struct TokenFile {
    path: PathBuf,
    /// Receives the tokens that are read: another process may have renewed them.
    redactor: Redactor,
}

impl TokenFile {
    pub(super) fn new(path: &Path, redactor: Redactor) -> Self {
        Self { path: path.to_owned(), redactor }
    }

    fn read(&self) -> io::Result<Option<StoredCredentials>> {
        match std::fs::read(&self.path) {
            Ok(text) => {
                redact_tokens(&self.redactor, &text)
                    .map_err(|problem| io::Error::other(problem.to_string()))?;
                serde_json::from_slice(&text).map(Some).map_err(io::Error::other)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a new file and renames it over the old one, so that a crash loses neither.
    fn write(&self, credentials: &StoredCredentials) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let text = serde_json::to_vec(credentials).map_err(io::Error::other)?;
        // `tempfile` creates files that only their owner can read.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&text)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Allows one refresh at a time across all processes: a refresh token may be valid only once.
    fn lock(&self) -> io::Result<File> {
        let path = self.path.with_extension("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        file.lock()?;
        Ok(file)
    }
}

fn failed(error: io::Error) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, AuthError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| failed(io::Error::other(error)))?.map_err(failed)
}

#[async_trait]
impl CredentialStore for TokenFile {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let file = self.clone();
        blocking(move || file.read()).await
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let file = self.clone();
        blocking(move || file.write(&credentials)).await
    }

    async fn clear(&self) -> Result<(), AuthError> {
        let path = self.path.clone();
        blocking(move || match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
        .await
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let file = self.clone();
        let lock = blocking(move || file.lock()).await?;
        Ok(Some(CredentialRefreshGuard::new(lock)))
    }
}
