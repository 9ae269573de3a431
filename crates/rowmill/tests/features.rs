//! What a build says that lacks a feature. With the feature, the same run gets further.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::path::Path;

use rowmill::{
    InputFormat, InputLocation, InputSpec, OutputTarget, ResultSchemaSource, RunControl, RunEnvironment,
    RunSpec, TableFormat, TableLayout, TableOutput, TableTarget,
};
use rowmill_types::{CargoFeature, ProblemCode};

/// A run of one row in a folder.
fn spec_in(folder: &Path) -> RunSpec {
    let input = InputSpec::new(InputLocation::File(folder.join("rows.jsonl")), None);
    let mut spec = RunSpec::new(input, OutputTarget::File(folder.join("out.jsonl")));
    spec.work.model = "simulated".to_owned();
    spec
}

/// Whether this build has a feature, and a change to a run that makes it need the feature.
type NeedFeatureFn = fn(&mut RunSpec, &Path);

fn cases() -> [(CargoFeature, bool, NeedFeatureFn); 10] {
    [
        (CargoFeature::Cache, cfg!(feature = "cache"), |spec, folder| {
            spec.work.cache = Some(folder.join("answers"));
        }),
        (CargoFeature::Cache, cfg!(feature = "cache"), |spec, _| spec.work.dedupe = true),
        (CargoFeature::Documents, cfg!(feature = "documents"), |spec, folder| {
            let documents = folder.join("documents");
            fs::create_dir(&documents).unwrap();
            fs::write(documents.join("a.txt"), "text").unwrap();
            spec.input = InputSpec::new(InputLocation::File(documents), Some(InputFormat::Documents));
        }),
        (CargoFeature::Hub, cfg!(feature = "hub"), |spec, _| {
            spec.input.location = InputLocation::parse("hf://datasets/owner/name").unwrap();
        }),
        (CargoFeature::Mcp, cfg!(feature = "mcp"), |spec, folder| {
            let card = folder.join("mcp.md");
            fs::write(&card, "---\nmcp_connect: {none: {command: \"false\"}}\n---\nHelp.").unwrap();
            spec.work.agents.cards = vec![card.display().to_string()];
        }),
        (CargoFeature::Parquet, cfg!(feature = "parquet"), |spec, folder| {
            fs::write(folder.join("rows.parquet"), "PAR1").unwrap();
            spec.input.location = InputLocation::File(folder.join("rows.parquet"));
        }),
        (CargoFeature::Parquet, cfg!(feature = "parquet"), |spec, folder| {
            let target = TableTarget::File(folder.join("out.parquet"));
            let (format, layout) = (TableFormat::Parquet, TableLayout::default());
            spec.output = OutputTarget::Table(TableOutput { target, format, layout });
        }),
        (CargoFeature::Python, cfg!(feature = "python"), |spec, folder| {
            let card = folder.join("python.md");
            fs::write(folder.join("none.py"), "").unwrap();
            fs::write(&card, "---\nfunction_tools: [none.py:none]\n---\nHelp.").unwrap();
            spec.work.agents.cards = vec![card.display().to_string()];
        }),
        (CargoFeature::Python, cfg!(feature = "python"), |spec, _| {
            spec.schema = ResultSchemaSource::PythonModel("no_such_module:Model".to_owned());
        }),
        (CargoFeature::Sql, cfg!(feature = "sql"), |spec, _| spec.query.condition = Some("a > 0".to_owned())),
    ]
}

#[tokio::test]
async fn a_run_that_needs_a_feature_says_which_one_the_build_lacks() {
    let mut wrong = Vec::new();
    for (index, (feature, is_built, need)) in cases().into_iter().enumerate() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("rows.jsonl"), "{\"a\": 1}\n").unwrap();
        let mut spec = spec_in(home.path());
        need(&mut spec, home.path());
        let cache = home.path().join("cache").display().to_string();
        let variables = [("HF_HUB_OFFLINE", "1".to_owned()), ("ROWMILL_CACHE_DIR", cache)];
        let environment = RunEnvironment::from_variables(variables);
        let control = RunControl { environment, ..RunControl::silent() };
        let problem = rowmill::run(spec, &control).await.err();
        let message = problem.as_ref().map(ToString::to_string).unwrap_or_default();
        let is_missing = message.contains(&feature.missing_text());
        // The schema of a model has a code of its own.
        let has_code = problem.is_some_and(|problem| {
            matches!(problem.code, ProblemCode::MissingFeature | ProblemCode::SchemaModel)
        });
        if is_missing == is_built || is_missing && !has_code {
            wrong.push(format!("case {index}, {}: {message}", feature.name()));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
