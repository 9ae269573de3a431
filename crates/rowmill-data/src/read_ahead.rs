//! Produces the next piece on a separate thread while the last one is processed.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Produces the next piece; `None` after the last. It is not called again after that, or after an error.
type MakePieceFn<T, E> = Box<dyn FnMut() -> Result<Option<T>, E> + Send>;

/// Something that is produced ahead.
pub(crate) trait AheadPiece: Send + 'static {
    /// Does a little work that will be needed later, while the piece waits for room in the queue; `false` once
    /// nothing is left to do.
    fn prepare(&mut self) -> bool {
        false
    }
}

/// How far ahead pieces are produced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AheadSettings {
    /// The name of the thread.
    pub(crate) thread: &'static str,
    /// How many pieces the caller produces itself, before a thread is worth it.
    pub(crate) first: usize,
    /// How many pieces may be queued, beside the one being produced and the one in use.
    pub(crate) waiting: usize,
}

/// Pieces that are produced one after the other, ahead of being requested.
pub(crate) struct ReadAhead<T, E> {
    settings: AheadSettings,
    made: usize,
    state: ReadAheadState<T, E>,
}

enum ReadAheadState<T, E> {
    /// The caller produces the pieces.
    Here(MakePieceFn<T, E>),
    /// A thread produces them. It ends when nobody receives them any more.
    Ahead(Receiver<Result<Option<T>, E>>, JoinHandle<()>),
    Ended,
}

impl<T: AheadPiece, E: Send + 'static> ReadAhead<T, E> {
    /// Nothing is produced before it is requested.
    pub(crate) fn new(
        settings: AheadSettings,
        make: impl FnMut() -> Result<Option<T>, E> + Send + 'static,
    ) -> Self {
        Self { settings, made: 0, state: ReadAheadState::Here(Box::new(make)) }
    }

    /// The next piece; `None` after the last and after an error.
    ///
    /// # Panics
    ///
    /// If producing it panics.
    pub(crate) fn next(&mut self) -> Result<Option<T>, E> {
        let (next, state) = match std::mem::replace(&mut self.state, ReadAheadState::Ended) {
            ReadAheadState::Here(make) if self.made == self.settings.first => {
                self.made += 1;
                self.state = self.start(make);
                return self.next();
            }
            ReadAheadState::Here(mut make) => (make()?, ReadAheadState::Here(make)),
            ReadAheadState::Ahead(pieces, thread) => match pieces.recv() {
                Ok(next) => (next?, ReadAheadState::Ahead(pieces, thread)),
                // The thread ends without a result only if it panics.
                Err(_) => match thread.join() {
                    Ok(()) => return Ok(None),
                    Err(panic) => resume_unwind(panic),
                },
            },
            ReadAheadState::Ended => return Ok(None),
        };
        if next.is_some() {
            self.state = state;
            self.made += 1;
        }
        Ok(next)
    }

    /// Starts a thread for the remaining pieces; if none can be started, the caller continues to produce
    /// them.
    fn start(&self, make: MakePieceFn<T, E>) -> ReadAheadState<T, E> {
        let (sender, pieces) = sync_channel(self.settings.waiting);
        let shared = Arc::new(Mutex::new(Some(make)));
        let taken = Arc::clone(&shared);
        let work = move || {
            let make = taken.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(mut make) = make else { return };
            loop {
                let next = make();
                let is_last = !matches!(next, Ok(Some(_)));
                if !hand_over(next, &sender) || is_last {
                    return;
                }
            }
        };
        if let Ok(thread) = Builder::new().name(self.settings.thread.into()).spawn(work) {
            return ReadAheadState::Ahead(pieces, thread);
        }
        let left = shared.lock().unwrap_or_else(PoisonError::into_inner).take();
        left.map_or(ReadAheadState::Ended, ReadAheadState::Here)
    }
}

