//! The calls as text: a request and an answer in JSON. `brokers/metadata.py` is the caller. Both
//! are released together, so the format has no version.

use std::collections::BTreeMap;
use std::pin::Pin;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{AclText, AdminError, ClusterAdmin, QuotaEntityText, TopicRequest};
use freshet_metadata::cell::{CellChange, CellMetadata, CellRecord, Listing};
use freshet_metadata::cluster::ConfigChanges;
use freshet_metadata::schema::cell::{CellKind, CellNote, ClusterSpec, ClusterStatus, WakeRequest};
use freshet_metadata::schema::{LimitsRecord, Stored, TrafficLimit};

/// A call on the records of the cell itself.
#[derive(Debug, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
enum CellCall {
    PutSpec { spec: ClusterSpec },
    Spec { cluster: String },
    Specs,
    RemoveSpec { cluster: String },
    RemoveCluster { cluster: String },
    PutStatus { cluster: String, status: ClusterStatus },
    Status { cluster: String },
    Statuses,
    RequestWake { cluster: String, request: WakeRequest },
    Wake { cluster: String },
    Wakes,
    RemoveWake { cluster: String, revision: u64 },
    PutRemoval { cluster: String, note: CellNote },
    AddRemoval { cluster: String, note: CellNote },
    Removal { cluster: String },
    PutHealth { name: String, note: CellNote },
    Health { name: String },
    Samples,
    RemoveSample { cluster: String },
}

/// A call on the metadata of a cluster. Numbers that people give have 64 bits here, so that a
/// number that is too large is refused by name and not as malformed JSON.
#[derive(Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
enum ClusterCall {
    Create {
        cluster_id: Option<String>,
        scale: i64,
    },
    Record,
    SetScale {
        scale: i64,
    },
    Topics,
    Topic {
        name: String,
    },
    CreateTopic {
        name: String,
        partitions: Option<i64>,
        replication_factor: Option<i64>,
        configs: freshet_metadata::schema::Configs,
        validate_only: bool,
    },
    AlterTopicConfigs {
        name: String,
        configs: ConfigChanges,
        validate_only: bool,
    },
    CreatePartitions {
        name: String,
        partitions: i64,
    },
    DeleteTopic {
        name: String,
    },
    TopicConfigs {
        name: Option<String>,
    },
    WaitLed {
        name: String,
    },
    DeletedTopics,
    OrphanedTopics,
    UndeleteTopic {
        id: String,
        name: Option<String>,
        validate_only: bool,
    },
    AttachTopic {
        id: String,
        name: Option<String>,
        validate_only: bool,
    },
    PurgeTopic {
        id: String,
    },
    Quotas,
    SetQuota {
        entity: QuotaEntityText,
        values: BTreeMap<String, f64>,
    },
    RemoveQuota {
        entity: QuotaEntityText,
    },
    Changes {
        after: i64,
        limit: i64,
    },
    ForgetChanges {
        up_to: i64,
    },
    ListAcls,
    AddAcls {
        acls: Vec<AclText>,
    },
    RemoveAcls {
        acls: Vec<AclText>,
    },
    ListUsers,
    SetUser {
        user: String,
        password: String,
        mechanisms: Vec<String>,
        iterations: Option<i64>,
    },
    RemoveUser {
        user: String,
    },
    RemoveAll,
    Lanes,
    TopicsHistory,
    TrafficLimit,
    SetTrafficLimit {
        limit: Option<TrafficLimit>,
    },
    Limits,
    SetLimits {
        record: LimitsRecord,
    },
    CheckTopicRoom {
        topics: u64,
        partitions: u64,
    },
}

/// The limits to which the additions of a call are held; without them to none.
#[derive(Deserialize)]
struct Within {
    limits: Option<LimitsRecord>,
}

#[derive(Serialize)]
struct StoredText<'a, R> {
    record: &'a R,
    revision: u64,
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("answers are JSON")
}

fn read<'a, T: Deserialize<'a>>(request: &'a str) -> Result<T, AdminError> {
    serde_json::from_str(request)
        .map_err(|error| AdminError::Invalid { field: None, message: error.to_string() })
}

fn stored<R: Serialize>(stored: Option<&Stored<R>>) -> String {
    to_json(&stored.map(|Stored { record, revision }| StoredText { record, revision: *revision }))
}

fn listing<R: Serialize>(listing: &Listing<R>) -> String {
    let records: BTreeMap<_, _> = listing
        .records
        .iter()
        .map(|(id, stored)| (id, StoredText { record: &stored.record, revision: stored.revision }))
        .collect();
    to_json(&json!({ "records": records, "revision": listing.revision }))
}

fn narrow<T: TryFrom<i64>>(field: &str, value: i64) -> Result<T, AdminError> {
    T::try_from(value).map_err(|_| AdminError::invalid(field, format!("{value} is out of range")))
}

