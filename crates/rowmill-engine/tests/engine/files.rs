//! Rows with files.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::sync::Arc;

use futures_util::future::BoxFuture;
use rowmill_core::ports::AttachmentLoader;
use rowmill_core::validate::ResultSchema;
use rowmill_engine::{AnswerCache, execute_run};
use rowmill_testkit::{FakeDataset, FakeModel, fake_answer};
use rowmill_types::{Attachment, Row, RowError, RowErrorKind};

use crate::answers::Memory;
use crate::support::Bench;

/// Gives each row the file named in its field `file`, with the name as its content.
#[derive(Debug)]
struct Named;

impl AttachmentLoader for Named {
    fn load<'a>(&'a self, row: &'a Row) -> BoxFuture<'a, Result<Vec<Attachment>, RowError>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let name: String = serde_json::from_str(row.field("file").unwrap()).unwrap();
            match name.as_str() {
                "missing" => Err(RowError::new(RowErrorKind::Attachment, "file not found")),
                "panic" => {
                    assert!(name.is_empty(), "a file that breaks its reader");
                    Ok(Vec::new())
                }
                _ => Ok(vec![Attachment {
                    name: "scan.png".into(),
                    media_type: "image/png".into(),
                    digest: name.clone(),
                    bytes: name.into_bytes().into(),
                }]),
            }
        })
    }
}

fn bench(files: &[&str], model: Arc<FakeModel>) -> Bench {
    let texts = files.iter().map(|file| format!(r#"{{"p":"What is it?","file":"{file}"}}"#));
    let mut bench = Bench::over(FakeDataset::from_texts(texts), model);
    bench.plan.worker.attachments = Some(Arc::new(Named));
    bench
}

/// The contents of the files in each request, by message.
fn sent(model: &FakeModel) -> Vec<Vec<Vec<String>>> {
    let content = |file: &Attachment| String::from_utf8(file.bytes.to_vec()).unwrap();
    let seen = model.seen();
    let messages = seen.iter().map(|request| &request.messages);
    messages
        .map(|all| all.iter().map(|one| one.attachments.iter().map(content).collect()).collect())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_row_is_sent_with_its_file_and_never_without() {
    let model = Arc::new(FakeModel::default());
    let (plan, watched) = bench(&["a", "missing", "panic", "b"], model.clone()).split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["ok", "AttachmentError", "InternalError", "ok"]);
    let mut sent = sent(&model);
    sent.sort();
    assert_eq!(sent, [[["a"]], [["b"]]]);
    assert_eq!((end.tally.processed_rows, end.tally.failed_rows), (4, 2));
    let mut taken = watched.log.rows("taken");
    taken.sort_unstable();
    assert_eq!(taken, [1, 4], "rows that are not sent are not taken to be sent");
}

#[tokio::test(start_paused = true)]
async fn a_repair_still_has_the_file() {
    let script = vec![Ok(fake_answer("no number")), Ok(fake_answer("4"))];
    let model = Arc::new(FakeModel::default().script("What is it?", script));
    let mut bench = bench(&["a"], model.clone());
    bench.with_schema(ResultSchema::parse(r#"{"type":"integer"}"#, "schema").unwrap());
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["ok"]);
    let expected: [Vec<Vec<String>>; 2] =
        [vec![vec!["a".into()]], vec![vec!["a".into()], Vec::new(), Vec::new()]];
    assert_eq!(sent(&model), expected);
}

#[tokio::test(start_paused = true)]
async fn rows_ask_the_same_only_with_the_same_file() {
    let model = Arc::new(FakeModel::default());
    let mut bench = bench(&["a", "b", "a"], model.clone());
    let store = Arc::new(Memory::default());
    bench.plan.worker.answer_cache = Some(AnswerCache {
        store,
        identity: "m".into(),
        kept_before: rowmill_core::record::ReusedAnswerSource::Cache,
    });
    bench.plan.parallel = 3;
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["ok", "ok", "ok"]);
    assert_eq!(model.seen().len(), 2);
    assert_eq!(watched.numbers(), [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_stops_while_files_are_read_leaves_the_rows_for_later() {
    let model = Arc::new(FakeModel::default());
    let bench = bench(&["a", "b"], model.clone());
    bench.plan.stop.drain();
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    assert!(watched.envelopes().is_empty() && model.seen().is_empty());
}
