//! A recorded answer that other rows may reuse: its key, and how it is read back.

use rowmill_types::TokenUsage;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json_text::decode_string;
use crate::ports::{AnswerKey, StoredAnswer};

/// States that the answer of a row can be used for every row with the same request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReusableAnswer {
    /// The key of the request.
    pub key: AnswerKey,
    /// The form of the answer.
    pub form: ReusableAnswerEncoding,
}

/// The form of an answer, so that it can be derived from the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReusableAnswerEncoding {
    /// Text; the result is a JSON string of it.
    Text,
    /// JSON; the result is identical.
    Json,
}

#[derive(Deserialize)]
struct LedgerLineFields<'a> {
    #[serde(borrow)]
    reusable: Option<RecordLineFields<'a>>,
    #[serde(borrow)]
    envelope: EnvelopeFields<'a>,
    #[serde(default)]
    telemetry: TelemetryFields,
}

#[derive(Deserialize)]
struct RecordLineFields<'a> {
    key: &'a str,
    form: ReusableAnswerEncoding,
}

#[derive(Deserialize)]
struct EnvelopeFields<'a> {
    ok: bool,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct TelemetryFields {
    #[serde(default)]
    usage: UsageFields,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct UsageFields {
    turn: TurnFields,
    provider_attempts: Vec<AttemptFields>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TurnFields {
    input_tokens: u64,
    cached_tokens: u64,
    cache_write_tokens: u64,
    output_tokens: u64,
    reasoning_tokens: u64,
}

impl TurnFields {
    /// The usage; `None` if the provider reported none.
    fn usage(self) -> Option<TokenUsage> {
        let usage = TokenUsage {
            input: self.input_tokens,
            cached: self.cached_tokens,
            cache_write: self.cache_write_tokens,
            output: self.output_tokens,
            reasoning: self.reasoning_tokens,
        };
        (usage != TokenUsage::default()).then_some(usage)
    }
}

#[derive(Deserialize)]
struct AttemptFields {
    ok: bool,
    model: Option<String>,
}

impl ReusableAnswer {
    /// Appends the field of the ledger line, with the comma before it.
    pub(super) fn write(self, line: &mut Vec<u8>) {
        let form = match self.form {
            ReusableAnswerEncoding::Text => "text",
            ReusableAnswerEncoding::Json => "json",
        };
        let field = format!(",\"reusable\":{{\"key\":\"{:032x}\",\"form\":\"{form}\"}}", self.key.0);
        line.extend_from_slice(field.as_bytes());
    }

    /// The reusable answer in a ledger line; `None` if it has none.
    #[must_use]
    pub fn from_ledger_line(line: &[u8]) -> Option<(AnswerKey, StoredAnswer)> {
        // Most lines of most ledgers have none, and need not be parsed a second time.
        memchr::memmem::rfind(line, b",\"reusable\":")?;
        let LedgerLineFields { reusable, envelope, telemetry } = serde_json::from_slice(line).ok()?;
        let RecordLineFields { key, form } = reusable?;
        let key = AnswerKey(u128::from_str_radix(key, 16).ok()?);
        let result = envelope.result.filter(|_| envelope.ok)?.get();
        let text = match form {
            ReusableAnswerEncoding::Text => decode_string(result)?.into_owned(),
            ReusableAnswerEncoding::Json => result.to_owned(),
        };
        let UsageFields { turn, provider_attempts } = telemetry.usage;
        let model = provider_attempts.into_iter().rev().find(|call| call.ok).and_then(|call| call.model);
        Some((key, StoredAnswer { text, usage: turn.usage(), model }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(result: &str, reusable: Option<ReusableAnswer>) -> Vec<u8> {
        let mut line = format!(
            r#"{{"event":"row_ended","envelope":{{"id":1,"row_number":1,"ok":true,"result":{result},"error":null}},"telemetry":{{"usage":{{"turn":{{"input_tokens":7,"output_tokens":2}},"provider_attempts":[{{"ok":true,"model":"m-1"}},{{"ok":false}}]}}}}"#
        )
        .into_bytes();
        if let Some(reusable) = reusable {
            reusable.write(&mut line);
        }
        line.extend_from_slice(b"}\n");
        line
    }

    #[test]
    fn an_answer_is_read_back_as_it_was_given() {
        let usage = Some(TokenUsage { input: 7, output: 2, ..TokenUsage::default() });
        for (form, result, text) in [
            (ReusableAnswerEncoding::Text, r#""say \"yes\"""#, "say \"yes\""),
            (ReusableAnswerEncoding::Json, r#"{"a": "x"}"#, r#"{"a": "x"}"#),
            (ReusableAnswerEncoding::Json, r#""x""#, r#""x""#),
        ] {
            let key = AnswerKey(u128::MAX / 3);
            let found = ReusableAnswer::from_ledger_line(&line(result, Some(ReusableAnswer { key, form })));
            let model = Some("m-1".to_owned());
            assert_eq!(found, Some((key, StoredAnswer { text: text.to_owned(), usage, model })), "{result}");
        }
    }

    #[test]
    fn a_line_without_such_an_answer_has_none() {
        assert_eq!(ReusableAnswer::from_ledger_line(&line("1", None)), None);
        let text = r#""is it ,\"reusable\":{\"key\":\"1\"}?""#;
        assert_eq!(ReusableAnswer::from_ledger_line(&line(text, None)), None);
    }
}
