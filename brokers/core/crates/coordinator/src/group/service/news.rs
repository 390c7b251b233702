//! Which groups have changed since somebody looked last, and what there is to see of one.
//!
//! A broker's status is made from it. Until the first look nothing is noted, and nothing is
//! computed while no group changes.

use std::collections::BTreeSet;

use kafka_protocol::ResponseError;
use parking_lot::Mutex;

use super::{GroupCoordinator, PartitionState};
use crate::group::api::DescribedGroup;

/// With more names than this, or longer ones, the next look is at all groups: nobody may be looking
/// any more.
const NAMES_MAX: usize = 100_000;
const NAMES_BYTES_MAX: usize = 8 << 20;

/// The groups that may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupNews {
    /// Any of them.
    All,
    /// Those with these names, some of which may be as they were, and some gone.
    Some(BTreeSet<String>),
}

/// Notes the names of groups that may have changed.
pub(super) struct News(Mutex<Noted>);

struct Noted {
    news: GroupNews,
    /// Bytes of all names.
    bytes: usize,
}

impl Default for News {
    fn default() -> Self {
        Self(Mutex::new(Noted { news: GroupNews::All, bytes: 0 }))
    }
}

impl News {
    pub(super) fn note(&self, group_id: &str) {
        let mut noted = self.0.lock();
        let Noted { news: GroupNews::Some(names), bytes } = &mut *noted else { return };
        if names.contains(group_id) {
            return;
        }
        *bytes += group_id.len();
        if names.len() < NAMES_MAX && *bytes <= NAMES_BYTES_MAX {
            names.insert(group_id.to_owned());
        } else {
            noted.news = GroupNews::All;
        }
    }

    pub(super) fn note_all(&self) {
        self.0.lock().news = GroupNews::All;
    }

    fn take(&self) -> GroupNews {
        let none = Noted { news: GroupNews::Some(BTreeSet::new()), bytes: 0 };
        std::mem::replace(&mut *self.0.lock(), none).news
    }
}

/// A group with what it has committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupView {
    /// The group as `DescribeGroups` shows it.
    pub group: DescribedGroup,
    /// Topic, partition and committed offset, in order.
    pub committed: Vec<(String, i32, i64)>,
}

impl GroupCoordinator {
    /// The groups that may have changed since the last call. What is viewed afterwards is no older
    /// than these changes.
    pub fn take_news(&self) -> GroupNews {
        self.inner.news.take()
    }

    /// The names of all groups in the partitions that are loaded here.
    pub fn group_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for partition in &self.inner.partitions {
            if let PartitionState::Active(shard) = &*partition.state.lock() {
                let visible = shard.groups.iter().filter(|(_, entry)| entry.exists());
                names.extend(visible.map(|(name, _)| name.clone()));
            }
        }
        names
    }

    /// Whether partition `index` is loaded here, so that all of its groups are known.
    pub fn is_loaded(&self, index: i32) -> bool {
        let state = self.inner.lock(index);
        state.is_ok_and(|state| matches!(&*state, PartitionState::Active(_)))
    }

    /// A group with its committed offsets; `None` where there is no such group.
    ///
    /// # Errors
    /// `NOT_COORDINATOR`, `COORDINATOR_LOAD_IN_PROGRESS`.
    pub fn view_group(&self, group_id: &str) -> Result<Option<GroupView>, ResponseError> {
        let mut state = self.inner.lock(self.inner.index_of(group_id))?;
        let entry = state.active()?.existing(group_id);
        Ok(entry.map(|entry| {
            let committed = entry.offsets.iter();
            GroupView {
                group: entry.group.describe(),
                committed: committed
                    .map(|(topic, partition, value)| (topic.to_owned(), partition, value.offset))
                    .collect(),
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn until_the_first_look_nothing_is_noted() {
        let news = News::default();
        news.note("a");
        assert_eq!(news.take(), GroupNews::All);
        assert_eq!(news.take(), GroupNews::Some(BTreeSet::new()));
        news.note("a");
        news.note("b");
        news.note("a");
        assert_eq!(news.take(), GroupNews::Some(["a".to_owned(), "b".to_owned()].into()));
    }

    #[test]
    fn longer_names_than_are_kept_are_all_groups() {
        let news = News::default();
        news.take();
        let name = |number: usize| format!("{number:032766}");
        (0..NAMES_BYTES_MAX / 32_766).for_each(|number| news.note(&name(number)));
        assert!(matches!(&news.0.lock().news, GroupNews::Some(names) if names.len() == 256));
        (1_000..1_002).for_each(|number| news.note(&name(number)));
        assert_eq!(news.take(), GroupNews::All);
    }

    #[test]
    fn more_names_than_are_kept_are_all_groups() {
        let news = News::default();
        news.take();
        (0..=NAMES_MAX).for_each(|number| news.note(&number.to_string()));
        assert_eq!(news.take(), GroupNews::All);
        assert_eq!(news.take(), GroupNews::Some(BTreeSet::new()));
    }
}
