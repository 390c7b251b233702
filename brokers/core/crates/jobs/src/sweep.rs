//! The sweeper: deletes objects and manifests that nothing names any more.
//!
//! What two rounds in a row find unnamed is deleted, if this incarnation still owns its lane. The
//! sweeper touches only what incarnations up to its term's, and epochs up to the partition's, can
//! have written: it cannot know whether a later incarnation's object will be named. The rests of
//! interrupted puts are deleted in the same way.

use std::collections::BTreeSet;

use super::{JobContext, JobError, TopicFacts};
use freshet_metadata::cluster::Term;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::names::ObjectRef;
use freshet_storage::rules::Rule;
use freshet_wire::ids::{Incarnation, PartitionId, TopicId};

/// Sweeps in rounds, and remembers what the last round found unnamed.
pub struct Sweeper {
    term: Term,
    unnamed: BTreeSet<String>,
}

impl Sweeper {
    /// Creates it for a term, before its first round.
    pub fn new(term: Term) -> Self {
        Self { term, unnamed: BTreeSet::new() }
    }

    /// Performs one round.
    ///
    /// # Errors
    /// Any [`JobError`]; then nothing more is deleted.
    pub async fn sweep(
        &mut self,
        context: &JobContext,
        topics: &dyn TopicFacts,
    ) -> Result<(), JobError> {
        if context.partitions.any_offline() {
            tracing::warn!("not sweeping: a partition is offline and may need any object");
            return Ok(());
        }
        // Taken before any manifest is read: an object that is named between the two is then kept
        // by this list or by its manifest.
        let kept = context.unnamed_objects();
        let mut survey = survey_manifests(context, topics).await?;
        survey.named.extend(kept);
        let mut unnamed = unnamed_objects(context, self.term, &survey).await?;
        unnamed.extend(survey.superseded);
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

/// What the manifests name, and which of them do not count any more.
#[derive(Default)]
struct Survey {
    /// The objects that a manifest names.
    named: BTreeSet<ObjectRef>,
    /// The keys of manifests that do not count any more, and of rests of interrupted puts.
    superseded: Vec<String>,
    /// Whether a manifest of a partition that is not led here could not be read. It may name any
    /// object that an earlier incarnation wrote, and none of this one's.
    unreadable: bool,
}

async fn survey_manifests(
    context: &JobContext,
    topics: &dyn TopicFacts,
) -> Result<Survey, JobError> {
    let mut survey = Survey::default();
    for partition in context.partitions.all() {
        name_objects(&mut survey.named, &partition.manifest());
    }
    let root = Manifest::root(&context.cluster);
    for topic in context.store.list(&root).await? {
        let Ok(topic_id) = topic.parse::<TopicId>() else { continue };
        for index in context.store.list(&format!("{root}/{topic}")).await? {
            let Ok(index) = index.parse::<i32>() else { continue };
            let id = PartitionId::new(topic_id, index);
            survey_partition(context, topics, id, &mut survey).await?;
        }
    }
    Ok(survey)
}

async fn survey_partition(
    context: &JobContext,
    topics: &dyn TopicFacts,
    id: PartitionId,
    survey: &mut Survey,
) -> Result<(), JobError> {
    let folder = Manifest::folder(&context.cluster, id);
    let current = context.partitions.get(id).map(|partition| partition.manifest().name);
    for file_name in context.store.list(&folder).await? {
        let Some(name) = Manifest::parse_file_name(&file_name) else { continue };
        let key = format!("{folder}/{file_name}");
        match current {
            Some(current) if name < current => survey.superseded.push(key),
            Some(_) => {}
            None if topics.was_deleted(id.topic) => survey.superseded.push(key),
            None => match Manifest::decode(&context.store.get(&key).await?) {
                Ok(manifest) => name_objects(&mut survey.named, &manifest),
                Err(error) => {
                    let advice = "sparing all that it may name: restore or remove it";
                    tracing::error!(key, %error, "{advice}");
                    survey.unreadable = true;
                }
            },
        }
    }
    survey.superseded.extend(half_made(context, &folder).await?);
    Ok(())
}

/// The keys of the rests of interrupted puts in a folder.
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
    survey: &Survey,
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
        if survey.unreadable && incarnation != term.incarnation() {
            continue;
        }
        for name in context.store.list(&folder).await? {
            let Ok(number) = name.parse() else { continue };
            let object = ObjectRef { incarnation, number };
            if !survey.named.contains(&object) {
                unnamed.insert(object.key(&context.cluster));
            }
        }
    }
    Ok(unnamed)
}
