//! DescribeCluster: the cluster's id and its brokers.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::{BrokerId, DescribeClusterRequest, DescribeClusterResponse};
use kafka_protocol::protocol::StrBytes;

use super::errors::ApiError;
use super::metadata::cluster_operations;
use crate::context::RequestContext;
use freshet_wire::protocol::leader::NodeEndpoint;

/// Codes of `endpoint_type`. A cluster has no endpoints but brokers.
const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

/// Handles the request.
pub fn handle(
    context: &RequestContext,
    request: &DescribeClusterRequest,
) -> DescribeClusterResponse {
    let response = DescribeClusterResponse::default();
    if context.api_version >= 1
        && let Err(error) = check_endpoint(request.endpoint_type)
    {
        return response
            .with_endpoint_type(request.endpoint_type)
            .with_error_code(error.code())
            .with_error_message(Some(error.text()));
    }
    let broker = context.broker();
    let node = |node: NodeEndpoint| {
        DescribeClusterBroker::default()
            .with_broker_id(BrokerId(node.node_id))
            .with_host(StrBytes::from_string(node.host))
            .with_port(node.port)
            .with_rack(node.rack.map(StrBytes::from_string))
    };
    let mut response = response
        .with_error_message(None)
        .with_cluster_id(StrBytes::from_string(broker.engine.cluster_id.clone()))
        .with_controller_id(BrokerId(context.controller_id()))
        .with_brokers(context.nodes().into_iter().map(node).collect());
    if request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = cluster_operations(context);
    }
    response
}

fn check_endpoint(endpoint_type: i8) -> Result<(), ApiError> {
    match endpoint_type {
        BROKERS => Ok(()),
        CONTROLLERS => Err(ApiError::new(
            ResponseError::MismatchedEndpointType,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of \
             type CONTROLLER",
        )),
        other => Err(ApiError::new(
            ResponseError::UnsupportedEndpointType,
            format!("Unsupported endpoint type {other}"),
        )),
    }
}
