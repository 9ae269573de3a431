//! Loads the texts of a run: schema, template, instruction and its variables.

use std::sync::Arc;

use rowmill_core::ports::AnswerChecker;
use rowmill_core::prompt::PromptTemplate;
use rowmill_core::redact::Redactor;
use rowmill_core::setting_changes::RunTexts;
use rowmill_core::validate::ResultSchema;
use rowmill_core::variables::InstructionVariables;
use rowmill_data::{FetchEventKind, Fetcher, load_text, redacted_source};
use rowmill_http::HttpClient;
use rowmill_tools::SchemaModelAnswerChecker;
use rowmill_types::settings::{INSTRUCTION, JSON_SCHEMA, TEMPLATE, VAR_FILE, VARS_JSON};
use rowmill_types::{Problem, ProblemCode, Setting};

use crate::agent_options::AgentOptions;
use crate::agents::{
    CardCheckSpec, CardChecks, CardFlags, LoadedCards, card_notices, check_cards, digest_with_routes,
    load_card_set as load_agents, routes_text,
};
use crate::control::{RunControl, RunNotice};
use crate::environment::RunEnvironment;
use crate::schema_model::load_schema_model;
use crate::spec::{InstructionVariableOptions, PromptSource, ResultSchemaSource, RunSpec};

/// The texts that are the same for every row.
#[derive(Debug)]
pub(crate) struct RunInputTexts {
    pub(crate) schema: Option<ResultSchema>,
    pub(crate) schema_text: Option<String>,
    /// Checks answers with the user's own pydantic model, if there is one.
    pub(crate) schema_model: Option<Arc<SchemaModelAnswerChecker>>,
    /// A digest of the code of that model.
    pub(crate) schema_code: Option<String>,
    pub(crate) template: PromptTemplate,
    pub(crate) instruction: Option<String>,
    pub(crate) variables: Vec<String>,
    /// The agents that work on rows, if cards describe them.
    pub(crate) cards: Option<LoadedCards>,
}

impl RunInputTexts {
    /// The texts that are stored with the run, so that a resume can show what changed.
    pub(crate) fn for_header(&self, redactor: &Redactor) -> RunTexts {
        let texts = RunTexts {
            prompt: Some(self.template.text().to_owned()),
            instruction: self.instruction.clone(),
            schema: None,
            agents: self.cards.as_ref().map(|cards| cards.text.clone()),
        };
        texts.redact_for_header(redactor)
    }
}

/// Loads and checks all texts, in the order in which their mistakes are reported.
pub(crate) async fn load_texts(
    spec: &RunSpec,
    http: &HttpClient,
    control: &RunControl,
) -> Result<RunInputTexts, Problem> {
    let settings = control.environment.fetch_settings();
    // Texts are short, so only warnings are shown.
    let events = |event: rowmill_data::FetchEvent| {
        if let FetchEventKind::Warning(text) = event.step {
            (control.notice)(RunNotice::warning(text));
        }
    };
    let fetcher = &Fetcher { settings: &settings, http, on_event: &events };
    let (mut schema_model, mut schema_code) = (None, None);
    let (schema, schema_text) = match &spec.schema {
        ResultSchemaSource::None => (None, None),
        ResultSchemaSource::Source(source) => {
            let text = text(source, JSON_SCHEMA, fetcher).await?;
            (Some(ResultSchema::parse(&text, source)?), Some(text))
        }
        ResultSchemaSource::PythonModel(name) => {
            let model = load_schema_model(name, &control.environment).await?;
            (schema_model, schema_code) = (model.check, model.code);
            let check = schema_model.clone().map(|check| check as Arc<dyn AnswerChecker>);
            let schema = ResultSchema::parse(&model.schema, name)?.with_answer_check(check);
            (Some(schema), Some(model.schema))
        }
    };
    let template = match &spec.prompt {
        PromptSource::Default => PromptTemplate::default_template(),
        PromptSource::Inline(text) => PromptTemplate::parse(text.clone()),
        PromptSource::Source(source) => PromptTemplate::parse(text(source, TEMPLATE, fetcher).await?),
    };
    let variables = variables(&spec.variables, fetcher).await?;
    let cards = cards(&spec.work.agents, &variables, fetcher, control).await?;
    let instruction = match &spec.instruction {
        None if cards.is_some() || variables.is_empty() => None,
        None => {
            return Err(Problem::new(
                ProblemCode::InvalidVariables,
                format!("variables were given but there is no {INSTRUCTION}"),
            )
            .hint("variables fill placeholders of the instruction; fields of the row fill the template"));
        }
        Some(source) => {
            let text = text(source, INSTRUCTION, fetcher).await?;
            for name in variables.unused_names(&text) {
                let message = format!("variable `{name}` is not used by the instruction");
                (control.notice)(RunNotice::warning(message));
            }
            Some(variables.fill_placeholders(&text)?)
        }
    };
    let variables = variables.names().map(str::to_owned).collect();
    Ok(RunInputTexts {
        schema,
        schema_text,
        schema_model,
        schema_code,
        template,
        instruction,
        variables,
        cards,
    })
}

