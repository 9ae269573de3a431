//! Collects all finished rows of a run, from the output and the ledger.

use std::path::Path;
use std::sync::Arc;

use rowmill_core::ledger::LedgerEvent;
use rowmill_core::ports::RunStore;
use rowmill_core::record::EnvelopeHead;
use rowmill_core::run_header::RunHeader;
use rowmill_core::select::IdSet;
use rowmill_data::output::{EnvelopeReader, NewerRecords, scan_output};
use rowmill_types::Problem;

use crate::row_identity::RowIdentity;

/// All finished rows: those in the file of envelopes, and those that are still only in the ledger. The
/// file is read first, so that a row which is published meanwhile is found in the ledger.
pub(crate) fn all_envelopes(
    file: Option<&Path>,
    store: Option<&Arc<dyn RunStore>>,
    header: Option<&RunHeader>,
) -> Result<EnvelopeReader, Problem> {
    let mut known_by = header.map_or(RowIdentity::ById(None), RowIdentity::of_header);
    let mut newer = match known_by {
        RowIdentity::ById(_) => NewerRecords::default(),
        RowIdentity::ByNumber(_) => NewerRecords::by_row_number(),
    };
    let mut done = IdSet::default();
    if let Some(path) = file {
        scan_output(path, |head: EnvelopeHead| {
            if head.ok {
                done.insert(&known_by.identify_head(head).id);
            }
        })?;
    }
    if let Some(store) = store.filter(|_| header.is_some()) {
        store.scan(&mut |scanned| {
            if let LedgerEvent::Ended(head) = scanned.event
                && !done.contains(&head.id)
            {
                newer.add(&head.id, head.number, scanned.id);
            }
            Ok(())
        })?;
    }
    EnvelopeReader::with_newer_records(file, store, newer)
}
