//! Token buckets, for rates.

use tokio::time::Instant;

/// A token bucket: a capacity that may be taken at once, and a rate a second at which it refills.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    tokens: f64,
    filled_at: Instant,
}

impl Bucket {
    pub(super) fn full(capacity: u32) -> Self {
        Self { tokens: f64::from(capacity), filled_at: Instant::now() }
    }

    fn fill(&mut self, capacity: u32, per_s: f64) {
        let now = Instant::now();
        let gained = now.duration_since(self.filled_at).as_secs_f64() * per_s;
        self.tokens = (self.tokens + gained).min(f64::from(capacity));
        self.filled_at = now;
    }

    /// Takes a token, if there is one; returns whether there was.
    pub(super) fn take(&mut self, capacity: u32, per_s: f64) -> bool {
        self.fill(capacity, per_s);
        let enough = self.tokens >= 1.0;
        if enough {
            self.tokens -= 1.0;
        }
        enough
    }

    /// The tokens that it has, of which the last may be a part of one.
    pub(super) fn level(&mut self, capacity: u32, per_s: f64) -> f64 {
        self.fill(capacity, per_s);
        self.tokens
    }

    /// Gives a token back that was taken.
    pub(super) fn give_back(&mut self, capacity: u32) {
        self.tokens = (self.tokens + 1.0).min(f64::from(capacity));
    }

    pub(super) fn is_full(&mut self, capacity: u32, per_s: f64) -> bool {
        self.fill(capacity, per_s);
        self.tokens >= f64::from(capacity)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_bucket_gives_so_much_at_once_and_then_at_its_rate() {
        let mut bucket = Bucket::full(3);
        let taken = |bucket: &mut Bucket| (0..10).filter(|_| bucket.take(3, 2.0)).count();
        assert_eq!(taken(&mut bucket), 3);
        advance(Duration::from_millis(499)).await;
        assert_eq!(taken(&mut bucket), 0);
        advance(Duration::from_millis(1)).await;
        assert_eq!(taken(&mut bucket), 1);
        advance(Duration::from_secs(3600)).await;
        assert_eq!(taken(&mut bucket), 3);
    }
}
