//! Paths in a card, which begin at the card's folder.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Card;

impl Card {
    /// Makes every relative path of the card begin at `folder`, and `~` at `home`.
    pub fn resolve_paths(&mut self, folder: &Path, home: Option<&Path>) {
        let resolve = |path: &mut PathBuf| *path = resolved(path, folder, home);
        self.skills.iter_mut().for_each(resolve);
        self.messages.iter_mut().for_each(resolve);
        self.cwd.iter_mut().for_each(resolve);
        self.function_tools.iter_mut().for_each(|tool| resolve(&mut tool.entrypoint.file));
        self.tool_hooks.iter_mut().for_each(|(_, function)| resolve(&mut function.file));
        self.lifecycle_hooks.iter_mut().for_each(|(_, function)| resolve(&mut function.file));
        for server in &mut self.mcp_connect {
            if let Some(Value::String(cwd)) = server.settings.get_mut("cwd") {
                *cwd = resolved(Path::new(cwd), folder, home).to_string_lossy().into_owned();
            }
        }
    }
}

fn resolved(path: &Path, folder: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        // An absolute path stays what it is.
        _ => folder.join(path),
    }
}
