//! The workspace as described by cargo.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::TaskFailure;

/// The workspace that this task belongs to.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
}

/// A crate of the workspace or another one.
#[derive(Debug, Clone, Deserialize)]
pub struct WorkspaceCrate {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence, as an SPDX expression.
    pub license: Option<String>,
    /// Its direct dependencies.
    pub dependencies: Vec<CrateDependency>,
    /// The path of its manifest.
    pub manifest_path: PathBuf,
}

/// A dependency of a crate.
#[derive(Debug, Clone, Deserialize)]
pub struct CrateDependency {
    /// The name of the required crate.
    pub name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    pub kind: Option<String>,
}

#[derive(Deserialize)]
struct CargoMetadata {
    packages: Vec<WorkspaceCrate>,
    target_directory: PathBuf,
}

impl Workspace {
    /// The workspace whose `xtask` this is.
    ///
    /// # Errors
    ///
    /// The folder in which it was built no longer exists.
    pub fn here() -> Result<Self, TaskFailure> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let root = root.canonicalize().map_err(TaskFailure::context("cannot find the workspace"))?;
        Ok(Self { root })
    }

    /// Its folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The crates of the workspace itself.
    ///
    /// # Errors
    ///
    /// Cargo cannot read the manifests.
    pub fn own_crates(&self) -> Result<Vec<WorkspaceCrate>, TaskFailure> {
        Ok(self.metadata(&["--no-deps"])?.packages)
    }

    /// All crates in the build, of the workspace and others.
    ///
    /// # Errors
    ///
    /// Cargo cannot read the manifests, or dependencies have not been downloaded yet.
    pub fn all_crates(&self) -> Result<Vec<WorkspaceCrate>, TaskFailure> {
        // For this platform only: the dependencies of others are not downloaded.
        let platform = self.platform()?;
        Ok(self.metadata(&["--filter-platform", &platform])?.packages)
    }

    /// The folder for cargo's build output.
    pub(crate) fn target(&self) -> Result<PathBuf, TaskFailure> {
        Ok(self.metadata(&["--no-deps"])?.target_directory)
    }

    /// Builds binaries and returns their folder.
    pub(crate) fn build(&self, profile: &str, binaries: &[(&str, &str)]) -> Result<PathBuf, TaskFailure> {
        let mut command = self.cargo();
        command.args(["build", "--profile", profile]);
        for (package, binary) in binaries {
            command.args(["--package", package, "--bin", binary]);
        }
        let status = command.status().map_err(TaskFailure::context("cannot start cargo"))?;
        if !status.success() {
            return Err(TaskFailure::new(format!("`cargo build --profile {profile}` failed")));
        }
        let folder = if profile == "dev" { "debug" } else { profile };
        Ok(self.target()?.join(folder))
    }

    pub(crate) fn cargo(&self) -> Command {
        self.command(option_env!("CARGO").unwrap_or("cargo"))
    }

    /// A program that is or starts cargo, in the folder of the workspace.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        // `cargo run` describes this task's crate in the environment; a build script that reads such a
        // variable would make cargo rebuild half of the graph each time.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        command
    }

    fn platform(&self) -> Result<String, TaskFailure> {
        let output =
            Command::new("rustc").arg("-vV").output().map_err(TaskFailure::context("cannot start rustc"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let host = text.lines().find_map(|line| line.strip_prefix("host: "));
        host.map(ToOwned::to_owned).ok_or_else(|| TaskFailure::new("`rustc -vV` names no host"))
    }

    fn metadata(&self, more: &[&str]) -> Result<CargoMetadata, TaskFailure> {
        let arguments = ["metadata", "--format-version", "1", "--offline"];
        let output = self
            .cargo()
            .args(arguments)
            .args(more)
            .output()
            .map_err(TaskFailure::context("cannot start cargo"))?;
        if !output.status.success() {
            let messages = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(TaskFailure::new(format!("`cargo metadata --offline` failed: {messages}")));
        }
        serde_json::from_slice(&output.stdout).map_err(TaskFailure::context("cannot read what cargo tells"))
    }
}