/// Sends a piece, and prepares it until there is room; `false` if there is no receiver any more.
fn hand_over<T: AheadPiece, E>(
    mut next: Result<Option<T>, E>,
    sender: &SyncSender<Result<Option<T>, E>>,
) -> bool {
    loop {
        match sender.try_send(next) {
            Ok(()) => return true,
            Err(TrySendError::Disconnected(_)) => return false,
            Err(TrySendError::Full(back)) => next = back,
        }
        let is_prepared = match &mut next {
            Ok(Some(piece)) => !piece.prepare(),
            _ => true,
        };
        if is_prepared {
            return sender.send(next).is_ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::{Sender, channel};
    use std::thread;

    use super::*;

    impl AheadPiece for usize {}
    impl AheadPiece for thread::ThreadId {}

    fn ahead(
        make: impl FnMut() -> Result<Option<usize>, String> + Send + 'static,
    ) -> ReadAhead<usize, String> {
        ReadAhead::new(AheadSettings { thread: "test", first: 2, waiting: 1 }, make)
    }

    fn numbers(end: Result<Option<usize>, String>) -> impl FnMut() -> Result<Option<usize>, String> + Send {
        let mut next = 0;
        move || {
            next += 1;
            if next <= 5 { Ok(Some(next)) } else { end.clone() }
        }
    }

    #[test]
    fn all_pieces_come_in_order_and_nothing_after_the_end() {
        let mut pieces = ahead(numbers(Ok(None)));
        for expected in [Some(1), Some(2), Some(3), Some(4), Some(5), None, None] {
            assert_eq!(pieces.next(), Ok(expected));
        }
    }

    #[test]
    fn an_error_comes_behind_the_pieces_before_it_and_is_the_end() {
        let mut pieces = ahead(numbers(Err("damaged".into())));
        for expected in 1..=5 {
            assert_eq!(pieces.next(), Ok(Some(expected)));
        }
        assert_eq!(pieces.next(), Err("damaged".into()));
        assert_eq!(pieces.next(), Ok(None));
    }

    #[test]
    fn the_first_pieces_are_made_by_whoever_asks_and_the_others_are_not() {
        let mut names =
            ReadAhead::<_, ()>::new(AheadSettings { thread: "test", first: 2, waiting: 1 }, || {
                Ok(Some(thread::current().id()))
            });
        let mut is_own = || names.next() == Ok(Some(thread::current().id()));
        assert_eq!([is_own(), is_own(), is_own(), is_own()], [true, true, false, false]);
    }

    /// Signals when it was fully prepared, which takes three steps.
    struct Prepared(usize, Sender<()>);

    impl AheadPiece for Prepared {
        fn prepare(&mut self) -> bool {
            self.0 += 1;
            if self.0 == 3 {
                self.1.send(()).unwrap();
            }
            self.0 < 3
        }
    }

    #[test]
    fn a_piece_that_has_no_room_to_wait_is_prepared() {
        let (sender, prepared) = channel();
        let settings = AheadSettings { thread: "test", first: 0, waiting: 1 };
        let mut pieces = ReadAhead::<_, ()>::new(settings, move || Ok(Some(Prepared(0, sender.clone()))));
        let mut steps = || pieces.next().unwrap().unwrap().0;
        assert_eq!(steps(), 0, "it is waited for");
        prepared.recv().unwrap();
        assert!((0..2).any(|_| steps() == 3), "the one that waits, or the one behind it");
    }

    #[test]
    fn a_panic_is_one_for_whoever_asks() {
        let mut left = 4;
        let mut pieces = ahead(move || {
            left -= 1;
            if left == 0 { resume_unwind(Box::new("gave up")) } else { Ok(Some(left)) }
        });
        for expected in [3, 2, 1] {
            assert_eq!(pieces.next(), Ok(Some(expected)));
        }
        assert!(catch_unwind(AssertUnwindSafe(|| pieces.next())).is_err());
        assert_eq!(pieces.next(), Ok(None));
    }
}
