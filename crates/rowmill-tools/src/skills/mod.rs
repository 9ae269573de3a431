//! Skills: folders with a `SKILL.md` that a model reads when it needs them.

mod host;
mod read;

pub use host::SkillHost;
