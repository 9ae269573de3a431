//! Runs in the batch lane that are killed at every step between rowmill and a provider: no row is submitted twice, and
//! no job is forgotten.

use rowmill_testkit::BatchRequestKind::{Create, Download, List, Report, Upload};
use rowmill_testkit::HoldMoment::{After, Before, Late, Within};
use rowmill_testkit::{BatchRequestKind, HoldMoment};

use crate::batch_support::{
    ANTHROPIC, AZURE, BatchProvider, BatchRun, GOOGLE, GROQ, MISTRAL, OPENAI, RESPONSES, TOGETHER,
};
use crate::support::finish;

/// A step at which the process is killed: the request that it is waiting for.
type Step = (BatchRequestKind, HoldMoment, u64);

/// All steps. The number is that of the round, counted from 0.
const STEPS: [(&str, Step); 16] = [
    ("a job is recorded", (Upload, Before, 0)),
    ("half of its file is uploaded", (Upload, Within, 0)),
    ("its file is uploaded, which is not recorded", (Upload, After, 0)),
    ("it is about to be created", (Create, Before, 0)),
    ("half of the request to create it is sent", (Create, Within, 0)),
    ("it is created, and nobody knows its id", (Create, After, 0)),
    ("its state is about to be asked for", (Report, Before, 0)),
    ("its state was asked for", (Report, After, 0)),
    ("it has ended", (Download, Before, 0)),
    ("half of its results is downloaded", (Download, Within, 0)),
    ("its results are about to arrive", (Download, After, 0)),
    ("its rows are collected, and the next job is recorded", (Upload, Before, 1)),
    ("the file of the next job is uploaded, which is not recorded", (Upload, After, 1)),
    ("the next job is about to be created", (Create, Before, 1)),
    ("the next job is created, and nobody knows its id", (Create, After, 1)),
    ("half of the results of the next job is downloaded", (Download, Within, 1)),
];

/// The steps of a provider.
fn steps_of(provider: BatchProvider) -> impl Iterator<Item = (&'static str, Step)> {
    STEPS.into_iter().filter(move |(_, (kind, _, _))| provider.has_uploads || *kind != Upload)
}

/// Kills a run at each step, continues it, and checks everything.
fn killed_at_every_step(provider: BatchProvider) {
    for (number, (what, (kind, moment, before))) in steps_of(provider).enumerate() {
        println!("{}: {what}", provider.model);
        let run = BatchRun::of_two_rounds(provider);
        run.simulator.hold_batch_request(kind, moment, before);
        run.kill_when_held(run.start());
        run.simulator.wait_until_blocking(|stats| stats.batches.held_requests == 0);
        match number % 2 {
            0 => drop(run.resume()),
            _ => run.retrieve(),
        }
        run.assert_whole();
    }
}

#[test]
fn a_kill_at_any_step_with_openai_submits_nothing_twice() {
    killed_at_every_step(OPENAI);
}

#[test]
fn a_kill_at_any_step_with_responses_submits_nothing_twice() {
    killed_at_every_step(RESPONSES);
}

#[test]
fn a_kill_at_any_step_with_anthropic_submits_nothing_twice() {
    killed_at_every_step(ANTHROPIC);
}

#[test]
fn a_kill_at_any_step_with_google_submits_nothing_twice() {
    killed_at_every_step(GOOGLE);
}

#[test]
fn a_kill_at_any_step_with_mistral_submits_nothing_twice() {
    killed_at_every_step(MISTRAL);
}

#[test]
fn a_kill_at_any_step_with_groq_submits_nothing_twice() {
    killed_at_every_step(GROQ);
}

#[test]
fn a_kill_at_any_step_with_together_submits_nothing_twice() {
    killed_at_every_step(TOGETHER);
}

#[test]
fn a_kill_at_any_step_with_azure_submits_nothing_twice() {
    killed_at_every_step(AZURE);
}

#[test]
fn a_process_that_is_killed_while_it_looks_for_a_job_leaves_it_to_the_next_one() {
    for provider in [OPENAI, ANTHROPIC, GOOGLE, TOGETHER] {
        for (made, moment) in [(After, Before), (After, After), (Before, After)] {
            let run = BatchRun::of_two_rounds(provider);
            run.simulator.hold_batch_request(Create, made, 0);
            run.kill_when_held(run.start());
            run.simulator.wait_until_blocking(|stats| stats.batches.held_requests == 0);
            run.simulator.hold_batch_request(List, moment, 0);
            run.kill_when_held(run.start());
            run.resume();
            run.assert_whole();
        }
    }
}

#[test]
fn a_job_that_is_made_long_after_its_creator_died_is_found() {
    let found_late = |provider| {
        let run = BatchRun::of_two_rounds(provider).polling_every("500ms");
        run.simulator.hold_batch_request(Create, Late, 0);
        run.kill_when_held(run.start());
        run.simulator.hold_batch_request(List, After, 0);
        let resumed = run.start();
        // The next process has looked for the job, and did not see it.
        run.simulator.wait_until_blocking(|stats| stats.batches.held_requests == 2);
        run.simulator.release_batch_requests();
        finish(resumed).ok();
        run.assert_whole();
    };
    // They mostly wait.
    std::thread::scope(|all| {
        for provider in [OPENAI, ANTHROPIC, GOOGLE, TOGETHER] {
            all.spawn(move || found_late(provider));
        }
    });
}

#[test]
fn detaching_waits_until_it_is_known_whether_a_job_was_created() {
    for provider in [OPENAI, ANTHROPIC] {
        for moment in [Before, After] {
            let run = BatchRun::of_two_rounds(provider);
            run.simulator.hold_batch_request(Create, moment, 0);
            run.kill_when_held(run.start());
            finish(run.start_with(&["--resume", "--detach"])).code(5);
            let made = run.simulator.stats().batches.jobs;
            assert!(made > 0, "{moment:?}: the job is at the provider");
            assert_eq!(run.known_jobs().len() as u64, made);
            run.retrieve();
            run.assert_whole();
        }
    }
}
