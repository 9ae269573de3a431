//! The connection to a server process: messages over its standard input and output.

use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Mutex;

use super::frame::{self, BoundedLine, BoundedLines, PipeFrame};
use super::sent_requests::SentRequests;
use super::tail::OutputTail;

/// Both ends of the pipes.
///
/// The SDK has a transport for this. This one is used instead because it knows which requests have been sent,
/// fails a call whose answer is unusable instead of leaving it to its timeout, and keeps the output of a
/// program that is not an MCP server.
#[derive(Debug)]
pub(super) struct StdioTransport {
    lines: BoundedLines<ChildStdout>,
    writer: Arc<Mutex<Option<ChildStdin>>>,
    sent: SentRequests,
    talk: OutputTail,
}

impl StdioTransport {
    /// `talk` receives the server's output that is not a message.
    pub(super) fn new(stdin: ChildStdin, stdout: ChildStdout, sent: SentRequests, talk: OutputTail) -> Self {
        Self { lines: BoundedLines::new(stdout), writer: Arc::new(Mutex::new(Some(stdin))), sent, talk }
    }
}

impl Transport<RoleClient> for StdioTransport {
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
            if !sent.mark_sent(&request.id) {
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
                BoundedLine::Whole(line) => match frame::read(line) {
                    PipeFrame::Message(message) => return Some(*message),
                    PipeFrame::OtherText => self.talk.push(line),
                    PipeFrame::Ignored => {}
                },
                BoundedLine::TooLong(Some(id)) => return Some(frame::too_large(id)),
                BoundedLine::TooLong(None) => {}
                BoundedLine::End => return None,
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.writer.lock().await.take());
        Ok(())
    }
}
