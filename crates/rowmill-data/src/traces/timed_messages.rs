//! Finds for each message its turn, the tool call that it answers, and its time.

use rowmill_core::record::{RowTrace, TracedConversation, TracedMessage, TracedMessageRole, TracedTurn};

/// A message with its turn, tool call and time.
pub(super) struct TimedMessage<'t, 'a> {
    pub(super) message: &'t TracedMessage<'a>,
    /// Its time, in nanoseconds since 1970.
    pub(super) at: u64,
    /// The turn that produced it.
    pub(super) turn: Option<&'t TracedTurn<'a>>,
    /// The index of the tool call that it answers, in the conversation.
    pub(super) tool: Option<usize>,
}

/// The messages of a conversation, in order.
pub(super) fn timed_messages<'t, 'a>(
    row: &RowTrace<'_>,
    conversation: &'t TracedConversation<'a>,
) -> Vec<TimedMessage<'t, 'a>> {
    let TracedConversation { messages, turns, tools, .. } = conversation;
    let answers = messages.iter().filter(|message| message.role == TracedMessageRole::Assistant).count();
    // Assistant messages before those of the turns are examples.
    let mut examples = answers.saturating_sub(turns.len());
    let mut next = turns.iter();
    let mut used = vec![false; tools.len()];
    let mut now = next.as_slice().first().map_or(row.start, |turn| turn.start);
    let mut all = Vec::with_capacity(messages.len());
    for message in messages {
        let (mut turn, mut tool) = (None, None);
        let coming = next.as_slice().first().map(|turn| turn.start);
        match message.role {
            TracedMessageRole::User => now = coming.unwrap_or(now),
            TracedMessageRole::Assistant if examples > 0 => examples -= 1,
            TracedMessageRole::Assistant => {
                turn = next.next();
                now = turn.map_or(now, |turn| turn.end);
            }
            TracedMessageRole::Tool => {
                let latest = coming.unwrap_or(u64::MAX);
                tool = tools.iter().zip(&used).position(|(tool, used)| {
                    !used && Some(&tool.call) == message.answers.as_ref() && tool.start <= latest
                });
                if let Some(used) = tool.and_then(|place| used.get_mut(place)) {
                    *used = true;
                }
                now = tool.and_then(|place| tools.get(place)).map_or(now, |tool| tool.end);
            }
        }
        all.push(TimedMessage { message, at: now, turn, tool });
    }
    all
}
