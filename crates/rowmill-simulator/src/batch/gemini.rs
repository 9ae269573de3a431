//! The shapes of Google's batch API.

use serde_json::{Map, Value, json};

use super::inline_rows::FieldPath;
use super::job::{JobOrder, JobView};
use super::store::BatchFile;
use super::timeline::JobPhase;
use crate::protocol::RequestRefusal;

/// Where the rows are in a body that contains them.
pub(super) const ROWS: FieldPath =
    &[&["batch"], &["inputConfig", "input_config"], &["requests"], &["requests"]];

fn either<'v>(value: &'v Value, names: [&str; 2]) -> Option<&'v Value> {
    names.into_iter().find_map(|name| value.get(name))
}

/// Parses the body that creates a job, without its rows.
pub(super) fn order(model: &str, body: &Value) -> Result<JobOrder, RequestRefusal> {
    let Some(batch) = body.get("batch") else {
        return Err(RequestRefusal::invalid("* BatchGenerateContentRequest.batch: batch is required"));
    };
    let Some(input) = either(batch, ["inputConfig", "input_config"]) else {
        return Err(RequestRefusal::invalid("* batch.input_config: input_config is required"));
    };
    let file = either(input, ["fileName", "file_name"]).and_then(Value::as_str);
    let name = either(batch, ["displayName", "display_name"]).and_then(Value::as_str);
    Ok(JobOrder {
        endpoint: "generateContent".to_owned(),
        model: Some(model.to_owned()),
        input_file: file.map(|file| file.strip_prefix("files/").unwrap_or(file).to_owned()),
        display_name: name.map(str::to_owned),
        ..JobOrder::default()
    })
}

/// A job as the operation that it is. `inlined` are the results of inline requests, if they are wanted.
pub(super) fn operation(view: &JobView<'_>, inlined: Option<Value>) -> Value {
    let job = view.job;
    let phase = view.phase();
    let ended = view.ended().map(|(_, time)| time);
    let name = format!("batches/{}", job.id);
    let mut metadata = json!({
        "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
        "name": name,
        "model": format!("models/{}", job.order.model.as_deref().unwrap_or_default()),
        "displayName": job.order.display_name,
        "state": state(phase),
        "createTime": view.clock.text(job.timeline.created),
        "updateTime": view.clock.text(ended.unwrap_or(view.now)),
        "batchStats": stats(view),
        "inputConfig": job.order.input_file.as_ref().map(|id| json!({"fileName": format!("files/{id}")})),
    });
    if let Value::Object(fields) = &mut metadata {
        fields.retain(|_, value| !value.is_null());
    }
    if let Some(ended) = ended {
        metadata["endTime"] = json!(view.clock.text(ended));
    }
    let mut operation = json!({"name": name, "metadata": metadata});
    if ended.is_some() {
        operation["done"] = json!(true);
    }
    if let Some(error) = error(view) {
        operation["error"] = error;
    } else if let Some(output) = output(view, inlined) {
        operation["metadata"]["output"] = output.clone();
        let kind = "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatchOutput";
        operation["response"] = json!({"@type": kind});
        if let (Value::Object(fields), Value::Object(response)) = (output, &mut operation["response"]) {
            response.extend(fields);
        }
    }
    operation
}

fn state(phase: JobPhase) -> &'static str {
    match phase {
        JobPhase::Validating => "BATCH_STATE_PENDING",
        JobPhase::InProgress | JobPhase::Finalizing | JobPhase::Cancelling => "BATCH_STATE_RUNNING",
        JobPhase::Completed => "BATCH_STATE_SUCCEEDED",
        JobPhase::Failed => "BATCH_STATE_FAILED",
        JobPhase::Expired => "BATCH_STATE_EXPIRED",
        JobPhase::Cancelled => "BATCH_STATE_CANCELLED",
    }
}

/// The counts, which are texts, and absent if they are zero.
fn stats(view: &JobView<'_>) -> Value {
    let counts = view.counts();
    let pending = counts.total.saturating_sub(counts.succeeded + counts.failed);
    let counted = [
        ("requestCount", counts.total),
        ("successfulRequestCount", counts.succeeded),
        ("failedRequestCount", counts.failed),
        ("pendingRequestCount", if view.phase().is_final() { 0 } else { pending }),
    ];
    let counted = counted.into_iter().filter(|(_, count)| *count > 0);
    let counted: Map<_, _> =
        counted.map(|(name, count)| (name.to_owned(), json!(count.to_string()))).collect();
    Value::Object(counted)
}

fn error(view: &JobView<'_>) -> Option<Value> {
    match view.phase() {
        JobPhase::Failed => {
            let error = view.job.errors.first();
            let message = error.map_or("The batch failed.", |error| error.message.as_str());
            Some(json!({"code": 3, "message": message}))
        }
        JobPhase::Expired => Some(json!({"code": 4, "message": "The batch job expired."})),
        JobPhase::Cancelled => Some(json!({"code": 1, "message": "The batch job was cancelled."})),
        _ => None,
    }
}

fn output(view: &JobView<'_>, inlined: Option<Value>) -> Option<Value> {
    let outcome = view.job.outcome.as_ref().filter(|_| view.phase() == JobPhase::Completed)?;
    if let Some(file) = &outcome.output_file {
        return Some(json!({"responsesFile": format!("files/{file}")}));
    }
    Some(json!({"inlinedResponses": {"inlinedResponses": inlined?}}))
}

/// A file; `host` is the address of the simulator.
pub(super) fn file(file: &BatchFile, created: &str, host: &str) -> Value {
    let name = format!("files/{}", file.id);
    let mut value = json!({
        "name": name,
        "displayName": file.name,
        "mimeType": file.media_type,
        "sizeBytes": file.bytes.length().to_string(),
        "createTime": created,
        "updateTime": created,
        "uri": format!("http://{host}/v1beta/{name}"),
        "state": "ACTIVE",
        "source": if file.is_result { "GENERATED" } else { "UPLOADED" },
    });
    if file.is_result {
        value["downloadUri"] = json!(format!("http://{host}/download/v1beta/{name}:download?alt=media"));
    }
    value
}
