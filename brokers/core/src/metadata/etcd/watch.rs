//! Watching etcd: a stream that is opened anew, behind what was seen, whenever it breaks.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use etcd_client::{EventType, WatchClient, WatchOptions, WatchResponse, WatchStream};
use tokio::time::timeout;

use super::failure::{Failure, failure_of};
use super::{end_of, key_in, no_answer, signed, unsigned};
use crate::metadata::store::{Change, MetadataError, Watch};

pub struct EtcdWatch {
    client: WatchClient,
    root: Arc<str>,
    prefix: String,
    /// Changes up to this revision were given out, or are known to be of other keys.
    after: u64,
    /// None where it broke.
    stream: Option<WatchStream>,
    request_timeout: Duration,
}

impl EtcdWatch {
    pub async fn open(
        client: WatchClient,
        root: Arc<str>,
        prefix: String,
        after: u64,
        request_timeout: Duration,
    ) -> Result<Self, MetadataError> {
        let mut watch = Self { client, root, prefix, after, stream: None, request_timeout };
        watch.ensure_stream().await?;
        Ok(watch)
    }

    async fn ensure_stream(&mut self) -> Result<&mut WatchStream, MetadataError> {
        if self.stream.is_none() {
            let options = WatchOptions::new()
                .with_range(end_of(&self.prefix))
                .with_start_revision(signed(self.after.saturating_add(1)))
                // So that a watch of quiet keys can be resumed behind a compaction of busy ones.
                .with_progress_notify();
            let first = if self.prefix.is_empty() { "\0" } else { &self.prefix };
            let opened = timeout(self.request_timeout, self.client.watch(first, Some(options)));
            let stream = opened
                .await
                .map_err(|_| Failure::Lost(no_answer(self.request_timeout)))
                .and_then(|opened| opened.map_err(|error| failure_of(&error)))
                .map_err(Failure::of_watch)?;
            self.stream = Some(stream);
        }
        Ok(self.stream.as_mut().expect("it was opened if there was none"))
    }

    /// The changes that an answer tells of; none for a mere sign of life.
    fn changes_of(&mut self, answer: &WatchResponse) -> Result<Vec<Change>, Failure> {
        if answer.compact_revision() > 0 {
            return Err(Failure::Compacted);
        }
        if answer.canceled() {
            return Err(Failure::Lost(format!("etcd ended a watch: {}", answer.cancel_reason())));
        }
        let mut changes = Vec::with_capacity(answer.events().len());
        for event in answer.events() {
            let pair = event.kv();
            let pair = pair.ok_or_else(|| Failure::Corrupt("an event without a key".to_owned()))?;
            let value = match event.event_type() {
                EventType::Put => Some(Bytes::copy_from_slice(pair.value())),
                EventType::Delete => None,
            };
            let key = key_in(&self.root, pair.key())?;
            changes.push(Change { key, value, revision: unsigned(pair.mod_revision())? });
        }
        // Without events it tells how far the watch is. That it was opened tells nothing.
        let reached = match changes.last() {
            Some(change) => change.revision,
            None if answer.created() => self.after,
            None => super::revision_of(answer.header())?,
        };
        self.after = self.after.max(reached);
        Ok(changes)
    }
}

#[async_trait]
impl Watch for EtcdWatch {
    async fn next(&mut self) -> Result<Vec<Change>, MetadataError> {
        loop {
            let stream = self.ensure_stream().await?;
            let answer = match stream.message().await {
                Ok(Some(answer)) => Ok(answer),
                Ok(None) => Err(Failure::Lost("etcd ended a watch".to_owned())),
                Err(error) => Err(failure_of(&error)),
            };
            match answer.and_then(|answer| self.changes_of(&answer)) {
                Ok(changes) if changes.is_empty() => {}
                Ok(changes) => return Ok(changes),
                Err(failure) => {
                    self.stream = None;
                    return Err(failure.of_watch());
                }
            }
        }
    }
}
