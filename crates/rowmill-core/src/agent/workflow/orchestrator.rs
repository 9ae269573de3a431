//! A model plans, agents carry out the steps, and the model answers from their results.

use std::collections::VecDeque;

use rowmill_types::Message;
use serde::Deserialize;

use super::plan_text::{FinishedStep, FinishedTask, PlanEnding, answering_text, planning_text, task_text};
use super::{Workflow, ask_own, failed, find, names, read, start, text_of, with_files};
use crate::agent::answer_format::AnswerFormat;
use crate::agent::graph::{AgentGraph, OrchestratorPlanType};
use crate::agent::step::{AgentAnswer, NodeAction, NodeTask};

/// The maximum number of consecutive plans without a task that an agent can do.
const IDLE_PLANS: u32 = 2;

pub(super) struct OrchestratorWorkflow {
    agent_index: usize,
    agents: Vec<usize>,
    plan: OrchestratorPlanType,
    iterations: Option<u32>,
    form: AnswerFormat,
    request: Vec<Message>,
    phase: OrchestratorPhase,
    /// The number of plans so far.
    plans: u32,
    /// The number of consecutive plans without a task that an agent can do.
    idle: u32,
    /// Whether the current plan is the last one.
    is_complete: bool,
    /// The remaining steps of the plan.
    steps: VecDeque<PlanStep>,
    /// All steps carried out so far; the current one is last.
    done: Vec<FinishedStep>,
}

#[derive(PartialEq, Eq)]
enum OrchestratorPhase {
    Planning,
    Doing,
    Answering,
}

#[derive(Deserialize)]
struct AgentPlan {
    steps: VecDeque<PlanStep>,
    is_complete: bool,
}

#[derive(Deserialize)]
struct NextPlanStep {
    #[serde(flatten)]
    step: PlanStep,
    is_complete: bool,
}

#[derive(Deserialize)]
struct PlanStep {
    description: String,
    tasks: Vec<PlanTask>,
}

#[derive(Deserialize)]
struct PlanTask {
    description: String,
    agent: String,
}

impl OrchestratorWorkflow {
    pub(super) fn new(
        agent_index: usize,
        agents: &[usize],
        (plan, iterations): (OrchestratorPlanType, Option<u32>),
        form: AnswerFormat,
    ) -> Self {
        Self {
            agent_index,
            agents: agents.to_vec(),
            plan,
            iterations,
            form,
            request: Vec::new(),
            phase: OrchestratorPhase::Planning,
            plans: 0,
            idle: 0,
            is_complete: false,
            steps: VecDeque::new(),
            done: Vec::new(),
        }
    }

    fn ask_for_plan(&mut self) -> NodeAction {
        self.phase = OrchestratorPhase::Planning;
        let left = self.iterations.map(|most| most.saturating_sub(self.plans));
        let text = planning_text(self.plan, text_of(&self.request), &self.done, left);
        let form = match self.plan {
            OrchestratorPlanType::Full => AnswerFormat::Plan,
            OrchestratorPlanType::Iterative => AnswerFormat::NextStep,
        };
        ask_own(0, self.agent_index, form, vec![with_files(&self.request, text)])
    }

    fn ask_for_answer(&mut self, ending: PlanEnding) -> NodeAction {
        self.phase = OrchestratorPhase::Answering;
        let text = answering_text(text_of(&self.request), &self.done, ending);
        ask_own(0, self.agent_index, self.form, vec![with_files(&self.request, text)])
    }

