//! The connection to a server process: messages over its standard input and output.

use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Mutex;

use super::frame::{self, Frame, Line, Lines};
use super::sent::Sent;
use super::tail::Tail;

/// Both ends of the pipes.
///
/// The SDK has a transport for this. This one is used instead because it knows which requests have been sent,
/// fails a call whose answer is unusable instead of leaving it to its timeout, and keeps the output of a
/// program that is not an MCP server.
#[derive(Debug)]
pub(super) struct Pipe {
    lines: Lines<ChildStdout>,
    writer: Arc<Mutex<Option<ChildStdin>>>,
    sent: Sent,
    talk: Tail,
}

impl Pipe {
    /// `talk` receives the server's output that is not a message.
    pub(super) fn new(stdin: ChildStdin, stdout: ChildStdout, sent: Sent, talk: Tail) -> Self {
        Self { lines: Lines::new(stdout), writer: Arc::new(Mutex::new(Some(stdin))), sent, talk }
    }
}

impl Transport<RoleClient> for Pipe {
    type Error = io::Error;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (writer, sent) = (Arc::clone(&self.writer), self.sent.clone());
        async move {
            let mut bytes = serde_json::to_vec(&item)?;
            bytes.push(b'\n');
            let mut writer = writer.lock().await;
            let closed = || io::Error::new(io::ErrorKind::NotConnected, "its standard input is closed");
            let pipe = writer.as_mut().ok_or_else(closed)?;
            let ClientJsonRpcMessage::Request(request) = &item else { return pipe.write_all(&bytes).await };
            if !sent.leaves(&request.id) {
                return Ok(());
            }
            let written = pipe.write_all(&bytes).await;
            if written.is_err() {
                // A line without its end is not a message.
                sent.forget(&request.id);
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            match self.lines.next().await {
                Line::Whole(line) => match frame::read(line) {
                    Frame::Message(message) => return Some(*message),
                    Frame::Talk => self.talk.push(line),
                    Frame::Nothing => {}
                },
                Line::TooLong(Some(id)) => return Some(frame::too_large(id)),
                Line::TooLong(None) => {}
                Line::End => return None,
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.writer.lock().await.take());
        Ok(())
    }
}
