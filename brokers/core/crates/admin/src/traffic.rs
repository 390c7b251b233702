//! The limit of what a cluster's clients produce and fetch.

use super::{AdminError, ClusterAdmin};
use freshet_metadata::schema::TrafficLimit;

/// The most characters of a limit's reason.
const REASON_CHARACTERS_MAX: usize = 1024;

impl ClusterAdmin {
    /// Limits what clients produce and fetch, now and after every start of a broker, but not what
    /// the service does for itself; `None` lifts the limit. Returns the limit that held before.
    ///
    /// # Errors
    /// [`AdminError::NotFound`] where the cluster has no record; [`AdminError::Invalid`] where the
    /// reason is empty or too long, or the rate is 0; those of the metadata store.
    pub async fn set_traffic_limit(
        &self,
        limit: Option<&TrafficLimit>,
    ) -> Result<Option<TrafficLimit>, AdminError> {
        if let Some(limit) = limit {
            let characters = limit.reason().chars().count();
            if limit.reason().trim().is_empty() || characters > REASON_CHARACTERS_MAX {
                let message = format!(
                    "a reason has 1 to {REASON_CHARACTERS_MAX} characters, not {characters}"
                );
                return Err(AdminError::invalid("reason", message));
            }
            if limit.throttle_bytes_per_s() == Some(0) {
                return Err(AdminError::invalid("bytes_per_s", "a rate is above 0"));
            }
            self.require_record().await?;
        }
        Ok(self.metadata.set_traffic_limit(limit).await?)
    }

    /// The limit of what clients produce and fetch; `None` where there is none.
    ///
    /// # Errors
    /// Those of the metadata store (see [`AdminError`]).
    pub async fn traffic_limit(&self) -> Result<Option<TrafficLimit>, AdminError> {
        Ok(self.metadata.traffic_limit().await?)
    }
}
