//! IncrementalAlterConfigs: sets and removes single configs, and adds to or removes from lists.

use kafka_protocol::messages::incremental_alter_configs_request::AlterConfigsResource;
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};

use super::config_changes::{Alteration, Resource, alter_configs, repeated_resources};
use super::errors::ApiError;
use crate::context::RequestContext;
use freshet_configs::{ConfigChange, ConfigOperation};

/// Handles the request. The response is sent once the changes are in effect on this broker.
pub async fn handle(
    context: &RequestContext,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse {
    let repeated = repeated_resources(request.resources.iter().map(resource));
    let mut responses = Vec::with_capacity(request.resources.len());
    for altered in &request.resources {
        let resource = resource(altered);
        let response = AlterConfigsResourceResponse::default()
            .with_resource_type(altered.resource_type)
            .with_resource_name(altered.resource_name.clone());
        let checked = repeated.refuse(&resource).and_then(|()| parse_changes(altered));
        let outcome = match checked {
            Ok(changes) => {
                let alteration = Alteration::Change(changes);
                alter_configs(context, &resource, alteration, request.validate_only).await
            }
            Err(error) => Err(error),
        };
        responses.push(match outcome {
            Ok(()) => response.with_error_message(None),
            Err(error) => {
                response.with_error_code(error.code()).with_error_message(Some(error.text()))
            }
        });
    }
    IncrementalAlterConfigsResponse::default().with_responses(responses)
}

fn resource(altered: &AlterConfigsResource) -> Resource {
    Resource { code: altered.resource_type, name: altered.resource_name.to_string() }
}

fn parse_changes(altered: &AlterConfigsResource) -> Result<Vec<ConfigChange>, ApiError> {
    let change =
        |config: &kafka_protocol::messages::incremental_alter_configs_request::AlterableConfig| {
            Ok(ConfigChange {
                name: config.name.to_string(),
                operation: ConfigOperation::from_code(config.config_operation)?,
                value: config.value.as_ref().map(ToString::to_string),
            })
        };
    altered.configs.iter().map(change).collect()
}
