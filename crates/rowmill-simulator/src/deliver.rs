//! Writes an answer, intact or damaged.

use bytes::BytesMut;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::fault::Delivery;
use crate::gate::Gate;
use crate::incoming;
use crate::outgoing::Outgoing;

/// The result of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// The last byte was handed to the kernel.
    Complete,
    /// The answer was damaged as planned; the connection can no longer be used.
    Damaged,
    /// The client disconnected first.
    Abandoned,
}

/// Writes `outgoing` in the way given by `delivery`.
pub(crate) async fn deliver(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    outgoing: &Outgoing,
    delivery: Delivery,
    gate: &Gate,
) -> Delivered {
    match delivery {
        Delivery::Whole => whole(stream, outgoing).await,
        Delivery::Reset => reset(stream),
        Delivery::ResetMidway => {
            half(stream, outgoing).await;
            reset(stream)
        }
        Delivery::Truncate => {
            half(stream, outgoing).await;
            // A client that is already gone needs no orderly shutdown.
            drop(stream.shutdown().await);
            Delivered::Damaged
        }
        Delivery::Hang => {
            incoming::closed(stream, buffer).await;
            Delivered::Abandoned
        }
        Delivery::Drip => {
            if stream.write_all(&outgoing.head).await.is_err() {
                return Delivered::Abandoned;
            }
            for byte in outgoing.pieces.concat() {
                tokio::select! {
                    () = gate.drop_of() => {}
                    () = incoming::closed(stream, buffer) => return Delivered::Abandoned,
                }
                if stream.write_all(&[byte]).await.is_err() {
                    return Delivered::Abandoned;
                }
            }
            Delivered::Complete
        }
    }
}

async fn whole(stream: &mut TcpStream, outgoing: &Outgoing) -> Delivered {
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
    if written.is_ok() { Delivered::Complete } else { Delivered::Abandoned }
}

async fn half(stream: &mut TcpStream, outgoing: &Outgoing) {
    let body = outgoing.pieces.concat();
    let part = body.get(..body.len() / 2).unwrap_or_default();
    let bytes = [outgoing.head.as_slice(), part].concat();
    // The connection is about to be broken anyway.
    drop(stream.write_all(&bytes).await);
}

/// Makes the next close a reset instead of an orderly shutdown.
pub(crate) fn reset(stream: &TcpStream) -> Delivered {
    let lingering = stream.set_zero_linger();
    debug_assert!(lingering.is_ok(), "a connected socket takes the option");
    Delivered::Damaged
}
