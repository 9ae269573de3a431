//! Adapts the program's functions to the ports of the engine: items to prompts, answers to results.

use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt;
use rowmill_core::ports::{AnswerMapper, AnsweredRow, PromptMaker, PromptRendering, ResultVerdict};
use rowmill_core::record::{total_cost, total_usage};
use rowmill_types::{Row, RowError, RowErrorKind};

use super::builder::{DecodeFn, OutputFn, PromptFn};
use super::failure::FunctionFailure;
use super::function_runner::{Computed, FunctionRunner};
use super::item::AnsweredItem;
use super::item_table::{ItemTable, item_index};

/// Decides whether a batch may end with a result.
pub(super) type AcceptFn<U> = Arc<dyn Fn(&U) -> bool + Send + Sync>;

/// Makes prompts from items.
pub(super) struct PromptMap<T, A, U> {
    /// `None` if a function works on the items, which needs no prompts.
    pub(super) prompt: Option<PromptFn<T>>,
    pub(super) item_table: Arc<ItemTable<T, A, U>>,
    pub(super) runner: Arc<FunctionRunner>,
}

impl<T, A, U> fmt::Debug for PromptMap<T, A, U> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("PromptMap")
    }
}

impl<T: Send + Sync + 'static, A: Send, U: Send> PromptMaker for PromptMap<T, A, U> {
    fn make_prompt(&self, row: &Row) -> PromptRendering {
        let Some(prompt) = &self.prompt else { return PromptRendering::Done(Ok(String::new())) };
        if let Some(text) = self.item_table.take_prompt(row.number()) {
            return PromptRendering::Done(Ok(text));
        }
        let Some(item) = self.item_table.item(row.number()) else {
            return PromptRendering::Done(Err(gone()));
        };
        let prompt = Arc::clone(prompt);
        match self.runner.compute(move || prompt(&item)) {
            Computed::Now(made) => PromptRendering::Done(made.map_err(prompt_error)),
            Computed::Later(making) => {
                PromptRendering::Running(making.map(|made| made.map_err(prompt_error)).boxed())
            }
        }
    }
}

fn prompt_error(failure: FunctionFailure) -> RowError {
    failure.row_error(RowErrorKind::Prompt)
}

/// Makes results from answers.
pub(super) struct OutputMap<T, A, U> {
    pub(super) output: OutputFn<T, A, U>,
    /// How to parse an answer from JSON; `None` if a function leaves it in the item table.
    pub(super) decode: Option<DecodeFn<A>>,
    pub(super) counts: Option<AcceptFn<U>>,
    pub(super) item_table: Arc<ItemTable<T, A, U>>,
}

impl<T, A, U> fmt::Debug for OutputMap<T, A, U> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("OutputMap")
    }
}

impl<T, A, U> OutputMap<T, A, U> {
    fn answer(&self, finishing: &AnsweredRow<'_>, in_table: Option<A>) -> Result<A, RowError> {
        match self.decode {
            None => in_table.ok_or_else(gone),
            Some(decode) => decode(finishing.result).map_err(|what| {
                let message = format!("the answer does not match its type: {what}");
                let raw_text = Some(finishing.result.to_owned());
                RowError { raw_text, ..RowError::new(RowErrorKind::Output, message) }
            }),
        }
    }
}

impl<T: Send + Sync, A: Send, U: Send> AnswerMapper for OutputMap<T, A, U> {
    fn map_answer(&self, finishing: AnsweredRow<'_>) -> Result<ResultVerdict, RowError> {
        let AnsweredRow { row, calls, .. } = finishing;
        let (item, in_table) = self.item_table.take_answer(row).ok_or_else(gone)?;
        let answer = self.answer(&finishing, in_table)?;
        let done = AnsweredItem {
            index: item_index(row),
            item,
            answer,
            usage: total_usage(calls),
            cost: total_cost(calls),
            calls: calls.len(),
        };
        let output = (self.output)(done).map_err(|failure| failure.row_error(RowErrorKind::Output))?;
        let counts = self.counts.as_ref().is_none_or(|counts| counts(&output));
        self.item_table.put_output(row, output, counts);
        Ok(if counts { ResultVerdict::Result } else { ResultVerdict::NoResult })
    }
}

fn gone() -> RowError {
    RowError::new(RowErrorKind::Internal, "the item is gone")
}
