//! `${NAME}` and `${NAME:default}` in the fields of a card.

use rowmill_types::settings::AGENT_CARD;

use crate::mistake::CardMistake;
use crate::parse::CardOrigin;
use crate::yaml::{YamlContent, YamlNode};

/// Fields with text for people and models, in which `${…}` may be meant literally.
const PROSE: [&str; 4] = ["instruction", "description", "refinement_instruction", "variables"];

/// Replaces variables of the environment in all texts of a card.
pub(crate) fn expand_variables(card: &mut YamlNode, origin: &CardOrigin<'_>) -> Result<(), Vec<CardMistake>> {
    let YamlContent::Mapping(entries) = &mut card.content else { return Ok(()) };
    let mut mistakes = Vec::new();
    for entry in entries {
        let strict = !PROSE.contains(&entry.key.as_str());
        each_text(&mut entry.node, &mut |text, line| match expand_text(text, origin, strict) {
            Ok(expanded) => *text = expanded,
            Err(name) => mistakes.push(unset(&name, line, origin)),
        });
    }
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
}

/// Calls a function for all texts of a node that may name variables, with their lines.
fn each_text(node: &mut YamlNode, change: &mut dyn FnMut(&mut String, u64)) {
    match &mut node.content {
        YamlContent::Text(text) if text.contains("${") => change(text, node.line),
        YamlContent::List(nodes) => nodes.iter_mut().for_each(|node| each_text(node, change)),
        YamlContent::Mapping(entries) => {
            entries.iter_mut().for_each(|entry| each_text(&mut entry.node, change))
        }
        _ => {}
    }
}

/// Expands a text; fails with the name of a variable that has no value.
fn expand_text(text: &str, origin: &CardOrigin<'_>, strict: bool) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((inner, behind)) = after.split_once('}').filter(|(inner, _)| !inner.is_empty()) else {
            out.push_str("${");
            rest = after;
            continue;
        };
        let (name, default) = match inner.split_once(':') {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let value = match origin {
            CardOrigin::Local { environment } => environment(name).or_else(|| default.map(str::to_owned)),
            CardOrigin::Remote => None,
        };
        match value {
            Some(value) => out.push_str(&value),
            None if strict => return Err(name.to_owned()),
            None => {
                out.push_str("${");
                out.push_str(inner);
                out.push('}');
            }
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

fn unset(name: &str, line: u64, origin: &CardOrigin<'_>) -> CardMistake {
    match origin {
        CardOrigin::Local { .. } => {
            CardMistake::at(line, format!("the environment variable `{name}` is not set"))
                .hint(format!("set it, or give a default: `${{{name}:…}}`"))
        }
        CardOrigin::Remote => {
            CardMistake::at(line, format!("a remote card may not read environment variables: `${{{name}}}`"))
                .hint(format!("save the card to a file that you trust and pass its path to {AGENT_CARD}"))
        }
    }
}
