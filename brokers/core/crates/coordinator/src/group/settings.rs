//! Settings of the group coordinator, with Kafka's names and defaults.

/// The settings of the group coordinator. The description of each begins with Kafka's name of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSettings {
    /// `group.min.session.timeout.ms`: the shortest session a member may ask for.
    pub min_session_timeout_ms: i32,
    /// `group.max.session.timeout.ms`: the longest session a member may ask for.
    pub max_session_timeout_ms: i32,
    /// `group.initial.rebalance.delay.ms`: how long an empty group waits for more members before
    /// its first rebalance; each member that comes meanwhile extends it once more.
    pub initial_rebalance_delay_ms: i32,
    /// `group.max.size`: members that a group may have.
    pub max_size: usize,
    /// The most bytes of a member's protocols, and of its assignment. Kafka has no such setting.
    pub member_bytes_max: usize,
    /// `group.new.member.join.timeout.ms`: how long the `JoinGroup` of a member that has never been
    /// in a generation is kept waiting before the member is dropped.
    pub new_member_join_timeout_ms: i32,
    /// `offset.metadata.max.bytes`: the longest metadata of a committed offset. Like Kafka, counts
    /// UTF-16 units.
    pub offset_metadata_max_bytes: usize,
    /// `offsets.retention.minutes`: how long offsets stay after their group became empty.
    pub offsets_retention_minutes: i32,
    /// `offsets.retention.check.interval.ms`: how often expired offsets are looked for.
    pub offsets_retention_check_interval_ms: i32,
}

impl Default for GroupSettings {
    fn default() -> Self {
        Self {
            min_session_timeout_ms: 6_000,
            max_session_timeout_ms: 30 * 60 * 1_000,
            initial_rebalance_delay_ms: 3_000,
            max_size: i32::MAX as usize,
            member_bytes_max: 1 << 20,
            new_member_join_timeout_ms: 5 * 60 * 1_000,
            offset_metadata_max_bytes: 4_096,
            offsets_retention_minutes: 7 * 24 * 60,
            offsets_retention_check_interval_ms: 10 * 60 * 1_000,
        }
    }
}

impl GroupSettings {
    /// `offsets.retention.minutes` in milliseconds.
    pub fn offsets_retention_ms(&self) -> i64 {
        i64::from(self.offsets_retention_minutes) * 60_000
    }
}
