//! How messages to programs name settings: by the methods that set them.

use rowmill_types::{Setting, SettingMention, SettingVocabulary, SuggestedAction, SuggestedActionMention};

/// The vocabulary of the library.
pub(super) const LIBRARY_VOCABULARY: SettingVocabulary = SettingVocabulary { name_settings, describe_action };

fn name_settings(mention: &SettingMention) -> String {
    let mut names: Vec<String> = Vec::new();
    for (setting, value) in &mention.settings {
        let name = match (method(*setting), value) {
            (Some(method), Some(value)) if *setting == Setting::Model => format!("{method}({value:?})"),
            // The documentation of a method describes its arguments.
            (Some(method), _) => method.to_owned(),
            (None, Some(value)) => format!("{}: {value}", setting.name()),
            (None, None) => setting.name().to_owned(),
        };
        if *setting == Setting::AcceptChanges && mention.settings.len() > 1 {
            // Its method is another way to resume.
            names.retain(|name| Some(name.as_str()) != method(Setting::Resume));
        }
        names.push(name);
    }
    names.iter().map(|name| mention.quote_name(name)).collect::<Vec<_>>().join(" and ")
}

/// The method that sets something, if batches have one.
#[expect(clippy::too_many_lines, reason = "a table with a line for each setting")]
fn method(setting: Setting) -> Option<&'static str> {
    Some(match setting {
        Setting::AcceptChanges => "LedgerOptions::resume_accepting_changes",
        Setting::Agent => "Worker::agent",
        Setting::AgentCard => "Worker::from_card",
        Setting::Cache => "Batch::cache",
        Setting::Deadline => "Batch::deadline",
        Setting::Id | Setting::IdField => "Batch::id",
        Setting::Instruction => "Worker::instruction",
        Setting::JsonSchema => "Batch::answer_type",
        Setting::KeepGoing => "Batch::stop_on_same_failure",
        Setting::MaxCost => "Batch::max_cost",
        Setting::MaxErrors => "Batch::max_errors",
        Setting::MaxOutage => "Batch::max_outage",
        Setting::MaxRowCost | Setting::MaxRowTokens => "Batch::item_budget",
        Setting::MaxTokens => "Batch::max_total_tokens",
        Setting::Model => "Worker::from_model_name",
        Setting::OnQuota => "Batch::on_quota",
        Setting::Overwrite => "LedgerOptions::overwrite",
        Setting::Parallel => "Batch::concurrency",
        Setting::Prompt | Setting::Template => "Batch::prompt",
        Setting::Repairs => "Batch::repairs",
        Setting::Resume => "LedgerOptions::resume",
        Setting::RowTimeout => "Batch::item_timeout",
        Setting::Rpm | Setting::Tpm => "Batch::minute_limits",
        Setting::Timeout => "Batch::timeout",
        Setting::Turns => "Batch::turns",
        Setting::Var => "Worker::variable",
        Setting::WorkDir => "Batch::ledger",
        Setting::ArchiveInputs
        | Setting::Attach
        | Setting::Columns
        | Setting::ConnectTimeout
        | Setting::Delimiter
        | Setting::Deny
        | Setting::Detach
        | Setting::ErrorOutput
        | Setting::ExportTraces
        | Setting::Extract
        | Setting::FirstByteTimeout
        | Setting::Flatten
        | Setting::IdleTimeout
        | Setting::IncludeInput
        | Setting::Input
        | Setting::InputFormat
        | Setting::Lane
        | Setting::Limit
        | Setting::Notify
        | Setting::NotifyUrl
        | Setting::Offset
        | Setting::Output
        | Setting::OutputDir
        | Setting::OutputFormat
        | Setting::Passthrough
        | Setting::PythonProcesses
        | Setting::RecordTools
        | Setting::RemovedRows
        | Setting::RetryUnknown
        | Setting::Sample
        | Setting::SampleCalls
        | Setting::SchemaModel
        | Setting::SplitBy
        | Setting::Sql
        | Setting::SqlEngine
        | Setting::Stub
        | Setting::SummaryOutput
        | Setting::TelemetryOutput
        | Setting::Types
        | Setting::VarFile
        | Setting::VarsJson
        | Setting::Where => return None,
    })
}

