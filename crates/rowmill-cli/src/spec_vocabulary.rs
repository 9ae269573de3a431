//! How messages about a spec name settings: by its fields, and by the flags that may be used beside it.

use rowmill::wording::{Setting, SettingMention, SettingVocabulary, SuggestedAction, SuggestedActionMention};

use crate::vocabulary::COMMAND_LINE_VOCABULARY;

/// The vocabulary of `--spec`.
pub(crate) const SPEC_FIELDS: SettingVocabulary = SettingVocabulary { name_settings, describe_action };

fn name_settings(mention: &SettingMention) -> String {
    let (flags, fields): (Vec<_>, Vec<_>) =
        mention.settings.iter().cloned().partition(|(setting, _)| field(*setting).is_none());
    let mut names = Vec::new();
    if !flags.is_empty() {
        names.push((COMMAND_LINE_VOCABULARY.name_settings)(&SettingMention {
            settings: flags,
            is_bare: mention.is_bare,
        }));
    }
    let has_fields = !fields.is_empty();
    names.extend(fields.into_iter().map(|(setting, value)| mention.quote_name(&named_field(setting, value))));
    let names = names.join(" and ");
    // A name without backticks is part of a longer name.
    if has_fields && !mention.is_bare { format!("{names} in the spec") } else { names }
}

fn named_field(setting: Setting, value: Option<String>) -> String {
    let name = field(setting).unwrap_or(setting.name());
    match value {
        Some(value) => format!("{name}: {}", json_value(setting, &value)),
        None => name.to_owned(),
    }
}

/// A value in the syntax of a spec; messages contain it in the syntax of a shell.
fn json_value(setting: Setting, typed: &str) -> String {
    let value = typed.trim_matches(['\'', '"']);
    let text = |text: &str| serde_json::Value::from(text).to_string();
    match setting {
        Setting::Input if value == "-" => text("stdin"),
        Setting::Output if value == "-" => text("stdout"),
        Setting::Input | Setting::Output => format!("{{\"file\": {}}}", text(value)),
        Setting::Extract => "true".to_owned(),
        Setting::Sample => format!("{{\"count\": {value}}}"),
        Setting::Limit | Setting::Offset => value.to_owned(),
        Setting::Types => {
            let (column, type_name) = value.split_once('=').unwrap_or((value, "text"));
            format!("[{{\"column\": {}, \"type_name\": {}}}]", text(column), text(type_name))
        }
        Setting::Columns => {
            format!("[{}]", value.split(',').map(text).collect::<Vec<_>>().join(", "))
        }
        Setting::Attach | Setting::Stub | Setting::Var | Setting::VarFile => format!("[{}]", text(value)),
        _ => text(value),
    }
}

/// The field of a spec for a setting; `None` for settings that are flags beside the spec.
#[expect(clippy::too_many_lines, reason = "a table with a line for each setting")]
fn field(setting: Setting) -> Option<&'static str> {
    Some(match setting {
        Setting::AcceptChanges | Setting::Overwrite | Setting::Resume | Setting::SampleCalls => return None,
        Setting::Agent => "work.agents.agent",
        Setting::AgentCard => "work.agents.cards",
        Setting::ArchiveInputs => "files.archive",
        Setting::Attach => "files.attach",
        Setting::Cache => "work.cache",
        Setting::Columns => "query.columns",
        Setting::ConnectTimeout => "work.timeouts.connect",
        Setting::Deadline => "work.stop_rules.deadline",
        Setting::Delimiter => "input.delimiter",
        Setting::Deny => "work.agents.deny",
        Setting::Detach => "work.lane.detach",
        Setting::ErrorOutput => "error_output",
        Setting::ExportTraces => "traces",
        Setting::Extract => "files.extract_text",
        Setting::FirstByteTimeout => "work.timeouts.first_byte",
        Setting::Flatten => "output.table.layout",
        Setting::Id => "input.document_ids",
        Setting::IdField => "id_field",
        Setting::IdleTimeout => "work.timeouts.idle",
        Setting::IncludeInput => "include_input",
        Setting::Input => "input.location",
        Setting::InputFormat => "input.format",
        Setting::Instruction => "instruction",
        Setting::JsonSchema => "schema.source",
        Setting::KeepGoing => "work.stop_rules.same_failure",
        Setting::Lane => "work.lane.lane",
        Setting::Limit => "selection.limit",
        Setting::MaxCost => "work.budget.cost",
        Setting::MaxErrors => "work.stop_rules.max_errors",
        Setting::MaxOutage => "work.max_outage",
        Setting::MaxRowCost => "work.agents.row_budget.cost",
        Setting::MaxRowTokens => "work.agents.row_budget.tokens",
        Setting::MaxTokens => "work.budget.tokens",
        Setting::Model => "work.model",
        Setting::Notify => "notify.command",
        Setting::NotifyUrl => "notify.url",
        Setting::Offset => "selection.offset",
        Setting::OnQuota => "work.on_quota",
        Setting::Output => "output",
        Setting::OutputDir => "output.table.target.folder.path",
        Setting::OutputFormat => "output.table.format",
        Setting::Parallel => "work.parallel",
        Setting::Passthrough => "work.agents.passthrough",
        Setting::Prompt => "prompt.inline",
        Setting::PythonProcesses => "work.agents.python_processes",
        Setting::RecordTools => "work.agents.record_tools",
        Setting::RemovedRows => "removed_rows",
        Setting::Repairs => "work.repairs",
        Setting::RetryUnknown => "work.agents.retry_unknown",
        Setting::RowTimeout => "work.row_timeout",
        Setting::Rpm => "work.rates.requests",
        Setting::Sample => "selection.sample",
        Setting::SchemaModel => "schema.python_model",
        Setting::SplitBy => "output.table.target.folder.split_by",
        Setting::Sql => "query.sql",
        Setting::SqlEngine => "query.engine",
        Setting::Stub => "work.agents.stubs",
        Setting::SummaryOutput => "summary_output",
        Setting::TelemetryOutput => "telemetry_output",
        Setting::Template => "prompt.source",
        Setting::Timeout => "work.timeout",
        Setting::Tpm => "work.rates.tokens",
        Setting::Turns => "work.agents.turns",
        Setting::Types => "query.types",
        Setting::Var => "variables.pairs",
        Setting::VarFile => "variables.files",
        Setting::VarsJson => "variables.json",
        Setting::Where => "query.condition",
        Setting::WorkDir => "work_dir",
    })
}

