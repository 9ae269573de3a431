//! Whole jobs, as checked by the testkit's suite.

use rowmill_testkit::conformance::{BatchFacts, check_batch_api};

use super::batch_api;
use super::fake_provider::serve_jobs;
use crate::server::listen;

#[tokio::test]
async fn every_family_keeps_the_contract_of_the_port() {
    for (model, base) in [
        ("openai.m", "/v1"),
        ("together.m", "/v1"),
        ("azure.m", "/v1"),
        ("anthropic.m", ""),
        ("google.m", ""),
    ] {
        let (listener, address) = listen().await;
        let api = batch_api(model, &format!("{address}{base}"));
        let folder = tempfile::tempdir().unwrap();
        let belongs = Box::new(|prompt: &str, answer: &str| prompt == answer);
        let facts = BatchFacts { belongs, ..BatchFacts::new(folder.path()) };
        let found = tokio::select! {
            found = check_batch_api(&*api, &facts) => found,
            () = serve_jobs(&listener, &address) => panic!("it serves for ever"),
        };
        assert_eq!(found, Vec::<String>::new(), "{model}");
    }
}
