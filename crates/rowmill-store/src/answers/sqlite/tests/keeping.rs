//! Stored answers are found.

use rowmill_core::ports::{AnswerStore, StoredAnswer};
use rowmill_types::TokenUsage;

use super::{answer, fill, key, open, text, texts};

#[tokio::test]
async fn an_answer_is_found_at_once_and_by_later_runs_just_as_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("made/when/needed");
    let answers = [
        answer("a text with \0, \u{1f980} and\nlines"),
        StoredAnswer { text: String::new(), usage: None, model: None },
        StoredAnswer { usage: Some(TokenUsage::default()), ..answer("nothing was used") },
        answer(&"long ".repeat(100_000)),
    ];
    let store = open(&place);
    for (number, answer) in answers.iter().enumerate() {
        store.store(key(number as u64), answer);
        assert_eq!(store.find(key(number as u64)).await.as_ref(), Some(answer));
    }
    drop(store);
    let store = open(&place);
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(store.find(key(number as u64)).await.as_ref(), Some(answer));
    }
    assert_eq!(store.find(key(99)).await, None);
}

#[tokio::test]
async fn of_two_answers_under_one_key_the_later_one_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    store.store(key(1), &answer("first"));
    // Writes the first, so that the second finds it in the file.
    store.stats().unwrap();
    store.store(key(1), &answer("second"));
    store.store(key(1), &answer("third"));
    assert_eq!(texts(&store, 1..2).await, [Some("third".to_owned())]);
    drop(store);
    let store = open(folder.path());
    assert_eq!(texts(&store, 1..2).await, [Some("third".to_owned())]);
    assert_eq!(store.stats().unwrap().entries, 1);
}

#[tokio::test]
async fn thousands_of_answers_are_found_while_thousands_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for number in 0..5_000 {
        store.store(key(number), &answer(&text(number, 200)));
    }
    let found = texts(&store, 0..5_000).await;
    for (number, found) in found.into_iter().enumerate() {
        assert_eq!(found, Some(text(number as u64, 200)));
    }
}

#[tokio::test]
async fn the_numbers_count_answers_hits_and_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    assert_eq!(store.stats().unwrap().entries, 0);
    assert_eq!(store.stats().unwrap().oldest, None);
    store.store(key(0), &answer("12345"));
    store.store(key(1), &StoredAnswer { usage: None, ..answer("6") });
    // A hit counts, whether in memory or in the file; a miss does not, nor a look-up whose caller is gone.
    texts(&store, 0..3).await;
    drop(store);
    let store = open(folder.path());
    texts(&store, [0, 0, 7].into_iter()).await;
    let stats = store.stats().unwrap();
    assert_eq!((stats.entries, stats.hits), (2, 4));
    assert_eq!(stats.bytes, 2 * (16 + "small-1".len() as u64) + 6);
    assert!(stats.file_bytes >= 8192, "{}", stats.file_bytes);
    assert_eq!(stats.kept, answer("").usage.unwrap());
    assert_eq!(stats.saved, TokenUsage { input: 30, cached: 12, cache_write: 9, output: 6, reasoning: 3 });
    let (oldest, newest) = (stats.oldest.unwrap(), stats.newest.unwrap());
    assert!(1_600_000_000 < oldest && oldest <= newest, "{oldest} {newest}");
}

#[tokio::test]
async fn a_look_up_that_was_dropped_holds_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), 10, 20);
    let store = open(folder.path());
    for number in 0..10 {
        drop(store.find(key(number)));
    }
    assert_eq!(texts(&store, 3..4).await, [Some(text(3, 20))]);
}

#[tokio::test]
async fn tokens_beyond_what_the_file_can_count_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let odd = TokenUsage { input: u64::MAX, output: u64::MAX, ..TokenUsage::default() };
    for number in 0..3 {
        store.store(key(number), &StoredAnswer { usage: Some(odd), ..answer("odd") });
    }
    texts(&store, 0..3).await;
    assert_eq!(store.stats().unwrap().kept.input, i64::MAX as u64);
}
