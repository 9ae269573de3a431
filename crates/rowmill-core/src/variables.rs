//! Variables of the instruction: `{{name}}`, filled once per run, from the flags.

use rowmill_types::settings::{VAR, VAR_FILE, VARS_JSON};
use rowmill_types::{DiagnosticText, Problem, ProblemCode};
use serde_json::Value;

use crate::prompt::{TemplatePiece, split_placeholders};

/// Names and the texts that replace them in the instruction.
///
/// They do not apply to the row template, whose placeholders are fields of the row.
///
/// ```
/// # use rowmill_core::variables::InstructionVariables;
/// let json = Some((r#"{"tone":"dry"}"#, "vars.json"));
/// let variables = InstructionVariables::from_settings(json, &[], &["tone=warm".into()]).unwrap();
/// assert_eq!(variables.fill_placeholders("Be {{tone}}.").unwrap(), "Be warm.");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstructionVariables {
    entries: Vec<(String, String)>,
}

impl InstructionVariables {
    /// Combines the flags: `--vars-json` first, then `--var-file`, then `--var`; later ones take precedence. `json` holds the
    /// text of the file and its name; `files` holds names and the contents of the files; `pairs` holds the entries of `--var`
    /// as given.
    ///
    /// # Errors
    ///
    /// The JSON is not an object of strings, or an entry is not `name=value`.
    pub fn from_settings(
        json: Option<(&str, &str)>,
        files: &[(String, String)],
        pairs: &[String],
    ) -> Result<Self, Problem> {
        let mut variables =
            json.map_or_else(|| Ok(Self::default()), |(text, name)| Self::parse_json(text, name))?;
        for (name, text) in files {
            variables.set(name.clone(), text.clone());
        }
        for entry in pairs {
            let (name, value) = Self::split_pair(entry)?;
            variables.set(name.to_owned(), value.to_owned());
        }
        Ok(variables)
    }

    /// Splits an entry of `--var` into its name and its value.
    ///
    /// # Errors
    ///
    /// It is not `name=value`.
    pub fn split_pair(entry: &str) -> Result<(&str, &str), Problem> {
        split(entry).ok_or_else(|| {
            usage(format!("{var} entries must have the form name=value", var = VAR.without_backticks()))
                .hint(format!("`{entry}` has no name, or no `=`"))
        })
    }

    /// Splits an entry of `--var-file` into its name and its path.
    ///
    /// # Errors
    ///
    /// It is not `name=path`.
    pub fn split_file_pair(entry: &str) -> Result<(&str, &str), Problem> {
        split(entry).filter(|(_, path)| !path.is_empty()).ok_or_else(|| {
            usage(format!("{file} entries must have the form name=path", file = VAR_FILE.without_backticks()))
                .hint(format!("`{entry}` has no name, no `=` or no path"))
        })
    }

    /// Parses the text of the `--vars-json` file with this name.
    ///
    /// # Errors
    ///
    /// It is not a JSON object, or one of its values is not a string.
    pub fn parse_json(text: &str, file: &str) -> Result<Self, Problem> {
        let not_an_object = || {
            usage(format!(
                "{json} must contain a JSON object: `{file}`",
                json = VARS_JSON.without_backticks()
            ))
        };
        let value: Value = serde_json::from_str(text).map_err(|error| not_an_object().cause(error))?;
        let Value::Object(map) = value else { return Err(not_an_object()) };
        let mut variables = Self::default();
        for (name, value) in map {
            let Value::String(value) = value else {
                let line = line_of_key(text, &name);
                let json = VARS_JSON.without_backticks();
                let message = format!("{json} keys and values must be strings: `{file}`, line {line}");
                return Err(usage(message).hint(format!("put the value of `{name}` in quotes")));
            };
            variables.set(name, value);
        }
        Ok(variables)
    }

