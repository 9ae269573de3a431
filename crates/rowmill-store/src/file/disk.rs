//! Forces to disk what must survive a power failure.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::Path;

/// Forces files to disk. Tests replace it, because nothing else shows that it was done.
pub(super) trait Disk: Debug + Send + Sync {
    /// Returns when the content of a file is on disk.
    fn force_file(&self, file: &File, path: &Path) -> io::Result<()>;

    /// Returns when the names in a folder are on disk.
    fn force_folder(&self, path: &Path) -> io::Result<()>;
}

/// The disk of this machine.
#[derive(Debug)]
pub(super) struct SystemDisk;

impl Disk for SystemDisk {
    fn force_file(&self, file: &File, _: &Path) -> io::Result<()> {
        file.sync_data()
    }

    fn force_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path).and_then(|folder| folder.sync_all())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use rowmill_core::ports::{
        Durability, EventGroup, LedgerRequirements, NamedRow, RetainedRunParts, RunStore,
    };
    use rowmill_testkit::run_header;
    use rowmill_types::RowId;

    use super::*;
    use crate::file::{FileRunStore, WorkFolder};

    /// Records what is forced to disk, and the state at that moment.
    #[derive(Debug, Default)]
    struct WatchedDisk {
        forced: Mutex<Vec<String>>,
    }

    impl WatchedDisk {
        fn take(&self) -> Vec<String> {
            std::mem::take(&mut self.forced.lock().unwrap())
        }
    }

    impl Disk for WatchedDisk {
        fn force_file(&self, file: &File, path: &Path) -> io::Result<()> {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let text = std::fs::read(path)?;
            assert_eq!(file.metadata()?.len(), text.len() as u64, "another file is forced");
            let what = match name.starts_with("ledger-") {
                true => format!("{name} with {} lines", text.split(|byte| *byte == b'\n').count() - 1),
                false => {
                    let header: serde_json::Value = serde_json::from_slice(&text)?;
                    format!("{name} of epoch {}", header["epoch"])
                }
            };
            self.forced.lock().unwrap().push(what);
            Ok(())
        }

        fn force_folder(&self, path: &Path) -> io::Result<()> {
            let text = std::fs::read(path.join("run.json"))?;
            let header: serde_json::Value = serde_json::from_slice(&text)?;
            self.forced.lock().unwrap().push(format!("folder with epoch {}", header["epoch"]));
            Ok(())
        }
    }

    fn watched() -> (tempfile::TempDir, Arc<WatchedDisk>, FileRunStore) {
        let home = tempfile::tempdir().unwrap();
        let disk = Arc::new(WatchedDisk::default());
        let folder = WorkFolder::open(home.path()).unwrap().on_disk(disk.clone());
        (home, disk, FileRunStore::new(folder))
    }

    #[test]
    fn a_header_is_forced_to_disk_as_a_whole_before_it_counts_and_its_name_after_that() {
        let (_home, disk, store) = watched();
        let room = LedgerRequirements::default();
        let prepared = store.prepare(run_header("now"), room).unwrap();
        assert_eq!(disk.take(), ["run.json.new of epoch 1"]);
        drop(store.begin(prepared).unwrap());
        assert_eq!(disk.take(), ["folder with epoch 1"]);
        drop(store.reopen(run_header("now"), room).unwrap());
        assert_eq!(disk.take(), ["run.json.new of epoch 2", "folder with epoch 2"]);
        for retention in [RetainedRunParts::Ledger, RetainedRunParts::Header] {
            store.finish(run_header("now"), retention).unwrap();
            assert_eq!(disk.take(), ["run.json.new of epoch 2", "folder with epoch 2"], "{retention:?}");
        }
    }

    #[tokio::test]
    async fn groups_are_forced_to_disk_only_where_they_are_to_outlast_a_power_failure() {
        for (durability, forced) in
            [(Durability::Process, &[][..]), (Durability::Power, &["ledger-1.jsonl with 1 lines"])]
        {
            let (_home, disk, store) = watched();
            let room = LedgerRequirements { durability, ..LedgerRequirements::default() };
            let open = store.begin(store.prepare(run_header("now"), room).unwrap()).unwrap();
            disk.take();
            let taken = [NamedRow { number: 1, id: RowId::Number(1) }];
            open.ledger
                .append(open.epoch, EventGroup { taken: &taken, ..EventGroup::default() })
                .await
                .unwrap();
            assert_eq!(disk.take(), forced);
        }
    }
}