fn describe_action(mention: &SuggestedActionMention) -> String {
    match mention.action {
        SuggestedAction::SendRegardless => {
            "`work.stop_rules.same_failure: null` in the spec sends all rows regardless".to_owned()
        }
        SuggestedAction::SetPrices => "in `work.prices` of the spec".to_owned(),
        SuggestedAction::ListSettings => "docs/run-spec.md and its JSON Schema list every field".to_owned(),
        SuggestedAction::RunAgain | SuggestedAction::RunAgainChanged | SuggestedAction::ExportResults => {
            (COMMAND_LINE_VOCABULARY.describe_action)(mention)
        }
    }
}

#[cfg(test)]
mod tests {
    use rowmill::run_spec_schema;
    use rowmill::wording::DiagnosticText;
    use rowmill::wording::actions::{RUN_AGAIN, SEND_REGARDLESS};
    use rowmill::wording::settings::*;
    use serde_json::Value;

    use super::*;

    /// Whether the path of a field exists in a JSON Schema, through any of its alternatives.
    fn has_field(whole: &Value, schema: &Value, path: &[&str]) -> bool {
        let Some((first, rest)) = path.split_first() else { return true };
        if let Some(name) = schema["$ref"].as_str() {
            let named = whole.pointer(name.trim_start_matches('#')).unwrap();
            return has_field(whole, named, path);
        }
        let choices = ["oneOf", "anyOf"].iter().filter_map(|word| schema[word].as_array()).flatten();
        schema["properties"].get(first).is_some_and(|field| has_field(whole, field, rest))
            || choices.into_iter().any(|choice| has_field(whole, choice, path))
    }

    #[test]
    fn every_field_that_messages_name_is_one_of_specs() {
        let schema = run_spec_schema();
        for setting in Setting::ALL {
            if let Some(path) = field(*setting) {
                let steps: Vec<&str> = path.split('.').collect();
                assert!(has_field(&schema, &schema, &steps), "there is no `{path}`");
            }
        }
        assert!(!has_field(&schema, &schema, &["work", "modle"]), "the check can fail");
    }

    #[test]
    fn flags_that_are_named_may_stand_beside_a_spec() {
        for setting in Setting::ALL {
            let named = DiagnosticText::from(setting.to_string()).render(SPEC_FIELDS);
            let flag = named.trim_matches('`').strip_prefix("--").map(|flag| flag.replace('-', "_"));
            let is_beside = |flag: &String| crate::spec_file::BESIDE.contains(&flag.as_str());
            assert!(flag.as_ref().is_none_or(is_beside), "{named}");
        }
    }

    #[test]
    fn settings_are_reported_as_they_stand_in_a_spec() {
        for (marked, expected) in [
            (MAX_COST.to_string(), "`work.budget.cost` in the spec"),
            (ON_QUOTA.with_value("wait").to_string(), r#"`work.on_quota: "wait"` in the spec"#),
            (RESUME.and(ACCEPT_CHANGES).to_string(), "`--resume --accept-changes`"),
            (
                RESUME.and(WORK_DIR.with_value("'a b'")).to_string(),
                r#"`--resume` and `work_dir: "a b"` in the spec"#,
            ),
            (
                INPUT.with_value("-").and(INPUT_FORMAT.with_value("jsonl")).to_string(),
                r#"`input.location: "stdin"` and `input.format: "jsonl"` in the spec"#,
            ),
            (COLUMNS.with_value("id,text").to_string(), r#"`query.columns: ["id", "text"]` in the spec"#),
            (
                TYPES.with_value("x=text").to_string(),
                r#"`query.types: [{"column": "x", "type_name": "text"}]` in the spec"#,
            ),
            (
                VAR.with_value("'tone=dry'").without_backticks().to_string(),
                r#"variables.pairs: ["tone=dry"]"#,
            ),
            (LIMIT.with_value("10").to_string(), "`selection.limit: 10` in the spec"),
            (RUN_AGAIN.to_string(), "run again with `--resume`"),
            (
                SEND_REGARDLESS.to_string(),
                "`work.stop_rules.same_failure: null` in the spec sends all rows regardless",
            ),
        ] {
            assert_eq!(DiagnosticText::from(marked).render(SPEC_FIELDS), expected);
        }
    }
}
