//! Paths in a card.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::AgentCard;

impl AgentCard {
    /// Replaces every path of the card by the result of `resolve`, which is called with the name of the
    /// field and the path as written.
    pub fn map_paths(&mut self, resolve: &mut dyn FnMut(&'static str, &Path) -> PathBuf) {
        let mut each = |field: &'static str, path: &mut PathBuf| *path = resolve(field, path);
        self.skills.iter_mut().for_each(|path| each("skills", path));
        self.messages.iter_mut().for_each(|path| each("messages", path));
        self.cwd.iter_mut().for_each(|path| each("cwd", path));
        for tool in &mut self.function_tools {
            each("function_tools", &mut tool.entrypoint.file);
        }
        for (_, function) in &mut self.tool_hooks {
            each("tool_hooks", &mut function.file);
        }
        for (_, function) in &mut self.lifecycle_hooks {
            each("lifecycle_hooks", &mut function.file);
        }
        for server in &mut self.mcp_connect {
            if let Some(Value::String(cwd)) = server.settings.get_mut("cwd") {
                *cwd = resolve("mcp_connect", Path::new(cwd)).to_string_lossy().into_owned();
            }
        }
    }
}
