//! Says to programs what is said to people at a terminal: the same, with methods in place of flags.

use rowmill_types::{Problem, RowError};

use crate::run::Notice;

/// Flags that stand in messages, and what a program has in their place.
const WORDS: &[(&str, &str)] = &[
    ("`--max-cost`", "`Batch::max_cost`"),
    ("`--max-tokens`", "`Batch::max_tokens`"),
    ("`--max-row-cost`", "`Batch::item_budget`"),
    ("`--max-row-tokens`", "`Batch::item_budget`"),
    ("`--row-timeout`", "`Batch::item_timeout`"),
    ("`--timeout`", "`Batch::timeout`"),
    ("`--turns`", "`Batch::turns`"),
    ("`--repairs`", "`Batch::repairs`"),
    ("`--parallel`", "`Batch::concurrency`"),
    ("`--on-quota wait`", "`Batch::on_quota`"),
    ("`--max-outage`", "`Batch::max_outage`"),
    (
        "`--keep-going` sends all rows regardless",
        "without `Batch::stop_on_same_failure` all items are sent regardless",
    ),
    ("run again with `--resume`", "run again (with `LedgerFolder::resume` nothing is paid for twice)"),
    (
        "run again with `--resume --accept-changes`",
        "run again (with `LedgerFolder::resume_changed` nothing is paid for twice)",
    ),
    ("`--resume`", "`LedgerFolder::resume`"),
    ("`--model`", "`Worker::model`"),
    ("`--agent`", "`Worker::agent`"),
    ("`--agent-card`", "`Worker::card`"),
    ("`--instruction`", "`Worker::instruction`"),
    ("`--var`", "`Worker::variable`"),
    ("`--id-field`", "`Batch::id`"),
    (
        "at the top of `rowmill.toml`",
        "with `Batch::prices`, or at the top of a `rowmill.toml` that `Batch::config` is given",
    ),
];

fn translated(text: String) -> String {
    if !text.contains("`--") && !text.contains("rowmill.toml") {
        return text;
    }
    WORDS.iter().fold(text, |text, (flag, method)| text.replace(flag, method))
}

/// A problem, as a program is told it.
pub(super) fn problem(problem: Problem) -> Problem {
    Problem {
        message: translated(problem.message),
        cause: problem.cause.map(translated),
        hint: problem.hint.map(translated),
        ..problem
    }
}

/// A notice, as a program is told it.
pub(super) fn notice(notice: Notice) -> Notice {
    match notice {
        Notice::Info(text) => Notice::Info(translated(text)),
        Notice::Warning(text) => Notice::Warning(translated(text)),
        Notice::SignIn(text) => Notice::SignIn(text),
    }
}

/// The error of an item, as a program is told it.
pub(super) fn row_error(error: &RowError) -> RowError {
    RowError { message: translated(error.message.clone()), ..error.clone() }
}

#[cfg(test)]
mod tests {
    use rowmill_types::ProblemCode;

    use super::*;

    #[test]
    fn programs_are_told_of_methods_where_people_are_told_of_flags() {
        let told = Problem::new(ProblemCode::UnknownPrice, "`--max-cost` needs the price")
            .hint("set the key and run again with `--resume`");
        let told = problem(told);
        assert_eq!(told.message, "`Batch::max_cost` needs the price");
        assert_eq!(
            told.hint.as_deref(),
            Some("set the key and run again (with `LedgerFolder::resume` nothing is paid for twice)")
        );
    }

    #[test]
    fn what_names_no_flag_is_left_as_it_is() {
        assert_eq!(translated("a -- b".into()), "a -- b");
    }
}
