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

    /// Sets the password of a user for some mechanisms, for all of them or for none. It takes
    /// milliseconds of processor time for each.
    ///
    /// # Errors
    /// [`AdminError::Invalid`] where an argument is not acceptable; [`AdminError::NotFound`] where
    /// the cluster has no record; those of the metadata store.
    pub async fn set_user(
        &self,
        user: &str,
        password: &str,
        mechanisms: &[String],
        iterations: Option<u32>,
    ) -> Result<(), AdminError> {
        let mut chosen = Vec::new();
        for name in mechanisms {
            let known = MECHANISMS.into_iter().find(|known| known.name() == name);
            let new = known.filter(|mechanism| !chosen.contains(mechanism));
            chosen.push(new.ok_or_else(unknown_mechanism)?);
        }
        if chosen.is_empty() {
            return Err(unknown_mechanism());
        }
        self.require_record().await?;
        let iterations = iterations.unwrap_or(ITERATIONS_MIN);
        let randomness = self.randomness.as_ref();
        let credential = |mechanism| {
            let made = ScramCredential::from_password(password, mechanism, iterations, randomness);
            Ok((mechanism, Some(made.map_err(|error| invalid_password(&error))?)))
        };
        let changes = chosen.into_iter().map(credential).collect::<Result<Vec<_>, AdminError>>()?;
        self.metadata.alter_scram(None, user, &changes).await?;
        Ok(())
    }

    /// Removes a user, with the passwords for all mechanisms. Returns whether there was one.
    ///
    /// # Errors
    /// [`AdminError::Invalid`]; those of the metadata store.
    pub async fn remove_user(&self, user: &str) -> Result<bool, AdminError> {
        let changes = MECHANISMS.map(|mechanism| (mechanism, None));
        Ok(self.metadata.alter_scram(None, user, &changes).await? > 0)
    }
}

fn unknown_mechanism() -> AdminError {
    AdminError::invalid("mechanisms", "SCRAM-SHA-256, SCRAM-SHA-512 or both".to_owned())
}

fn invalid_password(error: &CredentialError) -> AdminError {
    let field = match error {
        CredentialError::TooFewIterations | CredentialError::TooManyIterations => "iterations",
        CredentialError::Empty(_)
        | CredentialError::SaltTooLong
        | CredentialError::SaltedPasswordLength(_) => "password",
    };
    AdminError::invalid(field, error.to_string())
}
