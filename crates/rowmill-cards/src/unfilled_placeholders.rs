//! Placeholders without a value, and how to provide one.

use rowmill_core::variables::InstructionVariables;
use rowmill_types::settings::{VAR, VAR_FILE};
use rowmill_types::{Problem, ProblemCode, SettingMention};

use crate::AgentCard;
use crate::mistake::suggestion;

/// Placeholders about the day, this machine or the program around an agent, with a suggested value in
/// shell syntax. They are not filled in automatically: the values would be sent to the provider with
/// every row, and every machine and every day would have different requests.
const ASKED_FOR: [(&str, &str); 19] = [
    ("currentDate", "$(date '+%d %B %Y')"),
    ("env", "Working folder: $PWD. Platform: $(uname -sm)."),
    ("workspaceRoot", "$PWD"),
    ("environmentDir", ".fast-agent"),
    ("hostPlatform", "$(uname -sm)"),
    ("pythonVer", "$(python3 -V)"),
    ("clientDisplay", "rowmill"),
    ("agentCardPath", "…"),
    ("agentCardDir", "…"),
    ("executionEnvironment", "…"),
    ("executionEnvironmentName", "…"),
    ("executionEnvironmentKind", "…"),
    ("executionEnvironmentProvider", "…"),
    ("executionEnvironmentShell", "…"),
    ("executionEnvironmentCwd", "$PWD"),
    ("modelName", "…"),
    ("modelProvider", "…"),
    ("fastAgentVersion", "…"),
    ("agentCapabilities", "…"),
];

/// Guides for fast-agent itself, which have no content here.
pub(crate) const EMPTY_HERE: [&str; 3] = ["model_specific", "modelReferences", "agentInternalResources"];

/// Texts that are part of fast-agent.
const PACKAGED: &str = "internal:";

/// Whether a placeholder is one of fast-agent's own, not a name chosen by the author of a card.
pub(crate) fn is_known_placeholder(name: &str) -> bool {
    ASKED_FOR.iter().any(|(known, _)| *known == name)
        || EMPTY_HERE.contains(&name)
        || name.starts_with(PACKAGED)
}

/// A placeholder of an instruction without a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfilledPlaceholder {
    /// The name.
    pub name: String,
    /// The placeholder as written.
    pub placeholder: String,
    /// The names of the defined variables.
    pub(crate) known: Vec<String>,
}

impl UnfilledPlaceholder {
    pub(crate) fn new(name: &str, placeholder: &str, variables: &InstructionVariables) -> Self {
        Self {
            name: name.to_owned(),
            placeholder: placeholder.to_owned(),
            known: variables.names().map(str::to_owned).collect(),
        }
    }

    /// The setting that provides the value, with a value ready for a shell.
    fn given_by(&self, card: &AgentCard) -> SettingMention {
        let name = &self.name;
        let source = std::path::Path::new(&card.source);
        match ASKED_FOR.iter().find(|(known, _)| known == name) {
            Some(("agentCardPath", _)) => VAR.with_value(format_args!("'{name}={}'", card.source)),
            Some(("agentCardDir", _)) => {
                let folder = source.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = folder.unwrap_or(std::path::Path::new(".")).display();
                VAR.with_value(format_args!("'{name}={folder}'"))
            }
            Some((_, value)) if value.contains('$') => VAR.with_value(format_args!("\"{name}={value}\"")),
            Some((_, value)) => VAR.with_value(format_args!("'{name}={value}'")),
            None if name.starts_with(PACKAGED) => VAR_FILE.with_value(format_args!("'{name}=FILE'")),
            None => VAR.with_value(format_args!("'{name}=…'")),
        }
    }
}

/// One problem for all placeholders of some cards without a value: the position of each, and the
/// settings to add.
#[must_use]
pub fn unfilled_problem(unfilled: &[(&AgentCard, UnfilledPlaceholder)]) -> Problem {
    let (mut places, mut settings): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for (card, one) in unfilled {
        let line = match card.lines.placeholder_line(&one.placeholder) {
            0 => String::new(),
            line => format!(", line {line}"),
        };
        places.push(format!("`{}` (`{}`{line})", one.placeholder, card.source));
        let setting = one.given_by(card).without_backticks().to_string();
        if !settings.contains(&setting) {
            settings.push(setting);
        }
    }
    let mut hint = format!("set the values: {}", settings.join(" "));
    if unfilled.iter().any(|(_, one)| is_known_placeholder(&one.name)) {
        hint.push_str(
            "; the date and the machine are not filled in automatically, because the prompt would then \
             differ between days and machines",
        );
    }
    let own = unfilled.iter().find(|(_, one)| !is_known_placeholder(&one.name));
    if let Some((_, one)) = own {
        let near = suggestion(&one.name, one.known.iter().map(String::as_str), "variables");
        hint.push_str(&format!("; {near}; write `\\{{{{` for plain text"));
    }
    let message = format!("the instruction uses variables without a value: {}", places.join(", "));
    Problem::new(ProblemCode::InvalidCard, message).hint(hint)
}
