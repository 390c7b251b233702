//! When a failed authentication is answered.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// A failed authentication is answered this long after its token arrived, so that guessing takes
/// time (Kafka's `connection.failed.authentication.delay.ms`).
const DELAY: Duration = Duration::from_millis(100);

/// Waits until a failure may be answered whose token arrived at that time: a whole number of
/// [`DELAY`]s later. So the time of the answer does not tell how long the check took, which may
/// depend on the user.
pub async fn delay_refusal(arrived_at: Instant) {
    let delays = arrived_at.elapsed().as_millis() / DELAY.as_millis() + 1;
    let delays = u32::try_from(delays).unwrap_or(u32::MAX);
    sleep_until(arrived_at + DELAY * delays).await;
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn answers_come_at_the_same_time_whatever_the_check_took() {
        for (check_ms, expected_ms) in [(0, 100), (3, 100), (80, 100), (99, 100), (130, 200)] {
            let arrived_at = Instant::now();
            sleep(Duration::from_millis(check_ms)).await;
            delay_refusal(arrived_at).await;
            assert_eq!(arrived_at.elapsed(), Duration::from_millis(expected_ms));
        }
    }
}
