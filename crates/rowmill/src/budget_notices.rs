//! Notifies the user of how a budget affects a run.

use std::sync::Arc;

use rowmill_core::ports::{Observer, RunEvent};
use rowmill_types::settings::{MAX_COST, MAX_TOKENS};
use rowmill_types::{Setting, group_digits};

use crate::control::{RunControl, RunNotice};
use crate::work_spec::WorkSpec;

/// The receiver of notices.
type NoticeFn = Arc<dyn Fn(RunNotice) + Send + Sync>;

/// The observer of a run: with a budget, it also notifies the user.
pub(crate) fn observer(work: &WorkSpec, control: &RunControl) -> Arc<dyn Observer> {
    if !work.budget.is_limited() && !work.agents.row_budget.is_limited() {
        return Arc::clone(&control.observer);
    }
    Arc::new(BudgetNotices {
        observer: Arc::clone(&control.observer),
        notice: Arc::clone(&control.notice),
        setting: if work.budget.cost.is_some() { MAX_COST } else { MAX_TOKENS },
    })
}

/// Turns budget events into notices, and forwards all events.
struct BudgetNotices {
    observer: Arc<dyn Observer>,
    notice: NoticeFn,
    /// The setting of the run's budget.
    setting: Setting,
}

impl Observer for BudgetNotices {
    fn observe(&self, event: &RunEvent<'_>) {
        if let Some(notice) = notice(event, self.setting) {
            (self.notice)(notice);
        }
        self.observer.observe(event);
    }
}

/// The notice for an event, if it is about the budget that `setting` sets.
fn notice(event: &RunEvent<'_>, setting: Setting) -> Option<RunNotice> {
    match event {
        RunEvent::AnswersCapped { tokens, calls, .. } => {
            let fit = match calls {
                Some(1) => "a call fits the budget".to_owned(),
                Some(calls) => format!("{} calls at a time fit the budget", group_digits(*calls)),
                None => "calls fit the limits of a row".to_owned(),
            };
            Some(RunNotice::info(format!(
                "answers are capped at {} tokens for now, so that {fit}; truncated answers are requested \
                 again with a higher cap",
                group_digits(*tokens)
            )))
        }
        RunEvent::OutputCapIgnored { endpoint, allowed, used } => Some(RunNotice::warning(format!(
            "`{endpoint}` returned {} tokens although the cap was {}; reserving at least that much for every \
             call from now on",
            group_digits(*used),
            group_digits(*allowed)
        ))),
        RunEvent::PacedByBudget { calls, .. } => {
            let calls =
                if *calls == 1 { "one call".to_owned() } else { format!("{} calls", group_digits(*calls)) };
            Some(RunNotice::info(format!(
                "the budget allows only {calls} at a time; set a lower `max_tokens` in the model string or a \
                 higher {setting} to run faster"
            )))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_name_what_was_chosen_and_what_to_do_about_a_slow_run() {
        let endpoint = "m";
        let notice_text = |event| match notice(&event, MAX_COST) {
            Some(RunNotice::Info(text) | RunNotice::Warning(text) | RunNotice::SignIn(text)) => {
                text.to_string()
            }
            None => String::new(),
        };
        assert_eq!(
            notice_text(RunEvent::AnswersCapped { endpoint, tokens: 14_336, calls: Some(64) }),
            "answers are capped at 14,336 tokens for now, so that 64 calls at a time fit the budget; \
             truncated answers are requested again with a higher cap"
        );
        assert!(
            notice_text(RunEvent::AnswersCapped { endpoint, tokens: 9, calls: Some(1) })
                .contains(", so that a call fits")
        );
        assert!(
            notice_text(RunEvent::AnswersCapped { endpoint, tokens: 9, calls: None })
                .contains("the limits of a row")
        );
        assert_eq!(
            notice_text(RunEvent::PacedByBudget { endpoint, calls: 3 }),
            "the budget allows only 3 calls at a time; set a lower `max_tokens` in the model string or a \
             higher `max_cost` to run faster"
        );
        assert!(
            notice_text(RunEvent::PacedByBudget { endpoint, calls: 1 })
                .contains("allows only one call at a time;")
        );
        assert_eq!(
            notice_text(RunEvent::OutputCapIgnored { endpoint, allowed: 256, used: 900 }),
            "`m` returned 900 tokens although the cap was 256; reserving at least that much for every call \
             from now on"
        );
        assert_eq!(notice(&RunEvent::AllRead, MAX_COST), None);
    }
}
