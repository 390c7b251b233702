//! Watching etcd: a stream that is opened again, behind the last change, whenever it breaks.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use etcd_client::{EventType, WatchOptions, WatchResponse, WatchStream};
use tokio::time::timeout;

use super::failure::{Failure, failure_of};
use super::members::Members;
use super::{end_of, first_of, key_in, no_answer, signed, unsigned};
use freshet_metadata::store::{Change, MetadataError, Watch};

pub struct EtcdWatch {
    members: Arc<Members>,
    root: Arc<str>,
    prefix: String,
    /// Changes up to this revision were returned, or are known to be of other keys.
    after: u64,
    /// The stream with the member that serves it; `None` where it broke.
    stream: Option<(WatchStream, usize)>,
}

impl EtcdWatch {
    /// Opens a watch behind a read of the history: etcd reports that the history is lost only after
    /// a watch is open, and does not renew the token of a watch.
    pub async fn open(
        members: Arc<Members>,
        root: Arc<str>,
        prefix: String,
        after: u64,
    ) -> Result<Self, MetadataError> {
        let mut watch = Self { members, root, prefix, after, stream: None };
        watch.ensure_stream().await.map_err(Failure::of_watch)?;
        Ok(watch)
    }

    async fn ensure_stream(&mut self) -> Result<&mut WatchStream, Failure> {
        if self.stream.is_none() {
            self.members.look(&self.prefix, self.after.saturating_add(1)).await?;
            self.stream = Some(self.open_stream().await?);
        }
        Ok(&mut self.stream.as_mut().expect("it was opened if there was none").0)
    }

    async fn open_stream(&self) -> Result<(WatchStream, usize), Failure> {
        let options = WatchOptions::new()
            .with_range(end_of(&self.prefix))
            .with_start_revision(signed(self.after.saturating_add(1)))
            // Without it a watch of keys that rarely change could not be resumed after a
            // compaction.
            .with_progress_notify();
        let (mut client, member) = self.members.watcher().await?;
        let limit = self.members.request_timeout();
        let opened = timeout(limit, client.watch(first_of(&self.prefix), Some(options))).await;
        let opened = opened.map_err(|_| Failure::Lost(no_answer(limit)));
        let opened = opened.and_then(|opened| opened.map_err(|error| failure_of(&error)));
        if opened.is_err() {
            self.members.leave(member);
        }
        Ok((opened?, member))
    }

    /// The changes in an answer; none in a progress notification.
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
        // An answer without events says how far the watch is, except the one that says that the
        // watch was created.
        let reached = match changes.last() {
            Some(change) => change.revision,
            None if answer.created() => self.after,
            None => super::revision_of(answer.header())?,
        };
        self.after = self.after.max(reached);
        Ok(changes)
    }

    fn broken(&mut self, failure: Failure) -> MetadataError {
        if let Some((_, member)) = self.stream.take() {
            self.members.leave(member);
        }
        failure.of_watch()
    }
}

#[async_trait]
impl Watch for EtcdWatch {
    async fn next(&mut self) -> Result<Vec<Change>, MetadataError> {
        loop {
            let stream = self.ensure_stream().await.map_err(Failure::of_watch)?;
            let answer = match stream.message().await {
                Ok(Some(answer)) => Ok(answer),
                Ok(None) => Err(Failure::Lost("etcd ended a watch".to_owned())),
                Err(error) => Err(failure_of(&error)),
            };
            match answer.and_then(|answer| self.changes_of(&answer)) {
                Ok(changes) if changes.is_empty() => {}
                Ok(changes) => return Ok(changes),
                Err(failure) => return Err(self.broken(failure)),
            }
        }
    }
}