    fn planned(&mut self, graph: &AgentGraph, answer: &str) -> NodeAction {
        let plan = match self.plan {
            OrchestratorPlanType::Full => read::<AgentPlan>(answer),
            OrchestratorPlanType::Iterative => {
                read::<NextPlanStep>(answer).map(|NextPlanStep { step, is_complete }| {
                    // A plan that reports completion requests nothing more.
                    let steps = if is_complete { VecDeque::new() } else { VecDeque::from([step]) };
                    AgentPlan { steps, is_complete }
                })
            }
        };
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) => return failed(graph, self.agent_index, error),
        };
        self.plans += 1;
        self.is_complete = plan.is_complete;
        self.steps = plan.steps;
        self.steps.retain(|step| !step.tasks.is_empty());
        if self.steps.is_empty() && !self.is_complete {
            return self.ask_for_answer(PlanEnding::NoTasks);
        }
        let knows = |task: &PlanTask| find(graph, &self.agents, &task.agent).is_some();
        let is_idle = !self.steps.iter().flat_map(|step| &step.tasks).any(knows);
        self.idle = if is_idle { self.idle + 1 } else { 0 };
        self.do_step(graph)
    }

    /// Starts the next step that an agent can do, or plans again.
    fn do_step(&mut self, graph: &AgentGraph) -> NodeAction {
        self.phase = OrchestratorPhase::Doing;
        while let Some(step) = self.steps.pop_front() {
            let acts = self.begin_step(graph, step);
            if !acts.is_empty() {
                return NodeAction::StartTasks(acts);
            }
        }
        if self.is_complete {
            self.ask_for_answer(PlanEnding::Complete)
        } else if self.iterations.is_some_and(|most| self.plans >= most) {
            self.ask_for_answer(PlanEnding::OutOfPlans(self.plans))
        } else if self.idle >= IDLE_PLANS {
            self.ask_for_answer(PlanEnding::UnknownAgents)
        } else {
            self.ask_for_plan()
        }
    }

    /// Assigns the tasks. A task that no agent can do gets a result at once, for the planner.
    fn begin_step(&mut self, graph: &AgentGraph, step: PlanStep) -> Vec<NodeTask> {
        let mut acts = Vec::new();
        let mut tasks = Vec::with_capacity(step.tasks.len());
        for (key, task) in step.tasks.into_iter().enumerate() {
            let result = match find(graph, &self.agents, &task.agent) {
                Some(agent) => {
                    let text = task_text(text_of(&self.request), &self.done, &task.description);
                    acts.push(start(key, agent, AnswerFormat::Text, vec![with_files(&self.request, text)]));
                    None
                }
                None => Some(format!(
                    "error: there is no agent `{}`; there are {}",
                    task.agent,
                    names(graph, &self.agents)
                )),
            };
            tasks.push(FinishedTask { agent: task.agent, description: task.description, result });
        }
        self.done.push(FinishedStep { description: step.description, tasks });
        acts
    }

    fn task_ended(&mut self, graph: &AgentGraph, key: usize, answer: AgentAnswer) -> NodeAction {
        let Some(step) = self.done.last_mut() else { return NodeAction::Wait };
        if let Some(task) = step.tasks.get_mut(key) {
            // A failed task is reported to the planner, which may find another way.
            task.result = Some(answer.unwrap_or_else(|error| format!("error: {}", error.message)));
        }
        if step.tasks.iter().all(|task| task.result.is_some()) {
            self.do_step(graph)
        } else {
            NodeAction::Wait
        }
    }
}

impl Workflow for OrchestratorWorkflow {
    fn begin(&mut self, _: &AgentGraph, request: Vec<Message>) -> NodeAction {
        self.request = request;
        self.ask_for_plan()
    }

    fn handle_agent_end(&mut self, graph: &AgentGraph, key: usize, answer: AgentAnswer) -> NodeAction {
        match (&self.phase, answer) {
            (OrchestratorPhase::Doing, answer) => self.task_ended(graph, key, answer),
            (OrchestratorPhase::Planning, Ok(answer)) => self.planned(graph, &answer),
            (OrchestratorPhase::Answering, Ok(answer)) => NodeAction::Done(Ok(answer)),
            (OrchestratorPhase::Planning | OrchestratorPhase::Answering, Err(error)) => {
                failed(graph, self.agent_index, error)
            }
        }
    }
}
