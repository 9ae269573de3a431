//! Server-sent events: bytes in, events out, wherever the bytes are cut.

use std::error::Error;
use std::fmt;
use std::mem;

/// One event, with the fields that were sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerSentEvent {
    /// Its name.
    pub name: Option<String>,
    /// The data, lines joined by a line feed.
    pub data: Option<String>,
    /// What a client that connects anew says it saw last.
    pub id: Option<String>,
    /// Milliseconds to wait before connecting anew.
    pub retry: Option<u64>,
}

impl ServerSentEvent {
    fn size(&self) -> usize {
        [&self.name, &self.data, &self.id].into_iter().flatten().map(String::len).sum()
    }
}

/// An event has more bytes than its parser takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTooLarge;

impl fmt::Display for EventTooLarge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an event is too large")
    }
}

impl Error for EventTooLarge {}

/// Gathers bytes into events.
///
/// It reads what browsers read: fields that it does not know mean nothing, and bytes that are no text become
/// U+FFFD.
#[derive(Debug)]
pub struct EventParser {
    most: usize,
    line: Vec<u8>,
    event: ServerSentEvent,
    after_return: bool,
    started: bool,
}

impl EventParser {
    /// A parser of events of at most so many bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            most,
            line: Vec::new(),
            event: ServerSentEvent::default(),
            after_return: false,
            started: false,
        }
    }

    /// Takes a piece of the stream and gives the events that it completes.
    ///
    /// # Errors
    ///
    /// An event is too large. What follows it cannot be read.
    ///
    /// ```
    /// # use rowmill_http::{EventParser, EventTooLarge};
    /// let (mut parser, mut found) = (EventParser::new(100), Vec::new());
    /// for piece in [&b"data: on"[..], b"e\n\nda", b"ta: two\n\n"] {
    ///     parser.push(piece, |event| found.extend(event.data)).unwrap();
    /// }
    /// assert_eq!(found, ["one", "two"]);
    /// assert_eq!(parser.push(&[b'x'; 101], |_| {}), Err(EventTooLarge));
    /// ```
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(ServerSentEvent)) -> Result<(), EventTooLarge> {
        let mut rest = bytes;
        if self.after_return && !rest.is_empty() {
            self.after_return = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, ending) = rest.split_at(end);
            rest = match ending {
                [b'\r', b'\n', after @ ..] => after,
                [b'\r'] => {
                    // The line feed of this ending may come with the next piece.
                    self.after_return = true;
                    &[]
                }
                [_, after @ ..] => after,
                [] => &[],
            };
            let event = if self.line.is_empty() {
                self.end_line(line)
            } else {
                let mut whole = mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.end_line(&whole)
            };
            if let Some(event) = event {
                each(event);
            }
            self.check()?;
        }
        self.line.extend_from_slice(rest);
        self.check()
    }

    fn check(&self) -> Result<(), EventTooLarge> {
        if self.line.len() + self.event.size() > self.most { Err(EventTooLarge) } else { Ok(()) }
    }

    /// Takes a line; gives the event that it ends.
    fn end_line(&mut self, bytes: &[u8]) -> Option<ServerSentEvent> {
        let text = String::from_utf8_lossy(bytes);
        let line = if self.started { &*text } else { text.strip_prefix('\u{feff}').unwrap_or(&text) };
        self.started = true;
        if line.is_empty() {
            let event = mem::take(&mut self.event);
            return (event != ServerSentEvent::default()).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.event.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.event.data = Some(value.to_owned()),
            },
            "event" => self.event.name = Some(value.to_owned()),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" => self.event.retry = value.parse().ok().or(self.event.retry),
            // Comments start with a colon.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<ServerSentEvent> {
        let mut parser = EventParser::new(usize::MAX);
        let mut events = Vec::new();
        for piece in pieces {
            parser.push(piece, |event| events.push(event)).unwrap();
        }
        events
    }

    fn event(name: Option<&str>, data: Option<&str>) -> ServerSentEvent {
        let [name, data] = [name, data].map(|text| text.map(str::to_owned));
        ServerSentEvent { name, data, ..ServerSentEvent::default() }
    }

    #[test]
    fn events_are_read_with_every_line_ending() {
        for end in ["\n", "\r\n", "\r"] {
            let text =
                "\u{feff}: hello\nevent: a\ndata: one\ndata:two\nid: 7\n\ndata\n\nevent: lost\n\n: talk\n\n\
                        data:  x: y\nx-field: 1\n\nretry: 50\nretry: soon\nid: a\0b\n\ndata: cut"
                    .replace('\n', end);
            let expected = [
                ServerSentEvent { id: Some("7".to_owned()), ..event(Some("a"), Some("one\ntwo")) },
                event(None, Some("")),
                event(Some("lost"), None),
                event(None, Some(" x: y")),
                ServerSentEvent { retry: Some(50), ..event(None, None) },
            ];
            assert_eq!(events(&[text.as_bytes()]), expected);
        }
    }

    #[test]
    fn an_event_is_bounded_however_it_comes_and_a_stream_is_not() {
        let line = [b"data: ".as_slice(), &[b'x'; 60], b"\n"].concat();
        for size in [1, 7, 1000] {
            let mut parser = EventParser::new(100);
            let mut pushed = |bytes: &[u8]| {
                bytes.chunks(size).try_fold(0, |found, piece| {
                    let mut found = found;
                    parser.push(piece, |_| found += 1).map(|()| found)
                })
            };
            assert_eq!(pushed(&[&line[..], b"\n"].concat().repeat(50)), Ok(50), "{size}");
            assert_eq!(pushed(&[&line[..], &line].concat()), Err(EventTooLarge), "{size}");
        }
    }

    proptest! {
        #[test]
        fn any_cutting_gives_the_same_events(
            lines in prop::collection::vec("(data: ?|event: |: )?[aé🦀 :]{0,6}", 0..20),
            ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\r"]), 20),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let mut text: String = lines.iter().zip(&ends).map(|(line, end)| format!("{line}{end}")).collect();
            text.push_str("\n\ndata: end\n\n");
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let each: Vec<&[u8]> = bytes.chunks(1).collect();
            let whole = events(&[bytes]);
            prop_assert_eq!(&events(&pieces), &whole);
            prop_assert_eq!(&events(&each), &whole);
            prop_assert_eq!(whole.last().and_then(|event| event.data.as_deref()), Some("end"));
        }
    }
}
