//! DescribeClientQuotas: lists the quotas whose entities match a filter (KIP-546).

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

/// The match type of a component that gives a name.
const EXACT: i8 = 0;
/// The match type of a component that asks for the default entity.
const DEFAULT: i8 = 1;
/// The match type of a component that asks for every entity of the type, the default included.
const ANY: i8 = 2;

/// The condition on an entity's name. `Is(None)` stands for the default entity.
enum NameFilter {
    Is(Option<String>),
    Any,
}

/// Handles the request.
pub fn handle(
    context: &RequestContext,
    request: DescribeClientQuotasRequest,
) -> DescribeClientQuotasResponse {
    let parsed = if context.may_cluster(Operation::DescribeConfigs) {
        parse_filter(request.components)
    } else {
        Err(ResponseError::ClusterAuthorizationFailed.into())
    };
    let name_filters = match parsed {
        Ok(name_filters) => name_filters,
        Err(error) => {
            return DescribeClientQuotasResponse::default()
                .with_error_code(error.code())
                .with_error_message(Some(error.text()))
                .with_entries(None);
        }
    };
    let quotas = context.broker().engine.view.snapshot().quotas.clone();
    let entries =
        quotas.iter().filter(|(entity, _)| matches_filters(entity, &name_filters, request.strict));
    DescribeClientQuotasResponse::default()
        .with_error_message(None)
        .with_entries(Some(entries.map(|(entity, values)| entry(entity, values)).collect()))
}

fn parse_filter(
    components: Vec<ComponentData>,
) -> Result<BTreeMap<QuotaEntityType, NameFilter>, ApiError> {
    let invalid = |message: &str| ApiError::new(ResponseError::InvalidRequest, message);
    let mut name_filters = BTreeMap::new();
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
            (EXACT, Some(name)) => NameFilter::Is(Some(name)),
            (EXACT, None) => return Err(invalid("Request specified EXACT, but no match string.")),
            (DEFAULT, None) => NameFilter::Is(None),
            (ANY, None) => NameFilter::Any,
            (DEFAULT | ANY, Some(_)) => {
                return Err(invalid(
                    "Request specified a match string that does not belong to it.",
                ));
            }
            (other, _) => return Err(invalid(&format!("Unknown match type {other}"))),
        };
        if name_filters.insert(kind, name).is_some() {
            return Err(invalid("Entity filter type cannot be specified twice."));
        }
    }
    if name_filters.contains_key(&QuotaEntityType::Ip) && name_filters.len() > 1 {
        return Err(invalid(
            "Invalid entity filter component combination: ip goes with no other entity type.",
        ));
    }
    Ok(name_filters)
}

fn matches_filters(
    entity: &QuotaEntity,
    name_filters: &BTreeMap<QuotaEntityType, NameFilter>,
    strict: bool,
) -> bool {
    let all_match =
        name_filters.iter().all(|(kind, name_filters)| match (entity.0.get(kind), name_filters) {
            (None, _) => false,
            (Some(_), NameFilter::Any) => true,
            (Some(name), NameFilter::Is(name_filters)) => name == name_filters,
        });
    all_match && (!strict || entity.0.len() == name_filters.len())
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
