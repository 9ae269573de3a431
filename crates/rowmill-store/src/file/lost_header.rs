//! Runs without their header. Versions that did not force it to disk could leave it empty, or cut short, when the
//! power failed. The ledger beside it still has everything that was answered, so such a run can be continued.

use std::fs;

use rowmill_core::ports::RunEpoch;
use rowmill_types::actions::RUN_AGAIN_CHANGED;
use rowmill_types::{Problem, ProblemCode};
use serde::de::IgnoredAny;

use super::WorkFolder;
use super::work_folder::is_recorded;

/// How every header begins.
pub(super) const BEGINNING: &[u8] = b"{\n  \"format\":";

/// Whether these bytes are what a crash left of a header: nothing, its beginning, or zeros in the place of the rest.
pub(super) fn is_cut(bytes: &[u8]) -> bool {
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let (text, _) = bytes.split_at(length);
    let is_ours = text.starts_with(BEGINNING) || BEGINNING.starts_with(text);
    is_ours && serde_json::from_slice::<IgnoredAny>(text).is_err_and(|error| error.is_eof())
}

impl WorkFolder {
    /// Whether the run that is here has lost its header, and not its ledger.
    #[must_use]
    pub fn has_lost_header(&self) -> bool {
        self.ledger_without_header().is_some()
    }

    /// What whoever needs the header of a run without one is told.
    pub(super) fn lost_header_problem(&self) -> Problem {
        let path = self.header_path();
        let message =
            format!("`{}` is empty or cut short, but the ledger beside it is there", path.display());
        Problem::new(ProblemCode::LedgerUnusable, message).hint(format!(
            "{RUN_AGAIN_CHANGED}, giving the settings that the run was made with; they cannot be compared, and what was \
             spent before this ledger began is not known"
        ))
    }

    /// Which ledger of the folder counts, and the last part of the run that was begun, as far as that is known.
    ///
    /// # Errors
    ///
    /// The header cannot be read, or is of a format that this version does not know.
    pub(super) fn part(&self) -> Result<Option<(u32, RunEpoch)>, Problem> {
        match self.ledger_without_header() {
            Some(generation) => Ok(Some((generation, RunEpoch::default()))),
            None => Ok(self.header()?.map(|header| (header.generation, header.run.epoch))),
        }
    }

    /// The generation of the ledger of a run that has lost its header: the newest with events. A newer one without
    /// any was made for a run that did not begin.
    fn ledger_without_header(&self) -> Option<u32> {
        fs::read(self.header_path()).ok().filter(|bytes| is_cut(bytes))?;
        let generation =
            |name: &str| name.strip_prefix("ledger-")?.strip_suffix(".jsonl")?.parse::<u32>().ok();
        let ledgers = self.names().into_iter().filter_map(|name| generation(&name));
        let length = |generation| fs::metadata(self.ledger_path(generation)).map_or(0, |found| found.len());
        ledgers.max_by_key(|generation| (length(*generation) > 0, *generation))
    }

    /// The newest file with rows that a query gave whose name begins like this.
    #[must_use]
    pub fn newest_recorded_rows_name(&self, begins: &str) -> Option<String> {
        self.names().into_iter().filter(|name| is_recorded(name) && name.starts_with(begins)).max()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use rowmill_core::ports::{EventGroup, LedgerRequirements, NamedRow, RunStore};
    use rowmill_testkit::run_header;
    use rowmill_types::RowId;

    use super::*;
    use crate::file::FileRunStore;

    #[test]
    fn only_a_header_that_a_crash_cut_counts_as_lost() {
        let whole = b"{\n  \"format\": 1,\n  \"run\": \"r\"\n}";
        assert!(!is_cut(whole));
        for length in 0..whole.len() {
            let (left, gone) = whole.split_at(length);
            assert!(is_cut(left), "{length}");
            assert!(is_cut(&[left, &vec![0; gone.len()]].concat()), "{length}");
        }
        for other in [&b"my notes"[..], b"[", b"{\"format\":", b"{\n  \"format\": 1}}", b"\0mine"] {
            assert!(!is_cut(other), "{other:?}");
        }
    }

    #[tokio::test]
    async fn a_run_that_lost_its_header_is_taken_up_behind_the_events_of_its_newest_ledger() {
        let home = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(home.path()).unwrap();
        let store = FileRunStore::new(folder.clone());
        let events = || {
            let mut events = 0;
            store.scan(&mut |_| {
                events += 1;
                Ok(())
            })?;
            Ok::<_, Problem>(events)
        };
        let taken = [NamedRow { number: 1, id: RowId::Number(1) }];
        let group = || EventGroup { taken: &taken, ..EventGroup::default() };
        for _ in 0..2 {
            let open = store
                .begin(store.prepare(run_header("now"), LedgerRequirements::default()).unwrap())
                .unwrap();
            open.ledger.append(open.epoch, group()).await.unwrap();
        }
        // A further one that was never begun.
        fs::write(folder.ledger_path(3), "").unwrap();
        fs::write(folder.header_path(), "").unwrap();
        assert!(folder.has_lost_header());
        let problem = store.header().unwrap_err();
        assert!(
            problem.message.ends_with("run.json` is empty or cut short, but the ledger beside it is there")
        );
        assert_eq!(events().unwrap(), 1);
        let open = store.reopen(run_header("now"), LedgerRequirements::default()).unwrap();
        open.ledger.append(open.epoch, group()).await.unwrap();
        assert_eq!((folder.has_lost_header(), events().unwrap()), (false, 2));
    }

    #[tokio::test]
    async fn a_run_that_lost_its_header_keeps_its_ledger_until_another_has_taken_its_place() {
        let home = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(home.path()).unwrap();
        let store = FileRunStore::new(folder.clone());
        let taken = [NamedRow { number: 1, id: RowId::Number(1) }];
        let open =
            store.begin(store.prepare(run_header("now"), LedgerRequirements::default()).unwrap()).unwrap();
        open.ledger.append(open.epoch, EventGroup { taken: &taken, ..EventGroup::default() }).await.unwrap();
        fs::write(folder.header_path(), "").unwrap();
        assert_eq!(WorkFolder::foreign_file(home.path()), None);
        let ledger = fs::read(folder.ledger_path(1)).unwrap();
        store.discard_prepared(store.prepare(run_header("later"), LedgerRequirements::default()).unwrap());
        assert_eq!(fs::read(folder.ledger_path(1)).unwrap(), ledger);
        drop(
            store.begin(store.prepare(run_header("later"), LedgerRequirements::default()).unwrap()).unwrap(),
        );
        assert!(!folder.ledger_path(1).exists() && store.header().unwrap().is_some());
    }
}
