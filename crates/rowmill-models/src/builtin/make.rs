//! Builds a built-in model by its name.

use std::sync::Arc;
use std::time::Duration;

use rowmill_core::ports::Model;
use rowmill_types::{
    Attachment, CallTiming, Completion, Message, Problem, ProblemCode, Request, Role, Usage,
};
use tokio::time::Instant;

use super::echo::{Passthrough, Silent, Slow};
use super::playback::Playback;
use super::simulated::Simulated;
use crate::build::Setup;
use crate::settings::Key;

/// The default delay of `slow`.
const DELAY: Duration = Duration::from_secs(3);

/// Builds a model that answers in this process.
pub(crate) fn build(setup: &Setup) -> Result<Arc<dyn Model>, Problem> {
    let settings = &setup.model.settings;
    Ok(match setup.connection.provider.as_str() {
        "passthrough" => Arc::new(Passthrough::new(!setup.tools.is_empty())),
        "playback" => Arc::new(Playback::default()),
        "slow" => Arc::new(Slow::new(settings.span(Key::Delay).unwrap_or(DELAY))),
        "silent" => Arc::new(Silent),
        "simulated" => Arc::new(Simulated::new(setup)),
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
    let said = request.messages.iter().rev().find(|message| message.role == Role::User);
    said.map_or("", |message| message.text.as_str())
}

/// The files of the last user message.
pub(super) fn last_files(request: &Request) -> &[Attachment] {
    let said = request.messages.iter().rev().find(|message| message.role == Role::User);
    said.map_or(&[], |message| message.attachments.as_slice())
}

/// An answer with estimated token counts, four characters per token.
pub(super) fn answer(request: &Request, text: String, started: Instant, model: &str) -> Completion {
    let tokens = |text: &str| u64::try_from(text.chars().count().div_ceil(4)).unwrap_or(u64::MAX);
    let all = |message: &Message| {
        let calls = message.calls.iter().map(|call| tokens(&call.name) + tokens(&call.arguments));
        tokens(&message.text) + calls.sum::<u64>()
    };
    let usage =
        Usage { input: request.messages.iter().map(all).sum(), output: tokens(&text), ..Usage::default() };
    Completion {
        usage: Some(usage),
        timing: CallTiming { first_token: None, response: started.elapsed() },
        model: Some(model.to_owned()),
        ..Completion::of_text(text)
    }
}
