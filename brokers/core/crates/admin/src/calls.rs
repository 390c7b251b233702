//! The calls as text: JSON in, JSON out. `brokers/metadata.py` is the other side; the two change
//! together, so nothing here has a version.

use std::collections::BTreeMap;
use std::pin::Pin;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{AclText, AdminError, ClusterAdmin, QuotaEntityText, TopicWanted};
use freshet_metadata::cell::{CellChange, CellMetadata, CellRecord, Listing};
use freshet_metadata::cluster::ConfigChanges;
use freshet_metadata::schema::Stored;
use freshet_metadata::schema::cell::{CellKind, ClusterSpec, ClusterStatus, Sample, WakeRequest};

/// A call on the cell's own records.
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
    PutSample { cluster: String, sample: Sample },
    Sample { cluster: String },
}

/// A call on the metadata of a cluster. Numbers that people give are as wide as they may give them.
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
        mechanism: String,
        iterations: Option<i64>,
    },
    RemoveUser {
        user: String,
    },
    RemoveAll,
    Lanes,
    TopicsHistory,
    SuspendProduce {
        reason: String,
    },
    ResumeProduce,
    ProduceSuspension,
}

#[derive(Serialize)]
struct StoredText<'a, R> {
    record: &'a R,
    revision: u64,
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("answers are JSON")
}

fn read<'a, T: Deserialize<'a>>(request: &'a str) -> Result<T, AdminError> {
    serde_json::from_str(request)
        .map_err(|error| AdminError::Invalid { field: None, message: error.to_string() })
}

fn stored<R: Serialize>(stored: Option<&Stored<R>>) -> String {
    text(&stored.map(|Stored { record, revision }| StoredText { record, revision: *revision }))
}

fn listing<R: Serialize>(listing: &Listing<R>) -> String {
    let records: BTreeMap<_, _> = listing
        .records
        .iter()
        .map(|(id, stored)| (id, StoredText { record: &stored.record, revision: stored.revision }))
        .collect();
    text(&json!({ "records": records, "revision": listing.revision }))
}

fn narrow<T: TryFrom<i64>>(field: &str, value: i64) -> Result<T, AdminError> {
    T::try_from(value).map_err(|_| AdminError::invalid(field, format!("{value} is out of range")))
}

/// What a call answers. Boxed, so that calls are compiled here and not once more for their caller.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<String, AdminError>> + Send + 'a>>;

/// Makes a call on the cell's own records.
///
/// # Errors
/// [`AdminError`].
pub fn call_cell<'a>(cell: &'a CellMetadata, request: &'a str) -> Answer<'a> {
    Box::pin(answer_cell(cell, request))
}

async fn answer_cell(cell: &CellMetadata, request: &str) -> Result<String, AdminError> {
    Ok(match read(request)? {
        CellCall::PutSpec { spec } => text(&cell.put_spec(&spec).await?),
        CellCall::Spec { cluster } => stored(cell.spec(&cluster).await?.as_ref()),
        CellCall::Specs => listing(&cell.specs().await?),
        CellCall::RemoveSpec { cluster } => text(&cell.remove_spec(&cluster).await?),
        CellCall::RemoveCluster { cluster } => text(&cell.remove_cluster(&cluster).await?),
        CellCall::PutStatus { cluster, status } => text(&cell.put_status(&cluster, &status).await?),
        CellCall::Status { cluster } => stored(cell.status(&cluster).await?.as_ref()),
        CellCall::Statuses => listing(&cell.statuses().await?),
        CellCall::RequestWake { cluster, request } => {
            stored(Some(&cell.request_wake(&cluster, &request).await?.0))
        }
        CellCall::Wake { cluster } => stored(cell.wake(&cluster).await?.as_ref()),
        CellCall::Wakes => listing(&cell.wakes().await?),
        CellCall::RemoveWake { cluster, revision } => {
            text(&cell.remove_wake(&cluster, revision).await?)
        }
        CellCall::PutSample { cluster, sample } => text(&cell.put_sample(&cluster, &sample).await?),
        CellCall::Sample { cluster } => stored(cell.sample(&cluster).await?.as_ref()),
    })
}

/// Makes a call on the metadata of a cluster.
///
/// # Errors
/// [`AdminError`].
pub fn call_cluster<'a>(admin: &'a ClusterAdmin, request: &'a str) -> Answer<'a> {
    Box::pin(answer_cluster(admin, request))
}

