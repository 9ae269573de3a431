//! What an entry point needs to name settings in its own words.
//!
//! Messages name settings and actions without saying what they are called. [`Words`] holds such a text, and a
//! [`Vocabulary`] says how the user of an entry point knows them: by flags, by methods, by the fields of a file. A
//! program that runs specs gives its vocabulary with [`Control`](crate::Control), for what is written down of rows, and
//! uses it on the [`Problem`](crate::Problem)s and [`Notice`](crate::Notice)s that it gets.

pub use rowmill_types::{
    Action, ActionMention, Setting, SettingMention, Vocabulary, Words, actions, settings,
};
