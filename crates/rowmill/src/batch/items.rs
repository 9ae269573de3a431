//! Where items come from, and the source of rows that stand for them.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::stream::BoxStream;
use rowmill_core::fingerprint::text_digest;
use rowmill_core::ports::{InputReadProgress, ReadLimit, RowSource};
use rowmill_engine::{ReadingThread, panic_message};
use rowmill_types::{BadRow, Problem, ProblemCode, Row, RowErrorKind, RowReadResult};
use tokio::sync::mpsc;

use super::backpressure::ItemBackpressure;
use super::builder::{IdFn, PromptFn};
use super::item_table::ItemTable;

/// The row field that holds the id of an item.
pub(super) const ID_FIELD: &str = "id";

/// An item that was read, or the error in its position.
type PulledItem<T> = Result<T, BadRow>;

/// The items of a batch.
pub(super) enum BatchItems<T> {
    /// From an iterator, with its length if known.
    Iterator(Box<dyn Iterator<Item = T> + Send>),
    /// From a stream.
    Stream(BoxStream<'static, T>),
    /// Rows of a dataset; the function makes an item from a row.
    Rows(Box<dyn RowSource>, fn(Row) -> T),
}

impl<T> BatchItems<T> {
    /// The number of items, if known.
    pub(super) fn total(&self) -> Option<u64> {
        match self {
            Self::Iterator(iterator) => match iterator.size_hint() {
                (least, Some(most)) if least == most => Some(most as u64),
                _ => None,
            },
            Self::Stream(_) | Self::Rows(..) => None,
        }
    }

    /// On which threads items are read. An iterator without an upper bound on its length may wait for
    /// its items, like that of a channel, and so may a source of the program.
    pub(super) fn reading(&self) -> ReadingThread {
        match self {
            Self::Iterator(iterator) if iterator.size_hint().1.is_some() => ReadingThread::Shared,
            Self::Stream(_) => ReadingThread::Shared,
            Self::Iterator(_) | Self::Rows(..) => ReadingThread::Own,
        }
    }
}

impl<T> fmt::Debug for BatchItems<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Iterator(_) => "Iterator",
            Self::Stream(_) => "Stream",
            Self::Rows(..) => "Rows",
        })
    }
}

/// Items in the form in which the reader takes them.
pub(super) enum ItemReader<T> {
    Iterator(Box<dyn Iterator<Item = T> + Send>),
    /// Items of a stream, or the message of its panic; with the next one, if it was already received.
    Channel(mpsc::Receiver<Result<T, String>>, Option<Result<T, String>>),
    Rows(Box<dyn RowSource>, fn(Row) -> T),
}

impl<T> ItemReader<T> {
    /// Appends up to `most` items; `false` once there are no more.
    fn pull(&mut self, into: &mut Vec<PulledItem<T>>, most: usize) -> Result<bool, Problem> {
        match self {
            Self::Iterator(iterator) => {
                let before = into.len();
                into.extend(iterator.by_ref().take(most).map(Ok));
                Ok(into.len() - before == most)
            }
            Self::Channel(channel, first) => {
                let mut next = first.take();
                // Does not wait for later items: they may depend on the result of the first.
                while let Some(item) = next.take() {
                    into.push(Ok(item.map_err(|panic| unreadable(&panic))?));
                    if into.len() < most {
                        next = channel.try_recv().ok();
                    }
                }
                Ok(!(channel.is_closed() && channel.is_empty()))
            }
            Self::Rows(source, make) => {
                let mut rows = Vec::new();
                let more = source.read(&mut rows, ReadLimit { rows: most, bytes: usize::MAX })?;
                into.extend(rows.into_iter().map(|row| row.map(*make)));
                Ok(more)
            }
        }
    }
}

impl<T> ItemReader<T> {
    /// Whether something can be pulled without waiting.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Channel(channel, first @ None) => *first = ready!(channel.poll_recv(context)),
            Self::Rows(source, _) => return source.poll_ready(context),
            Self::Channel(..) | Self::Iterator(_) => {}
        }
        Poll::Ready(())
    }
}

