//! Hands out producer ids from blocks that are reserved in the metadata store.

use std::ops::Range;

use tokio::sync::Mutex;

use freshet_engine::Engine;
use freshet_metadata::ClusterError;
use freshet_metadata::cluster::PRODUCER_ID_BLOCK;

/// The producer ids of the current block that are not handed out yet.
#[derive(Debug)]
pub(crate) struct ProducerIds(Mutex<Range<i64>>);

impl Default for ProducerIds {
    fn default() -> Self {
        Self(Mutex::new(0..0))
    }
}

impl ProducerIds {
    /// Returns a producer id that nobody else has.
    ///
    /// # Errors
    /// Those of [`freshet_metadata::ClusterMetadata::allocate_producer_ids`] where a new block must
    /// be reserved, and [`ClusterError::Exhausted`] where the block is empty.
    pub(crate) async fn take(&self, engine: &Engine) -> Result<i64, ClusterError> {
        let mut block = self.0.lock().await;
        if block.is_empty() {
            *block =
                engine.metadata.allocate_producer_ids(engine.fence(), PRODUCER_ID_BLOCK).await?;
        }
        block.next().ok_or(ClusterError::Exhausted("producer id"))
    }
}
