//! How many changes a client may make now: as many as the cluster's rate allows, and as there is
//! room for until the control plane has taken them into the audit log.

use std::time::Duration;

use kafka_protocol::ResponseError;

use super::errors::ApiError;
use crate::context::RequestContext;
use freshet_metadata::{ClusterError, ClusterMetadata};

/// After this time the control plane has taken changes into the audit log, where it runs.
const TAKEN_AFTER: Duration = Duration::from_secs(5);

/// Changes that may be made now.
pub(super) struct Admitted {
    /// Makes them.
    pub(super) metadata: ClusterMetadata,
    /// How many may be made: the first ones of those that were asked for.
    pub(super) count: usize,
    /// Why the others may not; `None` where all may.
    pub(super) refusal: Option<ApiError>,
}

impl RequestContext {
    /// The metadata, for so many changes that are made together or not at all.
    ///
    /// # Errors
    /// THROTTLING_QUOTA_EXCEEDED; those of the metadata store.
    pub(super) async fn admit(&self, changes: usize) -> Result<ClusterMetadata, ApiError> {
        let (metadata, room) = self.room().await?;
        if room < changes {
            return Err(self.no_room());
        }
        if self.is_metered() && !self.broker().quotas.changes.take_all(changes) {
            return Err(self.too_fast());
        }
        Ok(metadata)
    }

    /// The metadata, for as many of these changes as may be made, each by itself.
    ///
    /// # Errors
    /// As [`RequestContext::admit`], where none may be made.
    pub(super) async fn admit_up_to(&self, changes: usize) -> Result<Admitted, ApiError> {
        let (metadata, room) = self.room().await?;
        let fitting = changes.min(room);
        let meter = &self.broker().quotas.changes;
        let count = if self.is_metered() { meter.take_up_to(fitting) } else { fitting };
        let refusal = if count < fitting {
            Some(self.too_fast())
        } else if fitting < changes {
            Some(self.no_room())
        } else {
            None
        };
        match refusal {
            Some(refusal) if count == 0 => Err(refusal),
            refusal => Ok(Admitted { metadata, count, refusal }),
        }
    }

    /// The metadata, for as many of these changes as there is room for, where the rate allows one:
    /// for what a client cannot ask for in smaller parts. What is beyond the rate is owed.
    ///
    /// # Errors
    /// As [`RequestContext::admit`].
    pub(super) async fn admit_owing(
        &self,
        changes: usize,
    ) -> Result<(ClusterMetadata, usize), ApiError> {
        let (_, room) = self.room().await?;
        if room == 0 && changes > 0 {
            return Err(self.no_room());
        }
        let fitting = changes.min(room);
        Ok((self.admit(fitting).await?, fitting))
    }

    /// The refusal of a change that came too fast.
    fn too_fast(&self) -> ApiError {
        let pause = self.broker().quotas.changes.pause();
        self.ask_to_pause(pause);
        let seconds = pause.as_secs_f64();
        let message = format!(
            "limit changes_per_second is reached by all clients of the cluster together; try again \
             in {seconds:.1} s"
        );
        ApiError::new(ResponseError::ThrottlingQuotaExceeded, message)
    }

    fn no_room(&self) -> ApiError {
        // It counts, so that whoever asks again and again is refused before the store is asked.
        self.broker().quotas.changes.take_up_to(1);
        self.ask_to_pause(TAKEN_AFTER);
        self.broker().metadata_error(&ClusterError::ChangesWait)
    }

    /// The metadata, and how many changes can be kept for the audit log now.
    ///
    /// # Errors
    /// As [`RequestContext::admit`], where the rate allows none: the store is not asked then, which
    /// other clusters share.
    async fn room(&self) -> Result<(ClusterMetadata, usize), ApiError> {
        if self.is_metered() && !self.broker().quotas.changes.pause().is_zero() {
            return Err(self.too_fast());
        }
        let metadata = self.metadata();
        let room = metadata.room_for_changes().await;
        let room = room.map_err(|error| self.broker().metadata_error(&error))?;
        Ok((metadata, usize::try_from(room).unwrap_or(usize::MAX)))
    }

    /// Whether its changes count: those of the service itself do not.
    fn is_metered(&self) -> bool {
        !self.is_super_user(&self.client.principal)
    }
}
