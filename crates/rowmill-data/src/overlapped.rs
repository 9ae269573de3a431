//! Reads on a separate thread, so that two cores share a long scan of a file.

use std::ops::ControlFlow;
use std::sync::mpsc;
use std::thread;

use rowmill_types::{Problem, ProblemCode};

/// How many batches may be waiting between both threads.
const WAITING_BATCHES: usize = 2;

/// Passes everything that `next` returns to `saw`, batch by batch and in order, until there is no more or
/// `saw` wants no more. While `saw` processes a batch, `next` reads the following ones.
///
/// # Errors
///
/// Any error of the two, or that no thread can be started.
pub fn read_on_second_thread<T: Send>(
    mut next: impl FnMut() -> Result<Option<T>, Problem> + Send,
    mut saw: impl FnMut(T) -> Result<ControlFlow<()>, Problem>,
) -> Result<(), Problem> {
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(WAITING_BATCHES);
        let reading = move || {
            while let Some(batch) = next().transpose() {
                let is_last = batch.is_err();
                // There is no receiver once `saw` wants no more.
                if sender.send(batch).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("rowmill-ahead".into())
            .spawn_scoped(scope, reading)
            .map_err(|error| Problem::new(ProblemCode::Internal, "cannot start a thread").cause(error))?;
        for batch in receiver {
            if saw(batch?)?.is_break() {
                break;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from 1; the sixth read fails.
    fn numbers() -> impl FnMut() -> Result<Option<u32>, Problem> + Send {
        let mut at = 0;
        move || {
            at += 1;
            if at == 6 { Err(Problem::new(ProblemCode::Internal, "it broke")) } else { Ok(Some(at)) }
        }
    }

    #[test]
    fn everything_comes_in_order_until_there_is_no_more() {
        let mut seen = Vec::new();
        let mut left = 0..1000;
        let all = read_on_second_thread(
            || Ok(left.next()),
            |number| {
                seen.push(number);
                Ok(ControlFlow::Continue(()))
            },
        );
        assert_eq!((all, seen), (Ok(()), (0..1000).collect()));
    }

    #[test]
    fn whoever_has_seen_enough_hears_of_nothing_that_follows() {
        let mut seen = Vec::new();
        let some = read_on_second_thread(numbers(), |number| {
            seen.push(number);
            Ok(if number == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        assert_eq!((some, seen), (Ok(()), vec![1, 2, 3]));
    }

    #[test]
    fn the_first_failure_of_either_side_is_reported() {
        let all = |_| Ok(ControlFlow::Continue(()));
        assert_eq!(read_on_second_thread(numbers(), all).unwrap_err().message, "it broke");
        let refuses = |_| Err(Problem::new(ProblemCode::Internal, "unwanted"));
        assert_eq!(read_on_second_thread(numbers(), refuses).unwrap_err().message, "unwanted");
    }
}
