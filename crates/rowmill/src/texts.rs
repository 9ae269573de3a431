//! Loads the texts of a run: schema, template, instruction and its variables.

use std::sync::Arc;

use rowmill_core::changes::RunTexts;
use rowmill_core::ports::AnswerCheck;
use rowmill_core::prompt::Template;
use rowmill_core::redact::Redactor;
use rowmill_core::validate::ResultSchema;
use rowmill_core::variables::Variables;
use rowmill_data::{FetchStep, Fetcher, load_text, shown_source};
use rowmill_http::HttpClient;
use rowmill_tools::SchemaModel;
use rowmill_types::settings::{INSTRUCTION, JSON_SCHEMA, TEMPLATE, VAR_FILE, VARS_JSON};
use rowmill_types::{Problem, ProblemCode, Setting};

use crate::agent_flags::AgentFlags;
use crate::agents::{
    CardChecks, CardFlags, CheckSpec, LoadedCards, check_cards, load as load_agents, notices, routes_text,
    with_routes,
};
use crate::control::{Control, Notice};
use crate::environment::Environment;
use crate::schema_model::schema_of;
use crate::spec::{Prompt, RunSpec, Schema, VariableFlags};

/// The texts that are the same for every row.
#[derive(Debug)]
pub(crate) struct Texts {
    pub(crate) schema: Option<ResultSchema>,
    pub(crate) schema_text: Option<String>,
    /// Checks answers with the user's own pydantic model, if there is one.
    pub(crate) schema_model: Option<Arc<SchemaModel>>,
    /// A digest of the code of that model.
    pub(crate) schema_code: Option<String>,
    pub(crate) template: Template,
    pub(crate) instruction: Option<String>,
    pub(crate) variables: Vec<String>,
    /// The agents that work on rows, if cards describe them.
    pub(crate) cards: Option<LoadedCards>,
}

impl Texts {
    /// The texts that are stored with the run, so that a resume can show what changed.
    pub(crate) fn kept(&self, redactor: &Redactor) -> RunTexts {
        let texts = RunTexts {
            prompt: Some(self.template.text().to_owned()),
            instruction: self.instruction.clone(),
            schema: None,
            agents: self.cards.as_ref().map(|cards| cards.text.clone()),
        };
        texts.kept(redactor)
    }
}

/// Loads and checks all texts, in the order in which their mistakes are reported.
pub(crate) async fn load(spec: &RunSpec, http: &HttpClient, control: &Control) -> Result<Texts, Problem> {
    let settings = control.environment.fetch_settings();
    // Texts are short, so only warnings are shown.
    let told = |event: rowmill_data::FetchEvent| {
        if let FetchStep::Warning(text) = event.step {
            (control.notice)(Notice::warning(text));
        }
    };
    let fetcher = &Fetcher { settings: &settings, http, told: &told };
    let (mut schema_model, mut schema_code) = (None, None);
    let (schema, schema_text) = match &spec.schema {
        Schema::None => (None, None),
        Schema::Source(source) => {
            let text = text(source, JSON_SCHEMA, fetcher).await?;
            (Some(ResultSchema::parse(&text, source)?), Some(text))
        }
        Schema::PythonModel(name) => {
            let model = schema_of(name, &control.environment).await?;
            (schema_model, schema_code) = (model.check, model.code);
            let check = schema_model.clone().map(|check| check as Arc<dyn AnswerCheck>);
            let schema = ResultSchema::parse(&model.schema, name)?.with_answer_check(check);
            (Some(schema), Some(model.schema))
        }
    };
    let template = match &spec.prompt {
        Prompt::Default => Template::default_template(),
        Prompt::Inline(text) => Template::parse(text.clone()),
        Prompt::Source(source) => Template::parse(text(source, TEMPLATE, fetcher).await?),
    };
    let variables = variables(&spec.variables, fetcher).await?;
    let cards = cards(&spec.work.agents, &variables, fetcher, control).await?;
    let instruction = match &spec.instruction {
        None if cards.is_some() => None,
        None if variables.is_empty() => None,
        None => {
            return Err(Problem::new(
                ProblemCode::InvalidVariables,
                format!("variables were given but there is no {INSTRUCTION}"),
            )
            .hint("variables fill placeholders of the instruction; fields of the row fill the template"));
        }
        Some(source) => {
            let text = text(source, INSTRUCTION, fetcher).await?;
            for name in variables.unused(&text) {
                (control.notice)(Notice::warning(format!(
                    "variable `{name}` is not used by the instruction"
                )));
            }
            Some(variables.apply(&text)?)
        }
    };
    let variables = variables.names().map(str::to_owned).collect();
    Ok(Texts { schema, schema_text, schema_model, schema_code, template, instruction, variables, cards })
}

