//! Finds where the items of an array start and end, looking only at strings and brackets.

use memchr::memchr2;

/// How many levels of brackets are tracked. Deeper values are never valid rows.
const LEVELS: u32 = 128;

/// The result of scanning the unused bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ArrayScan {
    /// This many bytes are not part of an item.
    PassOver(usize),
    /// The first `length` bytes are an item; including its terminator, it takes `used`.
    Item { length: usize, used: usize },
    /// The array is broken here, for this reason.
    Broken(String),
    /// More bytes are needed; at the end of the input, nothing is left.
    More,
}

/// The position of the next byte in the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArrayState {
    /// Before the `[`.
    Start,
    /// Before the first item, or the `]` of an empty array.
    First,
    /// After a comma.
    Next,
    /// Inside an item, but not in a string.
    Value,
    String,
    /// After a complete item.
    Complete,
    /// After the `]`.
    After,
    /// Nothing more is scanned.
    Ended,
}

/// The state of the scan, kept from one call to the next.
#[derive(Debug)]
pub(crate) struct ArrayScanner {
    state: ArrayState,
    /// The scanned bytes of the current item.
    searched: usize,
    depth: u64,
    /// Which of the open brackets are braces, the innermost in the lowest bit.
    braces: u128,
}

impl Default for ArrayScanner {
    fn default() -> Self {
        Self { state: ArrayState::Start, searched: 0, depth: 0, braces: 0 }
    }
}

impl ArrayScanner {
    /// How many bytes of the current item were scanned.
    pub(crate) fn scanned_bytes(&self) -> usize {
        self.searched
    }

    /// The same number, when those bytes are discarded.
    pub(crate) fn reset_scanned(&mut self) -> usize {
        std::mem::take(&mut self.searched)
    }

    /// Scans the unused bytes, which begin with those that were scanned before.
    pub(crate) fn scan(&mut self, bytes: &[u8]) -> ArrayScan {
        match self.state {
            ArrayState::Value | ArrayState::String | ArrayState::Complete => self.look_inside(bytes),
            ArrayState::Ended => ArrayScan::More,
            ArrayState::Start | ArrayState::First | ArrayState::Next | ArrayState::After => {
                self.look_between(bytes)
            }
        }
    }

    /// The result at the end of the input.
    pub(crate) fn finish(&mut self) -> ArrayScan {
        let what = match self.state {
            ArrayState::Complete => {
                self.state = ArrayState::Next;
                let length = self.reset_scanned();
                return ArrayScan::Item { length, used: length };
            }
            ArrayState::After | ArrayState::Ended => return ArrayScan::More,
            ArrayState::Start => "the input is empty; expected `[` and a list of objects",
            ArrayState::First | ArrayState::Next => "the input ends before the `]` of the list",
            ArrayState::Value | ArrayState::String => "the input ends in the middle of it",
        };
        self.state = ArrayState::Ended;
        ArrayScan::Broken(what.to_owned())
    }

    fn look_between(&mut self, bytes: &[u8]) -> ArrayScan {
        let space = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        let Some(&byte) = bytes.get(space) else {
            return if space == 0 { ArrayScan::More } else { ArrayScan::PassOver(space) };
        };
        match (self.state, byte) {
            (ArrayState::Start, b'[') => self.state = ArrayState::First,
            (ArrayState::First, b']') => self.state = ArrayState::After,
            (ArrayState::Start, _) => return self.broken("expected `[`", byte),
            (ArrayState::After, _) => return self.broken("expected nothing after the `]` of the list", byte),
            (_, b',' | b']' | b'}' | b':') => return self.broken("expected an object", byte),
            _ => {
                self.state = ArrayState::Value;
                return if space == 0 { self.look_inside(bytes) } else { ArrayScan::PassOver(space) };
            }
        }
        ArrayScan::PassOver(space + 1)
    }

    fn look_inside(&mut self, bytes: &[u8]) -> ArrayScan {
        while let Some(&byte) = bytes.get(self.searched) {
            if self.state == ArrayState::String {
                let rest = bytes.get(self.searched..).unwrap_or_default();
                let Some(found) = memchr2(b'"', b'\\', rest) else {
                    self.searched = bytes.len();
                    break;
                };
                match rest.get(found..) {
                    Some([b'"', ..]) => {
                        self.searched += found + 1;
                        self.state = if self.depth == 0 { ArrayState::Complete } else { ArrayState::Value };
                    }
                    Some([_, _, ..]) => self.searched += found + 2,
                    // The escaped character has not arrived yet.
                    _ => {
                        self.searched += found;
                        break;
                    }
                }
                continue;
            }
            match byte {
                b',' | b']' if self.depth == 0 => return self.item(byte),
                b' ' | b'\t' | b'\n' | b'\r' => {}
                _ if self.state == ArrayState::Complete => {
                    return self.broken("expected `,` or `]` after it", byte);
                }
                b'"' => self.state = ArrayState::String,
                b'{' | b'[' => self.open(byte),
                // If it does close one, there is nothing else to do.
                b'}' | b']' if !self.closes(byte) => return self.broken("brackets do not match", byte),
                _ => {}
            }
            self.searched += 1;
        }
        ArrayScan::More
    }

    fn item(&mut self, end: u8) -> ArrayScan {
        self.state = if end == b',' { ArrayState::Next } else { ArrayState::After };
        let length = self.reset_scanned();
        ArrayScan::Item { length, used: length + 1 }
    }

    fn open(&mut self, bracket: u8) {
        self.depth += 1;
        self.braces = (self.braces << 1) | u128::from(bracket == b'{');
    }

    /// Closes the innermost bracket; `false` if it is of another kind, or none is open.
    fn closes(&mut self, bracket: u8) -> bool {
        let known = self.depth <= u64::from(LEVELS);
        if self.depth == 0 || (known && (self.braces & 1 == 1) != (bracket == b'}')) {
            return false;
        }
        self.depth -= 1;
        self.braces >>= 1;
        if self.depth == 0 {
            self.state = ArrayState::Complete;
        }
        true
    }

    fn broken(&mut self, what: &str, byte: u8) -> ArrayScan {
        self.state = ArrayState::Ended;
        let found = if byte.is_ascii() { format!("`{}`", byte.escape_ascii()) } else { "other text".into() };
        ArrayScan::Broken(format!("{what}, found {found}; nothing after it could be read"))
    }
}
