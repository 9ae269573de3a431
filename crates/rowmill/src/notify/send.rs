//! Runs the command and posts to the address.

use std::time::Duration;

use rowmill_data::split_credential;
use rowmill_http::{HeaderMap, HeaderValue, RequestTarget, Url, header};
use rowmill_tools::run_command_with_input;
use serde::Serialize;

use super::options::{NotifyOptions, parse_address, shown_address};
use crate::control::{RunControl, RunNotice};

/// A run does not wait longer than this for those who are notified of its end.
const LIMIT: Duration = Duration::from_secs(10);

/// Notifies of the end of a run. What fails is a warning, and nothing takes longer than ten seconds.
pub async fn send_notification(options: &NotifyOptions, message: &impl Serialize, control: &RunControl) {
    // Plain data, so it always serializes to JSON.
    let mut json = serde_json::to_vec(message).unwrap_or_default();
    json.push(b'\n');
    tokio::join!(run_command(options, &json, control), post(options, &json, control));
}

async fn run_command(options: &NotifyOptions, json: &[u8], control: &RunControl) {
    let Some(command) = &options.command else { return };
    let variables = control.environment.all_variables();
    if let Err(failure) = run_command_with_input(command, json, variables, LIMIT).await {
        warn(control, format!("the notification command failed: {failure}"));
    }
}

async fn post(options: &NotifyOptions, json: &[u8], control: &RunControl) {
    let Some(Ok(address)) = options.url.as_deref().map(parse_address) else { return };
    let shown = shown_address(&address);
    let sent = tokio::time::timeout(LIMIT, post_json(&address, json, control)).await;
    let failure = match sent {
        Ok(Ok(status)) if (200..300).contains(&status) => return,
        Ok(Ok(status)) => format!("the server answered with HTTP {status}"),
        Ok(Err(failure)) => failure,
        Err(_) => format!("no answer within {} s", LIMIT.as_secs()),
    };
    warn(control, format!("the notification to `{shown}` failed: {failure}"));
}

/// Posts JSON and returns the status of the response, whose body is not read.
async fn post_json(address: &Url, json: &[u8], control: &RunControl) -> Result<u16, String> {
    let (address, credential) = split_credential(address);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(credential) = credential {
        headers.insert(header::AUTHORIZATION, credential.value);
    }
    let target = RequestTarget::new(address, headers)
        .map_err(|_| "it is not an address that can be requested".to_owned())?;
    let answer = control.environment.http_client().post(&target, None, json.to_vec().into()).await;
    answer.map(|answer| answer.status()).map_err(|failure| failure.to_string())
}

fn warn(control: &RunControl, text: String) {
    let text = control.environment.redact(&text).into_owned();
    (control.notice)(RunNotice::warning(text));
}
