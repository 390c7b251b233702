//! DescribeUserScramCredentials: which users have passwords, and by which mechanisms. It never
//! returns anything derived from a password.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_user_scram_credentials_response::{
    CredentialInfo, DescribeUserScramCredentialsResult,
};
use kafka_protocol::messages::{
    DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::errors::ApiError;
use crate::context::RequestContext;
use freshet_access::types::{Operation, ScramMechanism};

/// The protocol's code of a mechanism (`ScramMechanism.java`).
pub(super) fn mechanism_code(mechanism: ScramMechanism) -> i8 {
    match mechanism {
        ScramMechanism::Sha256 => 1,
        ScramMechanism::Sha512 => 2,
    }
}

/// Handles the request. A request without users asks for all of them.
pub fn handle(
    context: &RequestContext,
    request: DescribeUserScramCredentialsRequest,
) -> DescribeUserScramCredentialsResponse {
    let response = DescribeUserScramCredentialsResponse::default();
    if !context.may_cluster(Operation::Describe) {
        let error = ApiError::from(ResponseError::ClusterAuthorizationFailed);
        return response.with_error_code(error.code()).with_error_message(Some(error.text()));
    }
    let scram = Arc::clone(&context.broker().engine.view.snapshot().scram);
    let mut users: BTreeMap<&str, Vec<CredentialInfo>> = BTreeMap::new();
    for ((mechanism, user), credential) in scram.iter() {
        if context.hides_user(user) {
            continue;
        }
        let info = CredentialInfo::default()
            .with_mechanism(mechanism_code(*mechanism))
            .with_iterations(i32::try_from(credential.iterations).unwrap_or(i32::MAX));
        users.entry(user).or_default().push(info);
    }
    let mut requested: BTreeMap<String, usize> = BTreeMap::new();
    for user in request.users.unwrap_or_default() {
        *requested.entry(user.name.to_string()).or_default() += 1;
    }
    if requested.is_empty() {
        requested = users.keys().map(|user| ((*user).to_owned(), 1)).collect();
    }
    let results = requested.into_iter().map(|(user, count)| {
        let outcome = if count > 1 {
            let message = format!(
                "Cannot describe SCRAM credentials for the same user twice in a single request: \
                 {user}"
            );
            Err(ApiError::new(ResponseError::DuplicateResource, message))
        } else {
            users.get(user.as_str()).cloned().ok_or_else(|| {
                let message =
                    format!("Attempt to describe a user credential that does not exist: {user}");
                ApiError::new(ResponseError::ResourceNotFound, message)
            })
        };
        let result =
            DescribeUserScramCredentialsResult::default().with_user(StrBytes::from_string(user));
        match outcome {
            Ok(infos) => result.with_error_message(None).with_credential_infos(infos),
            Err(error) => {
                result.with_error_code(error.code()).with_error_message(Some(error.text()))
            }
        }
    });
    response.with_error_message(None).with_results(results.collect())
}
