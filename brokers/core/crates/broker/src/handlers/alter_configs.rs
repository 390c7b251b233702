//! AlterConfigs: replaces all configs of a resource. Kafka keeps it for old clients; new ones use
//! IncrementalAlterConfigs.

use kafka_protocol::messages::alter_configs_request::AlterConfigsResource;
use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{AlterConfigsRequest, AlterConfigsResponse};

use super::config_changes::{Alteration, Resource, alter_configs, repeated_resources};
use crate::context::RequestContext;

/// Handles the request. The response is sent once the changes are in effect on this broker.
pub async fn handle(
    context: &RequestContext,
    request: AlterConfigsRequest,
) -> AlterConfigsResponse {
    let repeated = repeated_resources(request.resources.iter().map(resource));
    let mut responses = Vec::with_capacity(request.resources.len());
    for altered in &request.resources {
        let resource = resource(altered);
        let response = AlterConfigsResourceResponse::default()
            .with_resource_type(altered.resource_type)
            .with_resource_name(altered.resource_name.clone());
        let configs = altered.configs.iter();
        let configs = configs.map(|config| {
            (config.name.to_string(), config.value.as_ref().map(ToString::to_string))
        });
        let alteration = Alteration::Replace(configs.collect());
        let outcome = match repeated.refuse(&resource) {
            Ok(()) => alter_configs(context, &resource, alteration, request.validate_only).await,
            Err(error) => Err(error),
        };
        responses.push(match outcome {
            Ok(()) => response.with_error_message(None),
            Err(error) => {
                response.with_error_code(error.code()).with_error_message(Some(error.text()))
            }
        });
    }
    AlterConfigsResponse::default().with_responses(responses)
}

fn resource(altered: &AlterConfigsResource) -> Resource {
    Resource { code: altered.resource_type, name: altered.resource_name.to_string() }
}
