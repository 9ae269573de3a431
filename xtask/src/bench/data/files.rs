//! The sample rows for the measurements.

use std::process::Command;

use crate::Failure;
use crate::bench::measure::cost_of;
use crate::bench::stage::Stage;

/// The name of a file with `count` rows; it is generated unless an earlier run left it.
pub(super) fn made(stage: &Stage, count: u64, format: &str) -> Result<String, Failure> {
    let name = format!("made-{count}.{format}");
    if !stage.folder.join(&name).exists() {
        let begun = format!("begun-{name}");
        let mut command = Command::new(&stage.xtask);
        command.current_dir(&stage.folder).args(["make-rows", "--format", format, "--output", &begun]);
        command.args(["--rows", &count.to_string()]);
        cost_of(&mut command)?;
        std::fs::rename(stage.folder.join(&begun), stage.folder.join(&name))?;
    }
    Ok(name)
}

/// A file size in readable form.
pub(super) fn size(stage: &Stage, name: &str) -> Result<String, Failure> {
    let bytes = std::fs::metadata(stage.folder.join(name))?.len();
    Ok(format!("{:.2} GB", bytes as f64 / 1e9))
}
