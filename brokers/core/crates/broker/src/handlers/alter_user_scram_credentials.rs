//! AlterUserScramCredentials: sets and removes the passwords of users, which the client has salted
//! and hashed.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::alter_user_scram_credentials_request::ScramCredentialUpsertion;
use kafka_protocol::messages::alter_user_scram_credentials_response as response;
use kafka_protocol::messages::{
    AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::describe_user_scram_credentials::mechanism_code;
use super::errors::ApiError;
use crate::context::RequestContext;
use freshet_access::types::{Operation, ScramCredential, ScramMechanism};
use freshet_metadata::names::SERVICE_NAMES;

/// The change of one credential: the new one, or `None` where it is to be removed.
type Change = Result<(ScramMechanism, Option<ScramCredential>), ApiError>;

/// Handles the request. Each user is changed as a whole or not at all; then the response has the
/// first error. It is sent once the changes are in force on this broker.
pub async fn handle(
    context: &RequestContext,
    request: AlterUserScramCredentialsRequest,
) -> AlterUserScramCredentialsResponse {
    let mut users: BTreeMap<String, Vec<Change>> = BTreeMap::new();
    for deletion in request.deletions {
        let user = deletion.name.to_string();
        let change = mechanism(deletion.mechanism).map(|mechanism| (mechanism, None));
        users.entry(user).or_default().push(change);
    }
    for upsertion in request.upsertions {
        let user = upsertion.name.to_string();
        users.entry(user).or_default().push(credential(&upsertion));
    }
    let may_alter = context.may_cluster(Operation::Alter);
    let mut results = Vec::with_capacity(users.len());
    for (user, changes) in users {
        // Whoever sets a super user's password can become one, so only super users may. To others
        // there is nothing that could be removed.
        let is_hidden = context.hides_user(&user);
        let outcome = if !may_alter || (is_hidden && changes.iter().any(is_upsertion)) {
            Err(ResponseError::ClusterAuthorizationFailed.into())
        } else {
            alter_credentials(context, &user, changes).await
        };
        let result = response::AlterUserScramCredentialsResult::default();
        let result = result.with_user(StrBytes::from_string(user));
        results.push(match outcome {
            Ok(()) => result.with_error_message(None),
            Err(error) => {
                result.with_error_code(error.code()).with_error_message(Some(error.text()))
            }
        });
    }
    AlterUserScramCredentialsResponse::default().with_results(results)
}

fn is_upsertion(change: &Change) -> bool {
    matches!(change, Ok((_, Some(_))))
}

fn mechanism(code: i8) -> Result<ScramMechanism, ApiError> {
    let known = [ScramMechanism::Sha256, ScramMechanism::Sha512];
    known.into_iter().find(|known| mechanism_code(*known) == code).ok_or_else(|| {
        ApiError::new(ResponseError::UnsupportedSaslMechanism, "Unknown SCRAM mechanism")
    })
}

fn credential(upsertion: &ScramCredentialUpsertion) -> Change {
    let mechanism = mechanism(upsertion.mechanism)?;
    // A negative number becomes 0, which is refused as being below the least number.
    let iterations = u32::try_from(upsertion.iterations).unwrap_or(0);
    let (salted, salt) = (&upsertion.salted_password, &upsertion.salt);
    let made = ScramCredential::from_salted_password(salted, mechanism, iterations, salt);
    made.map(|credential| (mechanism, Some(credential)))
        .map_err(|error| ApiError::new(ResponseError::UnacceptableCredential, error.to_string()))
}

async fn alter_credentials(
    context: &RequestContext,
    user: &str,
    changes: Vec<Change>,
) -> Result<(), ApiError> {
    let changes = changes.into_iter().collect::<Result<Vec<_>, _>>()?;
    check_changes(context, user, &changes)?;
    let broker = context.broker();
    let (metadata, fence) = (context.admit(changes.len()).await?, broker.engine.fence());
    let changed = metadata.alter_scram(fence, user, &changes).await;
    let revision = changed.map_err(|error| broker.metadata_error(&error))?;
    broker.await_revision(revision).await
}

fn check_changes(
    context: &RequestContext,
    user: &str,
    changes: &[(ScramMechanism, Option<ScramCredential>)],
) -> Result<(), ApiError> {
    if user.is_empty() {
        let message = "Username must not be empty";
        return Err(ApiError::new(ResponseError::UnacceptableCredential, message));
    }
    let scram = Arc::clone(&context.broker().engine.view.snapshot().scram);
    let is_new = || !scram.keys().any(|(_, name)| name == user);
    if user.starts_with(SERVICE_NAMES) && changes.iter().any(|(_, new)| new.is_some()) && is_new() {
        let message = "Names that begin with cred_ are the service's: choose another";
        return Err(ApiError::new(ResponseError::UnacceptableCredential, message));
    }
    for (at, (mechanism, credential)) in changes.iter().enumerate() {
        if changes[..at].iter().any(|(earlier, _)| earlier == mechanism) {
            let message = "A user credential cannot be altered twice in the same request";
            return Err(ApiError::new(ResponseError::DuplicateResource, message));
        }
        let is_there = || scram.contains_key(&(*mechanism, user.to_owned()));
        if credential.is_none() && (context.hides_user(user) || !is_there()) {
            let message = "Attempt to delete a user credential that does not exist";
            return Err(ApiError::new(ResponseError::ResourceNotFound, message));
        }
    }
    Ok(())
}
