//! The digest of everything in a worker that shapes answers.

use std::fs;
use std::path::{Path, PathBuf};

use rowmill_cards::AgentCard;
use rowmill_core::fingerprint;
use rowmill_types::{Message, MessageRole, Problem, ProblemCode};
use serde_json::{Value, json};

use super::load::python_functions;

/// The digest of cards, independent of the order in which they were loaded and of their folder.
pub(super) fn cards_digest(members: &[&AgentCard]) -> Result<String, Problem> {
    let mut members = members.to_vec();
    members.sort_by(|left, right| left.name.cmp(&right.name));
    let shapes: Vec<Value> = members.into_iter().map(shape).collect::<Result<_, _>>()?;
    Ok(fingerprint::text_digest(&Value::Array(shapes).to_string()))
}

/// The same contents as readable lines; files that cards name appear with a digest of their contents.
pub(super) fn cards_as_lines(members: &[&AgentCard]) -> Result<String, Problem> {
    let mut members = members.to_vec();
    members.sort_by(|left, right| left.name.cmp(&right.name));
    let mut text = String::new();
    for card in members {
        let shape = serde_json::to_string_pretty(&card.shape).unwrap_or_default();
        text.push_str(&format!(
            "{}\n{shape}\n{}\n",
            card.name,
            card.instruction.as_deref().unwrap_or_default()
        ));
        for message in &card.history {
            text.push_str(&format!("{:?}: {}\n", message.role, message.text));
        }
        for file in named_files(card)? {
            let digest = content(&file)?;
            text.push_str(&format!("{} ({})\n", file.display(), digest.get(..8).unwrap_or_default()));
        }
    }
    Ok(text)
}

fn shape(card: &AgentCard) -> Result<Value, Problem> {
    let history: Vec<_> = card.history.iter().map(message).collect();
    let contents: Vec<String> =
        named_files(card)?.iter().map(|file| content(file)).collect::<Result<_, _>>()?;
    Ok(json!({
        "name": card.name,
        "card": card.shape,
        "instruction": card.instruction,
        "history": history,
        "files": contents,
    }))
}

/// A message of plain text has the same form as before messages could hold calls.
fn message(message: &Message) -> Value {
    let mut parts = vec![json!(message.role == MessageRole::Assistant), json!(message.text)];
    parts.extend(message.calls.iter().map(|call| json!([call.id, call.name, call.arguments])));
    parts.extend(message.answered_call.as_ref().map(|answers| json!([answers.call, answers.is_error])));
    Value::Array(parts)
}

/// The Python files and the skills that a card names.
fn named_files(card: &AgentCard) -> Result<Vec<PathBuf>, Problem> {
    let mut files: Vec<PathBuf> = python_functions(card).map(|(_, function)| function.file.clone()).collect();
    files.sort();
    files.dedup();
    for folder in &card.skills {
        files.extend(skill_texts(folder)?);
    }
    Ok(files)
}

/// The descriptions of the skill in a folder, or of those in its subfolders.
pub(super) fn skill_texts(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
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

/// The file of a function, and the modules that it may import from its folder.
pub(super) fn modules_beside(file: &Path) -> Vec<PathBuf> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let modules = entries.filter(|path| path.extension().is_some_and(|ending| ending == "py"));
    std::iter::once(file.to_owned()).chain(modules).collect()
}

/// Every file in a folder and its subfolders: a skill may have an agent read any of them.
pub(super) fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // Links to folders are not followed: they may form a circle.
            match entry.file_type() {
                Ok(found) if found.is_dir() => folders.push(entry.path()),
                _ => files.push(entry.path()),
            }
        }
    }
    files
}

fn content(file: &Path) -> Result<String, Problem> {
    let bytes = fs::read(file).map_err(|error| unreadable(file, error))?;
    Ok(fingerprint::text_digest(&String::from_utf8_lossy(&bytes)))
}

fn unreadable(path: &Path, error: std::io::Error) -> Problem {
    Problem::new(ProblemCode::TextUnreadable, format!("cannot be read: `{}`", path.display()))
        .cause(error)
        .hint("check its permissions")
}
