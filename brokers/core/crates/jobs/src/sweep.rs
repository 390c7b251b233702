//! The sweeper: removes objects and manifests that nothing names any more.
//!
//! Mark and sweep in two rounds: what was unnamed in two rounds in a row goes, if this incarnation
//! still owns its lane. It touches only what incarnations up to its term's, and epochs up to the
//! partition's, can have made: what a successor writes is not its to judge. What a put left half
//! made goes in the same way.

use std::collections::BTreeSet;

use super::{JobContext, JobError, TopicFacts};
use freshet_metadata::cluster::Term;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::names::ObjectRef;
use freshet_storage::rules::Rule;
use freshet_wire::ids::{Incarnation, PartitionId, TopicId};

/// Remembers what the last round found unnamed.
pub struct Sweeper {
    term: Term,
    unnamed: BTreeSet<String>,
}

impl Sweeper {
    /// Before the first round of a term.
    pub fn new(term: Term) -> Self {
        Self { term, unnamed: BTreeSet::new() }
    }

    /// One round.
    ///
    /// # Errors
    /// [`JobError`]; nothing more is deleted then.
    pub async fn sweep(
        &mut self,
        context: &JobContext,
        topics: &dyn TopicFacts,
    ) -> Result<(), JobError> {
        if context.partitions.any_offline() {
            tracing::warn!("not sweeping: a partition is offline, and anything may be its");
            return Ok(());
        }
        // Before anything is looked at: what is done by then, manifests name.
        let kept = context.unnamed_objects();
        let mut found = survey(context, topics).await?;
        found.named.extend(kept);
        let mut unnamed = unnamed_objects(context, self.term, &found).await?;
        unnamed.extend(found.superseded);
        let twice: Vec<String> = self.unnamed.intersection(&unnamed).cloned().collect();
        self.unnamed = unnamed;
        for key in twice {
            if context.sources.rules.hold(Rule::CheckBeforeDelete) {
                context.token.check().await?;
            }
            context.store.delete(&key).await?;
            tracing::info!(key, "swept");
            self.unnamed.remove(&key);
        }
        Ok(())
    }
}

/// What the manifests say.
#[derive(Default)]
struct Survey {
    /// Objects that a manifest names.
    named: BTreeSet<ObjectRef>,
    /// Keys of manifests that do not count any more, and of what puts left half made.
    superseded: Vec<String>,
    /// A manifest of a partition that is not led here cannot be read: it may name any object that
    /// an earlier incarnation made, and none of this one's.
    unreadable: bool,
}

async fn survey(context: &JobContext, topics: &dyn TopicFacts) -> Result<Survey, JobError> {
    let mut found = Survey::default();
    for partition in context.partitions.all() {
        name_objects(&mut found.named, &partition.manifest());
    }
    let root = Manifest::root(&context.cluster);
    for topic in context.store.list(&root).await? {
        let Ok(topic_id) = topic.parse::<TopicId>() else { continue };
        for index in context.store.list(&format!("{root}/{topic}")).await? {
            let Ok(index) = index.parse::<i32>() else { continue };
            let id = PartitionId::new(topic_id, index);
            survey_partition(context, topics, id, &mut found).await?;
        }
    }
    Ok(found)
}

async fn survey_partition(
    context: &JobContext,
    topics: &dyn TopicFacts,
    id: PartitionId,
    found: &mut Survey,
) -> Result<(), JobError> {
    let folder = Manifest::folder(&context.cluster, id);
    let current = context.partitions.get(id).map(|partition| partition.manifest().name);
    for file_name in context.store.list(&folder).await? {
        let Some(name) = Manifest::parse_file_name(&file_name) else { continue };
        let key = format!("{folder}/{file_name}");
        match current {
            Some(current) if name < current => found.superseded.push(key),
            Some(_) => {}
            None if topics.was_deleted(id.topic) => found.superseded.push(key),
            None => match Manifest::decode(&context.store.get(&key).await?) {
                Ok(manifest) => name_objects(&mut found.named, &manifest),
                Err(error) => {
                    let advice = "sparing all that it may name: restore or remove it";
                    tracing::error!(key, %error, "{advice}");
                    found.unreadable = true;
                }
            },
        }
    }
    found.superseded.extend(half_made(context, &folder).await?);
    Ok(())
}

/// Keys of what puts left half made in a folder.
async fn half_made(context: &JobContext, folder: &str) -> Result<Vec<String>, JobError> {
    let names = context.store.list_half_made(folder).await?;
    Ok(names.iter().map(|name| format!("{folder}/{name}")).collect())
}

fn name_objects(named: &mut BTreeSet<ObjectRef>, manifest: &Manifest) {
    named.extend(manifest.segments.iter().map(|segment| segment.object));
}

async fn unnamed_objects(
    context: &JobContext,
    term: Term,
    found: &Survey,
) -> Result<BTreeSet<String>, JobError> {
    let mut unnamed = BTreeSet::new();
    for folder in context.store.list(&ObjectRef::root(&context.cluster)).await? {
        let Ok(incarnation) = folder.parse().map(Incarnation) else { continue };
        let of_a_successor = incarnation > term.incarnation();
        if of_a_successor && context.sources.rules.hold(Rule::CheckBeforeDelete) {
            continue;
        }
        let folder = ObjectRef::folder(&context.cluster, incarnation);
        unnamed.extend(half_made(context, &folder).await?);
        if found.unreadable && incarnation != term.incarnation() {
            continue;
        }
        for name in context.store.list(&folder).await? {
            let Ok(number) = name.parse() else { continue };
            let object = ObjectRef { incarnation, number };
            if !found.named.contains(&object) {
                unnamed.insert(object.key(&context.cluster));
            }
        }
    }
    Ok(unnamed)
}
