//! Tools in the Messages API.

use serde_json::{Map, Value, json};

use crate::body::insert_if_some;
use crate::build_model::ModelSetup;
use crate::model_settings::ModelSettingKey;
use crate::schema::PreparedSchema;
use crate::tool_calls::{ANSWERS, answer_tool_name, hosts_tool, tool_parameters};

/// The versions of the tools that run at the provider. Later ones require a code execution tool as well.
const WEB_SEARCH: &str = "web_search_20250305";
const WEB_FETCH: &str = "web_fetch_20250910";

/// The beta header that this version of `web_fetch` requires.
pub(super) const FETCH_BETA: &str = "web-fetch-2025-09-10";

/// Writes the tools: the caller's, the answer tool, and those that run at the provider.
pub(super) fn write_tools(
    fields: &mut Map<String, Value>,
    setup: &ModelSetup,
    by_tool: Option<&PreparedSchema>,
) {
    let settings = &setup.model.settings;
    let mut all: Vec<Map<String, Value>> = Vec::new();
    for tool in &setup.tools {
        let mut offered = Map::new();
        insert_if_some(&mut offered, "name", Some(tool.name.as_str()));
        insert_if_some(&mut offered, "description", tool.description.as_deref());
        insert_if_some(&mut offered, "input_schema", Some(tool_parameters(tool)));
        all.push(offered);
    }
    if let Some(prepared) = by_tool {
        let mut offered = Map::new();
        insert_if_some(&mut offered, "name", Some(answer_tool_name(&setup.tools)));
        insert_if_some(&mut offered, "description", Some(ANSWERS));
        insert_if_some(&mut offered, "input_schema", Some(prepared.schema.clone()));
        all.push(offered);
    }
    for (key, edition) in [(ModelSettingKey::WebSearch, WEB_SEARCH), (ModelSettingKey::WebFetch, WEB_FETCH)] {
        if hosts_tool(settings, key) {
            let mut offered = Map::new();
            insert_if_some(&mut offered, "type", Some(edition));
            insert_if_some(&mut offered, "name", Some(key.name()));
            // JSON mode rejects documents with citations.
            let cites = key == ModelSettingKey::WebFetch && (setup.schema.is_none() || by_tool.is_some());
            insert_if_some(&mut offered, "citations", cites.then(|| json!({"enabled": true})));
            all.push(offered);
        }
    }
    // All rows share the tools. If there is an instruction, its cache marker covers them, because they come
    // before it.
    let marked = all.last_mut().filter(|_| setup.instruction.is_none() && !setup.tools.is_empty());
    if let Some(last) = marked {
        insert_if_some(last, "cache_control", Some(json!({"type": "ephemeral"})));
    }
    let choice = choice(setup, by_tool.is_some(), all.len());
    insert_if_some(fields, "tools", (!all.is_empty()).then(|| Value::from_iter(all)));
    insert_if_some(fields, "tool_choice", choice);
}

/// The tool choice: the answer tool if it is the only one, else any.
fn choice(setup: &ModelSetup, answers: bool, tools: usize) -> Option<Value> {
    let mut choice = Map::new();
    if answers && tools == 1 {
        insert_if_some(&mut choice, "type", Some("tool"));
        insert_if_some(&mut choice, "name", Some(answer_tool_name(&setup.tools)));
    } else if answers {
        insert_if_some(&mut choice, "type", Some("any"));
    }
    if setup.parallel_tool_calls == Some(false) && !setup.tools.is_empty() {
        if !answers {
            insert_if_some(&mut choice, "type", Some("auto"));
        }
        insert_if_some(&mut choice, "disable_parallel_tool_use", Some(true));
    }
    (!choice.is_empty()).then_some(Value::Object(choice))
}