/// Loads the cards that are named, and warns about fields that have no effect here.
async fn cards(
    agents: &AgentFlags,
    variables: &Variables,
    fetcher: &Fetcher<'_>,
    control: &Control,
) -> Result<Option<LoadedCards>, Problem> {
    if agents.cards.is_empty() {
        return Ok(None);
    }
    let flags = CardFlags { sources: &agents.cards, agent: agents.agent.as_deref(), variables };
    let mut loaded = load_agents(&flags, &control.environment.lookup(), fetcher).await?;
    loaded.digest = with_routes(&loaded.digest, agents);
    loaded.text.push_str(&routes_text(agents));
    for name in &loaded.unused_variables {
        (control.notice)(Notice::warning(format!(
            "variable `{name}` is not used by `{}` or the agents that it calls",
            loaded.worker
        )));
    }
    for text in notices(&loaded) {
        (control.notice)(Notice::warning(text));
    }
    Ok(Some(loaded))
}

/// Loads the cards of a worker.
pub(crate) async fn load_cards(
    agents: &AgentFlags,
    flags: &VariableFlags,
    http: &HttpClient,
    control: &Control,
) -> Result<LoadedCards, Problem> {
    let settings = control.environment.fetch_settings();
    let fetcher = &Fetcher { settings: &settings, http, told: &|_| {} };
    let variables = variables(flags, fetcher).await?;
    let loaded = cards(agents, &variables, fetcher, control).await?;
    loaded.ok_or_else(|| Problem::new(ProblemCode::InvalidCard, "no agent card is named"))
}

/// Checks agent cards without running anything: their text, the files, variables, servers and models
/// that they name, and how they fit together.
///
/// # Errors
///
/// There are no cards at the given location, or the variables cannot be read. Mistakes in cards are
/// part of the result, not an error.
pub async fn check_agent_cards(spec: &CheckSpec) -> Result<CardChecks, Problem> {
    let (settings, http) = (spec.environment.fetch_settings(), spec.environment.http_client());
    let fetcher = &Fetcher { settings: &settings, http: &http, told: &|_| {} };
    let variables = variables(&spec.variables, fetcher).await?;
    check_cards(&spec.work, &variables, &spec.environment, fetcher).await
}

/// Loads one text for a command that runs nothing.
pub(crate) async fn text_of(
    source: &str,
    setting: Setting,
    environment: &Environment,
) -> Result<String, Problem> {
    let (settings, http) = (environment.fetch_settings(), environment.http_client());
    text(source, setting, &Fetcher { settings: &settings, http: &http, told: &|_| {} }).await
}

async fn text(source: &str, setting: Setting, fetcher: &Fetcher<'_>) -> Result<String, Problem> {
    load_text(source, setting.into(), fetcher).await
}

async fn variables(flags: &VariableFlags, fetcher: &Fetcher<'_>) -> Result<Variables, Problem> {
    let json = match &flags.json {
        Some(path) => {
            let name = path.to_string_lossy();
            Some((text(&name, VARS_JSON, fetcher).await?, shown_source(&name)))
        }
        None => None,
    };
    let mut files = Vec::new();
    for entry in &flags.files {
        let (name, path) = Variables::parse_file_pair(entry)?;
        files.push((name.to_owned(), text(path, VAR_FILE, fetcher).await?));
    }
    let json = json.as_ref().map(|(text, name)| (text.as_str(), name.as_str()));
    Variables::from_flags(json, &files, &flags.pairs)
}
