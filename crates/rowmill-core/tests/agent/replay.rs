//! A row state that is interrupted and replayed continues where it was, and the order of arrival does not matter.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use proptest::prelude::*;
use rowmill_core::agent::{
    AgentAnswer, AgentDefinition, AgentGraph, AgentKind, AgentSettings, AnswerEquality, AnswerFormat,
    AnswerRating, ModelAnswer, OrchestratorPlanType, RowState, RowStep, StepEvent, ToolCallAction,
    ToolResult,
};
use rowmill_types::{Completion, FinishReason, Message, RowError, RowErrorKind, ToolCall, ToolOutput};

use crate::harness::*;

/// Every kind of agent, in all combinations.
fn everyone() -> Vec<AgentDefinition> {
    let limited = |agent: AgentSettings| AgentSettings { max_iterations: 4, ..agent };
    let helped = AgentSettings {
        tools: vec![0],
        children: vec![child(0, "a"), child(1, "b")],
        max_parallel: Some(1),
        child_timeout: Some(Duration::from_secs(2)),
        ..AgentSettings::default()
    };
    let boss = AgentSettings {
        children: vec![child(5, "all"), child(9, "planner"), child(2, "c")],
        child_timeout: Some(Duration::from_secs(5)),
        ..AgentSettings::default()
    };
    let judged = AgentKind::EvaluatorOptimizer {
        generator: 0,
        evaluator: 1,
        min_rating: AnswerRating::Good,
        max_refinements: 2,
        instruction: None,
    };
    let voted = AgentKind::Maker {
        worker: 1,
        k: 2,
        max_samples: 4,
        matching: AnswerEquality::Normalized,
        red_flag_max_length: None,
    };
    let planned = |agents: Vec<usize>, plan| AgentKind::Orchestrator { agents, plan, iterations: Some(3) };
    let one_by_one =
        AgentSettings { tools: vec![0, 1, 2], sequential_calls: true, ..AgentSettings::default() };
    vec![
        agent_with("a", limited(AgentSettings { tools: vec![0, 1, 2], ..AgentSettings::default() })),
        agent_with("b", limited(one_by_one)),
        agent_with("c", limited(helped)),
        agent_of_kind("cumulative", AgentKind::Chain { sequence: vec![0, 1, 2], cumulative: true }),
        agent_of_kind("line", AgentKind::Chain { sequence: vec![2, 1], cumulative: false }),
        agent_of_kind(
            "all",
            AgentKind::Parallel { fan_out: vec![0, 1, 2], fan_in: Some(1), include_request: true },
        ),
        agent_of_kind("desk", AgentKind::Router { agents: vec![0, 3, 5] }),
        agent_of_kind("studio", judged),
        agent_of_kind("boss", planned(vec![0, 5], OrchestratorPlanType::Full)),
        agent_of_kind("planner", planned(vec![1, 2], OrchestratorPlanType::Iterative)),
        agent_of_kind("maker", voted),
        agent_of_kind(
            "wide",
            AgentKind::Parallel { fan_out: vec![3, 7, 10], fan_in: Some(0), include_request: false },
        ),
        agent_of_kind("long", AgentKind::Chain { sequence: vec![6, 8], cumulative: false }),
        agent_with("top", limited(boss)),
    ]
}

fn agents_of(worker: usize, turns: Option<u32>, with_schema: bool) -> AgentGraph {
    let tools = vec![
        tool("search", ToolCallAction::Call),
        tool("final", ToolCallAction::Passthrough),
        tool("secret", ToolCallAction::Deny),
    ];
    let schema = with_schema.then(number_schema);
    AgentGraph::new(everyone(), tools, worker, schema).unwrap().with_turns(turns).with_repairs(1)
}

