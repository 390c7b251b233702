//! DeleteAcls: removes the ACL entries that match filters.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::delete_acls_request::DeleteAclsFilter;
use kafka_protocol::messages::delete_acls_response::{
    DeleteAclsFilterResult, DeleteAclsMatchingAcl,
};
use kafka_protocol::messages::{DeleteAclsRequest, DeleteAclsResponse};
use kafka_protocol::protocol::StrBytes;

use super::errors::ApiError;
use crate::context::RequestContext;
use freshet_access::acl::{AclFilter, FilterCodes};
use freshet_access::types::{AclBinding, Operation};

/// Handles the request. The response is sent once the entries are no longer in force on this
/// broker.
pub async fn handle(context: &RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse {
    let mut results = Vec::with_capacity(request.filters.len());
    for filter in request.filters {
        let result = DeleteAclsFilterResult::default();
        results.push(match delete_matching(context, filter).await {
            Ok(deleted) => {
                let deleted = deleted.into_iter().map(matching_acl).collect();
                result.with_error_message(None).with_matching_acls(deleted)
            }
            Err(error) => {
                result.with_error_code(error.code()).with_error_message(Some(error.text()))
            }
        });
    }
    DeleteAclsResponse::default().with_filter_results(results)
}

async fn delete_matching(
    context: &RequestContext,
    requested: DeleteAclsFilter,
) -> Result<Vec<AclBinding>, ApiError> {
    if let Some(error) = context.acl_refusal(Operation::Alter) {
        return Err(error);
    }
    let text = |text: Option<StrBytes>| text.map(|text| text.to_string());
    let codes = FilterCodes {
        resource_type: requested.resource_type_filter,
        resource_name: text(requested.resource_name_filter),
        pattern_type: requested.pattern_type_filter,
        principal: text(requested.principal_filter),
        host: text(requested.host_filter),
        operation: requested.operation,
        permission: requested.permission_type,
    };
    let filter = AclFilter::try_from(codes)
        .map_err(|error| ApiError::new(error.kafka_error(), error.to_string()))?;
    let broker = context.broker();
    let stored =
        broker.engine.metadata.list_acls().await.map_err(|error| broker.metadata_error(&error))?;
    let mut matched: Vec<AclBinding> =
        stored.into_iter().filter(|binding| filter.matches(binding)).collect();
    matched.sort();
    if matched.is_empty() {
        return Ok(matched);
    }
    let (metadata, admitted) = context.admit_owing(matched.len()).await?;
    let removed = metadata.remove_acls(broker.engine.fence(), &matched[..admitted]).await;
    let revision = removed.map_err(|error| broker.metadata_error(&error))?;
    broker.await_revision(revision).await?;
    if admitted < matched.len() {
        let all = matched.len();
        let message = format!("{admitted} of {all} entries were removed; try again for the others");
        return Err(ApiError::new(ResponseError::ThrottlingQuotaExceeded, message));
    }
    Ok(matched)
}

fn matching_acl(binding: AclBinding) -> DeleteAclsMatchingAcl {
    DeleteAclsMatchingAcl::default()
        .with_error_message(None)
        .with_resource_type(binding.resource_type.code())
        .with_resource_name(StrBytes::from_string(binding.resource_name))
        .with_pattern_type(binding.pattern_type.code())
        .with_principal(StrBytes::from_string(binding.principal))
        .with_host(StrBytes::from_string(binding.host))
        .with_operation(binding.operation.code())
        .with_permission_type(binding.permission.code())
}
