//! The types with which an entry point names settings in its own vocabulary.
//!
//! Messages refer to settings and actions without naming them. [`Words`] holds such a text, and a
//! [`Vocabulary`] defines the names that the user of an entry point knows: flags, methods, or fields of
//! a file. A program that runs specs sets its vocabulary in [`Control`](crate::Control), for the errors
//! that are written to files, and applies it to the [`Problem`](crate::Problem)s and
//! [`Notice`](crate::Notice)s that it receives.

pub use rowmill_types::{
    Action, ActionMention, Setting, SettingMention, Vocabulary, Words, actions, settings,
};
