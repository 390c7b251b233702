//! InitProducerId: gives an idempotent producer its id.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId};

use crate::context::RequestContext;
use freshet_access::types::{Operation, ResourceType};

/// Handles the request. Transactional ids are refused: there are no transactions yet.
pub async fn handle(
    context: &RequestContext,
    request: InitProducerIdRequest,
) -> InitProducerIdResponse {
    let (producer_id, producer_epoch, error_code) =
        match allocate_producer_id(context, &request).await {
            Ok(id) => (id, 0, 0),
            Err(error) => (-1, -1, error.code()),
        };
    InitProducerIdResponse::default()
        .with_error_code(error_code)
        .with_producer_id(ProducerId(producer_id))
        .with_producer_epoch(producer_epoch)
}

async fn allocate_producer_id(
    context: &RequestContext,
    request: &InitProducerIdRequest,
) -> Result<i64, ResponseError> {
    if let Some(id) = &request.transactional_id {
        let may_write = context.may(Operation::Write, ResourceType::TransactionalId, id);
        return Err(if may_write {
            ResponseError::InvalidRequest
        } else {
            ResponseError::TransactionalIdAuthorizationFailed
        });
    }
    let may_write =
        context.may_cluster(Operation::IdempotentWrite) || context.may_some_topic(Operation::Write);
    if !may_write {
        return Err(ResponseError::ClusterAuthorizationFailed);
    }
    let broker = context.broker();
    // Clients try again after this error, but not after those of other APIs.
    broker.producer_ids.take(&broker.engine).await.map_err(|error| {
        match broker.metadata_error(&error).error {
            ResponseError::NotController | ResponseError::RequestTimedOut => {
                ResponseError::CoordinatorLoadInProgress
            }
            other => other,
        }
    })
}
