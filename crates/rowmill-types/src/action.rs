//! Actions that messages advise, worded differently by each entry point.

use std::fmt;

use crate::text_marker::{MarkerPart, TextMarker};

macro_rules! action_table {
    ($($(#[$doc:meta])* $variant:ident $constant:ident $name:literal;)*) => {
        /// Something that a message advises to do. In `format!` it leaves a mark, which [`crate::DiagnosticText`] replaces by
        /// the words of the entry point.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum SuggestedAction { $($(#[$doc])* $variant,)* }

        impl SuggestedAction {
            /// Every action.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name used in marks.
            pub(crate) const fn name(self) -> &'static str { match self { $(Self::$variant => $name,)* } }
        }

        /// The actions as constants, for use in the text of a message: `format!("make room and {RUN_AGAIN}")`.
        pub mod actions {
            use super::SuggestedAction;

            $($(#[$doc])* pub const $constant: SuggestedAction = SuggestedAction::$variant;)*
        }
    };
}

action_table! {
    /// `run again`, resuming from what is kept.
    RunAgain RUN_AGAIN "do:run_again";
    /// `run again`, resuming from what is kept although something was changed.
    RunAgainChanged RUN_AGAIN_CHANGED "do:run_again_changed";
    /// Sending the rows although the first ones all failed alike; a whole clause.
    SendRegardless SEND_REGARDLESS "do:send_regardless";
    /// Where prices are set, after `put its price`.
    SetPrices SET_PRICES "do:set_prices";
    /// Where all settings are listed; a whole clause.
    ListSettings LIST_SETTINGS "do:list_settings";
    /// Writing the results of the run in the folder given as the action's value to a file; a clause up to its object.
    ExportResults EXPORT_RESULTS "do:export_results";
}

impl SuggestedAction {
    /// The action applied to something.
    #[must_use]
    pub fn with_value(self, value: impl fmt::Display) -> SuggestedActionMention {
        SuggestedActionMention { action: self, value: Some(value.to_string()) }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.name() == name)
    }
}

impl fmt::Display for SuggestedAction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        SuggestedActionMention { action: *self, value: None }.fmt(out)
    }
}

/// An action that a message advises, with its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestedActionMention {
    /// The action.
    pub action: SuggestedAction,
    /// Its object, if the action needs one.
    pub value: Option<String>,
}

impl fmt::Display for SuggestedActionMention {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = MarkerPart { name: self.action.name(), value: self.value.as_deref().map(Into::into) };
        TextMarker { parts: vec![part], is_bare: false }.fmt(out)
    }
}
