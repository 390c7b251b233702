//! CreateAcls: adds ACL entries.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_acls_request::AclCreation;
use kafka_protocol::messages::create_acls_response::AclCreationResult;
use kafka_protocol::messages::{CreateAclsRequest, CreateAclsResponse};

use super::errors::ApiError;
use crate::context::RequestContext;
use freshet_access::acl::BindingCodes;
use freshet_access::types::{AclBinding, Operation};
use freshet_metadata::cluster::{AddedAcls, ClusterError, check_acl};

/// Handles the request. The response is sent once the entries are in force on this broker.
pub async fn handle(context: &RequestContext, request: CreateAclsRequest) -> CreateAclsResponse {
    let refused = context.acl_refusal(Operation::Alter);
    let checked: Vec<Result<AclBinding, ApiError>> = request
        .creations
        .into_iter()
        .map(|creation| match &refused {
            Some(error) => Err(error.clone()),
            None => binding(context, &creation),
        })
        .collect();
    let bindings: Vec<AclBinding> =
        checked.iter().filter_map(|checked| checked.as_ref().ok()).cloned().collect();
    let mut added = add_acls(context, &bindings).await.into_iter();
    let results = checked.into_iter().map(|checked| {
        let outcome = checked.and_then(|_| added.next().expect("an outcome of each entry"));
        let result = AclCreationResult::default();
        match outcome {
            Ok(()) => result.with_error_message(None),
            Err(error) => {
                result.with_error_code(error.code()).with_error_message(Some(error.text()))
            }
        }
    });
    CreateAclsResponse::default().with_results(results.collect())
}

fn binding(context: &RequestContext, creation: &AclCreation) -> Result<AclBinding, ApiError> {
    let codes = BindingCodes {
        resource_type: creation.resource_type,
        resource_name: creation.resource_name.to_string(),
        pattern_type: creation.resource_pattern_type,
        principal: creation.principal.to_string(),
        host: creation.host.to_string(),
        operation: creation.operation,
        permission: creation.permission_type,
    };
    let binding = AclBinding::try_from(codes)
        .map_err(|error| ApiError::new(error.kafka_error(), error.to_string()))?;
    check_acl(&binding).map_err(|error| context.broker().metadata_error(&error))?;
    Ok(binding)
}

/// Adds entries, each by itself, as many as may be made now. Returns the outcome of each.
async fn add_acls(context: &RequestContext, bindings: &[AclBinding]) -> Vec<Result<(), ApiError>> {
    if bindings.is_empty() {
        return Vec::new();
    }
    match add_those_that_fit(context, bindings).await {
        Ok((added, later)) => {
            let refusal = added.refusal.map(ClusterError::from);
            let refusal = refusal.map(|error| context.broker().metadata_error(&error));
            let outcome = |is_refused: bool| match &refusal {
                Some(refusal) if is_refused => Err(refusal.clone()),
                _ => Ok(()),
            };
            let outcomes = added.refused.into_iter().map(outcome);
            // Those behind them may not be made now.
            let outcomes = outcomes.chain(later.into_iter().map(Err).cycle());
            outcomes.take(bindings.len()).collect()
        }
        Err(error) => vec![Err(error); bindings.len()],
    }
}

/// Adds those entries that may be made now and fit in the limits. Returns what came of them, and
/// why the entries behind them may not be made.
async fn add_those_that_fit(
    context: &RequestContext,
    bindings: &[AclBinding],
) -> Result<(AddedAcls, Option<ApiError>), ApiError> {
    let broker = context.broker();
    let admitted = context.admit_up_to(bindings.len()).await?;
    let (metadata, bindings) = (admitted.metadata, &bindings[..admitted.count]);
    let added = metadata.add_acls_that_fit(broker.engine.fence(), bindings).await;
    let added = added.map_err(|error| broker.metadata_error(&error))?;
    broker.await_revision(added.revision).await?;
    Ok((added, admitted.refusal))
}

impl RequestContext {
    /// The error with which this client is refused an operation on the ACLs; `None` where it may.
    pub(super) fn acl_refusal(&self, operation: Operation) -> Option<ApiError> {
        if self.broker().acls().is_none() {
            let message = "No Authorizer is configured on the broker";
            return Some(ApiError::new(ResponseError::SecurityDisabled, message));
        }
        (!self.may_cluster(operation)).then(|| ResponseError::ClusterAuthorizationFailed.into())
    }
}
