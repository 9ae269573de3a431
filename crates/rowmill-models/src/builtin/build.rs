//! Builds a built-in model by its name.

use std::sync::Arc;
use std::time::Duration;

use rowmill_core::ports::Model;
use rowmill_types::{
    Attachment, CallTiming, Completion, Message, MessageRole, Problem, ProblemCode, Request, TokenUsage,
};
use tokio::time::Instant;

use super::passthrough::{PassthroughModel, SilentModel, SlowModel};
use super::playback::PlaybackModel;
use super::simulated::SimulatedModel;
use crate::build_model::ModelSetup;
use crate::model_settings::ModelSettingKey;

/// The default delay of `slow`.
const DELAY: Duration = Duration::from_secs(3);

/// Builds a model that answers in this process.
pub(crate) fn build_builtin_model(setup: &ModelSetup) -> Result<Arc<dyn Model>, Problem> {
    let settings = &setup.model.settings;
    Ok(match setup.connection.provider.as_str() {
        "passthrough" => Arc::new(PassthroughModel::new(!setup.tools.is_empty())),
        "playback" => Arc::new(PlaybackModel::default()),
        "slow" => Arc::new(SlowModel::new(settings.span(ModelSettingKey::Delay).unwrap_or(DELAY))),
        "silent" => Arc::new(SilentModel),
        "simulated" => Arc::new(SimulatedModel::new(setup)),
        other => {
            return Err(Problem::new(
                ProblemCode::InvalidModel,
                format!("there is no built-in model `{other}`"),
            )
            .hint("`rowmill models` lists them"));
        }
    })
}

/// The text of the last user message.
pub(super) fn last_text(request: &Request) -> &str {
    let last_message = request.messages.iter().rev().find(|message| message.role == MessageRole::User);
    last_message.map_or("", |message| message.text.as_str())
}

/// The files of the last user message.
pub(super) fn last_files(request: &Request) -> &[Attachment] {
    let last_message = request.messages.iter().rev().find(|message| message.role == MessageRole::User);
    last_message.map_or(&[], |message| message.attachments.as_slice())
}

/// An answer with estimated token counts, four characters per token.
pub(super) fn estimated_completion(
    request: &Request,
    text: String,
    started: Instant,
    model: &str,
) -> Completion {
    let tokens = |text: &str| u64::try_from(text.chars().count().div_ceil(4)).unwrap_or(u64::MAX);
    let all = |message: &Message| {
        let calls = message.calls.iter().map(|call| tokens(&call.name) + tokens(&call.arguments));
        tokens(&message.text) + calls.sum::<u64>()
    };
    let usage = TokenUsage {
        input: request.messages.iter().map(all).sum(),
        output: tokens(&text),
        ..TokenUsage::default()
    };
    Completion {
        usage: Some(usage),
        timing: CallTiming { first_token: None, response: started.elapsed() },
        model: Some(model.to_owned()),
        ..Completion::from_text(text)
    }
}
