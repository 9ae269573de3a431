//! `--schema-model`: asks the user's Python for the schema of a pydantic model, which then checks answers.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use rowmill_tools::{SchemaModel, SchemaModelSettings};
use rowmill_types::{Problem, ProblemCode};
use tokio::process::Command;

/// How long the check of one answer may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// Prints the schema on standard output, or one line of what is wrong on standard error. A model that
/// can check answers itself gets a second line, with a digest of the code that it is made of.
const SCRIPT: &str = r#"
import hashlib, importlib, json, sys
spec = sys.argv[1]
sys.path.insert(0, "")
told, sys.stdout = sys.stdout, sys.stderr
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
print(json.dumps(found.model_json_schema()), file=told)
if hasattr(found, "model_validate_json") and hasattr(found, "model_dump_json"):
    code = b""
    for part in found.__mro__:
        file = getattr(sys.modules.get(part.__module__), "__file__", None)
        if file and file.endswith(".py") and "site-packages" not in file and not part.__module__.startswith("pydantic"):
            with open(file, "rb") as source:
                code += source.read()
    print(hashlib.sha256(code).hexdigest(), file=told)
"#;

/// What Python says of a model.
pub(crate) struct ModelFacts {
    /// Its JSON Schema.
    pub(crate) schema: String,
    /// What checks answers with it, where it can.
    pub(crate) check: Option<Arc<SchemaModel>>,
    /// A digest of the code that checks answers.
    pub(crate) code: Option<String>,
}

/// The JSON Schema of a pydantic model named as `module.path:Class`, and what checks answers with it.
///
/// # Errors
///
/// The name has another form, there is no Python, or Python cannot find the model.
pub(crate) async fn schema_of(spec: &str) -> Result<ModelFacts, Problem> {
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
            return Ok(facts(interpreter, spec, &String::from_utf8_lossy(&output.stdout)));
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

fn facts(interpreter: &str, spec: &str, told: &str) -> ModelFacts {
    let (schema, code) = told.trim_end().split_once('\n').unwrap_or((told, ""));
    let code = (!code.is_empty()).then(|| code.to_owned());
    let settings = SchemaModelSettings {
        interpreter: interpreter.into(),
        folder: ".".into(),
        model: spec.to_owned(),
        timeout: CHECK_TIMEOUT,
    };
    let check = code.is_some().then(|| Arc::new(SchemaModel::new(&settings)));
    ModelFacts { schema: schema.to_owned(), check, code }
}
