//! `${NAME}` and `${NAME:default}` in the fields of a card.

use crate::mistake::Mistake;
use crate::parse::Origin;
use crate::yaml::{Content, Node};

/// Fields for people and models to read, where `${…}` may be meant as it stands.
const PROSE: [&str; 4] = ["instruction", "description", "refinement_instruction", "variables"];

/// Puts values of the environment into all texts of a card.
pub(crate) fn expand(card: &mut Node, origin: &Origin<'_>) -> Result<(), Mistake> {
    let Content::Mapping(entries) = &mut card.content else { return Ok(()) };
    for entry in entries {
        let strict = !PROSE.contains(&entry.key.as_str());
        expand_node(&mut entry.node, origin, strict)?;
    }
    Ok(())
}

fn expand_node(node: &mut Node, origin: &Origin<'_>, strict: bool) -> Result<(), Mistake> {
    let line = node.line;
    match &mut node.content {
        Content::Text(text) if text.contains("${") => {
            *text = expand_text(text, origin, strict).map_err(|name| unset(&name, line, origin))?;
        }
        Content::List(nodes) => {
            for node in nodes {
                expand_node(node, origin, strict)?;
            }
        }
        Content::Mapping(entries) => {
            for entry in entries {
                expand_node(&mut entry.node, origin, strict)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Fails with the name of a variable that has no value.
fn expand_text(text: &str, origin: &Origin<'_>, strict: bool) -> Result<String, String> {
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
            Origin::Local { environment } => environment(name).or_else(|| default.map(str::to_owned)),
            Origin::Remote => None,
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

fn unset(name: &str, line: u64, origin: &Origin<'_>) -> Mistake {
    match origin {
        Origin::Local { .. } => Mistake::at(line, format!("the environment variable `{name}` is not set"))
            .hint(format!("set it, or give a default: `${{{name}:…}}`")),
        Origin::Remote => {
            Mistake::at(line, format!("a card from elsewhere may not read the environment: `${{{name}}}`"))
                .hint("save the card to a file that you trust and give its path to `--agent-card`")
        }
    }
}
