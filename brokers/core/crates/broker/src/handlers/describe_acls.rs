//! DescribeAcls: lists the ACL entries that match a filter.

use std::collections::BTreeMap;

use kafka_protocol::messages::describe_acls_response::{AclDescription, DescribeAclsResource};
use kafka_protocol::messages::{DescribeAclsRequest, DescribeAclsResponse};
use kafka_protocol::protocol::StrBytes;

use super::errors::ApiError;
use crate::context::RequestContext;
use freshet_access::acl::{AclFilter, FilterCodes};
use freshet_access::types::{AclBinding, Operation, PatternType, ResourceType};

/// Handles the request.
pub fn handle(context: &RequestContext, request: &DescribeAclsRequest) -> DescribeAclsResponse {
    match find_acls(context, request) {
        Ok(bindings) => DescribeAclsResponse::default()
            .with_error_message(None)
            .with_resources(by_resource(bindings)),
        Err(error) => DescribeAclsResponse::default()
            .with_error_code(error.code())
            .with_error_message(Some(error.text())),
    }
}

fn find_acls(
    context: &RequestContext,
    request: &DescribeAclsRequest,
) -> Result<Vec<AclBinding>, ApiError> {
    if let Some(error) = context.acl_refusal(Operation::Describe) {
        return Err(error);
    }
    let text = |text: &Option<StrBytes>| text.as_ref().map(ToString::to_string);
    let codes = FilterCodes {
        resource_type: request.resource_type_filter,
        resource_name: text(&request.resource_name_filter),
        pattern_type: request.pattern_type_filter,
        principal: text(&request.principal_filter),
        host: text(&request.host_filter),
        operation: request.operation,
        permission: request.permission_type,
    };
    let filter = AclFilter::try_from(codes)
        .map_err(|error| ApiError::new(error.kafka_error(), error.to_string()))?;
    let acls = context.broker().acls();
    Ok(acls.iter().flat_map(|acls| acls.matching(&filter)).cloned().collect())
}

fn by_resource(bindings: Vec<AclBinding>) -> Vec<DescribeAclsResource> {
    let mut resources: BTreeMap<(ResourceType, String, PatternType), Vec<AclDescription>> =
        BTreeMap::new();
    for binding in bindings {
        let description = AclDescription::default()
            .with_principal(StrBytes::from_string(binding.principal))
            .with_host(StrBytes::from_string(binding.host))
            .with_operation(binding.operation.code())
            .with_permission_type(binding.permission.code());
        let resource = (binding.resource_type, binding.resource_name, binding.pattern_type);
        resources.entry(resource).or_default().push(description);
    }
    let resources = resources.into_iter().map(|((kind, name, pattern), acls)| {
        DescribeAclsResource::default()
            .with_resource_type(kind.code())
            .with_resource_name(StrBytes::from_string(name))
            .with_pattern_type(pattern.code())
            .with_acls(acls)
    });
    resources.collect()
}
