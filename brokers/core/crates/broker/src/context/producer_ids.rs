//! Producer ids, handed out of blocks that the metadata store gives.

use std::ops::Range;

use tokio::sync::Mutex;

use crate::engine::Engine;
use freshet_metadata::ClusterError;
use freshet_metadata::cluster::PRODUCER_ID_BLOCK;

/// What is left of the current block.
#[derive(Debug)]
pub(crate) struct ProducerIds(Mutex<Range<i64>>);

impl Default for ProducerIds {
    fn default() -> Self {
        Self(Mutex::new(0..0))
    }
}

impl ProducerIds {
    /// A producer id that nobody else has.
    ///
    /// # Errors
    /// Those of [`freshet_metadata::ClusterMetadata::allocate_producer_ids`], where a new block is
    /// needed.
    pub(crate) async fn take(&self, engine: &Engine) -> Result<i64, ClusterError> {
        let mut block = self.0.lock().await;
        if block.is_empty() {
            *block =
                engine.metadata.allocate_producer_ids(engine.fence(), PRODUCER_ID_BLOCK).await?;
        }
        block.next().ok_or(ClusterError::Exhausted("producer id"))
    }
}
