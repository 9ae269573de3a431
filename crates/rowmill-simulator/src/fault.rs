//! The faults that the simulator can inject.

/// One kind of fault.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SimulatedFault {
    /// An error status. Without a body, the vendor's own is sent.
    Status {
        /// The status code.
        code: u16,
        /// Additional headers.
        headers: Vec<(String, String)>,
        /// The body, if it is not the vendor's own.
        body: Option<String>,
    },
    /// The connection is reset before anything is written.
    Reset,
    /// The connection is reset after half of the body.
    ResetMidway,
    /// The connection is closed in an orderly way after half of the promised body.
    Truncate,
    /// Status 200 with a body that is not JSON.
    Garbage,
    /// The request is read and never answered.
    Hang,
    /// The body is sent byte by byte, each one released by [`crate::Simulator::release_bytes`].
    Drip,
    /// An answer with no text.
    Empty,
    /// The model refuses.
    Refusal,
    /// The answer is truncated at the token limit.
    Length,
    /// A content filter stops the answer.
    Filter,
    /// JSON that violates the schema of the request.
    WrongSchema,
    /// Correct JSON inside a Markdown fence.
    Fenced,
    /// JSON `null`.
    Null,
}

impl SimulatedFault {
    /// An error status with the vendor's own body.
    #[must_use]
    pub fn from_status(code: u16) -> Self {
        Self::Status { code, headers: Vec::new(), body: None }
    }

    /// Adds a header to an error status; other faults stay as they are.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Self::Status { headers, .. } = &mut self {
            headers.push((name.into(), value.into()));
        }
        self
    }

    /// Replaces the vendor's body of an error status; other faults stay as they are.
    #[must_use]
    pub fn with_body(mut self, text: impl Into<String>) -> Self {
        if let Self::Status { body, .. } = &mut self {
            *body = Some(text.into());
        }
        self
    }

    /// The fault with this name in a marker or a flag: a status code or a word such as `reset`.
    ///
    /// ```
    /// # use rowmill_simulator::SimulatedFault;
    /// assert_eq!(SimulatedFault::from_name("503"), Some(SimulatedFault::from_status(503)));
    /// assert_eq!(SimulatedFault::from_name("reset"), Some(SimulatedFault::Reset));
    /// assert_eq!(SimulatedFault::from_name("weather"), None);
    /// ```
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        if let Ok(code) = name.parse::<u16>() {
            return (100..=599).contains(&code).then(|| Self::from_status(code));
        }
        Some(match name {
            "reset" => Self::Reset,
            "midway" => Self::ResetMidway,
            "truncate" => Self::Truncate,
            "garbage" => Self::Garbage,
            "hang" => Self::Hang,
            "drip" => Self::Drip,
            "empty" => Self::Empty,
            "refusal" => Self::Refusal,
            "length" => Self::Length,
            "filter" => Self::Filter,
            "wrong" => Self::WrongSchema,
            "fenced" => Self::Fenced,
            "null" => Self::Null,
            _ => return None,
        })
    }
}

/// When a fault occurs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FaultTrigger {
    /// At every call.
    Always,
    /// At the call with this number, counted from 1.
    Nth(u64),
    /// At the first so many calls of each prompt that contains the text.
    PromptContains(String, u64),
    /// At this share of the calls, chosen by the script's seed.
    Rate(f64),
}

/// How an answer reaches the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerDelivery {
    Whole,
    Reset,
    ResetMidway,
    Truncate,
    Hang,
    Drip,
}

impl AnswerDelivery {
    pub(crate) fn from_fault(fault: Option<&SimulatedFault>) -> Self {
        match fault {
            Some(SimulatedFault::Reset) => Self::Reset,
            Some(SimulatedFault::ResetMidway) => Self::ResetMidway,
            Some(SimulatedFault::Truncate) => Self::Truncate,
            Some(SimulatedFault::Hang) => Self::Hang,
            Some(SimulatedFault::Drip) => Self::Drip,
            _ => Self::Whole,
        }
    }
}
