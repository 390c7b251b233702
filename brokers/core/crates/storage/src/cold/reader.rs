//! Reading segments: a partition's section says where its chunks lie, and each chunk is checked
//! before it is used.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;

use super::ColdError;
use super::segment::{Chunk, Segment, decode_section};
use crate::cache::blocks::{BlockCache, LoadError, Loader, Source};
use crate::cache::flight::Flights;
use crate::cache::recent::Recent;
use crate::cache::runs::RUN_BYTES_MAX;
use crate::names::ObjectRef;
use freshet_wire::ids::PartitionId;
use freshet_world::env::store::{ObjectStore, StoreError, StoreResult};

/// Memory for sections, in bytes.
const SECTIONS_BYTES_MAX: usize = 8 << 20;

type SectionKey = (ObjectRef, u64);

/// Reads segments of a cluster; safe to share.
pub struct ColdReader {
    objects: Arc<Objects>,
    blocks: Arc<BlockCache>,
    sections: Arc<Mutex<Sections>>,
    loading: Flights<SectionKey, Result<Arc<Vec<Chunk>>, ColdError>>,
}

type Sections = Recent<SectionKey, Arc<Vec<Chunk>>>;

struct Objects {
    store: Arc<dyn ObjectStore>,
    cluster: String,
}

impl Objects {
    async fn section(&self, segment: &Segment) -> StoreResult<Bytes> {
        let (position, length) = (segment.section_position, u64::from(segment.section_bytes));
        self.store.get_range(&segment.object.key(&self.cluster), position, length).await
    }
}

impl ColdReader {
    /// A reader of the objects of `cluster`.
    pub fn new(store: Arc<dyn ObjectStore>, cluster: &str, blocks: Arc<BlockCache>) -> Self {
        let objects = Arc::new(Objects { store, cluster: cluster.to_owned() });
        let sections = Arc::new(Mutex::new(Recent::new(SECTIONS_BYTES_MAX)));
        Self { objects, blocks, sections, loading: Flights::new() }
    }

    /// The chunks of a partition's segment. This read does not queue behind reads of records.
    ///
    /// # Errors
    /// [`ColdError::Store`] or [`ColdError::Damaged`].
    pub async fn chunks(
        &self,
        partition: PartitionId,
        segment: &Segment,
    ) -> Result<Arc<Vec<Chunk>>, ColdError> {
        let key = (segment.object, segment.section_position);
        if let Some(chunks) = self.sections.lock().get(key) {
            return Ok(chunks);
        }
        let (objects, sections) = (Arc::clone(&self.objects), Arc::clone(&self.sections));
        let segment = *segment;
        let load = || async move {
            let bytes = objects.section(&segment).await?;
            let chunks = Arc::new(decode_section(&bytes, partition, segment.object)?);
            sections.lock().insert(key, Arc::clone(&chunks), bytes.len());
            Ok(chunks)
        };
        let abandoned = || Err(StoreError::Unavailable("a read was abandoned".to_owned()).into());
        self.loading.join(key, load).await.unwrap_or_else(abandoned)
    }

    /// Reads and checks one chunk for background work: whole record batches, one after another. The
    /// chunk is not cached, and the read takes its turn among those of background work.
    ///
    /// # Errors
    /// [`ColdError::Store`] or [`ColdError::Damaged`].
    pub async fn read(&self, object: ObjectRef, chunk: &Chunk) -> Result<Bytes, ColdError> {
        let _turn = self.blocks.background(chunk.length).await;
        let Objects { store, cluster } = self.objects.as_ref();
        let bytes = store.get_range(&object.key(cluster), chunk.position, chunk.length).await?;
        chunk.verify(object, &bytes)?;
        Ok(bytes)
    }

    /// Reads and checks the first of a segment's `chunks` for a client. Where it has to be loaded,
    /// those of the others that end within `bytes_max` bytes of its start are loaded with it.
    ///
    /// # Errors
    /// [`LoadError::Cold`] where it cannot be read or its checksum is wrong.
    ///
    /// # Panics
    /// Where there is no chunk.
    pub async fn fetch(
        &self,
        segment: &Segment,
        chunks: &[Chunk],
        bytes_max: u64,
    ) -> Result<Bytes, LoadError> {
        let chunk = &chunks[0];
        let far = chunk.position.saturating_add(bytes_max.min(RUN_BYTES_MAX));
        let near = chunks.partition_point(|other| other.end() <= far);
        let reach = chunks[..near].last().map_or(0, Chunk::end);
        let object = segment.object;
        let loader = Arc::clone(&self.objects) as Arc<dyn Loader>;
        let limit = segment.section_position;
        let source = Source::Object(object);
        let range = chunk.range(object, limit)?;
        let read = self.blocks.read(&loader, source, range, reach, limit).await?;
        if let Err(error) = read.check_once(|bytes| chunk.verify(object, bytes)) {
            // The object may be whole and the transfer at fault: the next read asks storage again.
            self.blocks.forget(source);
            return Err(error.into());
        }
        Ok(read.bytes)
    }

    /// Reads chunks of a segment into the cache that a reader is going to need, in order.
    ///
    /// # Errors
    /// As [`Self::fetch`].
    pub async fn read_ahead(&self, segment: &Segment, chunks: &[Chunk]) -> Result<(), LoadError> {
        let loader = Arc::clone(&self.objects) as Arc<dyn Loader>;
        let (object, limit) = (segment.object, segment.section_position);
        let ranges = chunks.iter().map(|chunk| chunk.range(object, limit));
        let ranges = ranges.collect::<Result<Vec<_>, _>>()?;
        self.blocks.read_ahead(&loader, Source::Object(object), &ranges, limit).await
    }
}

#[async_trait]
impl Loader for Objects {
    async fn load(&self, source: Source, range: Range<u64>) -> Result<Bytes, LoadError> {
        let Source::Object(object) = source else {
            unreachable!("lanes have a loader of their own")
        };
        let length = range.end - range.start;
        let bytes = self.store.get_range(&object.key(&self.cluster), range.start, length).await;
        Ok(bytes.map_err(ColdError::from)?)
    }
}
