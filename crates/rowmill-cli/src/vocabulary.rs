//! How messages name settings: by flags, or by the fields of the spec that is run.

use std::sync::atomic::{AtomicBool, Ordering};

use rowmill::wording::{
    DiagnosticText, SettingMention, SettingVocabulary, SuggestedAction, SuggestedActionMention,
};

use crate::spec_vocabulary::SPEC_FIELDS;

static RUNS_SPEC: AtomicBool = AtomicBool::new(false);

/// From now on, messages name settings as fields of a spec: the command of this process runs one, and
/// would reject flags for them.
pub(crate) fn use_spec_fields() {
    RUNS_SPEC.store(true, Ordering::Relaxed);
}

/// The vocabulary of the command of this process.
pub(crate) fn vocabulary() -> SettingVocabulary {
    if RUNS_SPEC.load(Ordering::Relaxed) { SPEC_FIELDS } else { COMMAND_LINE_VOCABULARY }
}

/// Renders a text in the vocabulary of the command of this process.
pub(crate) fn worded(text: impl Into<DiagnosticText>) -> String {
    text.into().render(vocabulary())
}

/// The vocabulary of the command line.
pub const COMMAND_LINE_VOCABULARY: SettingVocabulary = SettingVocabulary { name_settings, describe_action };

/// Flags have the names of settings, with dashes.
fn name_settings(mention: &SettingMention) -> String {
    let mut flags = Vec::new();
    for (setting, value) in &mention.settings {
        flags.push(format!("--{}", setting.name().replace('_', "-")));
        flags.extend(value.clone());
    }
    mention.quote_name(&flags.join(" "))
}

fn describe_action(mention: &SuggestedActionMention) -> String {
    match mention.action {
        SuggestedAction::RunAgain => "run again with `--resume`".to_owned(),
        SuggestedAction::RunAgainChanged => "run again with `--resume --accept-changes`".to_owned(),
        SuggestedAction::SendRegardless => "`--keep-going` sends all rows regardless".to_owned(),
        SuggestedAction::SetPrices => "at the top of `rowmill.toml`".to_owned(),
        SuggestedAction::ListSettings => "`rowmill run --help` lists every flag with examples".to_owned(),
        SuggestedAction::ExportResults => {
            let folder = mention.value.as_deref().unwrap_or("FOLDER");
            format!("`rowmill export {folder} --output results.jsonl` writes")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rowmill::wording::actions::EXPORT_RESULTS;
    use rowmill::wording::settings::{ACCEPT_CHANGES, INPUT, INPUT_FORMAT, RESUME, VAR};
    use rowmill::wording::{DiagnosticText, Setting};
    use rowmill::{ProblemCode, RowErrorKind};

    use super::*;

    fn flags_of(command: &clap::Command, flags: &mut BTreeSet<String>) {
        flags.extend(command.get_arguments().filter_map(|argument| argument.get_long()).map(str::to_owned));
        command.get_subcommands().for_each(|command| flags_of(command, flags));
    }

    #[test]
    fn every_setting_that_messages_name_is_a_flag() {
        let mut flags = BTreeSet::new();
        flags_of(&crate::clap_command(), &mut flags);
        for setting in Setting::ALL {
            let reported = DiagnosticText::from(setting.to_string()).render(COMMAND_LINE_VOCABULARY);
            let flag = reported.trim_matches('`').trim_start_matches("--");
            assert!(flags.contains(flag), "there is no {reported}");
        }
    }

    #[test]
    fn every_setting_that_explains_a_problem_or_an_error_is_reported_as_its_flag() {
        let problems = ProblemCode::ALL.iter().flat_map(|code| [code.description(), code.advice()]);
        let kinds = RowErrorKind::ALL.iter().flat_map(|kind| [kind.description(), kind.advice()]);
        for text in problems.chain(kinds) {
            // A setting has a different name here than in the neutral form.
            let (reported, neutral) = (text.render(COMMAND_LINE_VOCABULARY), text.to_string());
            assert_eq!(reported.contains("--"), reported != neutral, "{reported}");
        }
        let reported = RowErrorKind::TurnLimit.advice().render(COMMAND_LINE_VOCABULARY);
        assert!(reported.starts_with("Raise `--turns` or"), "{reported}");
    }

    #[test]
    fn settings_are_reported_as_they_are_typed() {
        for (marked, expected) in [
            (RESUME.to_string(), "`--resume`"),
            (RESUME.and(ACCEPT_CHANGES).to_string(), "`--resume --accept-changes`"),
            (
                INPUT.with_value("-").and(INPUT_FORMAT.with_value("jsonl")).to_string(),
                "`--input - --input-format jsonl`",
            ),
            (VAR.with_value("'tone=dry'").without_backticks().to_string(), "--var 'tone=dry'"),
            (
                EXPORT_RESULTS.with_value("'a b'").to_string(),
                "`rowmill export 'a b' --output results.jsonl` writes",
            ),
        ] {
            assert_eq!(DiagnosticText::from(marked).render(COMMAND_LINE_VOCABULARY), expected);
        }
    }
}
