//! A model plans, agents carry out the steps, and the model answers from their results.

use std::collections::VecDeque;

use rowmill_types::Message;
use serde::Deserialize;

use super::plan_text::{Done, DoneTask, Ending, answering_text, planning_text, task_text};
use super::{Workflow, ask_own, failed, find, names, read, start, text_of, with_files};
use crate::agent::cast::{Cast, PlanType};
use crate::agent::form::Form;
use crate::agent::step::{Act, Answer, Move};

/// The maximum number of consecutive plans without a task that an agent can do.
const IDLE_PLANS: u32 = 2;

pub(super) struct Orchestrator {
    member: usize,
    agents: Vec<usize>,
    plan: PlanType,
    iterations: Option<u32>,
    form: Form,
    request: Vec<Message>,
    phase: Phase,
    /// The number of plans so far.
    plans: u32,
    /// The number of consecutive plans without a task that an agent can do.
    idle: u32,
    /// Whether the current plan is the last one.
    is_complete: bool,
    /// The remaining steps of the plan.
    steps: VecDeque<PlanStep>,
    /// All steps carried out so far; the current one is last.
    done: Vec<Done>,
}

#[derive(PartialEq, Eq)]
enum Phase {
    Planning,
    Doing,
    Answering,
}

#[derive(Deserialize)]
struct Plan {
    steps: VecDeque<PlanStep>,
    is_complete: bool,
}

#[derive(Deserialize)]
struct NextStep {
    #[serde(flatten)]
    step: PlanStep,
    is_complete: bool,
}

#[derive(Deserialize)]
struct PlanStep {
    description: String,
    tasks: Vec<Task>,
}

#[derive(Deserialize)]
struct Task {
    description: String,
    agent: String,
}

impl Orchestrator {
    pub(super) fn new(
        member: usize,
        agents: &[usize],
        (plan, iterations): (PlanType, Option<u32>),
        form: Form,
    ) -> Self {
        Self {
            member,
            agents: agents.to_vec(),
            plan,
            iterations,
            form,
            request: Vec::new(),
            phase: Phase::Planning,
            plans: 0,
            idle: 0,
            is_complete: false,
            steps: VecDeque::new(),
            done: Vec::new(),
        }
    }

    fn ask_for_plan(&mut self) -> Move {
        self.phase = Phase::Planning;
        let left = self.iterations.map(|most| most.saturating_sub(self.plans));
        let text = planning_text(self.plan, text_of(&self.request), &self.done, left);
        let form = match self.plan {
            PlanType::Full => Form::Plan,
            PlanType::Iterative => Form::NextStep,
        };
        ask_own(0, self.member, form, vec![with_files(&self.request, text)])
    }

    fn ask_for_answer(&mut self, ending: Ending) -> Move {
        self.phase = Phase::Answering;
        let text = answering_text(text_of(&self.request), &self.done, ending);
        ask_own(0, self.member, self.form, vec![with_files(&self.request, text)])
    }

    fn planned(&mut self, cast: &Cast, answer: &str) -> Move {
        let plan = match self.plan {
            PlanType::Full => read::<Plan>(answer),
            PlanType::Iterative => read::<NextStep>(answer).map(|NextStep { step, is_complete }| {
                // A plan that reports completion requests nothing more.
                let steps = if is_complete { VecDeque::new() } else { VecDeque::from([step]) };
                Plan { steps, is_complete }
            }),
        };
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) => return failed(cast, self.member, error),
        };
        self.plans += 1;
        self.is_complete = plan.is_complete;
        self.steps = plan.steps;
        self.steps.retain(|step| !step.tasks.is_empty());
        if self.steps.is_empty() && !self.is_complete {
            return self.ask_for_answer(Ending::NoTasks);
        }
        let knows = |task: &Task| find(cast, &self.agents, &task.agent).is_some();
        let is_idle = !self.steps.iter().flat_map(|step| &step.tasks).any(knows);
        self.idle = if is_idle { self.idle + 1 } else { 0 };
        self.do_step(cast)
    }

    /// Starts the next step that an agent can do, or plans again.
    fn do_step(&mut self, cast: &Cast) -> Move {
        self.phase = Phase::Doing;
        while let Some(step) = self.steps.pop_front() {
            let acts = self.begin_step(cast, step);
            if !acts.is_empty() {
                return Move::Act(acts);
            }
        }
        if self.is_complete {
            self.ask_for_answer(Ending::Complete)
        } else if self.iterations.is_some_and(|most| self.plans >= most) {
            self.ask_for_answer(Ending::OutOfPlans(self.plans))
        } else if self.idle >= IDLE_PLANS {
            self.ask_for_answer(Ending::NobodyToDoIt)
        } else {
            self.ask_for_plan()
        }
    }

    /// Assigns the tasks. A task that no agent can do gets a result at once, for the planner.
    fn begin_step(&mut self, cast: &Cast, step: PlanStep) -> Vec<Act> {
        let mut acts = Vec::new();
        let mut tasks = Vec::with_capacity(step.tasks.len());
        for (key, task) in step.tasks.into_iter().enumerate() {
            let result = match find(cast, &self.agents, &task.agent) {
                Some(agent) => {
                    let text = task_text(text_of(&self.request), &self.done, &task.description);
                    acts.push(start(key, agent, Form::Text, vec![with_files(&self.request, text)]));
                    None
                }
                None => Some(format!(
                    "error: there is no agent `{}`; there are {}",
                    task.agent,
                    names(cast, &self.agents)
                )),
            };
            tasks.push(DoneTask { agent: task.agent, description: task.description, result });
        }
        self.done.push(Done { description: step.description, tasks });
        acts
    }

    fn task_ended(&mut self, cast: &Cast, key: usize, answer: Answer) -> Move {
        let Some(step) = self.done.last_mut() else { return Move::Wait };
        if let Some(task) = step.tasks.get_mut(key) {
            // A failed task is reported to the planner, which may find another way.
            task.result = Some(answer.unwrap_or_else(|error| format!("error: {}", error.message)));
        }
        if step.tasks.iter().all(|task| task.result.is_some()) { self.do_step(cast) } else { Move::Wait }
    }
}

impl Workflow for Orchestrator {
    fn begin(&mut self, _: &Cast, request: Vec<Message>) -> Move {
        self.request = request;
        self.ask_for_plan()
    }

    fn ended(&mut self, cast: &Cast, key: usize, answer: Answer) -> Move {
        match (&self.phase, answer) {
            (Phase::Doing, answer) => self.task_ended(cast, key, answer),
            (Phase::Planning, Ok(answer)) => self.planned(cast, &answer),
            (Phase::Answering, Ok(answer)) => Move::Done(Ok(answer)),
            (Phase::Planning | Phase::Answering, Err(error)) => failed(cast, self.member, error),
        }
    }
}
