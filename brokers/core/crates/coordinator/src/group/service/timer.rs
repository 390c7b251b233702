//! The one task that serves the timers of all groups.

use std::sync::Arc;
use std::time::Duration;

use super::removal::Removal;
use super::{Attached, Inner, PartitionState};

/// What a deadline is for. Ordered by partition and name, so that deadlines of the same moment are
/// always served in the same order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TimerKey {
    index: i32,
    /// The group whose timer it is; `None` for the expiry of the partition's offsets.
    group_id: Option<String>,
}

impl TimerKey {
    pub(super) fn group(index: i32, group_id: &str) -> Self {
        Self { index, group_id: Some(group_id.to_owned()) }
    }

    pub(super) fn expiry(index: i32) -> Self {
        Self { index, group_id: None }
    }

    pub(super) fn index(&self) -> i32 {
        self.index
    }
}

impl Inner {
    pub(super) fn schedule(&self, key: TimerKey, at: Duration) {
        if self.deadlines.lock().schedule_earlier(key, at) {
            self.deadlines_changed.notify_one();
        }
    }

    /// Schedules the next expiry of a partition's offsets.
    pub(super) fn schedule_expiry(&self, index: i32) {
        let interval_ms = self.settings.offsets_retention_check_interval_ms.max(1);
        let interval = Duration::from_millis(u64::from(interval_ms.cast_unsigned()));
        self.schedule(TimerKey::expiry(index), self.now().monotonic + interval);
    }

    pub(super) async fn run_timers(self: Arc<Self>) {
        let closed = self.closed.clone();
        loop {
            let next = self.deadlines.lock().next();
            let due = async {
                match next {
                    Some(next) => tokio::time::sleep_until(self.started + next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = closed.cancelled() => return,
                () = due => self.serve_due(),
                () = self.deadlines_changed.notified() => {}
            }
        }
    }

    fn serve_due(self: &Arc<Self>) {
        let now = self.now().monotonic;
        loop {
            // This is a statement of its own because the lock must not be held while the deadline
            // is served.
            let due = self.deadlines.lock().pop_due(now);
            let Some(key) = due else {
                return;
            };
            match &key.group_id {
                Some(group_id) => self.expire_group(key.index, group_id),
                None => self.expire_offsets(key.index),
            }
        }
    }

    fn expire_group(self: &Arc<Self>, index: i32, group_id: &str) {
        let Ok(mut state) = self.lock(index) else {
            return;
        };
        let PartitionState::Active(shard) = &mut *state else {
            return;
        };
        let Some(entry) = shard.groups.get_mut(group_id) else {
            return;
        };
        entry.scheduled = None;
        let mut cx = self.context();
        entry.group.expire(&mut cx);
        self.carry_out(index, shard, group_id, cx, Attached::default());
    }

    /// Queues the removal of what has expired in a partition.
    fn expire_offsets(self: &Arc<Self>, index: i32) {
        let Ok(mut state) = self.lock(index) else {
            return;
        };
        let PartitionState::Active(shard) = &mut *state else {
            return;
        };
        let wall_ms = self.now().wall_ms;
        let group_ids: Vec<String> = shard
            .groups
            .iter()
            .filter(|(_, entry)| !entry.expired(wall_ms, &self.settings).is_nothing())
            .map(|(group_id, _)| group_id.clone())
            .collect();
        for group_id in group_ids {
            self.enqueue_removal(index, shard, &group_id, Removal::Expired, None);
        }
        self.schedule_expiry(index);
    }
}
