//! Finds skills and reads their descriptions.

use std::path::{Path, PathBuf};

use rowmill_types::{Problem, ProblemCode};
use serde::Deserialize;

/// The file that makes a folder a skill.
pub(super) const SKILL_FILE: &str = "SKILL.md";

/// One skill.
#[derive(Debug)]
pub(super) struct Skill {
    pub(super) name: String,
    pub(super) description: String,
    /// The text below the front matter.
    pub(super) text: String,
    /// Its folder, with links resolved.
    pub(super) folder: PathBuf,
}

/// The required fields of the front matter; others are ignored.
#[derive(Deserialize)]
struct FrontMatter {
    name: Option<String>,
    description: Option<String>,
}

/// All skills in these folders: each is a skill, or contains skills.
pub(super) fn read_skills(folders: &[PathBuf]) -> Result<Vec<Skill>, Problem> {
    let mut skills: Vec<Skill> = Vec::new();
    for folder in folders {
        for found in skill_folders(folder)? {
            let skill = read_skill(&found)?;
            if let Some(other) = skills.iter().find(|other| other.name.eq_ignore_ascii_case(&skill.name)) {
                let message = format!("two skills have the name `{}`", skill.name);
                let places = format!("`{}` and `{}`", other.folder.display(), skill.folder.display());
                return Err(problem(message).cause(places).hint("rename one of them"));
            }
            skills.push(skill);
        }
    }
    Ok(skills)
}

fn skill_folders(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    if folder.join(SKILL_FILE).is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let entries = std::fs::read_dir(folder).map_err(|error| {
        problem(format!("cannot read the skills folder: `{}`", folder.display()))
            .cause(error)
            .hint("check the path in `skills`")
    })?;
    let mut found: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.join(SKILL_FILE).is_file()).collect();
    found.sort_unstable();
    if found.is_empty() {
        let message = format!("there is no skill in `{}`", folder.display());
        return Err(problem(message)
            .hint("a skill is a folder with a `SKILL.md`; use that folder or the one above it"));
    }
    Ok(found)
}

fn read_skill(folder: &Path) -> Result<Skill, Problem> {
    let path = folder.join(SKILL_FILE);
    let shown = path.display();
    let unreadable =
        |error: std::io::Error| problem(format!("cannot read the skill: `{shown}`")).cause(error);
    let content = std::fs::read_to_string(&path).map_err(unreadable)?;
    let folder = folder.canonicalize().map_err(unreadable)?;
    let example = "start the file with `---`, `name: …`, `description: …` and `---`, each on its own line";
    let (front, text) = split(&content)
        .ok_or_else(|| problem(format!("the skill has no front matter: `{shown}`")).hint(example))?;
    let front: FrontMatter = serde_saphyr::from_str(front).map_err(|error| {
        problem(format!("the front matter of the skill is not valid: `{shown}`")).cause(error).hint(example)
    })?;
    let needed = |field: Option<String>, name: &str| {
        field
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
            .ok_or_else(|| problem(format!("the skill has no `{name}`: `{shown}`")).hint(example))
    };
    let name = needed(front.name, "name")?;
    let description = needed(front.description, "description")?;
    Ok(Skill { name, description, text: text.trim().to_owned(), folder })
}

/// The front matter and the text below it.
fn split(content: &str) -> Option<(&str, &str)> {
    let content = content.trim_start_matches('\u{FEFF}');
    let (first, rest) = content.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((rest.get(..at)?, rest.get(at + line.len()..)?));
        }
        at += line.len();
    }
    None
}

fn problem(message: String) -> Problem {
    Problem::new(ProblemCode::SkillUnusable, message)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn front_matter_ends_at_the_first_line_of_dashes() {
        let cases = [
            ("---\nname: a\n---\ntext\n---\nmore", Some(("name: a\n", "text\n---\nmore"))),
            ("\u{FEFF}---\r\nname: a\r\n---\r\ntext", Some(("name: a\r\n", "text"))),
            ("---\n---", Some(("", ""))),
            ("---\nname: a\n", None),
            ("name: a\n---\n", None),
            ("", None),
        ];
        for (content, expected) in cases {
            assert_eq!(split(content), expected, "{content:?}");
        }
    }
}
