//! Notifies a command or a server that a run has ended.

mod message;
mod options;
mod send;

pub use message::RunNotification;
pub use options::NotifyOptions;
pub use send::send_notification;
