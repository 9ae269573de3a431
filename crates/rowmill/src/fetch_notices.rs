//! Progress notices while inputs and texts are downloaded.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use rowmill_data::{FetchEvent, FetchEventKind};

use crate::control::{RunControl, RunNotice};

/// The interval between notices about one download.
const EVERY: Duration = Duration::from_secs(2);

/// Turns download events into a limited number of notices.
pub(crate) fn fetch_progress_notices(control: &RunControl) -> impl Fn(FetchEvent) + Send + Sync {
    let notice = control.notice.clone();
    let last = Mutex::new(Instant::now());
    move |FetchEvent { name, step }| match step {
        FetchEventKind::Started { done: 0, total } => {
            notice(RunNotice::info(format!("downloading {name}{}", of_total(total))));
        }
        FetchEventKind::Started { done, total } => {
            notice(RunNotice::info(format!(
                "resuming the download of {name} at {}{}",
                size(done),
                of_total(total)
            )));
        }
        FetchEventKind::Progress { done, total } => {
            let mut last = last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if last.elapsed() >= EVERY {
                *last = Instant::now();
                notice(RunNotice::info(format!("downloading {name}: {}{}", size(done), of_total(total))));
            }
        }
        FetchEventKind::Finished { bytes } => {
            notice(RunNotice::info(format!("downloaded {name} ({})", size(bytes))))
        }
        FetchEventKind::AlreadyCached { bytes } => {
            notice(RunNotice::info(format!("{name} is cached and has not changed ({})", size(bytes))));
        }
        FetchEventKind::Waiting { wait, reason } => {
            let time = wait.map(|wait| format!(", for {:.1}s", wait.as_secs_f64())).unwrap_or_default();
            notice(RunNotice::info(format!("{name}: waiting{time}: {reason}")));
        }
        FetchEventKind::Warning(text) => notice(RunNotice::warning(text)),
        _ => {}
    }
}

fn of_total(total: Option<u64>) -> String {
    total.map(|total| format!(" of {}", size(total))).unwrap_or_default()
}

/// A number of bytes in readable form.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_say_them() {
        for (bytes, text) in
            [(7, "7 bytes"), (1_500, "1.5 kB"), (2_000_000, "2.0 MB"), (3_140_000_000, "3.14 GB")]
        {
            assert_eq!(size(bytes), text);
        }
    }
}
