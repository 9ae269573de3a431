//! The sample rows for the measurements.

use std::process::Command;

use crate::TaskFailure;
use crate::bench::context::BenchContext;
use crate::bench::measure::measure_cost;

/// The name of a file with `count` rows; it is generated unless an earlier run left it.
pub(super) fn made(context: &BenchContext, count: u64, format: &str) -> Result<String, TaskFailure> {
    let name = format!("made-{count}.{format}");
    if !context.folder.join(&name).exists() {
        let begun = format!("begun-{name}");
        let mut command = Command::new(&context.xtask);
        command.current_dir(&context.folder).args(["make-rows", "--format", format, "--output", &begun]);
        command.args(["--rows", &count.to_string()]);
        measure_cost(&mut command)?;
        std::fs::rename(context.folder.join(&begun), context.folder.join(&name))?;
    }
    Ok(name)
}

/// A file size in readable form.
pub(super) fn size(context: &BenchContext, name: &str) -> Result<String, TaskFailure> {
    let bytes = std::fs::metadata(context.folder.join(name))?.len();
    Ok(format!("{:.2} GB", bytes as f64 / 1e9))
}
