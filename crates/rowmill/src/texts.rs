//! Loads the texts of a run: schema, template, instruction and its variables.

use rowmill_core::prompt::Template;
use rowmill_core::validate::ResultSchema;
use rowmill_core::variables::Variables;
use rowmill_data::load_text;
use rowmill_http::HttpClient;
use rowmill_types::{Problem, ProblemCode};

use crate::run::{Control, Notice};
use crate::schema_model::schema_of;
use crate::spec::{Prompt, RunSpec, Schema, VariableFlags};

/// What is the same for every row.
#[derive(Debug)]
pub(crate) struct Texts {
    pub(crate) schema: Option<ResultSchema>,
    pub(crate) schema_text: Option<String>,
    pub(crate) template: Template,
    pub(crate) instruction: Option<String>,
    pub(crate) variables: Vec<String>,
}

/// Loads and checks all texts, in the order in which their mistakes are told.
pub(crate) async fn load(spec: &RunSpec, http: &HttpClient, control: &Control) -> Result<Texts, Problem> {
    let (schema, schema_text) = match &spec.schema {
        Schema::None => (None, None),
        Schema::Source(source) => {
            let text = text(source, "--json-schema", http).await?;
            (Some(ResultSchema::parse(&text, source)?), Some(text))
        }
        Schema::PythonModel(name) => {
            let text = schema_of(name).await?;
            (Some(ResultSchema::parse(&text, name)?), Some(text))
        }
    };
    let template = match &spec.prompt {
        Prompt::Default => Template::default_template(),
        Prompt::Inline(text) => Template::parse(text.clone()),
        Prompt::Source(source) => Template::parse(text(source, "--template", http).await?),
    };
    let variables = variables(&spec.variables, http).await?;
    let instruction = match &spec.instruction {
        None if variables.is_empty() => None,
        None => {
            return Err(Problem::new(
                ProblemCode::InvalidVariables,
                "variables were given but there is no `--instruction`",
            )
            .hint("variables fill placeholders of the instruction; fields of the row fill the template"));
        }
        Some(source) => {
            let text = text(source, "--instruction", http).await?;
            for name in variables.unused(&text) {
                (control.notice)(Notice::Warning(format!(
                    "variable `{name}` is not used by the instruction"
                )));
            }
            Some(variables.apply(&text)?)
        }
    };
    let variables = variables.names().map(str::to_owned).collect();
    Ok(Texts { schema, schema_text, template, instruction, variables })
}

async fn text(source: &str, flag: &'static str, http: &HttpClient) -> Result<String, Problem> {
    load_text(source, flag, http).await
}

async fn variables(flags: &VariableFlags, http: &HttpClient) -> Result<Variables, Problem> {
    let json = match &flags.json {
        Some(path) => Some(text(&path.to_string_lossy(), "--vars-json", http).await?),
        None => None,
    };
    let mut files = Vec::new();
    for entry in &flags.files {
        let (name, path) = Variables::parse_file_pair(entry)?;
        files.push((name.to_owned(), text(path, "--var-file", http).await?));
    }
    Variables::from_flags(json.as_deref(), &files, &flags.pairs)
}
