//! AlterClientQuotas (KIP-546).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::alter_client_quotas_request::{EntityData, EntryData, OpData};
use kafka_protocol::messages::alter_client_quotas_response as response;
use kafka_protocol::messages::{AlterClientQuotasRequest, AlterClientQuotasResponse};

use super::errors::ApiError;
use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_metadata::cluster::{QuotaChanges, check_quotas};
use freshet_metadata::schema::{QuotaEntity, QuotaEntityType, QuotaKey};

/// Handles the request. Each entity is changed as a whole or not at all. The response is sent once
/// the quotas are in force on this broker.
pub async fn handle(
    context: &RequestContext,
    request: AlterClientQuotasRequest,
) -> AlterClientQuotasResponse {
    let may_alter = context.may_cluster(Operation::AlterConfigs);
    let mut entries = Vec::with_capacity(request.entries.len());
    for entry in request.entries {
        let outcome = if may_alter {
            alter_quotas(context, &entry, request.validate_only).await
        } else {
            Err(ResponseError::ClusterAuthorizationFailed.into())
        };
        let entity = entry.entity.into_iter().map(|part| {
            response::EntityData::default()
                .with_entity_type(part.entity_type)
                .with_entity_name(part.entity_name)
        });
        let answer = response::EntryData::default().with_entity(entity.collect());
        entries.push(match outcome {
            Ok(()) => answer.with_error_message(None),
            Err(error) => {
                answer.with_error_code(error.code()).with_error_message(Some(error.text()))
            }
        });
    }
    AlterClientQuotasResponse::default().with_entries(entries)
}

async fn alter_quotas(
    context: &RequestContext,
    entry: &EntryData,
    validate_only: bool,
) -> Result<(), ApiError> {
    let (entity, changes) = (parse_entity(&entry.entity)?, parse_changes(&entry.ops)?);
    check_quotas(&entity, &changes)
        .map_err(|refusal| ApiError::new(ResponseError::InvalidRequest, refusal.message))?;
    let broker = context.broker();
    if validate_only {
        let checked = context.metadata().check_quota_room(&entity, &changes).await;
        return checked.map_err(|error| broker.metadata_error(&error));
    }
    let metadata = context.admit(1).await?;
    let altered = metadata.alter_quotas(broker.engine.fence(), &entity, &changes).await;
    let (revision, _) = altered.map_err(|error| broker.metadata_error(&error))?;
    broker.await_revision(revision).await
}

fn parse_entity(parts: &[EntityData]) -> Result<QuotaEntity, ApiError> {
    let invalid = |message: String| ApiError::new(ResponseError::InvalidRequest, message);
    let mut parse_entity = QuotaEntity::default();
    for part in parts {
        let kind = part.entity_type.as_str();
        let known = QuotaEntityType::ALL.into_iter().find(|known| known.name() == kind);
        let known =
            known.ok_or_else(|| invalid(format!("Unhandled client quota entity type: {kind}")))?;
        let name = part.entity_name.as_ref().map(ToString::to_string);
        if parse_entity.0.insert(known, name).is_some() {
            return Err(invalid(format!("Duplicate client quota entity type: {kind}")));
        }
    }
    if parse_entity.0.is_empty() {
        return Err(invalid("Invalid empty client quota entity".to_owned()));
    }
    Ok(parse_entity)
}

fn parse_changes(ops: &[OpData]) -> Result<QuotaChanges, ApiError> {
    let mut changes = QuotaChanges::new();
    for op in ops {
        let name = op.key.as_str();
        let key =
            QuotaKey::ALL.into_iter().find(|known| known.name() == name).ok_or_else(|| {
                let message = format!("Invalid configuration key {name}");
                ApiError::new(ResponseError::InvalidRequest, message)
            })?;
        if changes.insert(key, (!op.remove).then_some(op.value)).is_some() {
            let message = format!("Duplicate quota key {name}");
            return Err(ApiError::new(ResponseError::InvalidRequest, message));
        }
    }
    Ok(changes)
}
