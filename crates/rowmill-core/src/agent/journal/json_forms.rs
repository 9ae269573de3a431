//! How the parts of a step event are serialized. Times are whole nanoseconds and money is whole picodollars, so that a
//! round trip is exact.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rowmill_types::{
    AnswerVerdict, Attachment, BatchAnswerOrigin, CallTiming, Completion, FinishReason, HostedToolUse, Money,
    NativeMessage, ReportedRateLimits, RowErrorKind, TokenUsage, ToolCall, ToolOutput,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::super::transcript::{ToolCallDetails, TurnDetails};
use crate::json_text;
use crate::record::CallReport;

#[derive(Serialize, Deserialize)]
#[serde(remote = "Completion")]
pub(super) struct CompletionJson {
    text: String,
    finish: FinishReason,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<ToolCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "echo")]
    native: Option<Box<NativeMessage>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "hosted")]
    hosted_tools: Option<Box<HostedToolUse>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<TokenUsage>,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "write_on_one_line")]
    raw_usage: Option<Box<RawValue>>,
    #[serde(with = "CallTimingJson")]
    timing: CallTiming,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    service_tier: Option<String>,
    #[serde(skip)]
    rate_limits: Option<Box<ReportedRateLimits>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verdict: Option<Box<AnswerVerdict>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch: Option<Box<BatchAnswerOrigin>>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "CallTiming")]
pub(super) struct CallTimingJson {
    #[serde(default, skip_serializing_if = "Option::is_none", with = "some_nanoseconds")]
    first_token: Option<Duration>,
    #[serde(with = "nanoseconds")]
    response: Duration,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "CallReport")]
struct CallReportJson {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<RowErrorKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(with = "CallTimingJson")]
    timing: CallTiming,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<TokenUsage>,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "write_on_one_line")]
    raw_usage: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    service_tier: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "some_picodollars")]
    cost: Option<Money>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "hosted")]
    hosted_tools: Option<Box<HostedToolUse>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_cap: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch: Option<Box<BatchAnswerOrigin>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    beside_jobs: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "TurnDetails")]
struct TurnDetailsJson {
    #[serde(with = "nanoseconds")]
    start: Duration,
    #[serde(with = "nanoseconds")]
    end: Duration,
    model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<TokenUsage>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "some_picodollars")]
    cost: Option<Money>,
    finish: FinishReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hosted: Option<Box<HostedToolUse>>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ToolCallDetails")]
struct ToolCallDetailsJson {
    call: String,
    tool: String,
    #[serde(with = "nanoseconds")]
    start: Duration,
    #[serde(with = "nanoseconds")]
    end: Duration,
    is_error: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ToolOutput")]
pub(super) struct ToolOutputJson {
    text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "attachments")]
    attachments: Vec<Attachment>,
    is_error: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_final: bool,
}

/// A provider's JSON may span several lines; the journal needs one line.
fn write_on_one_line<S: Serializer>(raw: &Option<Box<RawValue>>, serializer: S) -> Result<S::Ok, S::Error> {
    let compact = raw.as_ref().map(|raw| {
        let mut compact = String::with_capacity(raw.get().len());
        json_text::write_compact(raw.get(), &mut compact);
        RawValue::from_string(compact)
    });
    compact.transpose().map_err(serde::ser::Error::custom)?.serialize(serializer)
}

/// Files returned by a tool, in base64.
mod attachments {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct AttachmentJson {
        name: String,
        media_type: String,
        base64: String,
        digest: String,
    }

    pub(super) fn serialize<S: Serializer>(files: &[Attachment], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(files.iter().map(|file| AttachmentJson {
            name: file.name.clone(),
            media_type: file.media_type.clone(),
            base64: STANDARD.encode(&file.bytes),
            digest: file.digest.clone(),
        }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Attachment>, D::Error> {
        let attachment = |AttachmentJson { name, media_type, base64, digest }: AttachmentJson| {
            let bytes = STANDARD.decode(base64).map_err(serde::de::Error::custom)?.into();
            Ok(Attachment { name, media_type, bytes, digest })
        };
        Vec::<AttachmentJson>::deserialize(deserializer)?.into_iter().map(attachment).collect()
    }
}

pub(super) mod nanoseconds {
    use super::*;

    pub(in super::super) fn serialize<S: Serializer>(
        time: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_nanos)
    }
}

/// Defines a module that serializes `Option<$inner>` as `$form` does with `$inner`.
macro_rules! optional {
    ($name:ident, $inner:ty, $form:literal) => {
        pub(super) mod $name {
            use super::*;

            #[derive(Serialize)]
            struct Written<'a>(#[serde(with = $form)] &'a $inner);

            #[derive(Deserialize)]
            struct Read(#[serde(with = $form)] $inner);

            pub(in super::super) fn serialize<S: Serializer>(
                value: &Option<$inner>,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                value.as_ref().map(Written).serialize(serializer)
            }

            pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Option<$inner>, D::Error> {
                Ok(Option::<Read>::deserialize(deserializer)?.map(|read| read.0))
            }
        }
    };
}

mod picodollars {
    use super::*;

    pub(super) fn serialize<S: Serializer>(money: &Money, serializer: S) -> Result<S::Ok, S::Error> {
        money.pico().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Money, D::Error> {
        u64::deserialize(deserializer).map(Money::from_pico)
    }
}

optional!(some_nanoseconds, Duration, "nanoseconds");
optional!(some_picodollars, Money, "picodollars");
optional!(turn_details, TurnDetails, "TurnDetailsJson");
optional!(tool_call_details, ToolCallDetails, "ToolCallDetailsJson");

pub(super) mod calls {
    use super::*;

    #[derive(Serialize)]
    struct Written<'a>(#[serde(with = "CallReportJson")] &'a CallReport);

    #[derive(Deserialize)]
    struct Read(#[serde(with = "CallReportJson")] CallReport);

    pub(in super::super) fn serialize<S: Serializer>(
        calls: &[CallReport],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(calls.iter().map(Written))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<CallReport>, D::Error> {
        Ok(Vec::<Read>::deserialize(deserializer)?.into_iter().map(|read| read.0).collect())
    }
}
