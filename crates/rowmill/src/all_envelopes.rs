//! Everything that has ended of a run, wherever it stands.

use std::path::{Path, PathBuf};

use rowmill_core::record::EnvelopeHead;
use rowmill_core::select::IdSet;
use rowmill_data::output::{Envelopes, Newer, scan_output};
use rowmill_store::file::{Header, Line, WorkFolder, scan};
use rowmill_types::Problem;

use crate::ids::KnownBy;

/// Everything that has ended: what the file of envelopes has, and what only the ledger has yet. The file
/// is read first, so that a row which is published meanwhile is found in the ledger.
pub(crate) fn all_envelopes(
    file: Option<&Path>,
    folder: Option<&WorkFolder>,
    header: Option<&Header>,
) -> Result<Envelopes, Problem> {
    let mut known_by = header.map_or(KnownBy::Ids(None), KnownBy::of);
    let mut newer = match known_by {
        KnownBy::Ids(_) => Newer::default(),
        KnownBy::Numbers(_) => Newer::known_by_number(),
    };
    let mut done = IdSet::default();
    if let Some(path) = file {
        scan_output(path, |head: EnvelopeHead| {
            if head.ok {
                done.insert(&known_by.head(head).id);
            }
        })?;
    }
    let ledger = match (folder, header) {
        (Some(folder), Some(header)) => folder.ledger(header),
        _ => PathBuf::new(),
    };
    if header.is_some() {
        scan(&ledger, |line, span, _| {
            if let Line::Ended(head) = line
                && !done.contains(&head.id)
            {
                newer.add(&head.id, head.number, span);
            }
            Ok(())
        })?;
    }
    Envelopes::gathered(file, &ledger, newer)
}
