//! Users and their passwords.

use serde::Serialize;

use super::{AdminError, ClusterAdmin};
use freshet_access::derivation::{CredentialError, ITERATIONS_MIN};
use freshet_access::types::{ScramCredential, ScramMechanism};

/// A user that has a password for a mechanism. It contains nothing derived from the password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UserFacts {
    /// The user.
    pub user: String,
    /// The mechanism for which it has one.
    pub mechanism: ScramMechanism,
    /// The PBKDF2 iterations.
    pub iterations: u32,
}

const MECHANISMS: [ScramMechanism; 2] = [ScramMechanism::Sha256, ScramMechanism::Sha512];

impl ClusterAdmin {
    /// Lists all users, sorted by name.
    ///
    /// # Errors
    /// Those of the metadata store (see [`AdminError`]).
    pub async fn list_users(&self) -> Result<Vec<UserFacts>, AdminError> {
        let records = self.metadata.list_scram().await?.into_iter();
        let facts = records.map(|record| UserFacts {
            user: record.user,
            mechanism: record.mechanism,
            iterations: record.credential.iterations,
        });
        let mut facts: Vec<UserFacts> = facts.collect();
        facts.sort_by(|one, other| (&one.user, one.mechanism).cmp(&(&other.user, other.mechanism)));
        Ok(facts)
    }

    /// Sets the password of a user. It takes milliseconds of processor time.
    ///
    /// # Errors
    /// [`AdminError::Invalid`] where an argument is not acceptable; [`AdminError::NotFound`] where
    /// the cluster has no record; those of the metadata store.
    pub async fn set_user(
        &self,
        user: &str,
        password: &str,
        mechanism: &str,
        iterations: Option<u32>,
    ) -> Result<(), AdminError> {
        let known = MECHANISMS.into_iter().find(|known| known.name() == mechanism);
        let mechanism = known.ok_or_else(|| {
            AdminError::invalid("mechanism", "SCRAM-SHA-256 or SCRAM-SHA-512".to_owned())
        })?;
        self.require_record().await?;
        let iterations = iterations.unwrap_or(ITERATIONS_MIN);
        let randomness = self.randomness.as_ref();
        let made = ScramCredential::from_password(password, mechanism, iterations, randomness);
        let credential = made.map_err(|error| {
            let field = match error {
                CredentialError::TooFewIterations | CredentialError::TooManyIterations => {
                    "iterations"
                }
                CredentialError::Empty(_) | CredentialError::SaltedPasswordLength(_) => "password",
            };
            AdminError::invalid(field, error.to_string())
        })?;
        self.metadata.set_scram(None, user, mechanism, credential).await?;
        Ok(())
    }

    /// Removes a user, with the passwords for all mechanisms. Returns whether there was one.
    ///
    /// # Errors
    /// [`AdminError::Invalid`]; those of the metadata store.
    pub async fn remove_user(&self, user: &str) -> Result<bool, AdminError> {
        let mut last = 0;
        for mechanism in MECHANISMS {
            last = last.max(self.metadata.remove_scram(None, user, mechanism).await?);
        }
        Ok(last > 0)
    }
}
