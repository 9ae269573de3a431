//! Messages that mention settings, worded for the entry point that the user came in by.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text_marker::{NO_MARKER, TextMarker, may_have_markers, read_marker, split_at_marker};
use crate::{Setting, SettingMention, SettingVocabulary, SuggestedAction, SuggestedActionMention};

/// A message for users. Settings and actions that were formatted into it are stored separately, so that every entry
/// point can use its own names. As a `str`, it has the names used in specs.
///
/// ```
/// # use rowmill_types::{DiagnosticText, settings::RESUME};
/// let hint = DiagnosticText::from(format!("continue with {RESUME}"));
/// assert_eq!(hint, "continue with `resume`");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct DiagnosticText {
    text: Box<str>,
    mentions: Box<[PlacedMention]>,
}

/// A mention in a text, and the position of its neutral words.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PlacedMention {
    start: usize,
    end: usize,
    mention: TextMention,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TextMention {
    Settings(SettingMention),
    Action(SuggestedActionMention),
}

impl DiagnosticText {
    /// A text that is taken literally, such as one that was stored before.
    pub fn from_plain(text: impl Into<Box<str>>) -> Self {
        Self { text: text.into(), mentions: Box::default() }
    }

    /// A text from a table, in which `{max_cost}` is a setting, `{resume accept_changes}` two combined ones, `{extract:
    /// text}` one with a value, and `{do:run_again}` an action.
    #[must_use]
    pub fn from_template(template: &str) -> Self {
        let mut marked = String::with_capacity(template.len());
        let mut rest = template;
        while let Some((before, behind)) = rest.split_once('{') {
            marked.push_str(before);
            let Some((named, behind)) = behind.split_once('}') else {
                marked.push('{');
                rest = behind;
                continue;
            };
            match TextMention::of_template(named) {
                Some(mention) => marked.push_str(&mention.to_string()),
                None => marked.extend(["{", named, "}"]),
            }
            rest = behind;
        }
        marked.push_str(rest);
        marked.into()
    }

    /// The text with the names used in specs.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text worded for an entry point.
    #[must_use]
    pub fn render(&self, vocabulary: SettingVocabulary) -> String {
        self.with_mentions(|mention| mention.render(vocabulary))
    }

    /// The text worded for an entry point, for callers that only pass it on.
    #[must_use]
    pub fn with_vocabulary(self, vocabulary: SettingVocabulary) -> Self {
        if self.mentions.is_empty() { self } else { Self::from_plain(self.render(vocabulary)) }
    }

    /// The text with a mark for each mention, to become part of a longer one.
    #[must_use]
    pub fn with_mention_markers(&self) -> String {
        self.with_mentions(TextMention::to_string)
    }

    /// The text after an edit; its mentions are kept.
    #[must_use]
    pub fn map_text(&self, edit: impl FnOnce(&str) -> String) -> Self {
        edit(&self.with_mention_markers()).into()
    }

    fn with_mentions(&self, word_for: impl Fn(&TextMention) -> String) -> String {
        let mut out = String::with_capacity(self.text.len());
        let mut from = 0;
        for placed in &self.mentions {
            out.push_str(self.text.get(from..placed.start).unwrap_or_default());
            out.push_str(&word_for(&placed.mention));
            from = placed.end;
        }
        out.push_str(self.text.get(from..).unwrap_or_default());
        out
    }
}

