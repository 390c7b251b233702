//! Producer ids, handed out of blocks that the metadata store gives.

use std::ops::Range;

use kafka_protocol::ResponseError;
use tokio::sync::Mutex;

use super::broker::Broker;
use freshet_metadata::cluster::PRODUCER_ID_BLOCK;

/// What is left of the current block.
#[derive(Debug)]
pub(super) struct ProducerIds(Mutex<Range<i64>>);

impl Default for ProducerIds {
    fn default() -> Self {
        Self(Mutex::new(0..0))
    }
}

impl Broker {
    /// A producer id that nobody else has.
    pub(super) async fn next_producer_id(&self) -> Result<i64, ResponseError> {
        let mut block = self.producer_ids.0.lock().await;
        if let Some(id) = block.next() {
            return Ok(id);
        }
        let fence = self.engine.fence();
        let taken = self.engine.metadata.allocate_producer_ids(fence, PRODUCER_ID_BLOCK).await;
        // What is to be tried again has its own code here.
        *block = taken.map_err(|error| match self.metadata_error(&error).error {
            ResponseError::NotController | ResponseError::RequestTimedOut => {
                ResponseError::CoordinatorLoadInProgress
            }
            other => other,
        })?;
        block.next().ok_or(ResponseError::UnknownServerError)
    }
}
