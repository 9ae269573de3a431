//! The contract of models that do not call the simulator.

use std::fmt;

use futures_util::future::join_all;
use rowmill_core::ports::Model;
use rowmill_types::{Completion, Message, Request, ToolCall, ToolOutput};

use super::check_suite::{CheckResult, CheckSuite, drop_call_and_check, ensure};

/// How many calls run at once.
const AT_ONCE: usize = 16;
/// The length of a very long text.
const LONG: usize = 1 << 20;

/// Whether an answer, the second argument, belongs to a prompt, the first.
pub type AnswerMatchFn<'a> = Box<dyn Fn(&str, &str) -> bool + Send + Sync + 'a>;

/// The facts about a model that only its author knows.
pub struct ModelFacts<'a> {
    /// Which answers belong to which prompts. This allows a model that repeats the prompt, or a word of it,
    /// to be checked for calls that get each other's answers. By default every answer belongs to every
    /// prompt.
    pub belongs: AnswerMatchFn<'a>,
    /// The current number of running calls, if it can be observed: at a server of the test, or in a count
    /// that the model keeps. It must become zero when the suite has no running call.
    pub under_way: Option<Box<dyn Fn() -> usize + Send + Sync + 'a>>,
}

impl Default for ModelFacts<'_> {
    fn default() -> Self {
        Self { belongs: Box::new(|_, _| true), under_way: None }
    }
}

impl fmt::Debug for ModelFacts<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ModelFacts").field("counts", &self.under_way.is_some()).finish_non_exhaustive()
    }
}

/// Checks `model` against the contract of the port; returns every violation, nothing if it satisfies the
/// contract.
///
/// It must answer a short prompt, and parallel calls must get the answers to their own prompts. Prompts that
/// are empty, very long or not English, and conversations with tools, may be rejected with an error, but not
/// with a panic. A call whose future is dropped must end, and the model must still answer afterwards. `close`
/// must return, also a second time, and later calls are still answered. The compiler already checks that a
/// model and its futures can be sent to other threads.
///
/// A model that uses one of the protocols of the simulator can be checked for much more with
/// [`check_model`](super::check_model).
///
/// ```
/// use futures_util::future::{BoxFuture, FutureExt, ready};
/// use rowmill_core::ports::Model;
/// use rowmill_testkit::conformance::{ModelFacts, check_program_model};
/// use rowmill_types::{CallError, Completion, Request};
///
/// /// Answers with the last message, in capitals.
/// #[derive(Debug)]
/// struct Shouting;
///
/// impl Model for Shouting {
///     fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
///         let said = request.messages.last().map_or("", |message| message.text.as_str());
///         ready(Ok(Completion::from_text(said.to_uppercase()))).boxed()
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let facts = ModelFacts {
///     belongs: Box::new(|prompt, answer| answer == prompt.to_uppercase()),
///     ..ModelFacts::default()
/// };
/// assert_eq!(check_program_model(&Shouting, &facts).await, Vec::<String>::new());
/// # });
/// ```
pub async fn check_program_model(model: &dyn Model, facts: &ModelFacts<'_>) -> Vec<String> {
    let mut suite = CheckSuite::default();
    suite.wait_for("a call", answers(model, facts, "conformance: one call")).await;
    suite.wait_for("calls at once", at_once(model, facts)).await;
    for (what, messages) in odd_conversations() {
        let request = request(messages);
        let call = async {
            // A model may reject what it does not support.
            drop(model.complete(&request).await);
            Ok(())
        };
        suite.wait_for(&format!("a call with {what}"), call).await;
    }
    let dropped = request(vec![Message::user("conformance: given up")]);
    let call = async { drop_call_and_check(|| model.complete(&dropped), &facts.under_way).await };
    suite.wait_for("a call that is given up", call).await;
    suite.wait_for("a call after one was given up", answers(model, facts, "conformance: goes on")).await;
    for time in ["the first", "the second"] {
        let close = async {
            model.close().await;
            Ok(())
        };
        suite.wait_for(&format!("closing the model for {time} time"), close).await;
    }
    suite.wait_for("a call after `close`", answers(model, facts, "conformance: after the end")).await;
    suite.deviations()
}

/// The only function of the suite that creates a request.
fn request(messages: Vec<Message>) -> Request {
    Request {
        key: "conformance".to_owned(),
        row: 1,
        attempt: 1,
        output_cap: None,
        purpose: Default::default(),
        messages,
    }
}

async fn answers(model: &dyn Model, facts: &ModelFacts<'_>, prompt: &str) -> CheckResult {
    let request = request(vec![Message::user(prompt)]);
    let result = model.complete(&request).await;
    let Completion { text, .. } = result.map_err(|error| format!("`{prompt}` got no answer: {error:?}"))?;
    ensure((facts.belongs)(prompt, &text), || format!("`{prompt}` got an answer to something else: `{text}`"))
}

async fn at_once(model: &dyn Model, facts: &ModelFacts<'_>) -> CheckResult {
    let prompts: Vec<String> =
        (1..=AT_ONCE).map(|number| format!("conformance: call {number} of many")).collect();
    let all = join_all(prompts.iter().map(|prompt| answers(model, facts, prompt))).await;
    all.into_iter().collect()
}

fn odd_conversations() -> Vec<(&'static str, Vec<Message>)> {
    let call =
        ToolCall { id: "call_1".to_owned(), name: "weather".to_owned(), arguments: "{\"city\":".to_owned() };
    let wants = Message { calls: vec![call.clone()], ..Message::assistant("") };
    let given = Message::tool(&call, ToolOutput::error("wrong arguments"));
    vec![
        ("an empty text", vec![Message::user("")]),
        ("a very long text", vec![Message::user("long ".repeat(LONG / 5))]),
        (
            "text that is not ASCII",
            vec![Message::user("Grüße, 世界 \u{1f30d}\u{200d}\u{0}\u{202e} e\u{301}")],
        ),
        (
            "an earlier answer",
            vec![Message::user("conformance"), Message::assistant("so"), Message::user("and?")],
        ),
        ("a tool that failed", vec![Message::user("conformance"), wants, given]),
    ]
}
