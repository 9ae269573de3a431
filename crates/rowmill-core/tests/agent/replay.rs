//! A row state that is interrupted and replayed continues where it was, and the order of arrival does not matter.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use proptest::prelude::*;
use rowmill_core::agent::{
    Agent, Answer, Cast, Course, Form, Happening, Kind, Matching, Member, PlanType, Rating, Route, Step,
};
use rowmill_types::{Completion, ErrorKind, Finish, Message, RowError, ToolCall, ToolOutput};

use crate::stage::*;

/// Every kind of agent, in all combinations.
fn everyone() -> Vec<Member> {
    let limited = |agent: Agent| Agent { max_iterations: 4, ..agent };
    let helped = Agent {
        tools: vec![0],
        children: vec![child(0, "a"), child(1, "b")],
        max_parallel: Some(1),
        child_timeout: Some(Duration::from_secs(2)),
        ..Agent::default()
    };
    let boss = Agent {
        children: vec![child(5, "all"), child(9, "planner"), child(2, "c")],
        child_timeout: Some(Duration::from_secs(5)),
        ..Agent::default()
    };
    let judged = Kind::EvaluatorOptimizer {
        generator: 0,
        evaluator: 1,
        min_rating: Rating::Good,
        max_refinements: 2,
        instruction: None,
    };
    let voted = Kind::Maker {
        worker: 1,
        k: 2,
        max_samples: 4,
        matching: Matching::Normalized,
        red_flag_max_length: None,
    };
    let planned = |agents: Vec<usize>, plan| Kind::Orchestrator { agents, plan, iterations: Some(3) };
    let one_by_one = Agent { tools: vec![0, 1, 2], one_by_one: true, ..Agent::default() };
    vec![
        agent_with("a", limited(Agent { tools: vec![0, 1, 2], ..Agent::default() })),
        agent_with("b", limited(one_by_one)),
        agent_with("c", limited(helped)),
        member("cumulative", Kind::Chain { sequence: vec![0, 1, 2], cumulative: true }),
        member("line", Kind::Chain { sequence: vec![2, 1], cumulative: false }),
        member("all", Kind::Parallel { fan_out: vec![0, 1, 2], fan_in: Some(1), include_request: true }),
        member("desk", Kind::Router { agents: vec![0, 3, 5] }),
        member("studio", judged),
        member("boss", planned(vec![0, 5], PlanType::Full)),
        member("planner", planned(vec![1, 2], PlanType::Iterative)),
        member("maker", voted),
        member("wide", Kind::Parallel { fan_out: vec![3, 7, 10], fan_in: Some(0), include_request: false }),
        member("long", Kind::Chain { sequence: vec![6, 8], cumulative: false }),
        agent_with("top", limited(boss)),
    ]
}

fn cast_of(worker: usize, turns: Option<u32>, with_schema: bool) -> Cast {
    let tools =
        vec![tool("search", Route::Call), tool("final", Route::Passthrough), tool("secret", Route::Deny)];
    let schema = with_schema.then(number_schema);
    Cast::new(everyone(), tools, worker, schema).unwrap().with_turns(turns).with_repairs(1)
}

