//! A run in a work folder: `run.json` is its header, a file of JSON lines its ledger.

use rowmill_core::ports::{
    LedgerPosition, LedgerRequirements, OpenLedger, PreparedRun, RecordReader, RetainedRunParts, RunLock,
    RunStore, ScannedEvent,
};
use rowmill_core::run_header::RunHeader;
use rowmill_types::Problem;
use std::sync::Arc;

use super::WorkFolder;
use super::header::FileHeader;
use super::ledger::{FileLedger, LedgerFileReader};
use super::scan::{ScanOutcome, scan_ledger_file};

/// Stores a run in a work folder. The fastest store, for one process at a time.
#[derive(Debug, Clone)]
pub struct FileRunStore {
    folder: WorkFolder,
}

impl FileRunStore {
    /// The run whose ledger is in this folder.
    #[must_use]
    pub fn new(folder: WorkFolder) -> Self {
        Self { folder }
    }

    fn open(
        &self,
        header: &FileHeader,
        length: u64,
        room: LedgerRequirements,
    ) -> Result<OpenLedger, Problem> {
        let ledger = FileLedger::open(&self.folder, header, length, room)?;
        Ok(OpenLedger { ledger: Arc::new(ledger), epoch: header.run.epoch })
    }

    fn scan_file(
        &self,
        generation: u32,
        see: &mut dyn FnMut(ScannedEvent<'_>) -> Result<(), Problem>,
    ) -> Result<ScanOutcome, Problem> {
        scan_ledger_file(&self.folder.ledger_path(generation), see)
    }
}

impl RunStore for FileRunStore {
    fn lock(&self) -> Result<RunLock, Problem> {
        Ok(RunLock::new(self.folder.lock()?))
    }

    fn header(&self) -> Result<Option<RunHeader>, Problem> {
        Ok(self.folder.header()?.map(|header| header.run))
    }

    fn prepare(&self, header: RunHeader, room: LedgerRequirements) -> Result<PreparedRun, Problem> {
        // A header that cannot be read names no ledger that anyone could go on with.
        let before = self.folder.part().ok().flatten();
        let generation = before.map_or(1, |(generation, _)| generation + 1);
        let epoch = before.map_or(header.epoch, |(_, epoch)| epoch).next();
        let header = FileHeader::new(generation, RunHeader { epoch, ..header });
        // Truncated before the header names it, so that no line of an older run is used.
        let ledger = self.open(&header, 0, room);
        let made = ledger.and_then(|ledger| self.folder.prepare_header(&header).map(|()| ledger));
        match made {
            Ok(ledger) => Ok(PreparedRun { header: header.run, ledger }),
            Err(problem) => {
                self.folder.discard_prepared(&header);
                Err(problem)
            }
        }
    }

    fn begin(&self, prepared: PreparedRun) -> Result<OpenLedger, Problem> {
        self.folder.remove_run()?;
        self.folder.install_header()?;
        Ok(prepared.ledger)
    }

    fn discard_prepared(&self, _: PreparedRun) {
        if let Some(header) = self.folder.prepared_header() {
            self.folder.discard_prepared(&header);
        }
    }

    fn reopen(&self, header: RunHeader, room: LedgerRequirements) -> Result<OpenLedger, Problem> {
        let before = self.folder.part()?;
        let (generation, epoch) = before.unwrap_or((1, header.epoch));
        let epoch = epoch.next();
        // A ledger that no header names, or ever named, counts for nothing.
        let length = match before {
            Some((generation, _)) => self.scan_file(generation, &mut |_| Ok(()))?.length,
            None => 0,
        };
        let header = FileHeader::new(generation, RunHeader { epoch, ..header });
        let ledger = self.open(&header, length, room)?;
        self.folder.write_header(&header)?;
        Ok(ledger)
    }

    fn scan(
        &self,
        see: &mut dyn FnMut(ScannedEvent<'_>) -> Result<(), Problem>,
    ) -> Result<LedgerPosition, Problem> {
        let Some((generation, _)) = self.folder.part()? else { return Ok(LedgerPosition::START) };
        Ok(LedgerPosition::from_key(self.scan_file(generation, see)?.length))
    }

    fn reader(&self) -> Result<Box<dyn RecordReader>, Problem> {
        let generation = self.folder.part()?.map_or(1, |(generation, _)| generation);
        Ok(Box::new(LedgerFileReader::open(self.folder.ledger_path(generation))?))
    }

    fn finish(&self, header: RunHeader, retention: RetainedRunParts) -> Result<(), Problem> {
        let (generation, epoch) = self.folder.part()?.unwrap_or((1, header.epoch));
        let header = RunHeader { epoch, ..header };
        match retention {
            RetainedRunParts::Ledger => self.folder.write_header(&FileHeader::new(generation, header))?,
            RetainedRunParts::Header => {
                let [counted, turns_from, settled_to] = [LedgerPosition::START; 3];
                let header = RunHeader { counted, turns_from, settled_to, ..header };
                self.folder.write_header(&FileHeader::new(generation + 1, header))?;
                self.folder.remove_ledgers(generation);
            }
        }
        self.folder.remove_leftovers();
        Ok(())
    }

    fn remove(&self) -> Result<(), Problem> {
        self.folder.clear()
    }
}
