//! Logging events that clients cause, without letting them fill the log.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// One event is logged per period; the others are counted.
const PERIOD: Duration = Duration::from_secs(1);

/// Admits one event of a kind each second.
#[derive(Debug, Default)]
pub struct LogLimit(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last: Option<Instant>,
    suppressed: u64,
}

impl LogLimit {
    /// `None` where the event is not to be logged; else how many events were suppressed since the
    /// last one that was.
    pub fn admit(&self) -> Option<u64> {
        let now = Instant::now();
        let mut state = self.0.lock();
        if state.last.is_some_and(|last| now.duration_since(last) < PERIOD) {
            state.suppressed += 1;
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_event_a_second_passes_and_the_others_are_counted() {
        let limit = LogLimit::default();
        assert_eq!(limit.admit(), Some(0));
        assert_eq!(limit.admit(), None);
        assert_eq!(limit.admit(), None);
        tokio::time::advance(PERIOD).await;
        assert_eq!(limit.admit(), Some(2));
        tokio::time::advance(PERIOD).await;
        assert_eq!(limit.admit(), Some(0));
    }
}
