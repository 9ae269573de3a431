//! Writes an answer, intact or damaged.

use bytes::BytesMut;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::answer_hold::AnswerHold;
use crate::fault::AnswerDelivery;
use crate::http_request;
use crate::outgoing_answer::OutgoingAnswer;

/// The result of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryOutcome {
    /// The last byte was handed to the kernel.
    Complete,
    /// The answer was damaged as planned; the connection can no longer be used.
    Damaged,
    /// The client disconnected first.
    Abandoned,
}

/// Writes `outgoing` in the way given by `delivery`.
pub(crate) async fn deliver_answer(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    outgoing: &OutgoingAnswer,
    delivery: AnswerDelivery,
    gate: &AnswerHold,
) -> DeliveryOutcome {
    match delivery {
        AnswerDelivery::Whole => whole(stream, outgoing).await,
        AnswerDelivery::Reset => reset(stream),
        AnswerDelivery::ResetMidway => {
            half(stream, outgoing).await;
            reset(stream)
        }
        AnswerDelivery::Truncate => {
            half(stream, outgoing).await;
            // A client that is already gone needs no orderly shutdown.
            drop(stream.shutdown().await);
            DeliveryOutcome::Damaged
        }
        AnswerDelivery::Hang => {
            http_request::closed(stream, buffer).await;
            DeliveryOutcome::Abandoned
        }
        AnswerDelivery::Drip => {
            if stream.write_all(&outgoing.head).await.is_err() {
                return DeliveryOutcome::Abandoned;
            }
            for byte in outgoing.pieces.concat() {
                tokio::select! {
                    () = gate.wait_for_byte() => {}
                    () = http_request::closed(stream, buffer) => return DeliveryOutcome::Abandoned,
                }
                if stream.write_all(&[byte]).await.is_err() {
                    return DeliveryOutcome::Abandoned;
                }
            }
            DeliveryOutcome::Complete
        }
    }
}

async fn whole(stream: &mut TcpStream, outgoing: &OutgoingAnswer) -> DeliveryOutcome {
    let written = match outgoing.pieces.as_slice() {
        [body] => stream.write_all(&[outgoing.head.as_slice(), body].concat()).await,
        pieces => {
            let mut written = stream.write_all(&outgoing.head).await;
            for piece in pieces {
                if written.is_ok() {
                    written = stream.write_all(piece).await;
                }
            }
            written
        }
    };
    if written.is_ok() { DeliveryOutcome::Complete } else { DeliveryOutcome::Abandoned }
}

async fn half(stream: &mut TcpStream, outgoing: &OutgoingAnswer) {
    let body = outgoing.pieces.concat();
    let part = body.get(..body.len() / 2).unwrap_or_default();
    let bytes = [outgoing.head.as_slice(), part].concat();
    // The connection is about to be broken anyway.
    drop(stream.write_all(&bytes).await);
}

/// Makes the next close a reset instead of an orderly shutdown.
pub(crate) fn reset(stream: &TcpStream) -> DeliveryOutcome {
    let lingering = stream.set_zero_linger();
    debug_assert!(lingering.is_ok(), "a connected socket takes the option");
    DeliveryOutcome::Damaged
}
