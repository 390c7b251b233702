//! DescribeClientQuotas (KIP-546).

use std::collections::BTreeMap;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_client_quotas_request::ComponentData;
use kafka_protocol::messages::describe_client_quotas_response::{EntityData, EntryData, ValueData};
use kafka_protocol::messages::{DescribeClientQuotasRequest, DescribeClientQuotasResponse};
use kafka_protocol::protocol::StrBytes;

use super::errors::ApiError;
use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_metadata::schema::{QuotaEntity, QuotaEntityType, QuotaValues};

/// A name that a component names exactly.
const EXACT: i8 = 0;
/// The default.
const DEFAULT: i8 = 1;
/// Any name, and the default.
const ANY: i8 = 2;

/// What an entity's name must be.
enum Wanted {
    Is(Option<String>),
    Any,
}

/// Handles the request.
pub fn handle(
    context: &RequestContext,
    request: DescribeClientQuotasRequest,
) -> DescribeClientQuotasResponse {
    let found = if context.may_cluster(Operation::DescribeConfigs) {
        filter(request.components)
    } else {
        Err(ResponseError::ClusterAuthorizationFailed.into())
    };
    let wanted = match found {
        Ok(wanted) => wanted,
        Err(error) => {
            return DescribeClientQuotasResponse::default()
                .with_error_code(error.code())
                .with_error_message(Some(error.text()))
                .with_entries(None);
        }
    };
    let quotas = context.broker().engine.view.snapshot().quotas.clone();
    let entries = quotas.iter().filter(|(entity, _)| matches(entity, &wanted, request.strict));
    DescribeClientQuotasResponse::default()
        .with_error_message(None)
        .with_entries(Some(entries.map(|(entity, values)| entry(entity, values)).collect()))
}

fn filter(components: Vec<ComponentData>) -> Result<BTreeMap<QuotaEntityType, Wanted>, ApiError> {
    let invalid = |message: &str| ApiError::new(ResponseError::InvalidRequest, message);
    let mut wanted = BTreeMap::new();
    for component in components {
        let kind = component.entity_type.as_str();
        if kind.is_empty() {
            return Err(invalid("Unexpected empty entity type."));
        }
        let Some(kind) = QuotaEntityType::ALL.into_iter().find(|known| known.name() == kind) else {
            let message = format!("Custom entity type {kind} is not supported.");
            return Err(ApiError::new(ResponseError::UnsupportedVersion, message));
        };
        let name = component._match.map(|name| name.to_string());
        let name = match (component.match_type, name) {
            (EXACT, Some(name)) => Wanted::Is(Some(name)),
            (EXACT, None) => return Err(invalid("Request specified EXACT, but no match string.")),
            (DEFAULT, None) => Wanted::Is(None),
            (ANY, None) => Wanted::Any,
            (DEFAULT | ANY, Some(_)) => {
                return Err(invalid(
                    "Request specified a match string that does not belong to it.",
                ));
            }
            (other, _) => return Err(invalid(&format!("Unknown match type {other}"))),
        };
        if wanted.insert(kind, name).is_some() {
            return Err(invalid("Entity filter type cannot be specified twice."));
        }
    }
    if wanted.contains_key(&QuotaEntityType::Ip) && wanted.len() > 1 {
        return Err(invalid(
            "Invalid entity filter component combination: ip goes with no other entity type.",
        ));
    }
    Ok(wanted)
}

fn matches(entity: &QuotaEntity, wanted: &BTreeMap<QuotaEntityType, Wanted>, strict: bool) -> bool {
    let each = wanted.iter().all(|(kind, wanted)| match (entity.0.get(kind), wanted) {
        (None, _) => false,
        (Some(_), Wanted::Any) => true,
        (Some(name), Wanted::Is(wanted)) => name == wanted,
    });
    each && (!strict || entity.0.len() == wanted.len())
}

fn entry(entity: &QuotaEntity, values: &QuotaValues) -> EntryData {
    let entity = entity.0.iter().map(|(kind, name)| {
        EntityData::default()
            .with_entity_type(StrBytes::from_static_str(kind.name()))
            .with_entity_name(name.clone().map(StrBytes::from_string))
    });
    let values = values.iter().map(|(key, value)| {
        ValueData::default().with_key(StrBytes::from_static_str(key.name())).with_value(*value)
    });
    EntryData::default().with_entity(entity.collect()).with_values(values.collect())
}
