//! Rows of usage as columns: little-endian buffers, which Python passes on without parsing them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use freshet_storage::lane::block::{BlockHeader, BlockKind};
use freshet_storage::lane::index::{decode_data, decode_usage};
use freshet_wire::codec::WireError;
use freshet_wire::ids::TopicId;

/// In the column of meters: bytes of record batches that were written.
pub const INGRESS: u8 = 0;
/// In the column of meters: bytes of record batches that were handed to sockets.
pub const EGRESS: u8 = 1;
/// In the column of partitions, for rows of egress, which have no partition.
const NO_PARTITION: i32 = -1;
/// Bytes of a row over all columns.
pub const ROW_BYTES: usize = 8 + 8 + 8 + 4 + 4 + 4 + 1 + 8 + 8;

/// The key of a row within its block: places of topic and principal in their tables, with the
/// partition between them.
type RowKey = (u32, i32, u32);

/// Rows of usage, in the order of blocks; each is what a principal wrote to a partition, or was
/// handed of a topic, within one block.
#[derive(Debug, Clone, Default)]
pub struct Columns {
    /// The number of rows.
    pub rows: usize,
    /// `u64`: number of the lane's file.
    pub file: Vec<u8>,
    /// `u64`: the block's sequence number.
    pub sequence: Vec<u8>,
    /// `i64`: when it was written, ms since 1970 UTC.
    pub written_at_ms: Vec<u8>,
    /// `u32`: place in `topics`.
    pub topic: Vec<u8>,
    /// `i32`; -1 for egress.
    pub partition: Vec<u8>,
    /// `u32`: place in `principals`.
    pub principal: Vec<u8>,
    /// `u8`: [`INGRESS`] or [`EGRESS`].
    pub meter: Vec<u8>,
    /// `u64`: bytes.
    pub quantity: Vec<u8>,
    /// `u64`: of egress, bytes since the incarnation started; 0 of ingress.
    pub cumulative: Vec<u8>,
    /// Topics that occur.
    pub topics: Vec<TopicId>,
    /// Principals that occur.
    pub principals: Vec<Arc<str>>,
    topic_places: BTreeMap<TopicId, u32>,
    principal_places: BTreeMap<Arc<str>, u32>,
}

impl Columns {
    /// Bytes of all columns.
    pub fn bytes(&self) -> usize {
        self.rows * ROW_BYTES
    }

    /// Adds the usage of a block. Blocks other than data and usage blocks have none.
    ///
    /// # Errors
    /// [`WireError`] where the index cannot be decoded.
    pub fn take(&mut self, file: u64, header: &BlockHeader, index: Bytes) -> Result<(), WireError> {
        let meter = match header.kind {
            BlockKind::Data => INGRESS,
            BlockKind::Usage => EGRESS,
            BlockKind::Install | BlockKind::Checkpoint | BlockKind::Close => return Ok(()),
        };
        let sums =
            if meter == INGRESS { self.ingress(index, header)? } else { self.egress(index)? };
        for ((topic, partition, principal), (quantity, cumulative)) in sums {
            self.rows += 1;
            self.file.extend(file.to_le_bytes());
            self.sequence.extend(header.sequence.to_le_bytes());
            self.written_at_ms.extend(header.written_at_ms.to_le_bytes());
            self.topic.extend(topic.to_le_bytes());
            self.partition.extend(partition.to_le_bytes());
            self.principal.extend(principal.to_le_bytes());
            self.meter.push(meter);
            self.quantity.extend(quantity.to_le_bytes());
            self.cumulative.extend(cumulative.to_le_bytes());
        }
        Ok(())
    }

    fn ingress(
        &mut self,
        index: Bytes,
        header: &BlockHeader,
    ) -> Result<BTreeMap<RowKey, (u64, u64)>, WireError> {
        let mut sums: BTreeMap<RowKey, (u64, u64)> = BTreeMap::new();
        for entry in decode_data(index, header)? {
            let topic = self.topic_place(entry.partition.topic);
            let principal = self.principal_place(&entry.principal);
            let sum = sums.entry((topic, entry.partition.index, principal)).or_default();
            sum.0 += u64::from(entry.length);
        }
        Ok(sums)
    }

    fn egress(&mut self, index: Bytes) -> Result<BTreeMap<RowKey, (u64, u64)>, WireError> {
        let mut sums: BTreeMap<RowKey, (u64, u64)> = BTreeMap::new();
        for entry in decode_usage(index)?.entries {
            let topic = self.topic_place(entry.topic);
            let principal = self.principal_place(&entry.principal);
            let sum = sums.entry((topic, NO_PARTITION, principal)).or_default();
            sum.0 = sum.0.saturating_add(entry.egress_delta);
            sum.1 = sum.1.max(entry.egress_bytes);
        }
        Ok(sums)
    }

    fn topic_place(&mut self, topic: TopicId) -> u32 {
        *self.topic_places.entry(topic).or_insert_with(|| {
            self.topics.push(topic);
            last_place(self.topics.len())
        })
    }

    fn principal_place(&mut self, principal: &Arc<str>) -> u32 {
        if let Some(place) = self.principal_places.get(principal) {
            return *place;
        }
        self.principals.push(Arc::clone(principal));
        let place = last_place(self.principals.len());
        self.principal_places.insert(Arc::clone(principal), place);
        place
    }
}

/// The place of the last of `count` entries.
fn last_place(count: usize) -> u32 {
    u32::try_from(count - 1).expect("a reading is cut long before 4 billion")
}
