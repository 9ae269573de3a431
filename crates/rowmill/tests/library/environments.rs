//! Variables are looked up only in the environment that a program passes in.

use rowmill::{
    Batch, BatchFailureCause, InputLocation, InputSpec, OutputTarget, ProblemCode, RunControl,
    RunEnvironment, RunSpec, run,
};
use rowmill_testkit::Simulator;

use crate::kit::{ask, echoing};

#[tokio::test]
async fn two_batches_of_one_process_have_keys_and_addresses_of_their_own() {
    let (one, other) = (echoing().key("key-of-one"), echoing().key("key-of-other"));
    let (one, other) = (Simulator::start_blocking(one), Simulator::start_blocking(other));
    let environment = |simulator: &Simulator, key: &str| {
        RunEnvironment::from_variables([
            ("GENERIC_BASE_URL", format!("{}/v1", simulator.url()).as_str()),
            ("GENERIC_API_KEY", key),
        ])
    };
    let batch = |environment: &RunEnvironment| {
        Batch::over(0..3_usize).prompt(ask).worker("generic.m").environment(environment)
    };
    let (first, second) = (environment(&one, "key-of-one"), environment(&other, "key-of-other"));
    let (first, second) = tokio::join!(batch(&first).run(), batch(&second).run());
    assert_eq!((first.unwrap().items.len(), second.unwrap().items.len()), (3, 3));
    assert_eq!((one.stats().requests, other.stats().requests), (3, 3));
}

#[tokio::test]
async fn a_batch_sees_no_variable_that_it_was_not_given() {
    let nothing = RunEnvironment::from_variables(Vec::<(String, String)>::new());
    let batch = Batch::over(0..1_usize).prompt(ask).worker("openai.gpt-5.4-mini").environment(&nothing);
    let error = batch.run().await.unwrap_err();
    assert!(
        matches!(error.cause(), BatchFailureCause::Problem(problem) if problem.code == ProblemCode::MissingKey),
        "{error:?}"
    );
}

#[tokio::test]
async fn what_goes_to_standard_output_is_kept_in_the_temporary_folder_of_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("rows.jsonl");
    std::fs::write(&rows, "{\"n\": 1}\n").unwrap();
    let mut spec = RunSpec::new(InputSpec::new(InputLocation::File(rows), None), OutputTarget::Stdout);
    // The failed row ends the run, so its work folder is kept.
    spec.work.model = "silent".into();
    spec.work.stop_rules.max_errors = Some(1);
    let environment = RunEnvironment::from_variables([("TMPDIR", folder.path())]);
    let report = run(spec, &RunControl::silent_in(environment)).await.unwrap();
    assert!(report.kept.unwrap().starts_with(folder.path()));
}
