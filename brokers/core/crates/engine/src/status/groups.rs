//! The consumer groups of a status: members, committed offsets, and assigned partitions.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::entries::Key;
use super::partitions::Spot;
use super::times::Time;
use super::{Entries, StatusState};
use freshet_coordinator::group::{DescribedMember, GroupView};
use freshet_wire::codec::{Reader, WireError};

/// The most groups that a status has.
const GROUPS_MAX: usize = 10_000;
/// The most members, of all groups.
const MEMBERS_MAX: usize = 20_000;
/// The most partitions of groups, of all groups.
const OFFSETS_MAX: usize = 50_000;
/// What stands for the offset of a partition for which nothing is committed.
const NOT_COMMITTED: i64 = -1;

/// A partition that a group has committed, or that is assigned to one of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offset {
    pub(super) committed: i64,
    /// The number of the member that has it; 0 for none.
    member: u32,
}

/// What is known of a group.
#[derive(Default)]
pub(super) struct KnownGroup {
    /// The numbers of members by their ids.
    members: BTreeMap<String, u32>,
    last_member: u32,
    pub(super) offsets: BTreeMap<Spot, Offset>,
}

/// How many entries of groups there are.
#[derive(Default)]
pub(super) struct Counts {
    members: usize,
    offsets: usize,
}

impl StatusState {
    /// Takes over what a group is now; `None` where there is none.
    pub(super) fn update_group(&mut self, name: &str, view: Option<GroupView>) {
        let Some(view) = view else {
            self.forget_group(name);
            return;
        };
        if self.group_numbers.known(name).is_none() && self.group_numbers.len() >= GROUPS_MAX {
            self.cut = true;
            return;
        }
        let (number, _) = self.group_numbers.of(name);
        let mut group = self.groups.remove(&number).unwrap_or_default();
        self.counts.members -= group.members.len();
        let cut_members = self.put_members(number, &mut group, &view.group.members);
        self.counts.members += group.members.len();
        let cut_offsets = self.put_offsets(number, &mut group, &view);
        self.groups.insert(number, group);
        let cut = cut_members || cut_offsets;
        self.cut |= cut;
        let (key, shown) = (Key::Group(number), &view.group);
        let fields = key.entry().name(name).name(shown.state).name(&shown.protocol_type);
        self.entries.put(key, &fields.name(&shown.protocol_data).number(u8::from(cut)).text());
    }

    fn forget_group(&mut self, name: &str) {
        let Some(number) = self.group_numbers.known(name) else { return };
        self.group_numbers.forget(name);
        let Some(group) = self.groups.remove(&number) else { return };
        self.counts.members -= group.members.len();
        for member in group.members.into_values() {
            self.entries.remove(Key::Member(number, member));
        }
        for spot in group.offsets.into_keys() {
            self.drop_offset(number, spot);
        }
        self.entries.remove(Key::Group(number));
    }

    /// The names of the groups that have an entry.
    pub(super) fn group_names(&self) -> BTreeSet<String> {
        self.group_numbers.names().map(|(name, _)| name.to_owned()).collect()
    }

    /// Returns whether some were left out.
    fn put_members(
        &mut self,
        number: u32,
        group: &mut KnownGroup,
        shown: &[DescribedMember],
    ) -> bool {
        let room = MEMBERS_MAX.saturating_sub(self.counts.members);
        let kept: BTreeSet<&str> =
            shown.iter().take(room).map(|member| member.member_id.as_str()).collect();
        let entries = &mut self.entries;
        group.members.retain(|id, member| {
            let stays = kept.contains(id.as_str());
            if !stays {
                entries.remove(Key::Member(number, *member));
            }
            stays
        });
        for member in shown.iter().take(room) {
            let last = &mut group.last_member;
            let known = group.members.entry(member.member_id.clone()).or_insert_with(|| {
                *last += 1;
                *last
            });
            put_member(entries, Key::Member(number, *known), member);
        }
        shown.len() > room
    }

    /// Returns whether some were left out.
    fn put_offsets(&mut self, number: u32, group: &mut KnownGroup, view: &GroupView) -> bool {
        let mut offsets = BTreeMap::new();
        for (topic, index, committed) in &view.committed {
            let spot = (self.topic_number(topic), *index);
            offsets.insert(spot, Offset { committed: *committed, member: 0 });
        }
        for member in &view.group.members {
            let Some(of_member) = group.members.get(&member.member_id) else { continue };
            for (name, indexes) in assigned(&member.assignment) {
                // What a member writes may be anything: only partitions that exist count, whoever
                // leads them.
                let Some(topic) = self.topics.known(&name) else { continue };
                let partitions = 0..self.partition_count(&name);
                for index in indexes {
                    let spot = (topic, index);
                    if partitions.contains(&index) || offsets.contains_key(&spot) {
                        let nothing = Offset { committed: NOT_COMMITTED, member: 0 };
                        offsets.entry(spot).or_insert(nothing).member = *of_member;
                    }
                }
            }
        }
        let room = OFFSETS_MAX - (self.counts.offsets - group.offsets.len());
        let cut = offsets.len() > room;
        let offsets: BTreeMap<Spot, Offset> = offsets.into_iter().take(room).collect();
        for spot in std::mem::take(&mut group.offsets).into_keys() {
            if offsets.contains_key(&spot) {
                self.counts.offsets -= 1;
            } else {
                self.drop_offset(number, spot);
            }
        }
        self.counts.offsets += offsets.len();
        for (spot, offset) in &offsets {
            self.readers.entry(*spot).or_default().insert(number);
            self.put_offset(number, *spot, *offset);
        }
        group.offsets = offsets;
        cut
    }