/// How items are recognized by a resume.
pub(super) enum ItemNaming<T> {
    /// By their index.
    Place,
    /// By ids that the program assigns.
    Own(IdFn<T>),
    /// By their index and their prompt.
    Asked(PromptFn<T>),
}

/// Rows that stand for items.
pub(super) struct ItemSource<T, A, U> {
    pub(super) pull: ItemReader<T>,
    pub(super) naming: ItemNaming<T>,
    pub(super) item_table: Arc<ItemTable<T, A, U>>,
    pub(super) backpressure: Arc<ItemBackpressure>,
    pub(super) number: u64,
    pub(super) pulled: Vec<PulledItem<T>>,
}

impl<T: Send + Sync, A: Send, U: Send> ItemSource<T, A, U> {
    /// Returns the id of an item, and its prompt if it was needed for the id.
    fn name(&self, number: u64, item: &T) -> Result<(String, Option<String>), BadRow> {
        let named = |id: &str| format!("{{\"{ID_FIELD}\":{}}}", serde_json::Value::from(id));
        match &self.naming {
            ItemNaming::Place => Ok(("{}".to_owned(), None)),
            ItemNaming::Own(id) => match catch_unwind(AssertUnwindSafe(|| id(item))) {
                Ok(id) => Ok((named(&id), None)),
                Err(panic) => {
                    let message =
                        format!("the function that identifies items panicked: {}", panic_message(&*panic));
                    Err(BadRow { number, kind: RowErrorKind::InvalidIdField, message })
                }
            },
            // If there is no prompt, the row fails later, when its prompt is made again.
            ItemNaming::Asked(prompt) => match catch_unwind(AssertUnwindSafe(|| prompt(item))) {
                Ok(Ok(text)) => {
                    let asked = text_digest(&text);
                    let id = format!("{}-{}", number - 1, asked.get(..16).unwrap_or_default());
                    Ok((named(&id), Some(text)))
                }
                Ok(Err(_)) | Err(_) => Ok((named(&(number - 1).to_string()), None)),
            },
        }
    }

    fn row(
        &mut self,
        pulled: PulledItem<T>,
        placed: &mut Vec<(u64, Arc<T>, Option<String>)>,
    ) -> RowReadResult {
        self.number += 1;
        let number = self.number;
        let item = pulled.map_err(|bad| BadRow { number, ..bad })?;
        let (text, prompt) = self.name(number, &item)?;
        let row = match &self.naming {
            ItemNaming::Place => Row::from_parts(number, text, Vec::new()),
            ItemNaming::Own(_) | ItemNaming::Asked(_) => Row::parse(number, text)?,
        };
        placed.push((number, Arc::new(item), prompt));
        Ok(row)
    }
}

fn unreadable(panic: &str) -> Problem {
    Problem::new(ProblemCode::InputUnreadable, format!("the items panicked: {panic}"))
        .hint("correct the source of the items")
}

impl<T: Send + Sync, A: Send, U: Send> RowSource for ItemSource<T, A, U> {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        let most = self.backpressure.wait_for_room(room.rows.max(1));
        if most == 0 {
            return Ok(false);
        }
        let mut pulled = std::mem::take(&mut self.pulled);
        let more = catch_unwind(AssertUnwindSafe(|| self.pull.pull(&mut pulled, most)));
        self.backpressure.add_taken(pulled.len());
        // An iterator that panicked has not reached its end, so it must not be treated as finished.
        let more = more.unwrap_or_else(|panic| Err(unreadable(panic_message(&*panic))))?;
        let mut placed = Vec::with_capacity(pulled.len());
        for item in pulled.drain(..) {
            let row = self.row(item, &mut placed);
            batch.push(row);
        }
        self.item_table.add_items(placed.into_iter());
        self.pulled = pulled;
        Ok(more)
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        ready!(self.backpressure.poll_open(context));
        self.pull.poll_ready(context)
    }

    fn position(&self) -> InputReadProgress {
        InputReadProgress::default()
    }
}