impl TextMention {
    fn of_mark(mark: TextMarker<'_>) -> Option<Self> {
        if let [only] = mark.parts.as_slice()
            && let Some(action) = SuggestedAction::from_name(only.name)
        {
            let value = only.value.as_deref().map(str::to_owned);
            return Some(Self::Action(SuggestedActionMention { action, value }));
        }
        let setting = |part: crate::text_marker::MarkerPart<'_>| {
            Some((Setting::from_name(part.name)?, part.value.map(Cow::into_owned)))
        };
        let settings = mark.parts.into_iter().map(setting).collect::<Option<_>>()?;
        Some(Self::Settings(SettingMention { settings, is_bare: mark.is_bare }))
    }

    fn of_template(named: &str) -> Option<Self> {
        if let Some(action) = SuggestedAction::from_name(named) {
            return Some(Self::Action(SuggestedActionMention { action, value: None }));
        }
        let setting = |name: &str| Setting::from_name(name);
        let (names, value) =
            named.split_once(": ").map_or((named, None), |(names, value)| (names, Some(value)));
        let mut settings: Vec<_> =
            names.split(' ').map(|name| Some((setting(name)?, None))).collect::<Option<_>>()?;
        if let Some((_, last)) = settings.last_mut() {
            *last = value.map(str::to_owned);
        }
        Some(Self::Settings(SettingMention { settings, is_bare: false }))
    }

    fn render(&self, vocabulary: SettingVocabulary) -> String {
        match self {
            Self::Settings(mention) => (vocabulary.name_settings)(mention),
            Self::Action(mention) => (vocabulary.describe_action)(mention),
        }
    }
}

impl fmt::Display for TextMention {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(mention) => mention.fmt(out),
            Self::Action(mention) => mention.fmt(out),
        }
    }
}

impl From<&str> for DiagnosticText {
    fn from(marked: &str) -> Self {
        if !may_have_markers(marked) {
            return Self::from_plain(marked);
        }
        let (mut text, mut mentions, mut rest) = (String::with_capacity(marked.len()), Vec::new(), marked);
        while let Some((before, behind)) = split_at_marker(rest) {
            text.push_str(before);
            let found =
                read_marker(behind).and_then(|(mark, behind)| Some((TextMention::of_mark(mark)?, behind)));
            let Some((mention, behind)) = found else {
                text.push(NO_MARKER);
                rest = behind;
                continue;
            };
            let start = text.len();
            text.push_str(&mention.render(SettingVocabulary::NEUTRAL));
            mentions.push(PlacedMention { start, end: text.len(), mention });
            rest = behind;
        }
        text.push_str(rest);
        Self { text: text.into(), mentions: mentions.into() }
    }
}

impl From<String> for DiagnosticText {
    fn from(marked: String) -> Self {
        if may_have_markers(&marked) { marked.as_str().into() } else { Self::from_plain(marked) }
    }
}

impl From<&String> for DiagnosticText {
    fn from(marked: &String) -> Self {
        marked.as_str().into()
    }
}

impl From<Cow<'_, str>> for DiagnosticText {
    fn from(marked: Cow<'_, str>) -> Self {
        marked.into_owned().into()
    }
}

impl Deref for DiagnosticText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for DiagnosticText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&*self.text, out)
    }
}

impl fmt::Debug for DiagnosticText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, out)
    }
}

impl PartialEq<str> for DiagnosticText {
    fn eq(&self, other: &str) -> bool {
        &*self.text == other
    }
}

impl PartialEq<&str> for DiagnosticText {
    fn eq(&self, other: &&str) -> bool {
        &*self.text == *other
    }
}

impl PartialEq<String> for DiagnosticText {
    fn eq(&self, other: &String) -> bool {
        &*self.text == other.as_str()
    }
}