/// The future of a call's answer. It is boxed so that calls are compiled in this crate only, and
/// not again in their caller's.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<String, AdminError>> + Send + 'a>>;

/// Executes a call on the records of the cell itself.
///
/// # Errors
/// Any [`AdminError`].
pub fn call_cell<'a>(cell: &'a CellMetadata, request: &'a str) -> Answer<'a> {
    Box::pin(answer_cell(cell, request))
}

async fn answer_cell(cell: &CellMetadata, request: &str) -> Result<String, AdminError> {
    Ok(match read(request)? {
        CellCall::PutSpec { spec } => to_json(&cell.put_spec(&spec).await?),
        CellCall::Spec { cluster } => stored(cell.spec(&cluster).await?.as_ref()),
        CellCall::Specs => listing(&cell.specs().await?),
        CellCall::RemoveSpec { cluster } => to_json(&cell.remove_spec(&cluster).await?),
        CellCall::RemoveCluster { cluster } => to_json(&cell.remove_cluster(&cluster).await?),
        CellCall::PutStatus { cluster, status } => {
            to_json(&cell.put_status(&cluster, &status).await?)
        }
        CellCall::Status { cluster } => stored(cell.status(&cluster).await?.as_ref()),
        CellCall::Statuses => listing(&cell.statuses().await?),
        CellCall::RequestWake { cluster, request } => {
            stored(Some(&cell.request_wake(&cluster, &request).await?.0))
        }
        CellCall::Wake { cluster } => stored(cell.wake(&cluster).await?.as_ref()),
        CellCall::Wakes => listing(&cell.wakes().await?),
        CellCall::RemoveWake { cluster, revision } => {
            to_json(&cell.remove_wake(&cluster, revision).await?)
        }
        CellCall::PutRemoval { cluster, note } => {
            to_json(&cell.put_removal(&cluster, &note).await?)
        }
        CellCall::AddRemoval { cluster, note } => {
            to_json(&cell.add_removal(&cluster, &note).await?)
        }
        CellCall::Removal { cluster } => stored(cell.removal(&cluster).await?.as_ref()),
        CellCall::PutHealth { name, note } => to_json(&cell.put_health(&name, &note).await?),
        CellCall::Health { name } => stored(cell.health(&name).await?.as_ref()),
        CellCall::Samples => listing(&cell.samples().await?),
        CellCall::RemoveSample { cluster } => to_json(&cell.remove_sample(&cluster).await?),
    })
}

/// Executes a call on the metadata of a cluster.
///
/// # Errors
/// Any [`AdminError`].
pub fn call_cluster<'a>(admin: &'a ClusterAdmin, request: &'a str) -> Answer<'a> {
    Box::pin(async move {
        match read::<Within>(request)?.limits {
            Some(limits) => answer_cluster(&admin.within(limits), request).await,
            None => answer_cluster(admin, request).await,
        }
    })
}

async fn answer_cluster(admin: &ClusterAdmin, request: &str) -> Result<String, AdminError> {
    Ok(match read(request)? {
        ClusterCall::Create { cluster_id, scale } => {
            to_json(&admin.create(cluster_id, narrow("scale", scale)?).await?)
        }
        ClusterCall::Record => to_json(&admin.record().await?),
        ClusterCall::SetScale { scale } => {
            to_json(&admin.set_scale(narrow("scale", scale)?).await?)
        }
        ClusterCall::ListAcls => to_json(&admin.list_acls().await?),
        ClusterCall::AddAcls { acls } => to_json(&admin.add_acls(&acls).await?),
        ClusterCall::RemoveAcls { acls } => to_json(&admin.remove_acls(&acls).await?),
        ClusterCall::ListUsers => to_json(&admin.list_users().await?),
        ClusterCall::SetUser { user, password, mechanisms, iterations } => {
            let iterations = iterations.map(|count| narrow("iterations", count)).transpose()?;
            to_json(&admin.set_user(&user, &password, &mechanisms, iterations).await?)
        }
        ClusterCall::RemoveUser { user } => to_json(&admin.remove_user(&user).await?),
        ClusterCall::RemoveAll => to_json(&admin.remove_all().await?),
        ClusterCall::Lanes => to_json(&admin.lanes().await?),
        ClusterCall::TrafficLimit => to_json(&admin.traffic_limit().await?),
        ClusterCall::SetTrafficLimit { limit } => {
            to_json(&admin.set_traffic_limit(limit.as_ref()).await?)
        }
        ClusterCall::Limits => to_json(&admin.limits().await?),
        ClusterCall::SetLimits { record } => to_json(&admin.set_limits(&record).await?),
        ClusterCall::Quotas => to_json(&admin.quotas().await?),
        ClusterCall::SetQuota { entity, values } => {
            to_json(&admin.set_quota(entity, &values).await?)
        }
        ClusterCall::RemoveQuota { entity } => to_json(&admin.remove_quota(entity).await?),
        ClusterCall::Changes { after, limit } => {
            let (after, limit) = (narrow("after", after)?, narrow("limit", limit)?);
            to_json(&admin.changes(after, limit).await?)
        }
        ClusterCall::ForgetChanges { up_to } => {
            to_json(&admin.forget_changes(narrow("up_to", up_to)?).await?)
        }
        call => call_topics(admin, call).await?,
    })
}

