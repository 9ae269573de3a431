//! Dropped steps of a row: their calls are reported all the same.

use rowmill_core::record::{CallReport, ToolReport};
use rowmill_types::{CallTiming, ErrorKind, Money, RowError};
use tokio::time::Instant;

use crate::act::ToolStep;
use crate::ask::{Calls, Turn};
use crate::call_report::unanswered;
use crate::row::RowContext;

/// The calls that were under way when steps of a row were dropped, and the earlier calls of these steps.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    pub(crate) calls: Vec<CallReport>,
    /// Calls without an answer that may have been billed.
    pub(crate) unknown: u64,
    /// What the provider's cache saved.
    pub(crate) saved: Money,
    pub(crate) tools: Vec<CutTool>,
}

/// A tool that had not returned.
#[derive(Debug)]
pub(crate) struct CutTool {
    pub(crate) node: usize,
    /// The id of the call.
    pub(crate) call: String,
    pub(crate) report: ToolReport,
}

impl Cut {
    /// The error of an aborted row; `None` if nothing was under way for it.
    pub(crate) fn error(&self) -> Option<RowError> {
        let asked = self.calls.iter().any(|call| call.error == Some(ErrorKind::Interrupted));
        let message = match (self.tools.first(), asked) {
            (None, false) => return None,
            (None, true) => {
                "the run was aborted during the call; it is unknown whether it was billed".to_owned()
            }
            (Some(CutTool { report, .. }), asked) => {
                let called = if asked { "during a model call and " } else { "" };
                let billed = if asked { "the call was billed or the tool" } else { "it" };
                format!(
                    "the run was aborted {called}while the tool `{}` was running; it is unknown whether \
                     {billed} took effect",
                    report.tool
                )
            }
        };
        Some(RowError::new(ErrorKind::Interrupted, message))
    }
}

impl RowContext<'_> {
    /// Adds the calls of a dropped turn.
    fn cut_turn(&self, member: usize, mut calls: Calls) {
        self.name_agent(member, &mut calls.reports);
        self.cut(|cut| {
            cut.calls.append(&mut calls.reports);
            cut.unknown += calls.unknown;
            cut.saved += calls.saved;
        });
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut calls = std::mem::take(&mut self.calls);
        if let Some(sent) = self.sent.take() {
            let timing = CallTiming { first_token: None, response: sent.elapsed() };
            // A step that a panic dropped was not dropped by the user.
            let kind = if std::thread::panicking() { ErrorKind::Internal } else { ErrorKind::Interrupted };
            calls.reports.push(unanswered(kind, None, timing));
            calls.unknown += 1;
            self.row.may_be_paid(true);
        }
        if !calls.reports.is_empty() {
            self.row.cut_turn(self.member, calls);
        }
    }
}

/// A tool call in progress. If this is dropped before the tool has returned, the call is reported.
pub(crate) struct Acting<'a> {
    row: &'a RowContext<'a>,
    step: Option<(&'a ToolStep, Instant)>,
}

impl<'a> Acting<'a> {
    pub(crate) fn begin(row: &'a RowContext<'a>, step: &'a ToolStep) -> Self {
        Self { row, step: Some((step, Instant::now())) }
    }

    /// The tool has returned, or was given up.
    pub(crate) fn end(mut self) {
        self.step = None;
    }
}

impl Drop for Acting<'_> {
    fn drop(&mut self) {
        let Some((step, began)) = self.step.take() else { return };
        let report = self.row.tool_report(step, began.elapsed());
        let tool = CutTool { node: step.node, call: step.call.id.clone(), report };
        self.row.cut(|cut| cut.tools.push(tool));
    }
}
