//! How an entry point names settings and actions.

use crate::{SettingMention, SuggestedAction, SuggestedActionMention};

/// An entry point's names for settings and actions: flags, methods, fields of a file.
#[derive(Debug, Clone, Copy)]
pub struct SettingVocabulary {
    /// Names settings, including backticks; [`SettingMention::quote_name`] adds them if there are any.
    pub name_settings: fn(&SettingMention) -> String,
    /// Describes an action.
    pub describe_action: fn(&SuggestedActionMention) -> String,
}

impl SettingVocabulary {
    /// The neutral vocabulary: settings have the names used in specs.
    pub const NEUTRAL: Self = Self { name_settings, describe_action };
}

impl Default for SettingVocabulary {
    fn default() -> Self {
        Self::NEUTRAL
    }
}

fn name_settings(mention: &SettingMention) -> String {
    let name = |(setting, value): &(crate::Setting, Option<String>)| match value {
        Some(value) => mention.quote_name(&format!("{}: {value}", setting.name())),
        None => mention.quote_name(setting.name()),
    };
    mention.settings.iter().map(name).collect::<Vec<_>>().join(" and ")
}

fn describe_action(mention: &SuggestedActionMention) -> String {
    match mention.action {
        SuggestedAction::RunAgain => "run again with `resume`".to_owned(),
        SuggestedAction::RunAgainChanged => "run again with `resume` and `accept_changes`".to_owned(),
        SuggestedAction::SendRegardless => "`keep_going` sends all rows regardless".to_owned(),
        SuggestedAction::SetPrices => "at the top of `rowmill.toml`".to_owned(),
        SuggestedAction::ListSettings => "see the description of the settings for a full list".to_owned(),
        SuggestedAction::ExportResults => {
            format!("an export of {} writes", mention.value.as_deref().unwrap_or("the run"))
        }
    }
}
