//! The contract of tool hosts.

use std::fmt;
use std::time::Duration;

use futures_util::future::join_all;
use rowmill_core::ports::{ToolFailure, ToolHost, ToolRequest};
use rowmill_types::ToolOutput;
use serde_json::Value;

use super::check_suite::{CallCounterFn, CheckResult, CheckSuite, drop_call_and_check, ensure};

/// The row of the calls. Real rows do not have such numbers.
const ROW: u64 = 900_001;
/// Another row, worked on at the same time.
const OTHER: u64 = 900_002;
/// A row that the host does not see before its end.
const UNSEEN: u64 = 900_900;
/// How many calls run at once.
const AT_ONCE: u64 = 8;
/// The timeout for a tool that hangs.
const SHORT: Duration = Duration::from_millis(200);
/// The name of a tool that no host has.
const UNKNOWN: &str = "conformance_no_such_tool";

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct ToolCase {
    /// The name under which the host knows the tool.
    pub tool: String,
    /// The arguments, JSON text of an object.
    pub arguments: String,
}

impl ToolCase {
    /// A call with these arguments, which must be a JSON object.
    ///
    /// ```
    /// # use rowmill_testkit::conformance::ToolCase;
    /// let case = ToolCase::new("add", &serde_json::json!({"left": 1, "right": 2}));
    /// assert_eq!(case.arguments, r#"{"left":1,"right":2}"#);
    /// ```
    pub fn new(tool: impl Into<String>, arguments: &Value) -> Self {
        Self { tool: tool.into(), arguments: arguments.to_string() }
    }
}

/// A tool that remembers how often a row has called it: each of the first three calls of a row returns a
/// different text, and all rows get the same texts in the same order.
#[derive(Debug, Clone)]
pub struct CountingTool {
    /// The call.
    pub case: ToolCase,
    /// What happens to the count when the row has ended.
    pub after_release: AfterRelease,
}

/// What happens to a row's state when the row has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRelease {
    /// It is forgotten: the next call of the row counts from the start.
    Forgotten,
    /// It may be passed on to a later row, for example with a process that is reused.
    PassedOn,
}

/// Makes a call from a number, with a text that only its own answer contains.
pub type EchoTool<'a> = Box<dyn Fn(u64) -> (ToolCase, String) + Send + Sync + 'a>;

/// The facts about a host's tools that only its author knows. Only `works` is required; checks that need
/// another tool are left out if there is none.
pub struct ToolFacts<'a> {
    /// A call that succeeds, however often it is made.
    pub works: ToolCase,
    /// A call of a tool that reports a failure.
    pub fails: Option<ToolCase>,
    /// A tool with state.
    pub counts: Option<CountingTool>,
    /// A tool whose answer shows which call it belongs to.
    pub echoes: Option<EchoTool<'a>>,
    /// A call of a tool that never returns by itself.
    pub hangs: Option<ToolCase>,
    /// The current number of running calls of `hangs`, if it can be observed. It must become zero when the
    /// suite has no running call.
    pub under_way: Option<Box<dyn Fn() -> usize + Send + Sync + 'a>>,
}

impl ToolFacts<'_> {
    /// The facts about a host of which only this call is known.
    #[must_use]
    pub fn of(works: ToolCase) -> Self {
        Self { works, fails: None, counts: None, echoes: None, hangs: None, under_way: None }
    }
}

impl fmt::Debug for ToolFacts<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { works, fails, counts, hangs, .. } = self;
        let mut out = out.debug_struct("ToolFacts");
        out.field("works", works).field("fails", fails).field("counts", counts).field("hangs", hangs);
        out.finish_non_exhaustive()
    }
}