    fn drop_offset(&mut self, number: u32, spot: Spot) {
        self.counts.offsets -= 1;
        self.entries.remove(Key::Offset(number, spot.0, spot.1));
        if let Some(readers) = self.readers.get_mut(&spot) {
            readers.remove(&number);
            if readers.is_empty() {
                self.readers.remove(&spot);
            }
        }
    }

    /// Puts the entry of a group's partition, with the time of its first waiting record. While the
    /// time of a new place is looked up the entry stays as it was, so that a group that commits all
    /// the time has an offset of a moment ago with its time, and not a new one without.
    fn put_offset(&mut self, number: u32, spot: Spot, offset: Offset) {
        let known = self.partitions.get(&spot);
        let waiting = known.and_then(|known| {
            known.first_waiting(offset.committed).map(|position| (known.id, position))
        });
        let key = Key::Offset(number, spot.0, spot.1);
        let time = match waiting.map(|position| self.times.get(position)) {
            Some(Time::Awaited) if self.entries.contains(key) => return,
            Some(Time::Known(time)) => time,
            Some(Time::Awaited) | None => None,
        };
        let fields = key.entry().number(offset.committed).number_or_null(time);
        self.entries.put(key, &fields.number(offset.member).text());
    }

    /// Puts the entries of all groups that read a partition whose bounds, or the time of a record
    /// of which, have changed.
    pub(super) fn refresh_readers(&mut self, spot: Spot) {
        let readers: Vec<u32> = self.readers.get(&spot).into_iter().flatten().copied().collect();
        for number in readers {
            let offset = self.groups.get(&number).and_then(|group| group.offsets.get(&spot));
            if let Some(offset) = offset.copied() {
                self.put_offset(number, spot, offset);
            }
        }
    }
}

fn put_member(entries: &mut Entries, key: Key, member: &DescribedMember) {
    let client = &member.client;
    let host = client.client_host.strip_prefix('/').unwrap_or(&client.client_host);
    let fields = key.entry().name(&member.member_id).name(&client.client_id).name(host);
    entries.put(key, &fields.name_or_null(member.instance_id.as_deref()).text());
}

/// Partitions by topic.
type Assigned = Vec<(String, Vec<i32>)>;

/// The partitions by topic of an assignment in the format of Kafka's own consumers
/// (`ConsumerProtocolAssignment`, whose version 0 is a prefix of all others). Another format, or
/// damage, gives none: an application may write there what it likes.
fn assigned(assignment: &Bytes) -> Assigned {
    read_assigned(assignment.clone()).ok().flatten().unwrap_or_default()
}

fn read_assigned(assignment: Bytes) -> Result<Option<Assigned>, WireError> {
    let mut reader = Reader::new(assignment);
    if reader.i16_be()? < 0 {
        return Ok(None);
    }
    let topics = i64::from(reader.i32_be()?);
    let mut partitions = Vec::new();
    for _ in 0..reader.count(topics, 6)? {
        let length = i64::from(reader.i16_be()?);
        let length = reader.count(length, 1)?;
        let Ok(topic) = String::from_utf8(reader.take(length)?.into()) else { return Ok(None) };
        let count = i64::from(reader.i32_be()?);
        let mut indexes = Vec::new();
        for _ in 0..reader.count(count, 4)? {
            indexes.push(reader.i32_be()?);
        }
        partitions.push((topic, indexes));
    }
    Ok(Some(partitions))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Assigned {
        assigned(&Bytes::copy_from_slice(bytes))
    }

    #[test]
    fn partitions_are_read_from_any_version() {
        let version_1 =
            b"\0\x01\0\0\0\x02\0\x01a\0\0\0\x02\0\0\0\0\0\0\0\x05\0\x02bc\0\0\0\0\xff\xff\xff\xff";
        assert_eq!(read(version_1), [("a".to_owned(), vec![0, 5]), ("bc".to_owned(), vec![])]);
        assert_eq!(read(b"\0\0\0\0\0\0"), []);
    }

    #[test]
    fn what_is_no_assignment_has_no_partitions() {
        for hostile in [
            &b""[..],
            b"\xff\xff\0\0\0\0",
            b"\0\0\x7f\xff\xff\xff",
            b"\0\0\0\0\0\x01\0\x05ab",
            b"\0\0\0\0\0\x01\0\x01\xff\0\0\0\x01\0\0\0\0",
            b"\0\0\0\0\0\x01\0\x01a\x7f\xff\xff\xff\0\0\0\0",
            b"\0\0\0\0\0\x01\xff\xff\0\0\0\0",
        ] {
            assert_eq!(read(hostile), [], "{hostile:?}");
        }
    }
}
