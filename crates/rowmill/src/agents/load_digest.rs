//! What of a worker shapes answers, in one digest.

use std::fs;
use std::path::{Path, PathBuf};

use rowmill_cards::Card;
use rowmill_core::fingerprint;
use rowmill_types::{Problem, ProblemCode, Role};
use serde_json::{Value, json};

use super::load::functions;

/// The digest of cards, whatever the order in which they were loaded and the folder they are in.
pub(super) fn digest(members: &[&Card]) -> Result<String, Problem> {
    let mut members = members.to_vec();
    members.sort_by(|left, right| left.name.cmp(&right.name));
    let shapes: Vec<Value> = members.into_iter().map(shape).collect::<Result<_, _>>()?;
    Ok(fingerprint::digest(&Value::Array(shapes).to_string()))
}

fn shape(card: &Card) -> Result<Value, Problem> {
    let history: Vec<_> =
        card.history.iter().map(|message| json!([message.role == Role::Assistant, message.text])).collect();
    let mut files: Vec<PathBuf> = functions(card).map(|(_, function)| function.file.clone()).collect();
    files.sort();
    files.dedup();
    for folder in &card.skills {
        files.extend(skill_texts(folder)?);
    }
    let contents: Vec<String> = files.iter().map(|file| content(file)).collect::<Result<_, _>>()?;
    Ok(json!({
        "name": card.name,
        "card": card.shape,
        "instruction": card.instruction,
        "history": history,
        "files": contents,
    }))
}

/// The descriptions of the skill in a folder, or of those in the folders inside.
fn skill_texts(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    let own = folder.join("SKILL.md");
    if own.is_file() {
        return Ok(vec![own]);
    }
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
        let text = entry.map_err(|error| unreadable(folder, error))?.path().join("SKILL.md");
        if text.is_file() {
            texts.push(text);
        }
    }
    texts.sort();
    Ok(texts)
}

fn content(file: &Path) -> Result<String, Problem> {
    let bytes = fs::read(file).map_err(|error| unreadable(file, error))?;
    Ok(fingerprint::digest(&String::from_utf8_lossy(&bytes)))
}

fn unreadable(path: &Path, error: std::io::Error) -> Problem {
    Problem::new(ProblemCode::TextUnreadable, format!("cannot be read: `{}`", path.display()))
        .cause(error)
        .hint("check its permissions")
}
