//! `--schema-model`: gets the schema of a pydantic model from the user's Python, which then checks
//! answers.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rowmill_tools::{
    SchemaModelAnswerChecker, SchemaModelCheckSettings, SchemaModelDescription,
    SchemaModelDescriptionFailure, describe_schema_model,
};
use rowmill_types::settings::{JSON_SCHEMA, SCHEMA_MODEL};
use rowmill_types::{Problem, ProblemCode};

use crate::environment::RunEnvironment;

/// The timeout for checking one answer.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// What Python reports about a model.
pub(crate) struct SchemaModelFacts {
    /// The JSON Schema.
    pub(crate) schema: String,
    /// The Python process that checks answers, if it can.
    pub(crate) check: Option<Arc<SchemaModelAnswerChecker>>,
    /// A digest of the code that checks answers.
    pub(crate) code: Option<String>,
}

/// The JSON Schema of a pydantic model named as `module.path:Class`, and the check of answers with it.
///
/// # Errors
///
/// The name has another form, there is no Python, or Python cannot find the model.
pub(crate) async fn load_schema_model(
    spec: &str,
    environment: &RunEnvironment,
) -> Result<SchemaModelFacts, Problem> {
    check_form(spec)?;
    let variables = environment.variables();
    for interpreter in ["python3", "python"] {
        return match describe_schema_model(
            Path::new(interpreter),
            spec,
            &variables,
            environment.temp_folder(),
        )
        .await
        {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                let message = format!("cannot start `{interpreter}` for {SCHEMA_MODEL}");
                Err(Problem::new(ProblemCode::SchemaModel, message).cause(error))
            }
            Ok(Ok(description)) => Ok(facts(interpreter, spec, description, variables)),
            Ok(Err(failure)) => Err(problem(interpreter, spec, failure)),
        };
    }
    Err(Problem::new(
        ProblemCode::SchemaModel,
        format!("{SCHEMA_MODEL} needs Python, but neither `python3` nor `python` was found"),
    )
    .hint(format!("install Python, or write the schema to a file and use {JSON_SCHEMA}")))
}

/// Checks that the name has a module and a class.
fn check_form(spec: &str) -> Result<(), Problem> {
    let wrong = |message: String, right: Option<String>| {
        let problem = Problem::new(ProblemCode::Usage, message);
        Err(match right {
            Some(right) => problem
                .hint(format!("write it as {schema_model}", schema_model = SCHEMA_MODEL.with_value(right))),
            None => problem,
        })
    };
    let Some((module, class)) =
        spec.split_once(':').filter(|(module, class)| !module.is_empty() && !class.is_empty())
    else {
        let message = format!("expected {SCHEMA_MODEL} in the form `module.path:ClassName`, got `{spec}`");
        let right = spec.rsplit_once('.').filter(|(module, class)| !module.is_empty() && *class != "py");
        return wrong(message, right.map(|(module, class)| format!("{module}:{class}")));
    };
    if !module.ends_with(".py") && !module.contains('/') {
        return Ok(());
    }
    let path = module.strip_suffix(".py").unwrap_or(module);
    let message = format!("{SCHEMA_MODEL} takes a module name, not a file path: `{spec}`");
    let is_below = !path.starts_with('/') && !path.split('/').any(|part| part == "..");
    let right = path.trim_start_matches("./").replace('/', ".");
    wrong(message, is_below.then(|| format!("{right}:{class}")))
}

/// The problem if Python gave no schema.
fn problem(interpreter: &str, spec: &str, failure: SchemaModelDescriptionFailure) -> Problem {
    let module = spec.split(':').next().unwrap_or_default();
    let (message, hint) = match failure {
        SchemaModelDescriptionFailure::Unusable { message, hint } => (
            message,
            hint.unwrap_or_else(|| {
                "the module is searched in the current folder and in Python's path; activate the environment \
                 that has it"
                    .to_owned()
            }),
        ),
        SchemaModelDescriptionFailure::TooSlow(time) => (
            format!("`{interpreter}` took longer than {} s to import `{module}`", time.as_secs()),
            "move slow code out of the module, or behind `if __name__ == \"__main__\":`".to_owned(),
        ),
        SchemaModelDescriptionFailure::ProcessEnded { status, last_words } => {
            let words =
                last_words.map_or_else(|| ", without a message".to_owned(), |words| format!(": {words}"));
            (
                format!("`{interpreter}` exited ({status}) before it returned the schema of `{spec}`{words}"),
                format!("run `{interpreter} -c 'import {module}'` to see why"),
            )
        }
    };
    Problem::new(ProblemCode::SchemaModel, message).hint(hint)
}

fn facts(
    interpreter: &str,
    spec: &str,
    description: SchemaModelDescription,
    variables: Vec<(OsString, OsString)>,
) -> SchemaModelFacts {
    let SchemaModelDescription { schema, code } = description;
    let settings = SchemaModelCheckSettings {
        interpreter: interpreter.into(),
        folder: ".".into(),
        model: spec.to_owned(),
        timeout: CHECK_TIMEOUT,
        variables: Some(variables),
    };
    let check = code.is_some().then(|| Arc::new(SchemaModelAnswerChecker::new(&settings)));
    SchemaModelFacts { schema, check, code }
}
