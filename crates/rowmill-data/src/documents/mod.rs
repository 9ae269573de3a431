//! Documents: every file is a row.

mod file_digest;
mod source;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rowmill_core::ports::{
    ColumnKind, Dataset, DatasetColumn, InputIdentity, RequestedDatasetPart, RowSource,
};
use rowmill_types::{DiagnosticText, Problem, group_digits};

use source::{DocumentRowSource, WantedFields};

use crate::{DocumentIdRule, FileList};

/// The fields of a document's row, in order.
const COLUMNS: [(&str, ColumnKind); 6] = [
    ("path", ColumnKind::Text),
    ("name", ColumnKind::Text),
    ("media_type", ColumnKind::Text),
    ("size", ColumnKind::Integer),
    ("digest", ColumnKind::Text),
    ("modified", ColumnKind::Text),
];

/// Builds the dataset of documents.
pub(crate) fn documents_dataset(list: FileList, ids: DocumentIdRule) -> Result<Arc<dyn Dataset>, Problem> {
    let FileList { name, files, identity } = list;
    let document = |file: crate::InputFile| {
        let called = (file.path.as_os_str() != file.name.as_str()).then(|| file.name.into_boxed_str());
        DocumentFile { path: file.path.into_boxed_path(), called }
    };
    let files = files.into_iter().map(document).collect();
    let rows = AtomicU64::new(UNCOUNTED);
    Ok(Arc::new(DocumentsDataset(Arc::new(SharedDocuments {
        name,
        files,
        identity,
        ids,
        rows,
        copies: Mutex::default(),
    }))))
}

/// Means that the rows have not been counted yet.
const UNCOUNTED: u64 = u64::MAX;

#[derive(Debug)]
struct DocumentsDataset(Arc<SharedDocuments>);

/// State shared by all reads of the same documents.
#[derive(Debug)]
struct SharedDocuments {
    name: String,
    files: Box<[DocumentFile]>,
    identity: Option<String>,
    ids: DocumentIdRule,
    /// The number of rows, once a read has reached the end.
    rows: AtomicU64,
    copies: Mutex<SkippedCopies>,
}

/// One file.
#[derive(Debug)]
struct DocumentFile {
    path: Box<Path>,
    /// Its display name, if that is not its path.
    called: Option<Box<str>>,
}

/// Files that were left out because an earlier file has the same content.
#[derive(Debug, Default, Clone)]
struct SkippedCopies {
    count: u64,
    /// The first of them: a copy, and the file that it duplicates.
    first: Option<(String, String)>,
}

impl SharedDocuments {
    /// Records what a read left out. Another read of the same files leaves out the same, so the read that got
    /// furthest counts.
    fn note(&self, copies: &SkippedCopies) {
        let mut noted = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        if copies.count > noted.count {
            *noted = copies.clone();
        }
    }
}

impl Dataset for DocumentsDataset {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        self.open_part(&RequestedDatasetPart::default())
    }

    fn is_rereadable(&self) -> bool {
        true
    }

    /// Only the name: a folder may grow, and rows are identified by their ids.
    fn identity(&self) -> Result<InputIdentity, Problem> {
        let SharedDocuments { name, identity, .. } = &*self.0;
        Ok(InputIdentity { path: name.clone(), size: None, probe: identity.clone() })
    }

    /// Leaves out what is expensive to find and not requested.
    fn open_part(&self, part: &RequestedDatasetPart) -> Result<Box<dyn RowSource>, Problem> {
        let wants = |name: &str| {
            part.columns.as_ref().is_none_or(|columns| columns.iter().any(|column| column == name))
        };
        let wanted = WantedFields { media_type: wants("media_type"), digest: wants("digest") };
        Ok(Box::new(DocumentRowSource::new(self.0.clone(), wanted)))
    }

    fn count(&self) -> Result<Option<u64>, Problem> {
        let counted = self.0.rows.load(Ordering::Relaxed);
        Ok(match self.0.ids {
            DocumentIdRule::Path => Some(self.0.files.len() as u64),
            DocumentIdRule::Content => (counted != UNCOUNTED).then_some(counted),
        })
    }

    fn columns(&self) -> Result<Option<Vec<DatasetColumn>>, Problem> {
        let column = |(name, kind): (&str, ColumnKind)| DatasetColumn { name: name.into(), kind };
        Ok(Some(COLUMNS.into_iter().map(column).collect()))
    }

    fn default_id_field(&self) -> Option<&str> {
        Some(self.0.ids.field())
    }

    fn read_notice(&self) -> Option<DiagnosticText> {
        let copies = self.0.copies.lock().unwrap_or_else(PoisonError::into_inner);
        let (copy, original) = copies.first.as_ref()?;
        let text = match copies.count {
            1 => format!("skipped 1 duplicate file: `{copy}` has the same content as `{original}`"),
            count => format!(
                "skipped {} duplicate files; the first is `{copy}`, which has the same content as \
                 `{original}`",
                group_digits(count)
            ),
        };
        Some(text.into())
    }
}
