//! The contract of implementations that load the files of rows.

use futures_util::future::join_all;
use ring::digest::{SHA256, digest};
use rowmill_core::ports::AttachmentLoader;
use rowmill_types::{Attachment, Row};

use super::check_suite::{CheckResult, CheckSuite, ensure};

/// How many rows are loaded at once.
const AT_ONCE: usize = 8;

/// The facts about the files that only the author knows.
#[derive(Debug, Clone)]
pub struct AttachmentFacts {
    /// A row with files.
    pub row: Row,
    /// The names of its files, in the order in which they are sent.
    pub names: Vec<String>,
    /// A row without files, if rows may have none.
    pub without: Option<Row>,
    /// A row with a file that cannot be loaded.
    pub missing: Option<Row>,
}

/// Checks `attachments` against the contract of the port; returns every violation, nothing if it satisfies
/// the contract.
///
/// The files of a row are returned in order and in full, with the digest of their bytes and a media type; a
/// file declared as text is text. A row without files has none, and a row with a file that cannot be loaded
/// fails instead of continuing without it. Rows can be loaded in parallel, repeatedly, and after a load was
/// dropped.
///
/// ```
/// use futures_util::future::{BoxFuture, FutureExt, ready};
/// use rowmill_core::ports::AttachmentLoader;
/// use rowmill_testkit::conformance::{AttachmentFacts, check_attachments};
/// use rowmill_types::{Attachment, RowErrorKind, Row, RowError};
///
/// /// Every row with a field `note` gets it as a file.
/// #[derive(Debug)]
/// struct Notes;
///
/// impl AttachmentLoader for Notes {
///     fn load<'a>(&'a self, row: &'a Row) -> BoxFuture<'a, Result<Vec<Attachment>, RowError>> {
///         let file = match row.field("note").map(serde_json::from_str::<String>) {
///             None => return ready(Ok(Vec::new())).boxed(),
///             Some(Err(_)) => Err(RowError::new(RowErrorKind::Attachment, "the note is no text")),
///             Some(Ok(text)) => Ok(vec![Attachment {
///                 name: "note.txt".into(),
///                 media_type: "text/plain".into(),
///                 digest: ring::digest::digest(&ring::digest::SHA256, text.as_bytes())
///                     .as_ref()
///                     .iter()
///                     .map(|byte| format!("{byte:02x}"))
///                     .collect(),
///                 bytes: text.into(),
///             }]),
///         };
///         ready(file).boxed()
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let row = |text: &str| Row::parse(1, text.to_owned()).unwrap();
/// let facts = AttachmentFacts {
///     row: row(r#"{"note": "Grüße"}"#),
///     names: vec!["note.txt".into()],
///     without: Some(row("{}")),
///     missing: Some(row(r#"{"note": 7}"#)),
/// };
/// assert_eq!(check_attachments(&Notes, &facts).await, Vec::<String>::new());
/// # });
/// ```
pub async fn check_attachments(attachments: &dyn AttachmentLoader, facts: &AttachmentFacts) -> Vec<String> {
    let mut suite = CheckSuite::default();
    suite.wait_for("a row with files", brings(attachments, facts)).await;
    suite.wait_for("the same row again", brings(attachments, facts)).await;
    let at_once =
        async { join_all((0..AT_ONCE).map(|_| brings(attachments, facts))).await.into_iter().collect() };
    suite.wait_for("rows at once", at_once).await;
    let given_up = async {
        let mut load = attachments.load(&facts.row);
        drop(futures_util::poll!(&mut load));
        drop(load);
        brings(attachments, facts).await
    };
    suite.wait_for("a row after one was given up", given_up).await;
    if let Some(row) = &facts.without {
        let check = async {
            let files = load(attachments, row).await?;
            ensure(files.is_empty(), || format!("it has {} files", files.len()))
        };
        suite.wait_for("a row without files", check).await;
    }
    if let Some(row) = &facts.missing {
        let check = async {
            match attachments.load(row).await {
                Ok(files) => Err(format!("it goes on with {} files instead of failing", files.len())),
                Err(error) => ensure(!error.message.is_empty(), || "it does not say why".to_owned()),
            }
        };
        suite.wait_for("a row with a file that cannot be brought", check).await;
    }
    suite.deviations()
}

async fn load(attachments: &dyn AttachmentLoader, row: &Row) -> Result<Vec<Attachment>, String> {
    attachments.load(row).await.map_err(|error| format!("it fails: {}", error.message))
}

async fn brings(attachments: &dyn AttachmentLoader, facts: &AttachmentFacts) -> CheckResult {
    let files = load(attachments, &facts.row).await?;
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    ensure(names == facts.names, || format!("its files are {names:?} instead of {:?}", facts.names))?;
    files.iter().try_for_each(sound)
}

/// Checks that the metadata of a file is correct.
fn sound(file: &Attachment) -> CheckResult {
    let Attachment { name, media_type, bytes, digest: digest_given } = file;
    let found = digest(&SHA256, bytes);
    let found: String = found.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    ensure(found == *digest_given, || format!("the digest of `{name}` is reported as `{digest_given}`"))?;
    ensure(
        media_type.split_once('/').is_some_and(|(family, kind)| !family.is_empty() && !kind.is_empty()),
        || format!("`{media_type}` is no media type"),
    )?;
    ensure(!name.contains(['/', '\\']), || format!("the name `{name}` has folders"))?;
    let is_text = media_type.starts_with("text/");
    ensure(!is_text || file.text().is_some(), || format!("`{name}` is declared as text and is not"))
}
