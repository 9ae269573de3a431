//! Stores get smaller on request.

use std::time::Duration;

use super::{fill, open, other_program, texts};
use crate::answers::{PruneReport, PruneSpec, SqliteAnswerStore};

const DAY: Duration = Duration::from_secs(86_400);

#[tokio::test]
async fn answers_that_were_unused_for_too_long_go_and_the_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), 4, 20);
    let file = other_program(folder.path());
    // 0 is old, 1 is old and was used lately, 2 was used long ago, 3 is new.
    file.execute("UPDATE answers SET created_at = created_at - 40 * 86400 WHERE id < 4", []).unwrap();
    file.execute("INSERT INTO uses SELECT id, unixepoch() - 86400, 1 FROM answers WHERE id = 2", []).unwrap();
    file.execute("INSERT INTO uses SELECT id, unixepoch() - 31 * 86400, 1 FROM answers WHERE id = 3", [])
        .unwrap();
    let store = open(folder.path());
    let pruned = store.prune(PruneSpec { older_than: Some(30 * DAY), ..PruneSpec::default() }).unwrap();
    assert_eq!(pruned, PruneReport { entries: 2, bytes: 2 * (16 + 7 + 20), compacted: true });
    let left: Vec<bool> = texts(&store, 0..4).await.iter().map(Option::is_some).collect();
    assert_eq!(left, [false, true, false, true]);
    let uses = "SELECT count(*) FROM uses LEFT JOIN answers USING (id) WHERE key IS NULL";
    assert_eq!(file.query_row(uses, [], |row| row.get(0)), Ok(0));
}

#[tokio::test]
async fn the_longest_unused_answers_go_until_the_file_is_small_enough() {
    for (length, most) in [(100, 100_000), (1_500, 400_000), (9_000, 1_000_000)] {
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path(), 1_000, length);
        // Used in a different order: those with the smallest remainder longest ago.
        other_program(folder.path())
            .execute("INSERT INTO uses SELECT id, unixepoch() + id * 7 % 1000, 1 FROM answers", [])
            .unwrap();
        let store = open(folder.path());
        let pruned = store.prune(PruneSpec { max_bytes: Some(most), ..PruneSpec::default() }).unwrap();
        drop(store);
        let size = SqliteAnswerStore::file_in(folder.path()).metadata().unwrap().len();
        assert!(size <= most && size > most * 7 / 10, "{length}: {size} of {most}");
        let store = open(folder.path());
        let left = store.stats().unwrap().entries;
        assert_eq!(left + pruned.entries, 1_000);
        let found = texts(&store, 0..1_000).await;
        for (number, found) in found.iter().enumerate() {
            let used = (number as u64 + 1) * 7 % 1_000;
            assert_eq!(found.is_some(), used >= 1_000 - left, "{length}: {number}");
        }
    }
}

#[tokio::test]
async fn what_fits_already_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), 10, 100);
    let store = open(folder.path());
    let spec = PruneSpec { older_than: Some(DAY), max_bytes: Some(1 << 30), all: false };
    assert_eq!(store.prune(spec).unwrap(), PruneReport { compacted: true, ..PruneReport::default() });
    assert_eq!(store.stats().unwrap().entries, 10);
}

#[tokio::test]
async fn everything_goes_and_the_room_is_given_back_and_the_store_works_on() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), 500, 4_000);
    let store = open(folder.path());
    let before = store.stats().unwrap();
    let pruned = store.prune(PruneSpec { all: true, ..PruneSpec::default() }).unwrap();
    assert_eq!((pruned.entries, pruned.bytes), (500, before.bytes));
    let after = store.stats().unwrap();
    assert_eq!((after.entries, after.bytes, after.hits), (0, 0, 0));
    assert!(before.file_bytes > 1_000_000 && after.file_bytes < 50_000, "{after:?}");
    drop(store);
    fill(folder.path(), 5, 10);
    assert_eq!(open(folder.path()).stats().unwrap().entries, 5);
}

#[tokio::test]
async fn a_size_that_no_file_can_have_leaves_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), 50, 100);
    let store = open(folder.path());
    store.prune(PruneSpec { max_bytes: Some(1), ..PruneSpec::default() }).unwrap();
    assert_eq!(store.stats().unwrap().entries, 0);
}