/// Checks `host` against the contract of the port; returns every violation, nothing if it satisfies the
/// contract.
///
/// A call returns an output. A tool that reports a failure returns an output with `is_error`, and a call of a
/// tool that does not exist returns a [`ToolFailure`] which says that it did not run. Parallel calls do not
/// get each other's answers, and rows do not see each other's state. A call can be dropped, and the host ends
/// calls that take longer than the request allows. `release` accepts rows that the host has never seen and
/// rows that were already released. `close` returns, also a second time; it is called last, so the host
/// cannot be used afterwards. No more than four rows are worked on at the same time.
///
/// ```
/// use futures_util::future::{BoxFuture, FutureExt, ready};
/// use rowmill_core::ports::{ToolFailure, ToolHost, ToolRequest};
/// use rowmill_testkit::conformance::{ToolCase, ToolFacts, check_tool_host};
/// use rowmill_types::ToolOutput;
/// use serde_json::{Value, json};
///
/// /// Knows how long words are.
/// #[derive(Debug)]
/// struct Words;
///
/// impl ToolHost for Words {
///     fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
///         if request.tool != "length" {
///             let message = format!("there is no tool `{}`", request.tool);
///             return ready(Err(ToolFailure { message, may_have_run: false })).boxed();
///         }
///         let arguments: Value = serde_json::from_str(request.arguments).unwrap_or_default();
///         let output = match arguments["word"].as_str() {
///             Some(word) => ToolOutput::from_text(format!("{word}: {}", word.chars().count())),
///             None => ToolOutput::error("a word is missing"),
///         };
///         ready(Ok(output)).boxed()
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let facts = ToolFacts {
///     fails: Some(ToolCase::new("length", &json!({}))),
///     echoes: Some(Box::new(|number| {
///         let word = format!("word{number}");
///         (ToolCase::new("length", &json!({"word": word})), format!("{word}:"))
///     })),
///     ..ToolFacts::of(ToolCase::new("length", &json!({"word": "grün"})))
/// };
/// assert_eq!(check_tool_host(&Words, &facts).await, Vec::<String>::new());
/// # });
/// ```
pub async fn check_tool_host(host: &dyn ToolHost, facts: &ToolFacts<'_>) -> Vec<String> {
    let mut suite = CheckSuite::default();
    suite.wait_for("a call", works(host, facts)).await;
    if let Some(case) = &facts.fails {
        suite.wait_for("a tool that fails", fails(host, case)).await;
    }
    suite.wait_for("a tool that does not exist", unknown(host)).await;
    suite.wait_for("calls at once", at_once(host, facts)).await;
    if let Some(counting) = &facts.counts {
        suite.wait_for("a tool with state", kept_apart(host, counting)).await;
    }
    if let Some(case) = &facts.hangs {
        suite.wait_for("a tool that takes too long", stopped(host, case)).await;
        suite.wait_for("a call that is given up", given_up(host, case, &facts.under_way)).await;
        suite.wait_for("a call after one was given up", works(host, facts)).await;
    }
    suite.wait_for("the end of rows", released(host, facts)).await;
    for time in ["the first", "the second"] {
        let close = async {
            host.close().await;
            Ok(())
        };
        suite.wait_for(&format!("closing the host for {time} time"), close).await;
    }
    suite.deviations()
}

/// The only function of the suite that creates a request.
fn request(row: u64, case: &ToolCase) -> ToolRequest<'_> {
    let ToolCase { tool, arguments } = case;
    ToolRequest {
        row,
        id: &rowmill_types::RowId::Number(0),
        key: "conformance",
        tool,
        arguments,
        idempotent: false,
        timeout: None,
    }
}

/// The text of a call that must succeed.
async fn text(host: &dyn ToolHost, row: u64, case: &ToolCase) -> Result<String, String> {
    match host.call(request(row, case)).await {
        Ok(ToolOutput { is_error: false, text, .. }) => Ok(text),
        Ok(output) => Err(format!("`{}` says that it failed: {}", case.tool, output.text)),
        Err(failure) => Err(format!("`{}` gave nothing: {}", case.tool, failure.message)),
    }
}

