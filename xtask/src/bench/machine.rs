//! The environment in which the numbers were measured.

use std::fs;
use std::process::Command;

use crate::workspace::Workspace;

/// Facts that a reader needs to judge the numbers, as name and value.
pub(super) fn facts(
    workspace: &Workspace,
    yardstick: Option<String>,
    profile: &str,
) -> Vec<(&'static str, String)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = field("/proc/meminfo", "MemTotal:")
        .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok())
        .map_or_else(String::new, |kilobytes| format!("{:.0} GB", kilobytes * 1024.0 / 1e9));
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut facts = vec![
        ("Date", jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string()),
        ("Commit", command_output(workspace, "git", &["rev-parse", "--short", "HEAD"])),
        ("CPU", format!("{} ({cores} cores)", field("/proc/cpuinfo", "model name").unwrap_or_default())),
        ("Memory", memory),
        ("Kernel", command_output(workspace, "uname", &["-sr"])),
        ("Compiler", command_output(workspace, "rustc", &["--version"])),
        ("Profile", profile.to_owned()),
    ];
    facts.extend(yardstick.map(|yardstick| ("Yardstick", yardstick)));
    facts.push(("Load before the start", load.split_whitespace().next().unwrap_or_default().to_owned()));
    facts
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.strip_prefix(name)?.trim_start_matches([' ', '\t', ':']).trim().to_owned())
}

fn command_output(workspace: &Workspace, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(workspace.root()).output();
    output.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