impl Serialize for DiagnosticText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for DiagnosticText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from_plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::{EXPORT_RESULTS, RUN_AGAIN};
    use crate::settings::{ACCEPT_CHANGES, INPUT, ON_QUOTA, RESUME, VAR};
    use crate::{ExitCode, ProblemCode, RowErrorKind};

    /// Names settings in capitals, and actions by their names.
    const LOUD: SettingVocabulary = SettingVocabulary {
        name_settings: |mention| {
            let word = |(setting, value): &(Setting, Option<String>)| {
                format!("{}={}", setting.name().to_uppercase(), value.as_deref().unwrap_or("?"))
            };
            mention.quote_name(&mention.settings.iter().map(word).collect::<Vec<_>>().join("+"))
        },
        describe_action: |mention| {
            format!("<{:?} {}>", mention.action, mention.value.as_deref().unwrap_or(""))
        },
    };

    #[test]
    fn what_a_text_names_is_rendered_in_the_words_of_who_asks() {
        for (marked, neutral, loud) in [
            (format!("continue with {RESUME}!"), "continue with `resume`!", "continue with `RESUME=?`!"),
            (
                RESUME.and(ACCEPT_CHANGES).to_string(),
                "`resume` and `accept_changes`",
                "`RESUME=?+ACCEPT_CHANGES=?`",
            ),
            (format!("({})", ON_QUOTA.with_value("wait")), "(`on_quota: wait`)", "(`ON_QUOTA=wait`)"),
            (VAR.with_value("'a=b'").without_backticks().to_string(), "var: 'a=b'", "VAR='a=b'"),
            (format!("then {RUN_AGAIN}"), "then run again with `resume`", "then <RunAgain >"),
            (EXPORT_RESULTS.with_value("x").to_string(), "an export of x writes", "<ExportResults x>"),
            ("no setting".to_owned(), "no setting", "no setting"),
        ] {
            let words = DiagnosticText::from(marked.clone());
            assert_eq!(words, neutral);
            assert_eq!((words.to_string().as_str(), format!("{words:?}")), (neutral, format!("{neutral:?}")));
            assert_eq!(words.render(LOUD), loud);
            assert_eq!(words.clone().with_vocabulary(LOUD), DiagnosticText::from_plain(loud));
            assert_eq!(words.with_mention_markers(), marked);
        }
    }

    #[test]
    fn a_text_that_becomes_part_of_another_keeps_what_it_names() {
        let hint = DiagnosticText::from(format!("use {RESUME}"));
        let longer = DiagnosticText::from(format!("{}, or else {INPUT}", hint.with_mention_markers()));
        assert_eq!(longer.render(LOUD), "use `RESUME=?`, or else `INPUT=?`");
        assert_eq!(hint.map_text(|text| text.replace("use", "try")).render(LOUD), "try `RESUME=?`");
    }

    #[test]
    fn characters_for_private_use_in_texts_of_users_come_out_as_they_went_in() {
        let all = "\u{E000}\u{E001}\u{E002}\u{E003}\u{E004}\u{E005}\u{E000}";
        for text in [all, "\u{E000}no_setting\u{E001}", "\u{E000}resume", "\u{E001}\u{E000}\u{E002}x\u{E001}"]
        {
            assert_eq!(DiagnosticText::from(text), text);
            let around = DiagnosticText::from(format!("{text} {RESUME} {text}"));
            assert_eq!(around.render(LOUD), format!("{text} `RESUME=?` {text}"));
            let value = DiagnosticText::from(INPUT.with_value(text).and(RESUME).to_string());
            assert_eq!(value.render(LOUD), format!("`INPUT={text}+RESUME=?`"));
        }
    }

    #[test]
    fn written_down_a_text_has_no_marks_and_read_again_it_is_as_it_was() {
        let words = DiagnosticText::from(format!("use {RESUME}"));
        let written = serde_json::to_string(&words).unwrap();
        assert_eq!(written, "\"use `resume`\"");
        assert_eq!(
            serde_json::from_str::<DiagnosticText>(&written).unwrap(),
            DiagnosticText::from_plain("use `resume`")
        );
        let marked = serde_json::to_string(&RESUME.to_string()).unwrap();
        assert_eq!(serde_json::from_str::<DiagnosticText>(&marked).unwrap().render(LOUD), RESUME.to_string());
    }

    #[test]
    fn every_name_in_the_tables_of_errors_is_one_that_there_is() {
        let problems = ProblemCode::ALL.iter().flat_map(|code| [code.description(), code.advice()]);
        let kinds = RowErrorKind::ALL.iter().flat_map(|kind| [kind.description(), kind.advice()]);
        let exits = ExitCode::ALL.iter().map(|code| code.meaning());
        for text in problems.chain(kinds).chain(exits) {
            assert!(!text.contains(['{', '}']) && !text.contains("--"), "{text}");
        }
    }

    #[test]
    fn a_template_names_settings_and_leaves_other_braces_alone() {
        let words =
            DiagnosticText::from_template("{resume accept_changes extract: text}, {do:run_again}, {x} {y");
        assert_eq!(words.render(LOUD), "`RESUME=?+ACCEPT_CHANGES=?+EXTRACT=text`, <RunAgain >, {x} {y");
    }
}
