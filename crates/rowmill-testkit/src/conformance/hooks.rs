//! The contract of implementations that call hooks.

use futures_util::future::join_all;
use rowmill_core::ports::{HookCall, HookKind, HookRunner};
use serde_json::{Value, json};

use super::check_suite::{CheckResult, CheckSuite, ensure};

/// The row of the calls.
const ROW: u64 = 900_001;
/// The name of an agent without hooks.
const NOBODY: &str = "conformance_nobody";
/// How many calls run at once.
const AT_ONCE: u64 = 8;
/// All kinds.
const KINDS: [HookKind; 5] = [
    HookKind::BeforeModel,
    HookKind::AfterModel,
    HookKind::BeforeTool,
    HookKind::AfterTool,
    HookKind::AfterTurn,
];

/// A call of a hook.
#[derive(Debug, Clone)]
pub struct HookCase {
    /// The kind of the hook.
    pub kind: HookKind,
    /// The agent that has the hook.
    pub agent: String,
    /// What the hook receives: a text, or for tools an object.
    pub about: Value,
}

/// The facts about the hooks that only the author knows. Absent facts are not checked.
#[derive(Debug, Clone, Default)]
pub struct HookFacts {
    /// A hook that only observes: it changes nothing.
    pub looks_on: Option<HookCase>,
    /// A hook that changes a step, and what it returns.
    pub steps_in: Option<(HookCase, Value)>,
    /// A hook that fails.
    pub fails: Option<HookCase>,
}

/// Checks `hooks` against the contract of the port; returns every violation, nothing if it satisfies the
/// contract.
///
/// An agent without a hook of a kind is not affected, and nor is a step that a hook only observes. A hook
/// returns a text, or an object of arguments before a tool. A hook that fails returns an error with a text.
/// Parallel calls, calls for two rows, and dropped calls do not affect others.
///
/// ```
/// use futures_util::future::{BoxFuture, FutureExt, ready};
/// use rowmill_core::ports::{HookCall, HookKind, HookRunner};
/// use rowmill_testkit::conformance::{HookCase, HookFacts, check_hooks};
/// use serde_json::{Value, json};
///
/// /// Makes every answer of the agent `editor` end with a full stop.
/// #[derive(Debug)]
/// struct FullStop;
///
/// impl HookRunner for FullStop {
///     fn call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<Option<Value>, String>> {
///         let text = call.about.as_str().filter(|text| !text.ends_with('.'));
///         let changes = call.agent == "editor" && call.kind == HookKind::AfterTurn;
///         ready(Ok(text.filter(|_| changes).map(|text| json!(format!("{text}."))))).boxed()
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let about = |text: &str| HookCase { kind: HookKind::AfterTurn, agent: "editor".into(), about: json!(text) };
/// let facts = HookFacts {
///     looks_on: Some(about("Done.")),
///     steps_in: Some((about("Done"), json!("Done."))),
///     fails: None,
/// };
/// assert_eq!(check_hooks(&FullStop, &facts).await, Vec::<String>::new());
/// # });
/// ```
pub async fn check_hooks(hooks: &dyn HookRunner, facts: &HookFacts) -> Vec<String> {
    let mut suite = CheckSuite::default();
    for kind in KINDS {
        let case = HookCase { kind, agent: NOBODY.to_owned(), about: about(kind) };
        suite.wait_for(&format!("an agent without a hook {kind:?}"), looks_on(hooks, &case)).await;
    }
    if let Some(case) = &facts.looks_on {
        suite.wait_for("a hook that looks on", looks_on(hooks, case)).await;
    }
    if let Some((case, expected)) = &facts.steps_in {
        suite.wait_for("a hook that steps in", steps_in(hooks, ROW, case, expected)).await;
        let at_once = async {
            let calls = (0..AT_ONCE).map(|number| steps_in(hooks, ROW + number % 2, case, expected));
            join_all(calls).await.into_iter().collect()
        };
        suite.wait_for("calls at once", at_once).await;
        let given_up = async {
            let mut call = hooks.call(call(ROW, case));
            drop(futures_util::poll!(&mut call));
            drop(call);
            steps_in(hooks, ROW, case, expected).await
        };
        suite.wait_for("a call after one was given up", given_up).await;
    }
    if let Some(case) = &facts.fails {
        suite.wait_for("a hook that fails", fails(hooks, case)).await;
    }
    suite.deviations()
}

fn about(kind: HookKind) -> Value {
    match kind {
        HookKind::BeforeTool => json!({"name": "weather", "arguments": {"city": "Köln"}}),
        HookKind::AfterTool => json!({"name": "weather", "arguments": {"city": "Köln"}, "result": "rain"}),
        HookKind::BeforeModel | HookKind::AfterModel | HookKind::AfterTurn => json!("Grüße"),
    }
}

fn call(row: u64, case: &HookCase) -> HookCall<'_> {
    HookCall { kind: case.kind, row, agent: &case.agent, turn: 1, about: &case.about }
}

async fn looks_on(hooks: &dyn HookRunner, case: &HookCase) -> CheckResult {
    match hooks.call(call(ROW, case)).await {
        Ok(None) => Ok(()),
        Ok(Some(value)) => Err(format!("it changes something: {value}")),
        Err(message) => Err(format!("it fails: {message}")),
    }
}

async fn steps_in(hooks: &dyn HookRunner, row: u64, case: &HookCase, expected: &Value) -> CheckResult {
    let given = hooks.call(call(row, case)).await.map_err(|message| format!("it fails: {message}"))?;
    let given = given.ok_or("it changes nothing")?;
    let fits = if case.kind == HookKind::BeforeTool { given.is_object() } else { given.is_string() };
    ensure(fits, || format!("{given} cannot stand in its place"))?;
    ensure(given == *expected, || format!("it gives {given} instead of {expected}"))
}

async fn fails(hooks: &dyn HookRunner, case: &HookCase) -> CheckResult {
    match hooks.call(call(ROW, case)).await {
        Ok(given) => Err(format!("it is reported as if it had worked: {given:?}")),
        Err(message) => ensure(!message.is_empty(), || "it does not say why".to_owned()),
    }
}
