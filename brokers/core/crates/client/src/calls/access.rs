//! What brokers know of users and their rights.

use tokio::time::Instant;

use freshet_access::acl::BindingCodes;

use crate::apis::access::{AclQuery, DescribeUser};
use crate::cluster::{ClusterClient, persist};
use crate::error::{ClientError, KafkaError};

/// Kafka's code for a user that does not exist (RESOURCE_NOT_FOUND).
const NOT_FOUND: i16 = 91;

impl ClusterClient {
    /// The ACLs of a principal.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn acls(
        &self,
        query: &AclQuery,
        deadline: Instant,
    ) -> Result<Vec<BindingCodes>, ClientError> {
        persist(deadline, async || {
            let (code, message, acls) = self.send_anywhere(query).await?;
            KafkaError::check(code, message)?;
            Ok(acls)
        })
        .await
    }

    /// Whether a user has credentials.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn has_user(&self, user: &str, deadline: Instant) -> Result<bool, ClientError> {
        let request = DescribeUser { user: user.to_owned() };
        persist(deadline, async || {
            let (code, message, users) = self.send_anywhere(&request).await?;
            KafkaError::check(code, message)?;
            for (code, credentials) in users {
                if code != NOT_FOUND {
                    KafkaError::check(code, None)?;
                    return Ok(credentials > 0);
                }
            }
            Ok(false)
        })
        .await
    }
}
