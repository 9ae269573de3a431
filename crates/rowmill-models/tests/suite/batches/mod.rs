//! Batch APIs over real sockets.

mod calls;
mod downloads;
mod fake_provider;
mod lists;
mod whole;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rowmill_core::ports::{BatchApi, JobFile, JobReport, JobState};
use rowmill_http::HttpClient;
use rowmill_models::{
    BatchLimitOverrides, ModelSetup, ModelString, ProviderConfig, ProviderConnection, ProviderRegistry,
    build_batch_api,
};

use crate::server::{answer, ask};

/// The batch API of a provider at `base_url`, with the key `sk-secret`.
pub(crate) fn batch_api(text: &str, base_url: &str) -> Arc<dyn BatchApi> {
    let name = text.split('.').next().unwrap().to_owned();
    let config = ProviderConfig { base_url: Some(base_url.to_owned()), ..ProviderConfig::default() };
    let providers = ProviderRegistry::with_config(BTreeMap::from([(name, config)])).unwrap();
    let model = ModelString::parse(text, &providers).unwrap();
    let key = |name: &str| name.contains("KEY").then(|| "sk-secret".to_owned());
    let connection = ProviderConnection::resolve(&model, &providers, &key).unwrap();
    let setup = ModelSetup {
        model,
        connection,
        instruction: None,
        schema: None,
        tools: Vec::new(),
        parallel_tool_calls: None,
        notice: Arc::new(drop),
    };
    build_batch_api(&setup, &BatchLimitOverrides::default(), &HttpClient::new(&|_| None)).unwrap()
}

/// A job with a request for each text, written into a folder.
fn job_file(api: &dyn BatchApi, folder: &Path, texts: &[&str]) -> JobFile {
    let mut content = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        api.write_request(&format!("r-{number}"), &ask(text), &mut content).unwrap();
    }
    let path = folder.join("job.jsonl");
    std::fs::write(&path, &content).unwrap();
    let (requests, bytes) = (texts.len() as u64, content.len() as u64);
    JobFile { key: "run-1-job-2".to_owned(), path, requests, bytes }
}

fn ok(body: &str) -> Vec<u8> {
    answer("200 OK", "", body)
}

/// An ended job.
fn ended(id: &str, result_files: &[&str]) -> JobReport {
    JobReport {
        id: id.to_owned(),
        key: None,
        state: JobState::Completed,
        provider_state: "completed".to_owned(),
        counts: None,
        created_at: None,
        expires_at: None,
        input_file: None,
        result_files: result_files.iter().map(|file| (*file).to_owned()).collect(),
        errors: Vec::new(),
    }
}