/// Loads the cards that are named, and warns about fields that have no effect here.
async fn cards(
    agents: &AgentOptions,
    variables: &InstructionVariables,
    fetcher: &Fetcher<'_>,
    control: &RunControl,
) -> Result<Option<LoadedCards>, Problem> {
    if agents.cards.is_empty() {
        return Ok(None);
    }
    let flags = CardFlags { sources: &agents.cards, agent: agents.agent.as_deref(), variables };
    let mut loaded = load_agents(&flags, &control.environment.lookup(), fetcher).await?;
    loaded.digest = digest_with_routes(&loaded.digest, agents);
    loaded.text.push_str(&routes_text(agents));
    for name in &loaded.unused_variables {
        (control.notice)(RunNotice::warning(format!(
            "variable `{name}` is not used by `{}` or the agents that it calls",
            loaded.worker
        )));
    }
    for text in card_notices(&loaded) {
        (control.notice)(RunNotice::warning(text));
    }
    Ok(Some(loaded))
}

/// Loads the cards of a worker.
pub(crate) async fn load_cards(
    agents: &AgentOptions,
    flags: &InstructionVariableOptions,
    http: &HttpClient,
    control: &RunControl,
) -> Result<LoadedCards, Problem> {
    let settings = control.environment.fetch_settings();
    let fetcher = &Fetcher { settings: &settings, http, on_event: &|_| {} };
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
pub async fn check_agent_cards(spec: &CardCheckSpec) -> Result<CardChecks, Problem> {
    let (settings, http) = (spec.environment.fetch_settings(), spec.environment.http_client());
    let fetcher = &Fetcher { settings: &settings, http: &http, on_event: &|_| {} };
    let variables = variables(&spec.variables, fetcher).await?;
    check_cards(&spec.work, &variables, &spec.environment, fetcher).await
}

/// Loads one text for a command that runs nothing.
pub(crate) async fn load_one_text(
    source: &str,
    setting: Setting,
    environment: &RunEnvironment,
) -> Result<String, Problem> {
    let (settings, http) = (environment.fetch_settings(), environment.http_client());
    text(source, setting, &Fetcher { settings: &settings, http: &http, on_event: &|_| {} }).await
}

async fn text(source: &str, setting: Setting, fetcher: &Fetcher<'_>) -> Result<String, Problem> {
    load_text(source, setting.into(), fetcher).await
}

async fn variables(
    flags: &InstructionVariableOptions,
    fetcher: &Fetcher<'_>,
) -> Result<InstructionVariables, Problem> {
    let json = match &flags.json {
        Some(path) => {
            let name = path.to_string_lossy();
            Some((text(&name, VARS_JSON, fetcher).await?, redacted_source(&name)))
        }
        None => None,
    };
    let mut files = Vec::new();
    for entry in &flags.files {
        let (name, path) = InstructionVariables::split_file_pair(entry)?;
        files.push((name.to_owned(), text(path, VAR_FILE, fetcher).await?));
    }
    let json = json.as_ref().map(|(text, name)| (text.as_str(), name.as_str()));
    InstructionVariables::from_settings(json, &files, &flags.pairs)
}
