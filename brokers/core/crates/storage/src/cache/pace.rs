//! A bandwidth that several callers share, in the order in which they ask.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// After a pause, what the bandwidth allows in this time may be taken at once.
const BURST: Duration = Duration::from_millis(100);

/// The shared bandwidth (see the module).
pub struct Pace {
    bytes_per_s: u64,
    /// Until when the bandwidth is taken.
    taken_until: Mutex<Option<Instant>>,
}

impl Pace {
    /// A bandwidth of `bytes_per_s` bytes a second; 0 for no bound.
    pub fn new(bytes_per_s: u64) -> Self {
        Self { bytes_per_s, taken_until: Mutex::default() }
    }

    /// Waits until `bytes` may be moved. A caller that gives up waiting has taken them all the
    /// same.
    pub async fn take(&self, bytes: u64) {
        if self.bytes_per_s == 0 {
            return;
        }
        let due = {
            let mut taken_until = self.taken_until.lock();
            let now = Instant::now();
            let earliest = now.checked_sub(BURST).unwrap_or(now);
            let from = taken_until.map_or(earliest, |until| until.max(earliest));
            let needed = Duration::from_secs_f64(bytes as f64 / self.bytes_per_s as f64);
            *taken_until = Some(from + needed);
            from
        };
        sleep_until(due).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_taken_together_keeps_within_the_bandwidth() {
        let pace = Pace::new(1000);
        let begun = Instant::now();
        for _ in 0..10 {
            pace.take(1000).await;
        }
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(8900), "{took:?}");
        assert!(took <= Duration::from_secs(9), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_bandwidth_means_no_bound() {
        let pace = Pace::new(0);
        let begun = Instant::now();
        pace.take(u64::MAX).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
