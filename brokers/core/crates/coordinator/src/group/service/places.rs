//! Limits on the number of groups, of their members and of their bytes, which may change at any
//! time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many groups there may be, members of one, and bytes of all. `None`: any number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupLimits {
    /// Groups, with those that only have committed offsets.
    pub groups: Option<usize>,
    /// Members of a group.
    pub members: Option<usize>,
    /// Bytes of memory that all groups take together, with their members and offsets.
    pub bytes: Option<usize>,
}

/// Returns the limits that hold at this moment.
pub(super) type LimitSource = Box<dyn Fn() -> GroupLimits + Send + Sync>;

/// How many groups there are, in all partitions together.
#[derive(Clone, Default)]
pub(super) struct GroupPlaces(Arc<AtomicUsize>);

/// The place that a group takes. Dropping it frees the place, however the group came to its end.
pub(super) struct GroupPlace(Arc<AtomicUsize>);

impl GroupPlaces {
    /// A place for a group that exists already, whatever the limit is.
    pub(super) fn take(&self) -> GroupPlace {
        self.0.fetch_add(1, Ordering::AcqRel);
        GroupPlace(Arc::clone(&self.0))
    }

    /// A place for a new group; `None` where there are `limit` groups. Of several at the same time
    /// no more get one than there are.
    pub(super) fn take_below(&self, limit: Option<usize>) -> Option<GroupPlace> {
        let limit = limit.unwrap_or(usize::MAX);
        let next = |taken: usize| (taken < limit).then_some(taken + 1);
        let taken = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        taken.is_ok().then(|| GroupPlace(Arc::clone(&self.0)))
    }
}

impl Drop for GroupPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_as_many_as_the_limit_and_come_back() {
        let places = GroupPlaces::default();
        let first = places.take_below(Some(2)).unwrap();
        // One that exists takes its place beyond the limit, too.
        let (_second, _third) = (places.take(), places.take());
        assert!(places.take_below(Some(2)).is_none());
        assert!(places.take_below(None).is_some());
        drop(first);
        assert!(places.take_below(Some(2)).is_none());
        assert!(places.take_below(Some(3)).is_some());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn many_at_once_get_no_more_than_there_are() {
        let places = GroupPlaces::default();
        let takers = std::iter::repeat_with(|| {
            let places = places.clone();
            tokio::spawn(async move { places.take_below(Some(10)) })
        });
        let mut taken = Vec::new();
        for taker in takers.take(32).collect::<Vec<_>>() {
            taken.extend(taker.await.unwrap());
        }
        assert_eq!(taken.len(), 10);
    }
}