async fn works(host: &dyn ToolHost, facts: &ToolFacts<'_>) -> CheckResult {
    text(host, ROW, &facts.works).await.map(drop)
}

async fn fails(host: &dyn ToolHost, case: &ToolCase) -> CheckResult {
    match host.call(request(ROW, case)).await {
        Ok(output) => {
            ensure(output.is_error, || format!("its output is not marked as an error: {}", output.text))
        }
        Err(failure) => {
            Err(format!("it is reported as a `ToolFailure`, not as an output: {}", failure.message))
        }
    }
}

async fn unknown(host: &dyn ToolHost) -> CheckResult {
    let case = ToolCase { tool: UNKNOWN.to_owned(), arguments: "{}".to_owned() };
    match host.call(request(ROW, &case)).await {
        Ok(output) => Err(format!("it gave an output instead of a `ToolFailure`: {}", output.text)),
        Err(ToolFailure { may_have_run: maybe_ran, message }) => {
            ensure(!maybe_ran, || format!("the failure says that it may have run: {message}"))
        }
    }
}

async fn at_once(host: &dyn ToolHost, facts: &ToolFacts<'_>) -> CheckResult {
    let call = async |number: u64| {
        let (case, expected) = match &facts.echoes {
            Some(make) => make(number),
            None => (facts.works.clone(), String::new()),
        };
        // Every row makes two of the calls.
        let given = text(host, ROW + number / 2, &case).await?;
        ensure(given.contains(&expected), || format!("a call for `{expected}` got another answer: {given}"))
    };
    join_all((0..AT_ONCE).map(call)).await.into_iter().collect::<CheckResult>()?;
    for number in 0..AT_ONCE {
        host.release_row(ROW + number / 2).await;
    }
    Ok(())
}

async fn kept_apart(host: &dyn ToolHost, counting: &CountingTool) -> CheckResult {
    let case = &counting.case;
    let first = text(host, ROW, case).await?;
    let of_other = text(host, OTHER, case).await?;
    ensure(first == of_other, || {
        format!("a row begins with `{first}`, and another beside it with `{of_other}`")
    })?;
    let second = text(host, ROW, case).await?;
    ensure(first != second, || format!("it forgets between two calls of a row: `{first}` twice"))?;
    let of_other = text(host, OTHER, case).await?;
    ensure(second == of_other, || format!("rows disturb each other: `{second}` and `{of_other}`"))?;
    host.release_row(ROW).await;
    if counting.after_release == AfterRelease::Forgotten {
        let again = text(host, ROW, case).await?;
        ensure(first == again, || format!("a row that was released goes on with `{again}`, not `{first}`"))?;
    }
    let third = text(host, OTHER, case).await?;
    host.release_row(ROW).await;
    host.release_row(OTHER).await;
    ensure(third != first, || "the end of a row took the state of another one".to_owned())
}

async fn stopped(host: &dyn ToolHost, case: &ToolCase) -> CheckResult {
    match host.call(ToolRequest { timeout: Some(SHORT), ..request(ROW, case) }).await {
        Ok(output) => {
            ensure(output.is_error, || format!("its output is not marked as an error: {}", output.text))
        }
        Err(ToolFailure { may_have_run: maybe_ran, message }) => {
            ensure(maybe_ran, || format!("the failure says that it cannot have run: {message}"))
        }
    }
}

async fn given_up(host: &dyn ToolHost, case: &ToolCase, under_way: &CallCounterFn<'_>) -> CheckResult {
    drop_call_and_check(|| host.call(request(ROW, case)), under_way).await
}

async fn released(host: &dyn ToolHost, facts: &ToolFacts<'_>) -> CheckResult {
    for row in [UNSEEN, UNSEEN, ROW, ROW] {
        host.release_row(row).await;
    }
    works(host, facts).await.map_err(|what| format!("a row that was released calls again: {what}"))?;
    host.release_row(ROW).await;
    Ok(())
}
