//! Describes skills to models, and reads them as a tool.

use std::path::{Component, Path, PathBuf};

use futures_util::future::BoxFuture;
use rowmill_core::ports::{ToolFailure, ToolHost, ToolRequest};
use rowmill_types::{Problem, ToolOutput, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use super::read::{SKILL_FILE, Skill, read_skills};
use crate::bytes_output::output_from_bytes;
use crate::unknown_tool::unknown_tool_failure;

/// The name of the tool.
const TOOL: &str = "read_skill";
/// The maximum size of a file that is given to a model.
const MOST_BYTES: u64 = 16 << 20;

/// The skills of an agent.
#[derive(Debug)]
pub struct SkillHost {
    skills: Vec<Skill>,
}

impl SkillHost {
    /// Reads skills from folders: each is a skill, with a `SKILL.md` in it, or contains such folders.
    ///
    /// # Errors
    ///
    /// A folder is missing or contains no skill, a skill has no name or description, or two have the same
    /// name.
    pub fn read(folders: &[PathBuf]) -> Result<Self, Problem> {
        Ok(Self { skills: read_skills(folders)? })
    }

    /// A section for the instruction: which skills there are, and how to read one. Empty if there are none.
    #[must_use]
    pub fn instructions(&self) -> String {
        if self.skills.is_empty() {
            return String::new();
        }
        let mut text = format!(
            "# Skills\n\nThere are written guides for some tasks. When one fits what you are asked to do, \
             read it with the tool `{TOOL}` before you begin, and follow it. Where a guide mentions another \
             file of its folder, read that with the same tool and the argument `file`.\n"
        );
        for skill in &self.skills {
            let description = skill.description.split_whitespace().collect::<Vec<_>>().join(" ");
            text.push_str(&format!("\n- `{}`: {description}", skill.name));
        }
        text.push('\n');
        text
    }

    /// The description of the tool for models. It may be called any number of times.
    #[must_use]
    pub fn spec(&self) -> ToolSpec {
        let names: Vec<_> = self.skills.iter().map(|skill| skill.name.as_str()).collect();
        ToolSpec {
            name: TOOL.to_owned(),
            description: Some("Gives the text of a skill, or of a file in the skill's folder.".to_owned()),
            schema: json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string", "enum": names, "description": "The name of the skill."},
                    "file": {
                        "type": "string",
                        "description": "A file of the skill, relative to its folder; the skill itself unless given.",
                    },
                },
                "required": ["name"],
                "additionalProperties": false,
            }),
        }
    }

    async fn answer(&self, arguments: &str) -> Result<ToolOutput, String> {
        let SkillArguments { name, file } =
            serde_json::from_str(arguments).map_err(|error| format!("wrong arguments: {error}"))?;
        let skill = self.skills.iter().find(|skill| skill.name == name).ok_or_else(|| {
            let names: Vec<_> = self.skills.iter().map(|skill| format!("`{}`", skill.name)).collect();
            format!("there is no skill `{name}`; there are {}", names.join(", "))
        })?;
        match file.as_deref().filter(|file| !file.is_empty() && *file != SKILL_FILE) {
            None => Ok(ToolOutput::from_text(skill.text.clone())),
            Some(file) => read_file(skill, file).await,
        }
    }
}

impl ToolHost for SkillHost {
    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        if request.tool != TOOL {
            return Box::pin(std::future::ready(Err(unknown_tool_failure(request.tool))));
        }
        Box::pin(async move { Ok(self.answer(request.arguments).await.unwrap_or_else(ToolOutput::error)) })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SkillArguments {
    name: String,
    #[serde(default)]
    file: Option<String>,
}

/// Reads a file of a skill; files outside its folder are refused, even if a link leads there.
async fn read_file(skill: &Skill, file: &str) -> Result<ToolOutput, String> {
    let outside = || format!("`{file}` is not in the folder of the skill `{}`", skill.name);
    let relative = Path::new(file);
    if !relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(outside());
    }
    let missing = || format!("the skill `{}` has no file `{file}`", skill.name);
    let path = tokio::fs::canonicalize(skill.folder.join(relative)).await.map_err(|_| missing())?;
    if !path.starts_with(&skill.folder) {
        return Err(outside());
    }
    let about = tokio::fs::metadata(&path).await.map_err(|_| missing())?;
    if !about.is_file() {
        return Err(format!("`{file}` is not a file"));
    }
    if about.len() > MOST_BYTES {
        return Err(format!("`{file}` has {} bytes, and {MOST_BYTES} are the most", about.len()));
    }
    let bytes = tokio::fs::read(&path).await.map_err(|_| missing())?;
    let name = relative.file_name().map_or_else(|| file.into(), |name| name.to_string_lossy());
    Ok(output_from_bytes(bytes, &name))
}
