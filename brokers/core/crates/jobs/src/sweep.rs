//! The sweeper: deletes objects and manifests that nothing names any more.
//!
//! What two rounds in a row find unnamed is deleted, if this incarnation still owns its lane. A
//! broker sweeps the objects that it wrote itself, because it alone knows which it is making; and
//! with the term also those of incarnations that have ended. It never touches what another live
//! broker wrote, or an incarnation after its own: it cannot know whether that will be named.
//!
//! What partitions of other brokers need is read from their manifests in the object store. A
//! manifest is there before it counts, and the ones before it go only afterwards: so all that are
//! there name, together, all that counts.

use std::collections::BTreeSet;

use super::garbage::Remains;
use super::{JobContext, JobError, TopicFacts};
use freshet_metadata::cluster::Term;
use freshet_partition::Partition;
use freshet_storage::cold::ColdError;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::names::ObjectRef;
use freshet_storage::rules::Rule;
use freshet_wire::ids::{Incarnation, PartitionId, TopicId};
use freshet_world::env::store::StoreError;

/// How often the manifests of a partition are listed again where one was removed while they were
/// read.
const LISTINGS_MAX: u32 = 10;

/// What a sweeper asks: about topics, and about incarnations.
type Facts<'a> = (&'a dyn TopicFacts, &'a dyn Remains);

/// Sweeps in rounds, and remembers what the last round found unnamed.
#[derive(Default)]
pub struct Sweeper {
    unnamed: BTreeSet<String>,
}

impl Sweeper {
    /// Performs one round, in the term that this broker has.
    ///
    /// # Errors
    /// Any [`JobError`]; then nothing more is deleted.
    pub async fn sweep(
        &mut self,
        context: &JobContext,
        (topics, remains): Facts<'_>,
        term: Option<Term>,
    ) -> Result<(), JobError> {
        if context.partitions.any_offline() {
            tracing::warn!("not sweeping: a partition is offline and may need any object");
            return Ok(());
        }
        // Taken before any manifest is read: an object that is named between the two is then kept
        // by this list or by its manifest.
        let kept = context.unnamed_objects();
        // Before any manifest is read: those that count of ended incarnations are all there. And
        // before any object is listed: what an incarnation makes that registers later is seen in
        // the next round to be of one that has not ended.
        let unended = match term {
            Some(_) => remains.unended().await.map_err(JobError::Metadata)?,
            None => BTreeSet::new(),
        };
        let mut survey = survey_manifests(context, topics, term).await?;
        survey.named.extend(kept);
        let mut unnamed = unnamed_objects(context, term, &unended, &survey).await?;
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
    term: Option<Term>,
) -> Result<Survey, JobError> {
    let mut survey = Survey::default();
    let root = Manifest::root(&context.cluster);
    for topic in context.store.list(&root).await? {
        let Ok(topic_id) = topic.parse::<TopicId>() else { continue };
        for index in context.store.list(&format!("{root}/{topic}")).await? {
            let Ok(index) = index.parse::<i32>() else { continue };
            let id = PartitionId::new(topic_id, index);
            // One that is being handed over is not there: somebody else may lead it by now.
            if let Some(partition) = context.partitions.get(id) {
                survey_own(context, &partition, &mut survey).await?;
            } else if topics.was_deleted(topic_id) {
                if term.is_some() {
                    survey_deleted(context, id, &mut survey).await?;
                }
            } else {
                survey_other(context, id, &mut survey).await?;
            }
        }
    }
    Ok(survey)
}

/// Surveys a partition that is led here: earlier manifests than its current one count no more.
async fn survey_own(
    context: &JobContext,
    partition: &Partition,
    survey: &mut Survey,
) -> Result<(), JobError> {
    let folder = Manifest::folder(&context.cluster, partition.id());
    let current = partition.manifest();
    name_objects(&mut survey.named, &current);
    let current = current.name;
    for file_name in context.store.list(&folder).await? {
        if Manifest::parse_file_name(&file_name).is_some_and(|name| name < current) {
            survey.superseded.push(format!("{folder}/{file_name}"));
        }
    }
    survey.superseded.extend(half_made(context, &folder).await?);
    Ok(())
}

/// Surveys a partition of a topic that was deleted for good: none of its manifests counts.
async fn survey_deleted(
    context: &JobContext,
    id: PartitionId,
    survey: &mut Survey,
) -> Result<(), JobError> {
    let folder = Manifest::folder(&context.cluster, id);
    let names = context.store.list(&folder).await?;
    let manifests = names.iter().filter(|name| Manifest::parse_file_name(name).is_some());
    survey.superseded.extend(manifests.map(|name| format!("{folder}/{name}")));
    survey.superseded.extend(half_made(context, &folder).await?);
    Ok(())
}

/// Surveys a partition that another broker leads, or nobody: what any of its manifests names stays.
async fn survey_other(
    context: &JobContext,
    id: PartitionId,
    survey: &mut Survey,
) -> Result<(), JobError> {
    for _ in 0..LISTINGS_MAX {
        if name_all(context, id, survey).await? {
            return Ok(());
        }
    }
    let folder = Manifest::folder(&context.cluster, id);
    Err(ColdError::from(StoreError::NotFound(format!("a manifest of {folder}"))).into())
}

/// Adds what the manifests of a partition name. Returns whether none of them was removed meanwhile:
/// a later one, which may not be in the list, names what that one named.
async fn name_all(
    context: &JobContext,
    id: PartitionId,
    survey: &mut Survey,
) -> Result<bool, JobError> {
    let folder = Manifest::folder(&context.cluster, id);
    for file_name in context.store.list(&folder).await? {
        if Manifest::parse_file_name(&file_name).is_none() {
            continue;
        }
        let key = format!("{folder}/{file_name}");
        let bytes = match context.store.get(&key).await {
            Err(StoreError::NotFound(_)) => return Ok(false),
            read => read?,
        };
        match Manifest::decode(&bytes) {
            Ok(manifest) => name_objects(&mut survey.named, &manifest),
            Err(error) => {
                let advice = "sparing all that it may name: restore or remove it";
                tracing::error!(key, %error, "{advice}");
                survey.unreadable = true;
            }
        }
    }
    Ok(true)
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
    term: Option<Term>,
    unended: &BTreeSet<Incarnation>,
    survey: &Survey,
) -> Result<BTreeSet<String>, JobError> {
    let own = context.incarnation;
    let rules = context.sources.rules;
    let has_ended = |incarnation| incarnation < own && !unended.contains(&incarnation);
    let checks = rules.hold(Rule::CheckBeforeDelete) && rules.hold(Rule::SweepTheEnded);
    let mut unnamed = BTreeSet::new();
    for folder in context.store.list(&ObjectRef::root(&context.cluster)).await? {
        let Ok(incarnation) = folder.parse().map(Incarnation) else { continue };
        let is_swept = incarnation == own || term.is_some() && has_ended(incarnation);
        if checks && !is_swept {
            continue;
        }
        let folder = ObjectRef::folder(&context.cluster, incarnation);
        unnamed.extend(half_made(context, &folder).await?);
        if survey.unreadable && incarnation != own {
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
