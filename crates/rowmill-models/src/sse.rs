//! Server-sent events: turns bytes into events, no matter how the bytes are split.

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Event {
    /// The name; empty if none was sent.
    pub(crate) name: String,
    /// The data, lines joined by a line feed.
    pub(crate) data: String,
}

/// Assembles events from bytes.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    after_return: bool,
    started: bool,
}

impl Parser {
    /// Adds a part of the stream and passes the events that it completes to `each`.
    pub(crate) fn push(&mut self, bytes: &[u8], mut each: impl FnMut(Event)) {
        let mut rest = bytes;
        if self.after_return && !rest.is_empty() {
            self.after_return = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, ending) = rest.split_at(end);
            self.line.extend_from_slice(line);
            rest = match ending {
                [b'\r', b'\n', after @ ..] => after,
                [b'\r'] => {
                    // The line feed of this line ending may come with the next part.
                    self.after_return = true;
                    &[]
                }
                [_, after @ ..] => after,
                [] => &[],
            };
            if let Some(event) = self.end_line() {
                each(event);
            }
        }
        self.line.extend_from_slice(rest);
    }

    fn end_line(&mut self) -> Option<Event> {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let line = if self.started { &*text } else { text.strip_prefix('\u{feff}').unwrap_or(&text) };
        self.started = true;
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            // Comments start with a colon; `id` and `retry` have no meaning for a single response.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        for piece in pieces {
            parser.push(piece, |event| events.push((event.name, event.data)));
        }
        events
    }

    #[test]
    fn events_are_read_with_every_line_ending() {
        for end in ["\n", "\r\n", "\r"] {
            let text = "\u{feff}: hello\nevent: a\ndata: one\ndata:two\nid: 7\n\ndata\n\nevent: lost\n\ndata:  x: y\n\ndata: cut"
                .replace('\n', end);
            let pair = |name: &str, data: &str| (name.to_owned(), data.to_owned());
            assert_eq!(events(&[text.as_bytes()]), [pair("a", "one\ntwo"), pair("", ""), pair("", " x: y")]);
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
            prop_assert_eq!(whole.last().map(|(_, data)| data.as_str()), Some("end"));
        }
    }
}
