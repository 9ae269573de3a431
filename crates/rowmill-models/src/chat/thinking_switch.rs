//! How thinking is switched on and off for models that each have a field of their own for it.

use serde_json::{Map, Value, json};

use crate::body::insert_if_some;

/// The field that switches thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThinkingSwitch {
    /// `thinking: {type: disabled}`; the model thinks by default.
    Disabled,
    /// `chat_template_kwargs: {thinking: false}`; the model thinks by default.
    TemplateThinking,
    /// `chat_template_kwargs: {enable_thinking: …}`.
    TemplateEnable,
    /// `disable_reasoning`.
    DisableReasoning,
}

/// Models by the start of their names in lower case, without the route.
const SWITCHES: &[(&str, ThinkingSwitch)] = &[
    ("moonshotai/kimi-k2.5", ThinkingSwitch::Disabled),
    ("moonshotai/kimi-k2.6", ThinkingSwitch::TemplateThinking),
    ("moonshotai/kimi-k2.7", ThinkingSwitch::DisableReasoning),
    ("zai-org/glm-", ThinkingSwitch::Disabled),
    ("qwen/qwen3.5-", ThinkingSwitch::TemplateEnable),
    ("qwen/qwen3.6-", ThinkingSwitch::TemplateEnable),
    ("google/gemma-4-", ThinkingSwitch::TemplateEnable),
];

/// Writes the field for a value of `reasoning`: a switch, or a level.
pub(super) fn write_thinking_switch(
    fields: &mut Map<String, Value>,
    model: &str,
    word: Option<&'static str>,
) {
    let name = model.to_ascii_lowercase();
    let switch = SWITCHES.iter().find(|(start, _)| name.starts_with(start)).map(|(_, switch)| *switch);
    let on = match word {
        Some("on") => true,
        Some("off" | "none") => false,
        _ => return insert_if_some(fields, "reasoning_effort", word.and_then(super::wire::effort)),
    };
    match (switch, on) {
        (Some(ThinkingSwitch::TemplateEnable), on) => {
            insert_if_some(fields, "chat_template_kwargs", Some(json!({"enable_thinking": on})));
        }
        (Some(ThinkingSwitch::DisableReasoning), on) => {
            insert_if_some(fields, "disable_reasoning", Some(!on))
        }
        (Some(ThinkingSwitch::Disabled), false) => {
            insert_if_some(fields, "thinking", Some(json!({"type": "disabled"})));
        }
        (Some(ThinkingSwitch::TemplateThinking), false) => {
            insert_if_some(fields, "chat_template_kwargs", Some(json!({"thinking": false})));
        }
        (None, false) => insert_if_some(fields, "reasoning_effort", Some("none")),
        // The model thinks by default.
        (_, true) => {}
    }
}
