//! Watching: reads of the change table, triggered by this handle's own commits at once and by
//! those of other processes through a poll of `PRAGMA data_version`, which reads shared memory.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use super::{Inner, tables};
use crate::store::{Change, MetadataError, Watch};

pub struct SqliteWatch {
    inner: Arc<Inner>,
    prefix: String,
    /// Changes up to this revision were returned or do not match the prefix.
    after: u64,
    /// The `data_version` of the reading connection before its last read of the table.
    data_version: Option<i64>,
    committed: watch::Receiver<u64>,
    /// The changes that were read when the watch was made, which checked the history.
    first: Vec<Change>,
}

impl SqliteWatch {
    pub async fn open(inner: Arc<Inner>, prefix: &str, after: u64) -> Result<Self, MetadataError> {
        let committed = inner.committed.subscribe();
        let mut watch = Self {
            inner,
            prefix: prefix.to_owned(),
            after,
            data_version: None,
            committed,
            first: Vec::new(),
        };
        watch.first = watch.read().await?;
        Ok(watch)
    }

    /// Reads new changes. Nothing of `self` changes before the last await, so a dropped call loses
    /// nothing.
    async fn read(&mut self) -> Result<Vec<Change>, MetadataError> {
        let (prefix, after, seen) = (self.prefix.clone(), self.after, self.data_version);
        let inline = self.inner.inline;
        let (data_version, history) = self
            .inner
            .read(move |connection| {
                // The version is read before the table: a commit between the two is read now, and
                // costs one more read that returns nothing. In the other order it would be missed.
                let version = if inline { None } else { Some(tables::data_version(connection)?) };
                if version.is_some() && version == seen {
                    return Ok((version, None));
                }
                Ok((version, Some(tables::history(connection, &prefix, after)?)))
            })
            .await?;
        let Some(history) = history else { return Ok(Vec::new()) };
        self.after = history.read_up_to;
        // The limit was reached: there is more, although no further commit will announce it.
        self.data_version = if history.complete { data_version } else { None };
        Ok(history.changes)
    }
}

#[async_trait]
impl Watch for SqliteWatch {
    async fn next(&mut self) -> Result<Vec<Change>, MetadataError> {
        if !self.first.is_empty() {
            return Ok(std::mem::take(&mut self.first));
        }
        loop {
            self.committed.borrow_and_update();
            let changes = self.read().await?;
            if !changes.is_empty() {
                return Ok(changes);
            }
            let poll = self.inner.options.poll_interval;
            if self.inner.inline {
                // The sender lives as long as `inner`.
                self.committed.changed().await.map_err(closed)?;
                continue;
            }
            tokio::select! {
                biased;
                changed = self.committed.changed() => changed.map_err(closed)?,
                () = tokio::time::sleep(poll) => {}
            }
        }
    }
}

fn closed(_: watch::error::RecvError) -> MetadataError {
    MetadataError::Unavailable("the store was closed".to_owned())
}
