//! Tables of which the rows that were not used for longest go first.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// Rows of one table.
const ROWS_MAX: usize = 1024;

/// A table with [`ROWS_MAX`] rows at most.
pub(super) struct Table<K, V> {
    rows: BTreeMap<K, Row<V>>,
}

struct Row<V> {
    used_at: Instant,
    value: V,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new() }
    }
}

impl<K: Ord + Copy, V: Default> Table<K, V> {
    /// The row of a key, if there is one.
    pub(super) fn get(&self, key: K) -> Option<&V> {
        self.rows.get(&key).map(|row| &row.value)
    }

    /// The row of a key, which is made where there is none.
    pub(super) fn row(&mut self, key: K) -> &mut V {
        if self.rows.len() >= ROWS_MAX && !self.rows.contains_key(&key) {
            self.forget_oldest();
        }
        let used_at = Instant::now();
        let row = self.rows.entry(key).or_insert_with(|| Row { used_at, value: V::default() });
        row.used_at = used_at;
        &mut row.value
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Forgets the half of the rows that were not used for longest.
    pub(super) fn forget_half(&mut self) {
        let mut times: Vec<_> = self.rows.values().map(|row| row.used_at).collect();
        times.sort_unstable();
        if let Some(middle) = times.get(times.len() / 2).copied() {
            self.rows.retain(|_, row| row.used_at > middle);
        }
    }

    /// Forgets the rows that were not used for so long.
    pub(super) fn forget_unused(&mut self, time: Duration) {
        self.rows.retain(|_, row| row.used_at.elapsed() < time);
    }

    fn forget_oldest(&mut self) {
        let oldest = self.rows.iter().min_by_key(|(_, row)| row.used_at).map(|(key, _)| *key);
        if let Some(oldest) = oldest {
            self.rows.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_not_used_for_longest_is_forgotten_first() {
        let mut table = Table::<usize, u32>::default();
        for key in 0..ROWS_MAX {
            *table.row(key) = 7;
            advance(Duration::from_millis(1)).await;
        }
        table.row(0);
        *table.row(ROWS_MAX) = 8;
        assert_eq!(table.len(), ROWS_MAX);
        assert_eq!((table.get(0), table.get(1)), (Some(&7), None));
        table.forget_half();
        assert!(table.len() < ROWS_MAX / 2);
        assert_eq!((table.get(0), table.get(ROWS_MAX)), (Some(&7), Some(&8)));
        advance(Duration::from_secs(60)).await;
        table.row(0);
        table.forget_unused(Duration::from_secs(60));
        assert_eq!((table.len(), table.get(0)), (1, Some(&7)));
    }
}
