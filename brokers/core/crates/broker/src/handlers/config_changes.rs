//! The common part of AlterConfigs and IncrementalAlterConfigs.

use std::collections::BTreeSet;

use kafka_protocol::ResponseError;

use super::errors::ApiError;
use super::topics::is_internal;
use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_configs::topic::{alter_topic, replace_topic};
use freshet_configs::{BrokerScope, ConfigChange, ConfigResourceType, Overrides, TopicConfig};
use freshet_metadata::ClusterError;
use freshet_metadata::cluster::ConfigChanges;
use freshet_metadata::names::check_topic_name;
use freshet_metadata::schema::{ConfigScope, Retention};

/// How often a change is computed again because somebody else has changed the same topic.
const ATTEMPTS_MAX: usize = 8;

/// A resource that has configs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Resource {
    /// Code of its type.
    pub(super) code: i8,
    /// Its name.
    pub(super) name: String,
}

/// The requested change of a resource's configs.
pub(super) enum Alteration {
    /// The resource is to have these configs and no others.
    Replace(Vec<(String, Option<String>)>),
    /// These configs are to be changed; the others stay.
    Change(Vec<ConfigChange>),
}

/// Resources that a request names more than once.
pub(super) struct Repeated(BTreeSet<Resource>);

/// Finds the resources that a request names more than once.
pub(super) fn repeated_resources(resources: impl Iterator<Item = Resource>) -> Repeated {
    let mut seen = BTreeSet::new();
    Repeated(resources.filter(|resource| !seen.insert(resource.clone())).collect())
}

impl Repeated {
    pub(super) fn refuse(&self, resource: &Resource) -> Result<(), ApiError> {
        if !self.0.contains(resource) {
            return Ok(());
        }
        let message = "Each resource must appear at most once.";
        Err(ApiError::new(ResponseError::InvalidRequest, message))
    }
}

/// Alters the configs of a resource; with `validate_only`, checks only whether they can be altered.
pub(super) async fn alter_configs(
    context: &RequestContext,
    resource: &Resource,
    alteration: Alteration,
    validate_only: bool,
) -> Result<(), ApiError> {
    match ConfigResourceType::from_code(resource.code)? {
        ConfigResourceType::Topic => {
            if !context.may_topic(Operation::AlterConfigs, &resource.name) {
                return Err(ResponseError::TopicAuthorizationFailed.into());
            }
            alter_a_topic(context, &resource.name, &alteration, validate_only).await
        }
        ConfigResourceType::Broker => {
            if !context.may_cluster(Operation::AlterConfigs) {
                return Err(ResponseError::ClusterAuthorizationFailed.into());
            }
            alter_brokers(context, &resource.name, alteration, validate_only).await
        }
    }
}

async fn alter_a_topic(
    context: &RequestContext,
    name: &str,
    alteration: &Alteration,
    validate_only: bool,
) -> Result<(), ApiError> {
    let broker = context.broker();
    check_topic_name(name)
        .map_err(|error| ApiError::new(ResponseError::InvalidTopicException, error.to_string()))?;
    if is_internal(name) {
        let error = ClusterError::InternalTopic(name.to_owned());
        return Err(broker.metadata_error(&error));
    }
    let metadata = if validate_only { context.metadata() } else { context.admit(1).await? };
    for _ in 0..ATTEMPTS_MAX {
        let stored = metadata.topic(name).await.map_err(|error| broker.metadata_error(&error))?;
        let stored = stored.ok_or(ResponseError::UnknownTopicOrPartition)?;
        let config = broker.config();
        let before = &stored.record.configs;
        let after = match alteration {
            Alteration::Replace(configs) => replace_topic(configs.clone(), &config)?,
            Alteration::Change(changes) => alter_topic(before, changes, &config)?,
        };
        if validate_only {
            return Ok(());
        }
        let (fence, expected) = (broker.engine.fence(), Some(stored.revision));
        let changes = difference(before, &after);
        let rule = |configs: &Overrides| {
            let config = TopicConfig::resolve(configs, &config);
            Retention { ms: config.retention_ms, bytes: config.retention_bytes }
        };
        match metadata.set_topic_configs(fence, name, expected, &changes, &rule).await {
            Ok(stored) => return broker.await_revision(stored.revision).await,
            // Somebody else has changed the topic meanwhile: the change is computed again from its
            // new configs.
            Err(ClusterError::Contended(_)) => {}
            Err(error) => return Err(broker.metadata_error(&error)),
        }
    }
    Err(ResponseError::NotController.into())
}

