//! Steps of a row that nobody waits for any more: what was called for them is told all the same.

use rowmill_core::record::{CallReport, ToolReport};
use rowmill_types::{CallTiming, ErrorKind, Money, RowError};
use tokio::time::Instant;

use crate::act::ToolStep;
use crate::ask::{Calls, Turn};
use crate::call_report::unanswered;
use crate::row::RowContext;

/// What was under way for a row when its steps were dropped, and what had gone before in them.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    pub(crate) calls: Vec<CallReport>,
    /// Calls without an answer that may have been billed.
    pub(crate) unknown: u64,
    /// What the provider's cache saved.
    pub(crate) saved: Money,
    pub(crate) tools: Vec<CutTool>,
}

/// A tool that had not answered.
#[derive(Debug)]
pub(crate) struct CutTool {
    pub(crate) node: usize,
    /// The id of the call.
    pub(crate) call: String,
    pub(crate) report: ToolReport,
}

impl Cut {
    /// What a row comes to that was aborted; `None` if nothing was under way for it.
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
    /// Takes in what a dropped turn leaves.
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
            // What a panic cut is not what the user cut.
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

/// A tool that is being called. If it is dropped before the tool has answered, the call is told.
pub(crate) struct Acting<'a> {
    row: &'a RowContext<'a>,
    step: Option<(&'a ToolStep, Instant)>,
}

impl<'a> Acting<'a> {
    pub(crate) fn begin(row: &'a RowContext<'a>, step: &'a ToolStep) -> Self {
        Self { row, step: Some((step, Instant::now())) }
    }

    /// The tool has answered, or was given up.
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
