use rowmill_types::Money;

use super::super::known_run::BatchRunRowCounts;
use super::*;

fn known(run: &str, submitted_at_ms: i64, state: KnownRunState) -> KnownBatchRun {
    KnownBatchRun {
        run: run.into(),
        folder: "/somewhere".into(),
        project: None,
        work_folder: "/".into(),
        output: "/somewhere/out.jsonl".into(),
        model: "openai.m".into(),
        submitted_at_ms,
        state,
        rows: BatchRunRowCounts::default(),
        spent_usd: Money::ZERO,
        jobs: Vec::new(),
        spec: None,
    }
}

fn runs() -> (tempfile::TempDir, KnownBatchRuns) {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let environment = RunEnvironment::from_variables([("XDG_STATE_HOME", state)]);
    let runs = KnownBatchRuns::of_user(&environment).unwrap();
    (folder, runs)
}

fn names(runs: &KnownBatchRuns) -> Vec<String> {
    runs.all().into_iter().map(|known| known.run).collect()
}

#[test]
fn runs_are_kept_in_the_state_folder_of_the_user_or_in_the_home_folder() {
    let place = |pairs: &[(&str, &str)]| {
        let environment = RunEnvironment::from_variables(pairs.iter().copied());
        KnownBatchRuns::of_user(&environment).map(|runs| runs.folder)
    };
    assert_eq!(place(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]), Some("/s/rowmill/batch".into()));
    assert_eq!(
        place(&[("XDG_STATE_HOME", "s"), ("HOME", "/h")]),
        Some("/h/.local/state/rowmill/batch".into())
    );
    assert_eq!(place(&[]), None);
}

#[test]
fn the_last_submitted_run_of_a_project_counts_and_otherwise_that_of_the_user() {
    let (home, runs) = runs();
    let project = home.path().join("project");
    fs::create_dir_all(project.join("deep/er")).unwrap();
    fs::write(project.join("agent_actions.yml"), "").unwrap();
    let inside = KnownBatchRun { project: Some(project.clone()), ..known("inside", 1, KnownRunState::Open) };
    for known in [inside, known("first", 2, KnownRunState::Open), known("last", 3, KnownRunState::Ended)] {
        runs.store(&known).unwrap();
    }
    let found = |folder: &Path| runs.latest(folder).map(|(known, rule)| (known.run, rule)).unwrap();
    assert_eq!(
        found(&project.join("deep/er")),
        ("inside".into(), LatestRunReason::OfProject(project.clone()))
    );
    assert_eq!(found(Path::new("/elsewhere")), ("last".into(), LatestRunReason::OfUser));
    let below = ("last".into(), LatestRunReason::InFolder("/somewhere".into()));
    assert_eq!(found(Path::new("/somewhere")), below);
    assert_eq!(names(&runs), ["last", "first", "inside"]);
    assert!(runs.find("first").is_some() && runs.find("third").is_none());
}

#[test]
fn ended_runs_are_forgotten_after_thirty_days_and_open_ones_are_not() {
    let (_home, runs) = runs();
    runs.store(&known("old", 0, KnownRunState::Ended)).unwrap();
    runs.store(&known("open", 0, KnownRunState::Open)).unwrap();
    runs.store(&known("new", KEPT_FOR, KnownRunState::Ended)).unwrap();
    runs.forget_old(KEPT_FOR + 1);
    assert_eq!(names(&runs), ["new", "open"]);
}

#[test]
fn files_that_are_not_runs_are_passed_over() {
    let (_home, runs) = runs();
    runs.store(&known("run", 0, KnownRunState::Open)).unwrap();
    fs::write(runs.folder.join("other.json"), "{").unwrap();
    assert_eq!(names(&runs), ["run"]);
}
