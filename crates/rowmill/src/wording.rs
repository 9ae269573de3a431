//! The types with which an entry point names settings in its own vocabulary.
//!
//! Messages refer to settings and actions without naming them. [`DiagnosticText`] holds such a text, and a
//! [`SettingVocabulary`] defines the names that the user of an entry point knows: flags, methods, or fields of
//! a file. A program that runs specs sets its vocabulary in [`RunControl`](crate::RunControl), for the errors
//! that are written to files, and applies it to the [`Problem`](crate::Problem)s and
//! [`RunNotice`](crate::RunNotice)s that it receives.

pub use rowmill_types::{
    DiagnosticText, Setting, SettingMention, SettingVocabulary, SuggestedAction, SuggestedActionMention,
    actions, settings,
};
