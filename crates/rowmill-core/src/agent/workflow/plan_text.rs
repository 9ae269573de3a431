//! The texts that an orchestrator sends to its model and its agents.

use std::fmt::Write;

use crate::agent::graph::OrchestratorPlanType;

/// A step that was assigned to agents.
pub(super) struct FinishedStep {
    pub(super) description: String,
    pub(super) tasks: Vec<FinishedTask>,
}

/// A task of a step.
pub(super) struct FinishedTask {
    pub(super) agent: String,
    pub(super) description: String,
    /// Its result; unfinished tasks are not mentioned.
    pub(super) result: Option<String>,
}

/// Why there is no further plan.
#[derive(Clone, Copy)]
pub(super) enum PlanEnding {
    /// The model reported that nothing is left to do.
    Complete,
    /// It may not plan any more.
    OutOfPlans(u32),
    /// Its plan had no tasks, though it did not report completion.
    NoTasks,
    /// It kept naming agents that do not exist.
    UnknownAgents,
}

pub(super) fn planning_text(
    kind: OrchestratorPlanType,
    request: &str,
    done: &[FinishedStep],
    left: Option<u32>,
) -> String {
    let mut text = format!(
        "{}\n\nDone so far:\n{}\n\n",
        tagged("request", request),
        tagged("progress", &progress(done))
    );
    text.push_str(match kind {
        OrchestratorPlanType::Full => {
            "Plan all steps that are still needed to fulfil the request, in their order. If the results \
             so far are enough to answer it, or if it cannot be fulfilled, give no steps and set \
             `is_complete` to true."
        }
        OrchestratorPlanType::Iterative => {
            "Say which step is to be done next to fulfil the request. If the results so far are enough to \
             answer it, or if it cannot be fulfilled, give no tasks and set `is_complete` to true."
        }
    });
    match left {
        None => {}
        Some(0 | 1) => text.push_str(" This is the last time that you can plan."),
        Some(left) => push(&mut text, format_args!(" You can plan {left} times, this time included.")),
    }
    text
}

pub(super) fn task_text(request: &str, done: &[FinishedStep], task: &str) -> String {
    format!(
        "You do one task of a larger plan.\n\nThe plan is to fulfil this request:\n{}\n\nWhat was done \
         before:\n{}\n\nYour task:\n{}\n\nDo this task and nothing else. Answer briefly, but with everything \
         that others need to go on from here: they see only your answer.",
        tagged("request", request),
        tagged("progress", &progress(done)),
        tagged("task", task)
    )
}

pub(super) fn answering_text(request: &str, done: &[FinishedStep], ending: PlanEnding) -> String {
    let ending = match ending {
        PlanEnding::Complete => "The plan is complete.".to_owned(),
        PlanEnding::OutOfPlans(plans) => format!(
            "The plan was not finished: it was stopped after {plans} rounds of planning, the most that are \
             allowed. Say what was reached and what is missing."
        ),
        PlanEnding::NoTasks => "The plan was not marked as complete, but it had no further tasks. Say so if \
                            something is missing."
            .to_owned(),
        PlanEnding::UnknownAgents => {
            "The plan was not finished: it was stopped because it kept giving tasks to \
                                 agents that do not exist. Say what was reached and what is missing."
                .to_owned()
        }
    };
    format!(
        "{}\n\nA plan was made and carried out for this request:\n{}\n\n{ending}\n\nNow answer the request \
         from these results.",
        tagged("request", request),
        tagged("progress", &progress(done))
    )
}

/// All results so far, for models to read.
fn progress(done: &[FinishedStep]) -> String {
    if done.is_empty() {
        return "Nothing yet.".to_owned();
    }
    let mut text = String::new();
    for (index, step) in done.iter().enumerate() {
        let separator = if index == 0 { "" } else { "\n" };
        push(&mut text, format_args!("{separator}Step {}: {}", index + 1, step.description));
        for task in &step.tasks {
            let result = task.result.as_deref().unwrap_or_default();
            push(
                &mut text,
                format_args!(
                    "\nTask for `{}`: {}\n{}",
                    task.agent,
                    task.description,
                    tagged("result", result)
                ),
            );
        }
    }
    text
}

fn tagged(tag: &str, text: &str) -> String {
    format!("<{tag}>\n{text}\n</{tag}>")
}

fn push(text: &mut String, more: std::fmt::Arguments<'_>) {
    let written = text.write_fmt(more);
    debug_assert!(written.is_ok(), "writing into memory cannot fail");
}