    /// Sets the value of a name, replacing an earlier one.
    pub fn set(&mut self, name: String, value: String) {
        match self.entries.iter_mut().find(|(known, _)| *known == name) {
            Some((_, earlier)) => *earlier = value,
            None => self.entries.push((name, value)),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The names, in the order in which they were first given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    /// The text of a variable.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.entries.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Fills the placeholders of an instruction. Values are not searched for placeholders. Without any variable the
    /// text is returned unchanged, because an instruction may contain a literal `{{…}}`.
    ///
    /// # Errors
    ///
    /// Variables were given and the text names one that was not.
    pub fn fill_placeholders(&self, text: &str) -> Result<String, Problem> {
        if self.is_empty() {
            return Ok(text.to_owned());
        }
        let mut out = String::with_capacity(text.len());
        for piece in split_placeholders(text) {
            match piece {
                TemplatePiece::Literal(literal) => out.push_str(literal),
                TemplatePiece::Field { name, .. } => {
                    out.push_str(self.value(name).ok_or_else(|| self.unknown(name))?)
                }
            }
        }
        Ok(out)
    }

    /// The names that no placeholder of `text` uses, so that misspellings can be reported.
    #[must_use]
    pub fn unused_names(&self, text: &str) -> Vec<&str> {
        let pieces = split_placeholders(text);
        let is_used = |wanted: &str| {
            pieces.iter().any(|piece| matches!(piece, TemplatePiece::Field { name, .. } if *name == wanted))
        };
        self.names().filter(|name| !is_used(name)).collect()
    }

    fn unknown(&self, name: &str) -> Problem {
        let given: Vec<_> = self.names().map(|name| format!("`{name}`")).collect();
        let message =
            format!("the instruction uses an unknown variable: `{name}`; given: {}", given.join(", "));
        Problem::new(ProblemCode::InvalidVariables, message).hint(format!(
            "add {var}, or remove `{{{{{name}}}}}` from the instruction",
            var = VAR.with_value(format_args!("'{name}=…'"))
        ))
    }
}

/// Splits at the first `=`. A placeholder's name has no spaces around it, so neither has a variable's.
fn split(entry: &str) -> Option<(&str, &str)> {
    let (name, value) = entry.split_once('=')?;
    let name = name.trim();
    (!name.is_empty()).then_some((name, value))
}

/// The line of a JSON text that contains a key of its object.
fn line_of_key(text: &str, key: &str) -> usize {
    let quoted = Value::from(key).to_string();
    let mut places = text.match_indices(&quoted);
    let is_key = |(at, found): &(usize, &str)| {
        text.get(at + found.len()..).is_some_and(|rest| rest.trim_start().starts_with(':'))
    };
    let at = places.find(is_key).map_or(0, |(at, _)| at);
    text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1
}

fn usage(message: impl Into<DiagnosticText>) -> Problem {
    Problem::new(ProblemCode::Usage, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(entries: &[&str]) -> InstructionVariables {
        let entries: Vec<_> = entries.iter().map(ToString::to_string).collect();
        InstructionVariables::from_settings(None, &[], &entries).unwrap()
    }

    #[test]
    fn a_pair_wins_over_a_file_and_a_file_over_the_json() {
        let json = r#"{"a":"json","b":"json","c":"json"}"#;
        let files = [("b".to_owned(), "file".to_owned()), ("c".to_owned(), "file".to_owned())];
        let given = ["c=first".to_owned(), "c=pair".to_owned()];
        let variables = InstructionVariables::from_settings(Some((json, "v.json")), &files, &given).unwrap();
        assert_eq!(variables.fill_placeholders("{{a}} {{b}} {{c}}").unwrap(), "json file pair");
        assert_eq!(variables.names().collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn entries_are_split_at_the_first_equals_sign() {
        assert_eq!(InstructionVariables::split_pair("a=b=c").unwrap(), ("a", "b=c"));
        assert_eq!(InstructionVariables::split_pair(" a =").unwrap(), ("a", ""));
        assert_eq!(InstructionVariables::split_file_pair("a=x/y").unwrap(), ("a", "x/y"));
    }

    #[test]
    fn wrong_entries_are_usage_problems() {
        let message = |result: Result<(&str, &str), Problem>| {
            let problem = result.unwrap_err();
            assert_eq!(problem.code, ProblemCode::Usage);
            problem.message
        };
        for entry in ["a", "", "=b", " =b"] {
            assert_eq!(
                message(InstructionVariables::split_pair(entry)),
                "var entries must have the form name=value"
            );
            assert_eq!(
                message(InstructionVariables::split_file_pair(entry)),
                "var_file entries must have the form name=path"
            );
        }
        assert_eq!(
            message(InstructionVariables::split_file_pair("a=")),
            "var_file entries must have the form name=path"
        );
    }

    #[test]
    fn json_must_be_an_object_of_strings() {
        for (text, expected) in [
            ("[]", "vars_json must contain a JSON object: `v.json`"),
            ("{", "vars_json must contain a JSON object: `v.json`"),
            ("", "vars_json must contain a JSON object: `v.json`"),
            (r#"{"a":1}"#, "vars_json keys and values must be strings: `v.json`, line 1"),
            (
                "{\n\"b\": \"a\",\n\"a\" : null}",
                "vars_json keys and values must be strings: `v.json`, line 3",
            ),
        ] {
            let problem = InstructionVariables::parse_json(text, "v.json").unwrap_err();
            assert_eq!((problem.code, problem.message.as_str()), (ProblemCode::Usage, expected), "{text}");
        }
    }

    #[test]
    fn without_variables_placeholders_stay() {
        let text = "Answer in {{json}}, {{ x }}.";
        assert_eq!(InstructionVariables::default().fill_placeholders(text).unwrap(), text);
    }

    #[test]
    fn values_are_put_in_once() {
        let variables = pairs(&["a={{b}}", "b=x"]);
        assert_eq!(variables.fill_placeholders("{{ a }}{{b}}{{}}{a}").unwrap(), "{{b}}x{{}}{a}");
    }

    #[test]
    fn an_unknown_placeholder_is_reported_with_what_was_given() {
        let problem = pairs(&["tone=dry", "lang=en"]).fill_placeholders("{{tone}} {{langs}}").unwrap_err();
        assert_eq!(problem.code, ProblemCode::InvalidVariables);
        let expected = "the instruction uses an unknown variable: `langs`; given: `tone`, `lang`";
        assert_eq!(problem.message, expected);
        assert!(problem.hint.unwrap().contains("`{{langs}}`"));
    }

    #[test]
    fn variables_that_are_not_used_are_reported() {
        assert_eq!(pairs(&["a=1", "b=2", "c=3"]).unused_names("x {{ b }} {{}}"), ["a", "c"]);
    }
}
