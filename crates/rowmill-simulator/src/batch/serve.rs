//! Answers the requests of the batch APIs.

use std::sync::Arc;

use serde_json::Value;

use super::download::BatchAnswer;
use super::mistral;
use super::route::{BatchOperation, BatchRoute};
use super::store::disk_failure;
use super::stored_bytes::StoredBytes;
use super::vendor::BatchVendor;
use crate::answer_plan::CallRejection;
use crate::outgoing_answer::OutgoingAnswer;
use crate::protocol::RequestRefusal;
use crate::recorder::RecordedRequest;
use crate::simulator_state::SimulatorState;

/// A request of a batch API, with its body on disk if that is large.
pub(super) struct BatchCall<'c> {
    pub(super) route: BatchRoute<'c>,
    pub(super) request: &'c RecordedRequest,
    pub(super) body: Option<StoredBytes>,
}

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum BatchServed {
    Answer(BatchAnswer),
    /// It is for something else; this is its body.
    NotMine(Option<StoredBytes>),
}

impl BatchCall<'_> {
    /// The address that the client used.
    pub(super) fn host(&self) -> &str {
        self.request.header("host").unwrap_or_default()
    }

    /// The body as JSON.
    pub(super) fn json(&self) -> Result<Value, RequestRefusal> {
        let parsed = match &self.body {
            Some(body) => serde_json::from_slice(&body.read().map_err(disk_failure)?),
            None => serde_json::from_slice(&self.request.body),
        };
        parsed.map_err(|error| RequestRefusal::invalid(format!("We could not parse the JSON body: {error}")))
    }

    fn is_post(&self) -> bool {
        self.request.method == "POST"
    }
}

/// The answer to a method that an address does not have.
pub(super) fn wrong_method() -> RequestRefusal {
    RequestRefusal::new(405, "the method is not allowed here")
}

/// A document with status 200.
pub(super) fn document(body: &Value) -> BatchAnswer {
    BatchAnswer::Document(OutgoingAnswer::json(200, &[], body))
}

impl SimulatorState {
    /// Answers a request of a batch API. It may read and write large files, so it must not be called by a
    /// thread that serves connections.
    pub(crate) fn serve_batch(
        self: &Arc<Self>,
        request: &RecordedRequest,
        body: Option<StoredBytes>,
    ) -> BatchServed {
        let Some(route) = BatchRoute::read(request) else { return BatchServed::NotMine(body) };
        let call = BatchCall { route, request, body };
        if self.is_for_other_files(&call) {
            return BatchServed::NotMine(call.body);
        }
        let vendor = call.route.vendor;
        let refused = match self.check_outage() {
            // The address itself is the secret.
            Ok(()) if matches!(call.route.operation, BatchOperation::Put(_)) => None,
            Ok(()) => vendor.protocol().check_headers(request, self.script.key.as_deref()).err(),
            Err(CallRejection::Reset) => return BatchServed::Answer(BatchAnswer::Lost),
            Err(CallRejection::Refused(refused)) => Some(refused),
        };
        let answered = match refused {
            Some(refused) => Err(refused),
            None => self.answer_batch(call),
        };
        BatchServed::Answer(answered.unwrap_or_else(|refused| refusal(vendor, &refused)))
    }

    /// Whether a request concerns files that are not those of batches.
    fn is_for_other_files(&self, call: &BatchCall<'_>) -> bool {
        match call.route.operation {
            BatchOperation::Files if call.route.vendor == BatchVendor::Gemini => false,
            BatchOperation::Files if call.is_post() => !self.is_batch_upload(call),
            BatchOperation::FinishUpload(upload) => !self.is_batch_piece(upload),
            BatchOperation::BeginUpload => true,
            BatchOperation::File(id) | BatchOperation::Content(id) => {
                let is_unprefixed = matches!(call.route.vendor, BatchVendor::OpenAi | BatchVendor::Gemini);
                is_unprefixed && self.batches.lock().file(id).is_none() && self.stored.find_any(id)
            }
            _ => false,
        }
    }

    fn answer_batch(self: &Arc<Self>, call: BatchCall<'_>) -> Result<BatchAnswer, RequestRefusal> {
        let is_read = call.request.method == "GET";
        let is_delete = call.request.method == "DELETE";
        match call.route.operation {
            BatchOperation::Files if call.is_post() && call.route.vendor != BatchVendor::Gemini => {
                self.upload_batch_file(call)
            }
            BatchOperation::FinishUpload(upload) if call.is_post() => self.upload_piece(call, upload),
            BatchOperation::Files if is_read => self.list_files(&call),
            BatchOperation::File(id) if is_read => self.batch_file(&call, id),
            BatchOperation::File(id) if is_delete => self.delete_batch_file(&call, id),
            BatchOperation::Put(id) if call.request.method == "PUT" => self.put_file(call, id),
            BatchOperation::Preprocess(id) if call.is_post() => self.batch_file(&call, id),
            BatchOperation::Content(id) if is_read => self.download_file(&call, id),
            BatchOperation::Jobs | BatchOperation::CreateFor(_) if call.is_post() => self.create_job(call),
            BatchOperation::Jobs if is_read => self.list_jobs(&call),
            BatchOperation::Job(id) if is_read => self.batch_job(&call, id),
            BatchOperation::Job(id) if is_delete => self.delete_job(&call, id),
            BatchOperation::Delete(id) if call.is_post() => self.delete_job(&call, id),
            BatchOperation::Cancel(id) if call.is_post() => self.cancel_job(&call, id),
            BatchOperation::Results(id) if is_read => self.download_results(&call, id),
            _ => Err(wrong_method()),
        }
    }
}

/// A rejection in the vendor's shape.
pub(super) fn refusal(vendor: BatchVendor, refused: &RequestRefusal) -> BatchAnswer {
    let body = match vendor {
        BatchVendor::Mistral => mistral::error(refused),
        _ => vendor.protocol().error(refused),
    };
    BatchAnswer::Document(OutgoingAnswer::json(refused.status, &refused.headers, &body))
}