fn describe_action(mention: &SuggestedActionMention) -> String {
    match mention.action {
        SuggestedAction::RunAgain => {
            "run again (with `LedgerOptions::resume` nothing is paid for twice)".to_owned()
        }
        SuggestedAction::RunAgainChanged => {
            "run again (with `LedgerOptions::resume_accepting_changes` nothing is paid for twice)".to_owned()
        }
        SuggestedAction::SendRegardless => {
            "omit `Batch::stop_on_same_failure` to send all items regardless".to_owned()
        }
        SuggestedAction::SetPrices => {
            "with `Batch::prices`, or at the top of a `rowmill.toml` passed to `Batch::config`".to_owned()
        }
        SuggestedAction::ListSettings => {
            "see the documentation of `Batch` and `Worker` for every setting".to_owned()
        }
        SuggestedAction::ExportResults => {
            format!("`rowmill::export` of {} writes", mention.value.as_deref().unwrap_or("the run"))
        }
    }
}

#[cfg(test)]
mod tests {
    use rowmill_types::actions::{RUN_AGAIN, RUN_AGAIN_CHANGED, SEND_REGARDLESS, SET_PRICES};
    use rowmill_types::settings::{ACCEPT_CHANGES, MAX_COST, MODEL, ON_QUOTA, RESUME, SQL, VAR};
    use rowmill_types::{DiagnosticText, Problem, ProblemCode, RowErrorKind};

    use super::*;

    fn method_text(marked: String) -> String {
        DiagnosticText::from(marked).render(LIBRARY_VOCABULARY)
    }

    #[test]
    fn messages_name_methods_for_programs_and_flags_for_people() {
        let problem = Problem::new(ProblemCode::UnknownPrice, format!("{MAX_COST} needs the price"))
            .hint(format!("set the key and {RUN_AGAIN}"))
            .with_vocabulary(LIBRARY_VOCABULARY);
        assert_eq!(problem.message, "`Batch::max_cost` needs the price");
        assert_eq!(
            problem.hint.as_deref(),
            Some("set the key and run again (with `LedgerOptions::resume` nothing is paid for twice)")
        );
    }

    #[test]
    fn what_a_program_does_differently_is_worded_differently() {
        for (marked, expected) in [
            (
                RUN_AGAIN_CHANGED.to_string(),
                "run again (with `LedgerOptions::resume_accepting_changes` nothing is paid for twice)",
            ),
            (SEND_REGARDLESS.to_string(), "omit `Batch::stop_on_same_failure` to send all items regardless"),
            (
                SET_PRICES.to_string(),
                "with `Batch::prices`, or at the top of a `rowmill.toml` passed to `Batch::config`",
            ),
            (RESUME.and(ACCEPT_CHANGES).to_string(), "`LedgerOptions::resume_accepting_changes`"),
            (ON_QUOTA.with_value("wait").to_string(), "`Batch::on_quota`"),
            (MODEL.with_value("simulated").to_string(), "`Worker::from_model_name(\"simulated\")`"),
            (VAR.with_value("'tone=…'").without_backticks().to_string(), "Worker::variable"),
            (SQL.to_string(), "`sql`"),
        ] {
            assert_eq!(method_text(marked), expected);
        }
    }

    #[test]
    fn no_setting_and_no_action_is_reported_as_a_flag() {
        for text in Setting::ALL
            .iter()
            .map(ToString::to_string)
            .chain(SuggestedAction::ALL.iter().map(ToString::to_string))
        {
            let message = method_text(text);
            assert!(message.contains('`') && !message.contains("--"), "{message}");
        }
    }

    #[test]
    fn no_problem_and_no_error_of_an_item_is_explained_with_a_flag() {
        let problems = ProblemCode::ALL.iter().flat_map(|code| [code.description(), code.advice()]);
        let kinds = RowErrorKind::ALL.iter().flat_map(|kind| [kind.description(), kind.advice()]);
        for text in problems.chain(kinds) {
            let message = text.render(LIBRARY_VOCABULARY);
            assert!(!message.contains("--"), "{message}");
        }
        let message = RowErrorKind::TurnLimit.advice().render(LIBRARY_VOCABULARY);
        assert!(message.starts_with("Raise `Batch::turns` or"), "{message}");
    }

    #[test]
    fn what_names_no_setting_is_left_as_it_is() {
        assert_eq!(method_text("a -- b".into()), "a -- b");
    }
}