/// A model's answer, determined only by a number.
fn simulated_answer(graph: &AgentGraph, model_role: usize, number: u64) -> Result<Completion, RowError> {
    let pick = |shift: u32, of: u64| (number >> shift) % of;
    if pick(0, 17) == 0 {
        return Err(RowError::new(RowErrorKind::ServerError, format!("down {}", pick(8, 3))));
    }
    let form = graph.model_roles()[model_role].answer_format;
    let names = ["a", "b", "all", "cumulative", "nobody"];
    let name = |shift: u32| names[pick(shift, 5) as usize];
    let task = |shift: u32| format!(r#"{{"description":"do {}","agent":"{}"}}"#, pick(shift, 4), name(shift));
    let complete = pick(4, 3) == 0;
    let text = match form {
        _ if pick(12, 11) == 0 => "not what was asked for".to_owned(),
        AnswerFormat::Text => format!("text {}", pick(20, 3)),
        AnswerFormat::Result => format!(r#"{{"n":{}}}"#, pick(20, 3)),
        AnswerFormat::Route => format!(r#"{{"agent":"{}","confidence":"low","reasoning":""}}"#, name(20)),
        AnswerFormat::Rating => format!(
            r#"{{"rating":"{}","feedback":"f","needs_improvement":{},"focus_areas":[]}}"#,
            ["POOR", "FAIR", "GOOD"][pick(20, 3) as usize],
            !complete
        ),
        AnswerFormat::Plan => format!(
            r#"{{"steps":[{{"description":"s","tasks":[{},{}]}},{{"description":"t","tasks":[{}]}}],"is_complete":{complete}}}"#,
            task(20),
            task(24),
            task(28)
        ),
        AnswerFormat::NextStep => {
            format!(r#"{{"description":"s","tasks":[{},{}],"is_complete":{complete}}}"#, task(20), task(24))
        }
    };
    let tools = ["search", "final", "secret", "a", "b", "c", "planner", "all", "nothing"];
    let wants = if pick(32, 2) == 0 { pick(36, 4) } else { 0 };
    let calls = (0..wants).map(|index| ToolCall {
        id: format!("call-{index}"),
        name: tools[pick(40 + index as u32 * 4, 9) as usize].into(),
        arguments: if pick(44, 7) == 0 { "{".into() } else { r#"{"q":"x"}"#.into() },
    });
    let finish = if pick(52, 19) == 0 { FinishReason::Paused } else { FinishReason::Complete };
    Ok(Completion { finish, calls: calls.collect(), ..Completion::from_text(text) })
}

fn given(number: u64) -> ToolOutput {
    let text =
        if number.is_multiple_of(5) { r#"{"n":7}"#.to_owned() } else { format!("gave {}", number % 3) };
    ToolOutput { is_error: number.is_multiple_of(7), ..ToolOutput::from_text(text) }
}

/// Pseudo-random numbers.
fn mixed(seed: &mut u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    *seed = hasher.finish();
    *seed
}

/// A row state and its open steps.
struct Run<'c> {
    graph: &'c AgentGraph,
    row_state: RowState,
    open: Vec<RowStep>,
}

impl<'c> Run<'c> {
    fn start(graph: &'c AgentGraph) -> Self {
        let row_state = RowState::start(graph, request_with_file("go"));
        let mut run = Self { graph, row_state, open: Vec::new() };
        run.gather();
        run
    }

    /// A run that continues after a crash.
    fn replayed(graph: &'c AgentGraph, journal: &[StepEvent]) -> Self {
        let mut row_state = RowState::start(graph, request_with_file("go"));
        for step_event in journal {
            row_state.apply_event(graph, through_a_file(step_event)).unwrap();
        }
        let mut run = Self { graph, row_state, open: Vec::new() };
        run.gather();
        run
    }

    fn gather(&mut self) {
        let Self { row_state, open, .. } = self;
        while let Some(step) = row_state.next_step() {
            assert!(!row_state.node_has_ended(node_of(&step)), "nobody waits for {step:?}");
            open.push(step);
        }
        // Like a driver: dropped steps are not waited for.
        open.retain(|step| !row_state.node_has_ended(node_of(step)));
    }

    /// All open steps, in an order that does not depend on how they came about.
    fn shown(&self) -> Vec<String> {
        let mut shown: Vec<String> = self.open.iter().map(|step| format!("{step:?}")).collect();
        shown.sort();
        shown
    }

    fn outcome(&mut self) -> Option<AgentAnswer> {
        self.row_state.take_outcome(self.graph)
    }

    /// The result of the step at `at`, determined by `number`.
    fn happens(&self, at: usize, number: u64) -> StepEvent {
        match &self.open[at] {
            RowStep::CallModel { node, model_role, .. } => {
                match simulated_answer(self.graph, *model_role, number) {
                    Ok(completion) => {
                        let prompt = number.is_multiple_of(13).then(|| "changed by a hook".to_owned());
                        StepEvent::ModelAnswered {
                            node: *node,
                            prompt,
                            completion,
                            note: None,
                            calls: Vec::new(),
                        }
                    }
                    Err(error) => StepEvent::ModelFailed { node: *node, error, calls: Vec::new() },
                }
            }
            RowStep::CallTool { node, index, .. } => {
                StepEvent::ToolEnded { node: *node, index: *index, output: given(number), note: None }
            }
            RowStep::StartTimer { node, limit } => StepEvent::NodeTimedOut { node: *node, limit: *limit },
        }
    }

    /// Notifies the row state as its driver does.
    fn tell(&mut self, step_event: StepEvent) {
        let Self { graph, row_state, .. } = self;
        match step_event {
            StepEvent::ModelAnswered { node, prompt, completion, note, .. } => {
                let mut messages = take_messages(&mut self.open, node);
                if let (Some(prompt), Some(last)) = (prompt, messages.last_mut()) {
                    last.text = prompt;
                }
                row_state.handle_answer(graph, node, ModelAnswer { messages, completion, note });
            }
            StepEvent::ModelFailed { node, error, .. } => {
                let messages = take_messages(&mut self.open, node);
                row_state.handle_model_failure(graph, node, messages, error);
            }
            StepEvent::ToolEnded { node, index, output, note } => {
                let is_other = |step: &RowStep| !matches!(step, RowStep::CallTool { node: n, index: i, .. } if (*n, *i) == (node, index));
                self.open.retain(is_other);
                row_state.handle_tool_output(graph, node, ToolResult { index, output, note });
            }
            StepEvent::NodeTimedOut { node, limit } => row_state.handle_node_timeout(graph, node, limit),
            StepEvent::ToolStarted { .. } => {}
        }
        self.gather();
    }
}

fn node_of(step: &RowStep) -> usize {
    let (RowStep::CallModel { node, .. } | RowStep::CallTool { node, .. } | RowStep::StartTimer { node, .. }) =
        step;
    *node
}

fn take_messages(open: &mut Vec<RowStep>, wanted: usize) -> Vec<Message> {
    let at = open.iter().position(|step| matches!(step, RowStep::CallModel { node, .. } if *node == wanted));
    match open.remove(at.unwrap()) {
        RowStep::CallModel { messages, .. } => messages,
        other => panic!("{other:?}"),
    }
}

/// A line of a journal, written and read again.
fn through_a_file(step_event: &StepEvent) -> StepEvent {
    let mut line = Vec::new();
    step_event.write(&mut line);
    StepEvent::parse(&line).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_replayed_row_state_has_the_same_open_steps_and_outcome(
        worker in 0_usize..14, with_schema: bool, mut seed: u64, cut in 0_usize..30, turns in 1_u32..30,
    ) {
        let graph = agents_of(worker, Some(turns), with_schema);
        let mut run = Run::start(&graph);
        let mut journal = Vec::new();
        let mut at_cut = (cut == 0).then(|| run.shown());
        while !run.row_state.is_finished() {
            prop_assert!(!run.open.is_empty(), "nobody is waited for, and there is no outcome");
            let number = mixed(&mut seed);
            let at = (mixed(&mut seed) % run.open.len() as u64) as usize;
            let step_event = run.happens(at, number);
            run.tell(step_event.clone());
            journal.push(step_event);
            if journal.len() == cut {
                at_cut = Some(run.shown());
            }
        }
        let outcome = run.outcome();
        prop_assert!(run.row_state.turn_count() <= turns);

        let cut = cut.min(journal.len());
        let (before, after) = journal.split_at(cut);
        let mut again = Run::replayed(&graph, before);
        if let (Some(open), false) = (at_cut, after.is_empty()) {
            prop_assert_eq!(again.shown(), open);
        }
        for step_event in after {
            again.tell(step_event.clone());
        }
        prop_assert_eq!(again.row_state.turn_count(), run.row_state.turn_count());
        prop_assert_eq!(again.outcome(), outcome);
    }

    #[test]
    fn results_do_not_depend_on_the_order_of_arrival(
        worker in 0_usize..14, with_schema: bool, world: u64, mut one: u64, mut other: u64,
    ) {
        let graph = agents_of(worker, None, with_schema);
        prop_assert_eq!(play(&graph, world, &mut one), play(&graph, world, &mut other));
    }
}

/// Runs a row state in an order determined by `order`. The answers of models and tools depend only on the requests, and
/// no time limit passes.
fn play(graph: &AgentGraph, world: u64, order: &mut u64) -> Option<AgentAnswer> {
    let mut run = Run::start(graph);
    for _ in 0..3000 {
        if run.row_state.is_finished() {
            return run.outcome();
        }
        let able: Vec<usize> =
            (0..run.open.len()).filter(|at| !matches!(run.open[*at], RowStep::StartTimer { .. })).collect();
        let at = able[(mixed(order) % able.len() as u64) as usize];
        let number = asked_number(&run.open[at], world);
        let step_event = run.happens(at, number);
        run.tell(step_event);
    }
    None
}

/// A number that depends only on what a step requests.
fn asked_number(step: &RowStep, world: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    let texts =
        |messages: &[Message]| messages.iter().map(|message| message.text.clone()).collect::<Vec<_>>();
    match step {
        RowStep::CallModel { model_role, messages, .. } => (model_role, texts(messages)).hash(&mut hasher),
        RowStep::CallTool { tool, call, .. } => (tool, &call.id, &call.arguments).hash(&mut hasher),
        RowStep::StartTimer { .. } => {}
    }
    hasher.finish()
}

#[test]
fn a_node_whose_time_was_up_is_not_asked_for_again_and_a_late_answer_changes_nothing() {
    let boss = AgentSettings {
        children: vec![child(0, "a")],
        child_timeout: Some(Duration::from_secs(1)),
        ..AgentSettings::default()
    };
    let graph = graph(vec![agent("a"), agent_with("boss", boss)]);
    let answered = |node: usize, completion: Completion| StepEvent::ModelAnswered {
        node,
        prompt: None,
        completion,
        note: None,
        calls: Vec::new(),
    };
    let journal = [
        answered(0, calls(&[("a", r#"{"message":"go"}"#)])),
        StepEvent::NodeTimedOut { node: 1, limit: Duration::from_secs(1) },
        answered(1, Completion::from_text("too late")),
        answered(0, Completion::from_text("done")),
    ];
    let mut row_state = RowState::start(&graph, vec![Message::user("go")]);
    for step_event in journal.iter().take(2).cloned() {
        row_state.apply_event(&graph, step_event).unwrap();
    }
    let open: Vec<RowStep> = std::iter::from_fn(|| row_state.next_step()).collect();
    assert!(matches!(open.as_slice(), [RowStep::CallModel { node: 0, .. }]), "{open:?}");

    let mut row_state = RowState::start(&graph, vec![Message::user("go")]);
    for step_event in journal {
        row_state.apply_event(&graph, step_event).unwrap();
    }
    assert_eq!(row_state.take_outcome(&graph), Some(Ok("\"done\"".to_owned())));
}

#[test]
fn events_that_do_not_fit_the_row_state_are_refused() {
    let graph = graph(vec![agent("a")]);
    let end = || StepEvent::ToolEnded { node: 0, index: 0, output: ToolOutput::from_text("x"), note: None };
    let fail = |node| StepEvent::ModelFailed {
        node,
        error: RowError::new(RowErrorKind::Timeout, ""),
        calls: Vec::new(),
    };
    let mut row_state = RowState::start(&graph, vec![Message::user("go")]);
    assert_eq!(row_state.apply_event(&graph, end()), Err("no tool call 0 of node 0 was open".to_owned()));
    assert_eq!(row_state.apply_event(&graph, fail(7)), Err("there is no node 7".to_owned()));
    assert!(row_state.next_step().is_some());
    assert_eq!(row_state.apply_event(&graph, fail(0)), Err("no model call of node 0 was open".to_owned()));
}
