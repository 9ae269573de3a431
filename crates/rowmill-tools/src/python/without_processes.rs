//! Stands in for the processes in a build without Python.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill_core::ports::{
    AnswerChecker, HookCall, HookKind, HookRunner, ToolFailure, ToolHost, ToolRequest,
};
use rowmill_types::{AnswerVerdict, CargoFeature, Problem, Secret, ToolOutput, ToolSpec};

use super::model_description::{SchemaModelDescription, SchemaModelDescriptionFailure};
use super::settings::{Entrypoint, PythonSettings};

/// A Python function, ready to be offered; there is none in this build.
#[derive(Debug, Clone)]
pub struct PythonTool {
    /// Where it is.
    pub entrypoint: Entrypoint,
    /// How it is described to models.
    pub spec: ToolSpec,
    /// Whether it may run twice.
    pub idempotent: bool,
}

/// Calls Python functions; there are none in this build.
#[derive(Debug)]
pub struct PythonToolHost(Infallible);

impl PythonToolHost {
    /// Would start the first process.
    ///
    /// # Errors
    ///
    /// Always: this build has no Python.
    pub async fn start(_settings: PythonSettings) -> Result<Self, Problem> {
        Err(CargoFeature::Python.missing_problem())
    }

    /// The tools, in the order of the settings.
    #[must_use]
    pub fn tools(&self) -> &[PythonTool] {
        match self.0 {}
    }

    /// The values that the modules put into their environment under the name of a secret.
    #[must_use]
    pub fn secrets(&self) -> &[Secret] {
        match self.0 {}
    }

    /// Whether an agent has a hook of this kind.
    #[must_use]
    pub fn has_hook(&self, _agent: &str, _kind: HookKind) -> bool {
        match self.0 {}
    }
}

impl ToolHost for PythonToolHost {
    fn call<'a>(&'a self, _request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        match self.0 {}
    }
}

impl HookRunner for PythonToolHost {
    fn call<'a>(&'a self, _call: HookCall<'a>) -> BoxFuture<'a, Result<Option<serde_json::Value>, String>> {
        match self.0 {}
    }
}

/// Which model checks answers, and how.
#[derive(Debug, Clone)]
pub struct SchemaModelCheckSettings {
    /// The Python program.
    pub interpreter: PathBuf,
    /// Its working folder, where modules are searched for first.
    pub folder: PathBuf,
    /// The model: `module.path:Class`.
    pub model: String,
    /// How long the check of one answer may take.
    pub timeout: Duration,
    /// The variables of the process; those of this process if absent.
    pub variables: Option<Vec<(OsString, OsString)>>,
}

/// Would check answers with a pydantic model.
#[derive(Debug)]
pub struct SchemaModelAnswerChecker {}

impl SchemaModelAnswerChecker {
    /// A model that checks nothing.
    #[must_use]
    pub fn new(_settings: &SchemaModelCheckSettings) -> Self {
        Self {}
    }

    /// Ends nothing.
    pub async fn close(&self) {}
}

impl AnswerChecker for SchemaModelAnswerChecker {
    fn check<'a>(&'a self, _answer: &'a str) -> BoxFuture<'a, AnswerVerdict> {
        let unchecked = AnswerVerdict::Unchecked(CargoFeature::Python.missing_text());
        Box::pin(std::future::ready(unchecked))
    }
}

/// Would ask Python for the schema of a model: always a failure, because this build has no Python.
///
/// # Errors
///
/// None: the failure is the result.
pub async fn describe_schema_model(
    _interpreter: &Path,
    _model: &str,
    _variables: &[(OsString, OsString)],
    _temp_folder: &Path,
) -> io::Result<Result<SchemaModelDescription, SchemaModelDescriptionFailure>> {
    let Problem { message, hint, .. } = CargoFeature::Python.missing_problem();
    let hint = hint.map(|hint| hint.to_string());
    Ok(Err(SchemaModelDescriptionFailure::Unusable { message: message.to_string(), hint }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn functions_and_models_are_problems_that_name_the_feature() {
        let expected = "this build has no support for Python functions: enable the feature `python`";
        let settings = PythonSettings::new("python3".into(), ".".into());
        assert_eq!(PythonToolHost::start(settings).await.unwrap_err().message.to_string(), expected);
        let described =
            describe_schema_model(Path::new("python3"), "m:C", &[], Path::new(".")).await.unwrap();
        assert!(
            matches!(described, Err(SchemaModelDescriptionFailure::Unusable { message, .. }) if message == expected)
        );
    }
}
