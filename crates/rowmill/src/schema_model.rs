//! `--schema-model`: asks the user's Python for the schema of a pydantic model.

use std::io::ErrorKind;

use rowmill_types::{Problem, ProblemCode};
use tokio::process::Command;

/// Prints the schema on standard output, or one line of what is wrong on standard error.
const SCRIPT: &str = r#"
import importlib, json, sys
spec = sys.argv[1]
sys.path.insert(0, "")
def stop(text):
    print(text, file=sys.stderr)
    sys.exit(3)
module_name, _, path = spec.partition(":")
try:
    found = importlib.import_module(module_name)
except Exception as error:
    stop(f"could not import schema model module {module_name}: {error}")
for part in path.split("."):
    if not hasattr(found, part):
        stop(f"could not resolve schema model {spec}: missing {part}")
    found = getattr(found, part)
if not (isinstance(found, type) and hasattr(found, "model_json_schema")):
    stop(f"schema model {spec} must point to a pydantic BaseModel subclass")
print(json.dumps(found.model_json_schema()))
"#;

/// The JSON Schema of a pydantic model named as `module.path:Class`.
///
/// # Errors
///
/// The name has another form, there is no Python, or Python cannot find the model.
pub(crate) async fn schema_of(spec: &str) -> Result<String, Problem> {
    let named = spec.split_once(':').filter(|(module, class)| !module.is_empty() && !class.is_empty());
    if named.is_none() {
        let message = format!("expected `--schema-model` in the form `module.path:ClassName`, got `{spec}`");
        return Err(Problem::new(ProblemCode::Usage, message));
    }
    for interpreter in ["python3", "python"] {
        let run = Command::new(interpreter).args(["-c", SCRIPT, spec]).kill_on_drop(true).output().await;
        let output = match run {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                let message = format!("`{interpreter}` could not be started for `--schema-model`");
                return Err(Problem::new(ProblemCode::SchemaModel, message).cause(error));
            }
            Ok(output) => output,
        };
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let told = String::from_utf8_lossy(&output.stderr);
        let told = told.trim().lines().last().unwrap_or("python failed without a message").to_owned();
        return Err(Problem::new(ProblemCode::SchemaModel, told).hint(
            "the module is looked for in the current folder and in Python's path; activate the environment that has it",
        ));
    }
    Err(Problem::new(
        ProblemCode::SchemaModel,
        "`--schema-model` needs Python, and neither `python3` nor `python` is there",
    )
    .hint("install Python, or write the schema to a file and use `--json-schema`"))
}