/// A model's answer, determined only by a number.
fn said(cast: &Cast, voice: usize, number: u64) -> Result<Completion, RowError> {
    let pick = |shift: u32, of: u64| (number >> shift) % of;
    if pick(0, 17) == 0 {
        return Err(RowError::new(ErrorKind::ServerError, format!("down {}", pick(8, 3))));
    }
    let form = cast.voices()[voice].form;
    let names = ["a", "b", "all", "cumulative", "nobody"];
    let name = |shift: u32| names[pick(shift, 5) as usize];
    let task = |shift: u32| format!(r#"{{"description":"do {}","agent":"{}"}}"#, pick(shift, 4), name(shift));
    let complete = pick(4, 3) == 0;
    let text = match form {
        _ if pick(12, 11) == 0 => "not what was asked for".to_owned(),
        Form::Text => format!("text {}", pick(20, 3)),
        Form::Result => format!(r#"{{"n":{}}}"#, pick(20, 3)),
        Form::Route => format!(r#"{{"agent":"{}","confidence":"low","reasoning":""}}"#, name(20)),
        Form::Rating => format!(
            r#"{{"rating":"{}","feedback":"f","needs_improvement":{},"focus_areas":[]}}"#,
            ["POOR", "FAIR", "GOOD"][pick(20, 3) as usize],
            !complete
        ),
        Form::Plan => format!(
            r#"{{"steps":[{{"description":"s","tasks":[{},{}]}},{{"description":"t","tasks":[{}]}}],"is_complete":{complete}}}"#,
            task(20),
            task(24),
            task(28)
        ),
        Form::NextStep => {
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
    let finish = if pick(52, 19) == 0 { Finish::Paused } else { Finish::Complete };
    Ok(Completion { finish, calls: calls.collect(), ..Completion::of_text(text) })
}

fn given(number: u64) -> ToolOutput {
    let text =
        if number.is_multiple_of(5) { r#"{"n":7}"#.to_owned() } else { format!("gave {}", number % 3) };
    ToolOutput { is_error: number.is_multiple_of(7), ..ToolOutput::of_text(text) }
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
    cast: &'c Cast,
    course: Course,
    open: Vec<Step>,
}

impl<'c> Run<'c> {
    fn start(cast: &'c Cast) -> Self {
        let course = Course::start(cast, request_with_file("go"));
        let mut run = Self { cast, course, open: Vec::new() };
        run.gather();
        run
    }

    /// A run that continues after a crash.
    fn replayed(cast: &'c Cast, journal: &[Happening]) -> Self {
        let mut course = Course::start(cast, request_with_file("go"));
        for happening in journal {
            course.replay(cast, through_a_file(happening)).unwrap();
        }
        let mut run = Self { cast, course, open: Vec::new() };
        run.gather();
        run
    }

    fn gather(&mut self) {
        let Self { course, open, .. } = self;
        while let Some(step) = course.next_step() {
            assert!(!course.has_ended(node_of(&step)), "nobody waits for {step:?}");
            open.push(step);
        }
        // Like a driver: dropped steps are not waited for.
        open.retain(|step| !course.has_ended(node_of(step)));
    }

    /// All open steps, in an order that does not depend on how they came about.
    fn shown(&self) -> Vec<String> {
        let mut shown: Vec<String> = self.open.iter().map(|step| format!("{step:?}")).collect();
        shown.sort();
        shown
    }

    fn outcome(&mut self) -> Option<Answer> {
        self.course.take_outcome(self.cast)
    }

    /// The result of the step at `at`, determined by `number`.
    fn happens(&self, at: usize, number: u64) -> Happening {
        match &self.open[at] {
            Step::CallModel { node, voice, .. } => match said(self.cast, *voice, number) {
                Ok(completion) => {
                    let prompt = number.is_multiple_of(13).then(|| "changed by a hook".to_owned());
                    Happening::Answered { node: *node, prompt, completion, note: None, calls: Vec::new() }
                }
                Err(error) => Happening::Failed { node: *node, error, calls: Vec::new() },
            },
            Step::CallTool { node, index, .. } => {
                Happening::ToolEnded { node: *node, index: *index, output: given(number), note: None }
            }
            Step::Watch { node, limit } => Happening::Expired { node: *node, limit: *limit },
        }
    }

    /// Notifies the row state as its driver does.
    fn tell(&mut self, happening: Happening) {
        let Self { cast, course, .. } = self;
        match happening {
            Happening::Answered { node, prompt, completion, note, .. } => {
                let mut messages = take_messages(&mut self.open, node);
                if let (Some(prompt), Some(last)) = (prompt, messages.last_mut()) {
                    last.text = prompt;
                }
                course.answered(cast, node, messages, completion, note);
            }
            Happening::Failed { node, error, .. } => {
                let messages = take_messages(&mut self.open, node);
                course.failed(cast, node, messages, error);
            }
            Happening::ToolEnded { node, index, output, note } => {
                let is_other = |step: &Step| !matches!(step, Step::CallTool { node: n, index: i, .. } if (*n, *i) == (node, index));
                self.open.retain(is_other);
                course.tool_ended(cast, node, index, output, note);
            }
            Happening::Expired { node, limit } => course.expired(cast, node, limit),
            Happening::ToolStarted { .. } => {}
        }
        self.gather();
    }
}

fn node_of(step: &Step) -> usize {
    let (Step::CallModel { node, .. } | Step::CallTool { node, .. } | Step::Watch { node, .. }) = step;
    *node
}

fn take_messages(open: &mut Vec<Step>, wanted: usize) -> Vec<Message> {
    let at = open.iter().position(|step| matches!(step, Step::CallModel { node, .. } if *node == wanted));
    match open.remove(at.unwrap()) {
        Step::CallModel { messages, .. } => messages,
        other => panic!("{other:?}"),
    }
}

/// A line of a journal, written and read again.
fn through_a_file(happening: &Happening) -> Happening {
    let mut line = Vec::new();
    happening.write(&mut line);
    Happening::parse(&line).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_replayed_course_has_the_same_open_steps_and_the_same_outcome(
        worker in 0_usize..14, with_schema: bool, mut seed: u64, cut in 0_usize..30, turns in 1_u32..30,
    ) {
        let cast = cast_of(worker, Some(turns), with_schema);
        let mut run = Run::start(&cast);
        let mut journal = Vec::new();
        let mut at_cut = (cut == 0).then(|| run.shown());
        while !run.course.is_over() {
            prop_assert!(!run.open.is_empty(), "nobody is waited for, and there is no outcome");
            let number = mixed(&mut seed);
            let at = (mixed(&mut seed) % run.open.len() as u64) as usize;
            let happening = run.happens(at, number);
            run.tell(happening.clone());
            journal.push(happening);
            if journal.len() == cut {
                at_cut = Some(run.shown());
            }
        }
        let outcome = run.outcome();
        prop_assert!(run.course.turns() <= turns);

        let cut = cut.min(journal.len());
        let (before, after) = journal.split_at(cut);
        let mut again = Run::replayed(&cast, before);
        if let (Some(open), false) = (at_cut, after.is_empty()) {
            prop_assert_eq!(again.shown(), open);
        }
        for happening in after {
            again.tell(happening.clone());
        }
        prop_assert_eq!(again.course.turns(), run.course.turns());
        prop_assert_eq!(again.outcome(), outcome);
    }

    #[test]
    fn results_do_not_depend_on_the_order_of_arrival(
        worker in 0_usize..14, with_schema: bool, world: u64, mut one: u64, mut other: u64,
    ) {
        let cast = cast_of(worker, None, with_schema);
        prop_assert_eq!(walk(&cast, world, &mut one), walk(&cast, world, &mut other));
    }
}

/// Runs a row state in an order determined by `order`. The answers of models and tools depend only on the requests, and
/// no time limit passes.
fn walk(cast: &Cast, world: u64, order: &mut u64) -> Option<Answer> {
    let mut run = Run::start(cast);
    for _ in 0..3000 {
        if run.course.is_over() {
            return run.outcome();
        }
        let able: Vec<usize> =
            (0..run.open.len()).filter(|at| !matches!(run.open[*at], Step::Watch { .. })).collect();
        let at = able[(mixed(order) % able.len() as u64) as usize];
        let number = asked_number(&run.open[at], world);
        let happening = run.happens(at, number);
        run.tell(happening);
    }
    None
}

/// A number that depends only on what a step requests.
fn asked_number(step: &Step, world: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    let texts =
        |messages: &[Message]| messages.iter().map(|message| message.text.clone()).collect::<Vec<_>>();
    match step {
        Step::CallModel { voice, messages, .. } => (voice, texts(messages)).hash(&mut hasher),
        Step::CallTool { tool, call, .. } => (tool, &call.id, &call.arguments).hash(&mut hasher),
        Step::Watch { .. } => {}
    }
    hasher.finish()
}

#[test]
fn a_node_whose_time_was_up_is_not_asked_for_again_and_what_it_still_said_changes_nothing() {
    let boss = Agent {
        children: vec![child(0, "a")],
        child_timeout: Some(Duration::from_secs(1)),
        ..Agent::default()
    };
    let cast = cast(vec![agent("a"), agent_with("boss", boss)]);
    let answered = |node: usize, completion: Completion| Happening::Answered {
        node,
        prompt: None,
        completion,
        note: None,
        calls: Vec::new(),
    };
    let journal = [
        answered(0, calls(&[("a", r#"{"message":"go"}"#)])),
        Happening::Expired { node: 1, limit: Duration::from_secs(1) },
        answered(1, Completion::of_text("too late")),
        answered(0, Completion::of_text("done")),
    ];
    let mut course = Course::start(&cast, vec![Message::user("go")]);
    for happening in journal.iter().take(2).cloned() {
        course.replay(&cast, happening).unwrap();
    }
    let open: Vec<Step> = std::iter::from_fn(|| course.next_step()).collect();
    assert!(matches!(open.as_slice(), [Step::CallModel { node: 0, .. }]), "{open:?}");

    let mut course = Course::start(&cast, vec![Message::user("go")]);
    for happening in journal {
        course.replay(&cast, happening).unwrap();
    }
    assert_eq!(course.take_outcome(&cast), Some(Ok("\"done\"".to_owned())));
}

#[test]
fn what_does_not_fit_the_course_is_refused() {
    let cast = cast(vec![agent("a")]);
    let end = || Happening::ToolEnded { node: 0, index: 0, output: ToolOutput::of_text("x"), note: None };
    let fail =
        |node| Happening::Failed { node, error: RowError::new(ErrorKind::Timeout, ""), calls: Vec::new() };
    let mut course = Course::start(&cast, vec![Message::user("go")]);
    assert_eq!(course.replay(&cast, end()), Err("no tool call 0 of node 0 was open".to_owned()));
    assert_eq!(course.replay(&cast, fail(7)), Err("there is no node 7".to_owned()));
    assert!(course.next_step().is_some());
    assert_eq!(course.replay(&cast, fail(0)), Err("no model call of node 0 was open".to_owned()));
}
