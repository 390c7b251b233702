//! DescribeConfigs: configs of topics and brokers.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use super::config_changes::parse_node_id;
use super::errors::ApiError;
use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_configs::topic::describe_topic;
use freshet_configs::{ConfigEntry, ConfigResourceType};
use freshet_metadata::names::check_topic_name;

/// Handles the request.
pub fn handle(
    context: &RequestContext,
    request: &DescribeConfigsRequest,
) -> DescribeConfigsResponse {
    let shows = Shows {
        synonyms: request.include_synonyms,
        types: context.api_version >= 3,
        documentation: request.include_documentation,
    };
    let results = request.resources.iter().map(|resource| {
        let result = DescribeConfigsResult::default()
            .with_resource_type(resource.resource_type)
            .with_resource_name(resource.resource_name.clone());
        match describe_resource(context, resource) {
            Ok(entries) => {
                let configs = entries.into_iter().map(|entry| shows.entry(entry)).collect();
                result.with_error_message(None).with_configs(configs)
            }
            Err(error) => {
                result.with_error_code(error.code()).with_error_message(Some(error.text()))
            }
        }
    });
    DescribeConfigsResponse::default().with_results(results.collect())
}

fn describe_resource(
    context: &RequestContext,
    resource: &DescribeConfigsResource,
) -> Result<Vec<ConfigEntry>, ApiError> {
    let broker = context.broker();
    let name = resource.resource_name.as_str();
    let keys: Option<Vec<String>> = resource
        .configuration_keys
        .as_ref()
        // Java's clients ask for all configs by an absent list, some others by an empty one.
        .filter(|keys| !keys.is_empty())
        .map(|keys| keys.iter().map(ToString::to_string).collect());
    match ConfigResourceType::from_code(resource.resource_type)? {
        ConfigResourceType::Topic => {
            if !context.may_topic(Operation::DescribeConfigs, name) {
                return Err(ResponseError::TopicAuthorizationFailed.into());
            }
            check_topic_name(name).map_err(|error| {
                ApiError::new(ResponseError::InvalidTopicException, error.to_string())
            })?;
            let known = broker.engine.view.topics().by_name(name).cloned();
            let topic = known.ok_or(ResponseError::UnknownTopicOrPartition)?;
            Ok(describe_topic(&topic.record.configs, &broker.config(), keys.as_deref()))
        }
        ConfigResourceType::Broker => {
            if !context.may_cluster(Operation::DescribeConfigs) {
                return Err(ResponseError::ClusterAuthorizationFailed.into());
            }
            if name.is_empty() {
                return Ok(broker.config().describe_shared(keys.as_deref()));
            }
            let node_id = parse_node_id(name)?;
            let node = context.named_node(node_id).ok_or_else(|| {
                let own = broker.engine.node_id;
                let message = format!(
                    "Unexpected broker id, expected {own} or empty string, but received {name}"
                );
                ApiError::new(ResponseError::InvalidRequest, message)
            })?;
            let config = broker.config_of(node.slot);
            Ok(config.describe(node.node_id, node.zone, keys.as_deref()))
        }
    }
}

/// Which parts of an entry the response contains.
#[derive(Clone, Copy)]
struct Shows {
    synonyms: bool,
    types: bool,
    documentation: bool,
}

impl Shows {
    fn entry(self, entry: ConfigEntry) -> DescribeConfigsResourceResult {
        let synonyms = entry.synonyms.iter().filter(|_| self.synonyms).map(|synonym| {
            DescribeConfigsSynonym::default()
                .with_name(StrBytes::from_string(synonym.name.clone()))
                .with_value(Some(StrBytes::from_string(synonym.value.clone())))
                .with_source(synonym.source as i8)
        });
        let result = DescribeConfigsResourceResult::default()
            .with_name(StrBytes::from_static_str(entry.name))
            .with_value(entry.value.clone().map(StrBytes::from_string))
            .with_read_only(entry.read_only)
            .with_config_source(entry.source as i8)
            .with_is_sensitive(entry.is_sensitive())
            .with_synonyms(synonyms.collect())
            .with_documentation(None);
        if !self.types {
            return result;
        }
        let documentation = entry.documentation;
        result
            .with_config_type(entry.config_type as i8)
            .with_documentation(self.documentation.then(|| StrBytes::from_string(documentation)))
    }
}
