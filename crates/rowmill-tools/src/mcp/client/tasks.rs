//! Tools that can be called only as tasks, which need more than one request to answer.
//!
//! The SDK drops the field `execution` of a tool, so it is moved to a field that the SDK keeps.

use std::borrow::Cow;

use memchr::memmem;
use rmcp::model::Tool;
use serde_json::{Map, Value};

/// The field that keeps it.
const KEPT: &str = "rowmill/execution";

/// A message of a server in which the `execution` field of its tools is kept in their `_meta`.
pub(super) fn keep_execution_field(message: &[u8]) -> Cow<'_, [u8]> {
    if memmem::find(message, b"\"taskSupport\"").is_none() {
        return Cow::Borrowed(message);
    }
    let moved = || {
        let mut whole: Value = serde_json::from_slice(message).ok()?;
        let tools = whole.get_mut("result")?.get_mut("tools")?.as_array_mut()?;
        for tool in tools.iter_mut().filter_map(Value::as_object_mut) {
            let Some(execution) = tool.remove("execution") else { continue };
            let meta = tool.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
            if let Some(meta) = meta.as_object_mut() {
                meta.insert(KEPT.to_owned(), execution);
            }
        }
        serde_json::to_vec(&whole).ok()
    };
    moved().map_or(Cow::Borrowed(message), Cow::Owned)
}

/// Whether a tool cannot be called directly.
pub(super) fn is_task_only(tool: &Tool) -> bool {
    let execution = tool.meta.as_ref().and_then(|meta| meta.0.get(KEPT));
    execution.and_then(|execution| execution.get("taskSupport")).and_then(Value::as_str) == Some("required")
}
