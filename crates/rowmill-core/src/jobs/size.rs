//! How large a job may become.

use serde::{Deserialize, Serialize};

use crate::ports::BatchRules;

/// How large a job is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSize {
    /// Requests.
    pub requests: u64,
    /// Bytes of its file.
    pub bytes: u64,
    /// Input tokens, at most.
    pub tokens: u64,
}

impl JobSize {
    /// The size of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            bytes: self.bytes.saturating_add(other.bytes),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }
}

/// How large a job may become: as many requests as the provider accepts, and its other limits less a tenth. Requests are
/// lines, which everybody counts in the same way; its count of tokens and bytes may differ from ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobSizeLimits {
    requests: u64,
    bytes: u64,
    tokens: u64,
    /// The most bytes that one request may have.
    request_bytes: u64,
}

/// Whether a job has room for one more request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeVerdict {
    /// It has.
    Fits,
    /// It does not: the request begins another job.
    NextJob,
    /// No job has: the request has more than this many bytes.
    TooLarge(u64),
}

impl JobSizeLimits {
    /// The limits of a provider.
    #[must_use]
    pub fn new(rules: &BatchRules) -> Self {
        let less = |most: u64| most - most / 10;
        let queued = [rules.max_queued_requests.map(less), Some(rules.max_requests)];
        Self {
            requests: queued.into_iter().flatten().min().unwrap_or(u64::MAX).max(1),
            bytes: less(rules.max_bytes),
            tokens: rules.max_queued_tokens.map_or(u64::MAX, less),
            request_bytes: rules.max_request_bytes.min(less(rules.max_bytes)),
        }
    }

    /// Allows at most this many requests in a job.
    pub fn allow_at_most(&mut self, requests: u64) {
        self.requests = self.requests.min(requests).max(1);
    }

    /// Whether a job of size `current` has room for one more request.
    #[must_use]
    pub fn check_room_for_request(&self, current: JobSize, request: JobSize) -> SizeVerdict {
        if request.bytes > self.request_bytes {
            return SizeVerdict::TooLarge(self.request_bytes);
        }
        let both = current.plus(request);
        let fits = both.requests <= self.requests && both.bytes <= self.bytes && both.tokens <= self.tokens;
        // A request above the token limit goes alone: our count of its tokens is an upper bound.
        if fits || current.requests == 0 { SizeVerdict::Fits } else { SizeVerdict::NextJob }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ports::{ExpiredJobResultRule, JobKeyReporting};

    fn limits() -> JobSizeLimits {
        JobSizeLimits::new(&BatchRules {
            provider: "p".into(),
            max_requests: 10,
            max_bytes: 1_000,
            max_request_bytes: 500,
            max_queued_tokens: Some(100),
            max_queued_requests: None,
            max_jobs: None,
            window: Duration::from_secs(86_400),
            expiry: ExpiredJobResultRule::KeepsFinished,
            cancel_time: Duration::from_secs(600),
            job_key: JobKeyReporting::Reported,
        })
    }

    fn size(requests: u64, bytes: u64, tokens: u64) -> JobSize {
        JobSize { requests, bytes, tokens }
    }

    #[test]
    fn a_job_takes_all_requests_that_the_provider_accepts_and_nine_tenths_of_its_bytes_and_tokens() {
        let check = |current| limits().check_room_for_request(current, size(1, 10, 1));
        assert_eq!(check(size(9, 0, 0)), SizeVerdict::Fits);
        assert_eq!(check(size(10, 0, 0)), SizeVerdict::NextJob);
        assert_eq!(check(size(1, 890, 0)), SizeVerdict::Fits);
        assert_eq!(check(size(1, 891, 0)), SizeVerdict::NextJob);
        assert_eq!(check(size(1, 0, 89)), SizeVerdict::Fits);
        assert_eq!(check(size(1, 0, 90)), SizeVerdict::NextJob);
    }

    #[test]
    fn a_request_above_the_limit_for_one_request_fits_no_job() {
        assert_eq!(
            limits().check_room_for_request(JobSize::default(), size(1, 501, 1)),
            SizeVerdict::TooLarge(500)
        );
    }

    #[test]
    fn a_request_that_may_have_too_many_tokens_is_a_job_of_its_own() {
        assert_eq!(
            limits().check_room_for_request(JobSize::default(), size(1, 10, 1_000)),
            SizeVerdict::Fits
        );
        assert_eq!(limits().check_room_for_request(size(1, 10, 1_000), size(1, 10, 1)), SizeVerdict::NextJob);
    }
}