async fn call_topics(admin: &ClusterAdmin, call: ClusterCall) -> Result<String, AdminError> {
    Ok(match call {
        ClusterCall::Topics => to_json(&admin.topics().await?),
        ClusterCall::Topic { name } => {
            let (topic, partitions) = admin.topic(&name).await?;
            to_json(&json!({ "topic": topic, "partitions": partitions }))
        }
        ClusterCall::CreateTopic {
            name,
            partitions,
            replication_factor,
            configs,
            validate_only,
        } => {
            let partitions = partitions.map(|count| narrow("partitions", count)).transpose()?;
            let factor = replication_factor.map(|factor| narrow("replication_factor", factor));
            let replication_factor = factor.transpose()?;
            let requested = TopicRequest { name, partitions, replication_factor, configs };
            if validate_only {
                to_json(&admin.validate_topic(requested).await?)
            } else {
                to_json(&admin.create_topic(requested).await?)
            }
        }
        ClusterCall::AlterTopicConfigs { name, configs, validate_only } => {
            to_json(&admin.alter_topic_configs(&name, &configs, validate_only).await?)
        }
        ClusterCall::CreatePartitions { name, partitions } => {
            let partitions = narrow("partitions", partitions)?;
            to_json(&admin.create_partitions(&name, partitions).await?)
        }
        ClusterCall::CheckTopicRoom { topics, partitions } => {
            to_json(&admin.check_topic_room(topics, partitions).await?)
        }
        ClusterCall::DeleteTopic { name } => to_json(&admin.delete_topic(&name).await?),
        ClusterCall::TopicConfigs { name } => to_json(&admin.topic_configs(name.as_deref()).await?),
        ClusterCall::DeletedTopics => to_json(&admin.deleted_topics().await?),
        ClusterCall::OrphanedTopics => to_json(&admin.orphaned_topics().await?),
        ClusterCall::UndeleteTopic { id, name, validate_only } => {
            to_json(&admin.undelete_topic(&id, name.as_deref(), validate_only).await?)
        }
        ClusterCall::AttachTopic { id, name, validate_only } => {
            to_json(&admin.attach_topic(&id, name.as_deref(), validate_only).await?)
        }
        ClusterCall::PurgeTopic { id } => to_json(&admin.purge_topic(&id).await?),
        ClusterCall::TopicsHistory => to_json(&admin.topics_history().await?),
        ClusterCall::WaitLed { name } => to_json(&admin.wait_led(&name).await?),
        _ => unreachable!("every other call is answered above"),
    })
}

/// The kinds of records whose keys begin with these prefixes; the empty prefix stands for all.
///
/// # Errors
/// [`AdminError::Invalid`] where no record's key begins with a prefix.
pub fn kinds_of(prefixes: &[String]) -> Result<Vec<CellKind>, AdminError> {
    let mut kinds = Vec::new();
    for prefix in prefixes {
        let named = CellKind::ALL.into_iter().filter(|kind| kind.prefix().starts_with(prefix));
        let before = kinds.len();
        kinds.extend(named);
        if kinds.len() == before {
            let message = format!("no record of a cell begins with {prefix:?}");
            return Err(AdminError::invalid("prefix", message));
        }
    }
    kinds.sort();
    kinds.dedup();
    Ok(kinds)
}

/// Changes of a cell's records, as JSON.
pub fn changes_text(changes: &[CellChange]) -> String {
    let change = |change: &CellChange| {
        let (kind, record) = match &change.record {
            CellRecord::Spec(record) => ("spec", json!(record)),
            CellRecord::Status(record) => ("status", json!(record)),
            CellRecord::Wake(record) => ("wake", json!(record)),
            CellRecord::Removal(record) => ("removal", json!(record)),
            CellRecord::Health(record) => ("health", json!(record)),
            CellRecord::Sample(record) => ("sample", json!(record)),
        };
        let (cluster, revision) = (&change.cluster, change.revision);
        json!({ "kind": kind, "cluster": cluster, "revision": revision, "record": record })
    };
    to_json(&changes.iter().map(change).collect::<Vec<Value>>())
}
