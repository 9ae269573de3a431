//! The fake model follows its scripts.

use std::time::Duration;

use rowmill_core::ports::Model;
use rowmill_testkit::{FakeModel, busy_failure, fake_answer};
use rowmill_types::{Message, Request};

#[tokio::test(start_paused = true)]
async fn a_fake_model_follows_its_scripts_and_keeps_what_it_saw() {
    let model = FakeModel::default()
        .script("recovers", vec![Err(busy_failure()), Ok(fake_answer("four"))])
        .delay(Duration::from_secs(60));
    let request = |text: &str| Request {
        key: "k".into(),
        row: 1,
        attempt: 1,
        output_cap: None,
        purpose: Default::default(),
        messages: vec![Message::user(text)],
    };
    let (recovers, other) = (request("recovers"), request("other"));
    assert_eq!(model.complete(&recovers).await.unwrap_err(), busy_failure());
    let (again, echo) = tokio::join!(model.complete(&recovers), model.complete(&other));
    assert_eq!((again.unwrap().text, echo.unwrap().text), ("four".into(), "answer to: other".into()));
    assert_eq!((model.seen().len(), model.most_at_once()), (3, 2));
}

#[tokio::test]
async fn a_held_fake_model_answers_once_it_is_released() {
    let model = FakeModel::default().hold_answers();
    let request = Request {
        key: "k".into(),
        row: 1,
        attempt: 1,
        output_cap: None,
        purpose: Default::default(),
        messages: vec![Message::user("x")],
    };
    let mut call = model.complete(&request);
    assert!(futures_util::poll!(&mut call).is_pending());
    model.release();
    assert!(call.await.is_ok());
}