async fn alter_brokers(
    context: &RequestContext,
    name: &str,
    alteration: Alteration,
    validate_only: bool,
) -> Result<(), ApiError> {
    let broker = context.broker();
    let metadata = if validate_only { context.metadata() } else { context.admit(1).await? };
    let (scope, brokers) = scope_of(context, name)?;
    let stored = async |scope| {
        let stored = metadata.broker_configs(scope).await;
        stored.map_err(|error| broker.metadata_error(&error))
    };
    let shared = stored(ConfigScope::Default).await?;
    let own = match brokers {
        BrokerScope::AllBrokers => Overrides::new(),
        BrokerScope::OneBroker => stored(scope).await?,
    };
    let config = broker.settings.configs.with_stored(&shared, &own);
    let after = match alteration {
        Alteration::Replace(configs) => config.replace(brokers, configs)?,
        Alteration::Change(changes) => config.alter(brokers, &changes)?,
    };
    if validate_only {
        return Ok(());
    }
    let before = if brokers == BrokerScope::AllBrokers { &shared } else { &own };
    let changes = difference(before, &after);
    let set = metadata.set_broker_configs(broker.engine.fence(), scope, &changes).await;
    let revision = set.map_err(|error| broker.metadata_error(&error))?;
    broker.await_revision(revision).await
}

/// The brokers for which the configs of a BROKER resource with this name are: an empty name stands
/// for all of them. Any broker may be asked for another one's, since all write to one store.
fn scope_of(context: &RequestContext, name: &str) -> Result<(ConfigScope, BrokerScope), ApiError> {
    if name.is_empty() {
        return Ok((ConfigScope::Default, BrokerScope::AllBrokers));
    }
    let node_id = parse_node_id(name)?;
    let node = context.named_node(node_id).ok_or_else(|| {
        let message = format!("No node with id {node_id} found.");
        ApiError::new(ResponseError::BrokerIdNotRegistered, message)
    })?;
    Ok((ConfigScope::Slot(node.slot), BrokerScope::OneBroker))
}

/// Parses the name of a BROKER resource that is not empty.
pub(super) fn parse_node_id(name: &str) -> Result<i32, ApiError> {
    name.parse().map_err(|_| {
        let message = format!("Broker id must be an integer, but it is: {name}");
        ApiError::new(ResponseError::InvalidRequest, message)
    })
}

/// The changes that lead from one set of overrides to another.
fn difference(before: &Overrides, after: &Overrides) -> ConfigChanges {
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    let removed = removed.map(|name| (name.clone(), None));
    let set = after.iter().filter(|(name, value)| before.get(*name) != Some(*value));
    removed.chain(set.map(|(name, value)| (name.clone(), Some(value.clone())))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_sets_what_is_new_and_removes_what_is_gone() {
        let overrides = |pairs: &[(&str, &str)]| -> Overrides {
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
        };
        let before = overrides(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let after = overrides(&[("b", "2"), ("c", "4"), ("d", "5")]);
        let expected: ConfigChanges = [
            ("a".to_owned(), None),
            ("c".to_owned(), Some("4".to_owned())),
            ("d".to_owned(), Some("5".to_owned())),
        ]
        .into();
        assert_eq!(difference(&before, &after), expected);
        assert!(difference(&after, &after).is_empty());
    }
}
