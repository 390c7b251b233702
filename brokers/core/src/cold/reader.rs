//! Reading segments: a partition's section tells the chunk, the chunk is checked before it is used.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::ColdError;
use super::segment::{Chunk, ObjectRef, Segment, decode_section};
use super::store::ObjectStore;
use crate::ids::PartitionId;

/// Sections kept in memory, of up to a few KiB each.
const SECTIONS_MAX: usize = 4096;

type SectionKey = (ObjectRef, u64);

/// Reads segments of a cluster; safe to share.
pub struct ColdReader {
    store: Arc<dyn ObjectStore>,
    cluster: String,
    sections: Mutex<BTreeMap<SectionKey, Arc<Vec<Chunk>>>>,
}

impl ColdReader {
    /// A reader of the objects of `cluster`.
    pub fn new(store: Arc<dyn ObjectStore>, cluster: &str) -> Self {
        Self { store, cluster: cluster.to_owned(), sections: Mutex::default() }
    }

    /// The chunks of a partition's segment.
    ///
    /// # Errors
    /// The store's, or [`ColdError::Damaged`].
    pub async fn chunks(
        &self,
        partition: PartitionId,
        segment: &Segment,
    ) -> Result<Arc<Vec<Chunk>>, ColdError> {
        let key = (segment.object, segment.section_position);
        if let Some(chunks) = self.sections.lock().get(&key) {
            return Ok(Arc::clone(chunks));
        }
        let object = segment.object.key(&self.cluster);
        let length = u64::from(segment.section_bytes);
        let bytes = self.store.get_range(&object, segment.section_position, length).await?;
        let chunks = Arc::new(decode_section(&bytes, partition, segment.object)?);
        let mut sections = self.sections.lock();
        if sections.len() >= SECTIONS_MAX {
            sections.pop_first();
        }
        sections.insert(key, Arc::clone(&chunks));
        Ok(chunks)
    }

    /// Reads and checks one chunk: whole record batches, one after another.
    ///
    /// # Errors
    /// The store's, or [`ColdError::Damaged`].
    pub async fn read(&self, object: ObjectRef, chunk: &Chunk) -> Result<Bytes, ColdError> {
        let key = object.key(&self.cluster);
        let bytes = self.store.get_range(&key, chunk.position, chunk.length).await?;
        chunk.verify(object, &bytes)?;
        Ok(bytes)
    }
}
