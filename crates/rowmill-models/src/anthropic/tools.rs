//! Tools in the Messages API.

use serde_json::{Map, Value, json};

use crate::body::put;
use crate::build::Setup;
use crate::schema::Prepared;
use crate::settings::Key;
use crate::tools::{ANSWERS, answer_name, hosts, parameters};

/// The versions of the tools that run at the provider. Later ones require a code execution tool as well.
const WEB_SEARCH: &str = "web_search_20250305";
const WEB_FETCH: &str = "web_fetch_20250910";

/// The beta header that this version of `web_fetch` requires.
pub(super) const FETCH_BETA: &str = "web-fetch-2025-09-10";

/// Writes the tools: the caller's, the answer tool, and those that run at the provider.
pub(super) fn tools(fields: &mut Map<String, Value>, setup: &Setup, by_tool: Option<&Prepared>) {
    let settings = &setup.model.settings;
    let mut all: Vec<Map<String, Value>> = Vec::new();
    for tool in &setup.tools {
        let mut offered = Map::new();
        put(&mut offered, "name", Some(tool.name.as_str()));
        put(&mut offered, "description", tool.description.as_deref());
        put(&mut offered, "input_schema", Some(parameters(tool)));
        all.push(offered);
    }
    if let Some(prepared) = by_tool {
        let mut offered = Map::new();
        put(&mut offered, "name", Some(answer_name(&setup.tools)));
        put(&mut offered, "description", Some(ANSWERS));
        put(&mut offered, "input_schema", Some(prepared.schema.clone()));
        all.push(offered);
    }
    for (key, edition) in [(Key::WebSearch, WEB_SEARCH), (Key::WebFetch, WEB_FETCH)] {
        if hosts(settings, key) {
            let mut offered = Map::new();
            put(&mut offered, "type", Some(edition));
            put(&mut offered, "name", Some(key.name()));
            // JSON mode rejects documents with citations.
            let cites = key == Key::WebFetch && (setup.schema.is_none() || by_tool.is_some());
            put(&mut offered, "citations", cites.then(|| json!({"enabled": true})));
            all.push(offered);
        }
    }
    // All rows share the tools. If there is an instruction, its cache marker covers them, because they come
    // before it.
    let marked = all.last_mut().filter(|_| setup.instruction.is_none() && !setup.tools.is_empty());
    if let Some(last) = marked {
        put(last, "cache_control", Some(json!({"type": "ephemeral"})));
    }
    let choice = choice(setup, by_tool.is_some(), all.len());
    put(fields, "tools", (!all.is_empty()).then(|| Value::from_iter(all)));
    put(fields, "tool_choice", choice);
}

/// The tool choice: the answer tool if it is the only one, else any.
fn choice(setup: &Setup, answers: bool, tools: usize) -> Option<Value> {
    let mut choice = Map::new();
    if answers && tools == 1 {
        put(&mut choice, "type", Some("tool"));
        put(&mut choice, "name", Some(answer_name(&setup.tools)));
    } else if answers {
        put(&mut choice, "type", Some("any"));
    }
    if setup.parallel_tool_calls == Some(false) && !setup.tools.is_empty() {
        if !answers {
            put(&mut choice, "type", Some("auto"));
        }
        put(&mut choice, "disable_parallel_tool_use", Some(true));
    }
    (!choice.is_empty()).then_some(Value::Object(choice))
}
