//! Parses rules. Messages give the position of a mistake and what to write instead.

use rowmill_types::Citation;
use serde_json::{Map, Value};

use super::{AnswerRule, RuleAction, RuleCondition};
use crate::fault::SimulatedFault;

type Fields = Map<String, Value>;

/// Parses a JSON array of rules, or one rule per line.
pub(super) fn rules(text: &str) -> Result<Vec<AnswerRule>, String> {
    if text.trim_start().starts_with('[') {
        let values: Vec<Value> = serde_json::from_str(text)
            .map_err(|error| format!("line {}: not a JSON array: {error}", error.line()))?;
        let each = values.iter().enumerate();
        return each
            .map(|(at, value)| rule(value).map_err(|error| format!("rule {}: {error}", at + 1)))
            .collect();
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let each = lines.enumerate().map(|(at, (line, text))| {
        let read = serde_json::from_str::<Value>(text).map_err(|error| format!("not valid JSON: {error}"));
        read.and_then(|value| rule(&value))
            .map_err(|error| format!("rule {} (line {}): {error}", at + 1, line + 1))
    });
    each.collect()
}

fn rule(value: &Value) -> Result<AnswerRule, String> {
    let fields = object(value, "a rule")?;
    known(fields, &["when", "then"], "a rule")?;
    let when = match fields.get("when") {
        Some(when) => condition(object(when, "`when`")?)?,
        None => RuleCondition::default(),
    };
    let then = fields.get("then").ok_or("`then` is missing; write `\"then\": {\"text\": \"…\"}`")?;
    Ok(AnswerRule { when, then: answer(object(then, "`then`")?)? })
}

fn condition(fields: &Fields) -> Result<RuleCondition, String> {
    known(fields, &["system", "prompt", "last", "turn", "model", "tool", "schema"], "`when`")?;
    let turn = match fields.get("turn") {
        None => None,
        Some(turn) => match turn.as_u64() {
            Some(turn @ 1..) => Some(turn),
            _ => return Err(format!("`turn` must be a whole number from 1, not {turn}")),
        },
    };
    Ok(RuleCondition {
        system: text(fields, "system")?,
        prompt: text(fields, "prompt")?,
        last: text(fields, "last")?,
        turn,
        model: text(fields, "model")?,
        tool: text(fields, "tool")?,
        schema: switch(fields, "schema")?,
    })
}

fn answer(fields: &Fields) -> Result<RuleAction, String> {
    known(fields, &["text", "json", "calls", "think", "pause", "cite", "fault"], "`then`")?;
    if fields.contains_key("text") && fields.contains_key("json") {
        return Err("`text` and `json` cannot both be the answer; remove one".to_owned());
    }
    if fields.contains_key("fault") && fields.len() > 1 {
        return Err("`fault` must be alone; write the rest in a separate rule".to_owned());
    }
    Ok(RuleAction {
        text: text(fields, "text")?,
        json: fields.get("json").cloned(),
        calls: list(fields, "calls")?.iter().map(call).collect::<Result<_, _>>()?,
        thinks: switch(fields, "think")?.unwrap_or(false),
        pauses: switch(fields, "pause")?.unwrap_or(false),
        cites: list(fields, "cite")?.iter().map(citation).collect::<Result<_, _>>()?,
        fault: text(fields, "fault")?.map(|name| fault(&name)).transpose()?,
    })
}

fn call(value: &Value) -> Result<(String, Value), String> {
    let fields = object(value, "a call")?;
    known(fields, &["name", "arguments"], "a call")?;
    let name = text(fields, "name")?.ok_or("a call needs the `name` of its tool")?;
    let arguments = fields.get("arguments").cloned().unwrap_or_else(|| Value::Object(Map::new()));
    Ok((name, arguments))
}

fn citation(value: &Value) -> Result<Citation, String> {
    let fields = object(value, "a citation")?;
    known(fields, &["url", "title", "text"], "a citation")?;
    let url = text(fields, "url")?.ok_or("a citation needs a `url`")?;
    Ok(Citation { url, title: text(fields, "title")?, text: text(fields, "text")? })
}

/// Parses a fault such as `503`, or with its count per conversation: `503x2`.
fn fault(name: &str) -> Result<(SimulatedFault, Option<u64>), String> {
    let counted = name.rsplit_once('x').and_then(|(name, times)| Some((name, times.parse().ok()?)));
    let (plain, times) = counted.map_or((name, None), |(name, times)| (name, Some(times)));
    let fault = SimulatedFault::from_name(plain);
    fault.map(|fault| (fault, times)).ok_or_else(|| {
        format!(
            "`{name}` is not a fault; write a status such as `503`, a word such as `reset`, or `503x2` for \
             twice"
        )
    })
}

fn object<'v>(value: &'v Value, what: &str) -> Result<&'v Fields, String> {
    value.as_object().ok_or_else(|| format!("{what} must be an object, not {value}"))
}

fn list<'v>(fields: &'v Fields, name: &str) -> Result<&'v [Value], String> {
    match fields.get(name) {
        None => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(other) => Err(format!("`{name}` must be a list, not {other}")),
    }
}

fn text(fields: &Fields, name: &str) -> Result<Option<String>, String> {
    match fields.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("`{name}` must be a string, not {other}")),
    }
}

fn switch(fields: &Fields, name: &str) -> Result<Option<bool>, String> {
    match fields.get(name) {
        None => Ok(None),
        Some(Value::Bool(switch)) => Ok(Some(*switch)),
        Some(other) => Err(format!("`{name}` must be true or false, not {other}")),
    }
}

/// Rejects an unknown key, and suggests a similar one.
fn known(fields: &Fields, names: &[&str], place: &str) -> Result<(), String> {
    let Some(unknown) = fields.keys().find(|key| !names.contains(&key.as_str())) else { return Ok(()) };
    let mut near: Vec<(usize, &str)> =
        names.iter().map(|name| (strsim::damerau_levenshtein(unknown, name), *name)).collect();
    near.sort_by_key(|(distance, _)| *distance);
    let hint = match near.first() {
        Some((distance, name)) if *distance <= unknown.len().div_ceil(2) => {
            format!("; did you mean `{name}`?")
        }
        _ => {
            format!("; write {}", names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
        }
    };
    Err(format!("{place} has no key `{unknown}`{hint}"))
}