async fn answer_cluster(admin: &ClusterAdmin, request: &str) -> Result<String, AdminError> {
    Ok(match read(request)? {
        ClusterCall::Create { cluster_id, scale } => {
            text(&admin.create(cluster_id, narrow("scale", scale)?).await?)
        }
        ClusterCall::Record => text(&admin.record().await?),
        ClusterCall::SetScale { scale } => text(&admin.set_scale(narrow("scale", scale)?).await?),
        ClusterCall::ListAcls => text(&admin.list_acls().await?),
        ClusterCall::AddAcls { acls } => text(&admin.add_acls(&acls).await?),
        ClusterCall::RemoveAcls { acls } => text(&admin.remove_acls(&acls).await?),
        ClusterCall::ListUsers => text(&admin.list_users().await?),
        ClusterCall::SetUser { user, password, mechanism, iterations } => {
            let iterations = iterations.map(|count| narrow("iterations", count)).transpose()?;
            text(&admin.set_user(&user, &password, &mechanism, iterations).await?)
        }
        ClusterCall::RemoveUser { user } => text(&admin.remove_user(&user).await?),
        ClusterCall::RemoveAll => text(&admin.remove_all().await?),
        ClusterCall::Lanes => text(&admin.lanes().await?),
        ClusterCall::SuspendProduce { reason } => text(&admin.suspend_produce(&reason).await?),
        ClusterCall::ResumeProduce => text(&admin.resume_produce().await?),
        ClusterCall::ProduceSuspension => text(&admin.produce_suspension().await?),
        ClusterCall::Quotas => text(&admin.quotas().await?),
        ClusterCall::SetQuota { entity, values } => text(&admin.set_quota(entity, &values).await?),
        ClusterCall::RemoveQuota { entity } => text(&admin.remove_quota(entity).await?),
        ClusterCall::Changes { after, limit } => {
            let (after, limit) = (narrow("after", after)?, narrow("limit", limit)?);
            text(&admin.changes(after, limit).await?)
        }
        ClusterCall::ForgetChanges { up_to } => {
            text(&admin.forget_changes(narrow("up_to", up_to)?).await?)
        }
        call => call_topics(admin, call).await?,
    })
}

async fn call_topics(admin: &ClusterAdmin, call: ClusterCall) -> Result<String, AdminError> {
    Ok(match call {
        ClusterCall::Topics => text(&admin.topics().await?),
        ClusterCall::Topic { name } => {
            let (topic, partitions) = admin.topic(&name).await?;
            text(&json!({ "topic": topic, "partitions": partitions }))
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
            let wanted = TopicWanted { name, partitions, replication_factor, configs };
            if validate_only {
                text(&admin.validate_topic(wanted).await?)
            } else {
                text(&admin.create_topic(wanted).await?)
            }
        }
        ClusterCall::AlterTopicConfigs { name, configs, validate_only } => {
            text(&admin.alter_topic_configs(&name, &configs, validate_only).await?)
        }
        ClusterCall::CreatePartitions { name, partitions } => {
            let partitions = narrow("partitions", partitions)?;
            text(&admin.create_partitions(&name, partitions).await?)
        }
        ClusterCall::DeleteTopic { name } => text(&admin.delete_topic(&name).await?),
        ClusterCall::TopicConfigs { name } => text(&admin.topic_configs(name.as_deref()).await?),
        ClusterCall::DeletedTopics => text(&admin.deleted_topics().await?),
        ClusterCall::OrphanedTopics => text(&admin.orphaned_topics().await?),
        ClusterCall::UndeleteTopic { id, name, validate_only } => {
            text(&admin.undelete_topic(&id, name.as_deref(), validate_only).await?)
        }
        ClusterCall::AttachTopic { id, name, validate_only } => {
            text(&admin.attach_topic(&id, name.as_deref(), validate_only).await?)
        }
        ClusterCall::PurgeTopic { id } => text(&admin.purge_topic(&id).await?),
        ClusterCall::TopicsHistory => text(&admin.topics_history().await?),
        ClusterCall::WaitLed { name } => text(&admin.wait_led(&name).await?),
        _ => unreachable!("every other call is answered above"),
    })
}

/// The kinds of records that prefixes of their keys name; the empty prefix names all.
///
/// # Errors
/// [`AdminError::Invalid`].
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

/// Changes as text.
pub fn changes_text(changes: &[CellChange]) -> String {
    let change = |change: &CellChange| {
        let (kind, record) = match &change.record {
            CellRecord::Spec(record) => ("spec", json!(record)),
            CellRecord::Status(record) => ("status", json!(record)),
            CellRecord::Wake(record) => ("wake", json!(record)),
            CellRecord::Sample(record) => ("sample", json!(record)),
        };
        let (cluster, revision) = (&change.cluster, change.revision);
        json!({ "kind": kind, "cluster": cluster, "revision": revision, "record": record })
    };
    text(&changes.iter().map(change).collect::<Vec<Value>>())
}
