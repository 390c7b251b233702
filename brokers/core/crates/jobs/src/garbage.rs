//! What dead incarnations leave behind beside records: folders of lanes that nobody needs any more,
//! their records in the metadata store, and the marks of topics that were deleted long ago.
//!
//! A lane goes once its broker has ended, no partition's extent names it, its records are in
//! segments (no file with blocks is left), and the meter has said in the lane itself that it has
//! recorded all of it, or has had as long for that as it was given: where nobody meters, nobody
//! would say it ever. Two rounds in a row must find it so. Its folder goes under another name in
//! one step before it is emptied: its broker may still live, and make a file in what is half gone.
//! The newest lane of all is one's own and stays, so numbers of incarnations are never given twice,
//! whatever backup the metadata store comes back from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;

use super::{JobContext, JobError};
use freshet_metadata::cluster::Term;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::lane::{LaneError, LanePaths, METERED, REMOVED};
use freshet_storage::rules::Rule;
use freshet_wire::ids::{Incarnation, TopicId};
use freshet_world::env::{DiskError, is_draft};

/// The mark of a deleted topic is kept for this long: the meter, which counts what the topic used
/// up to its end, may come late, and a month is closed some days after its end.
pub const DELETED_TOPIC_KEPT_MS: i64 = 40 * 24 * 3_600_000;

/// What the metadata store says of the dead, and how it forgets them.
#[async_trait]
pub trait Remains: Send + Sync {
    /// Incarnations that have ended and that no partition's extent names, each with a time at which
    /// it had ended for certain: when its successor started, ms.
    fn ended(&self) -> BTreeMap<Incarnation, i64>;

    /// Topics that were deleted before `before_ms`.
    fn deleted_before(&self, before_ms: i64) -> BTreeSet<TopicId>;

    /// Forgets an incarnation that has ended.
    async fn forget_incarnation(&self, term: Term, incarnation: Incarnation) -> Result<(), String>;

    /// Forgets that topics were deleted.
    async fn forget_deleted(&self, term: Term, topics: BTreeSet<TopicId>) -> Result<(), String>;
}

/// Remembers what the last round found.
pub struct Garbage {
    term: Term,
    /// For how long a lane waits for the meter; none: until it comes.
    unmetered_kept: Option<Duration>,
    /// Files of lanes that nobody needs, unless somebody is about to publish them.
    rests: BTreeSet<(Incarnation, String)>,
    empty_lanes: BTreeSet<Incarnation>,
    gone_topics: BTreeSet<TopicId>,
}

impl Garbage {
    /// Before the first round of a term.
    pub fn new(term: Term, unmetered_kept: Option<Duration>) -> Self {
        Self {
            term,
            unmetered_kept,
            rests: BTreeSet::new(),
            empty_lanes: BTreeSet::new(),
            gone_topics: BTreeSet::new(),
        }
    }

    /// One round.
    ///
    /// # Errors
    /// [`JobError`]; nothing more is removed then.
    pub async fn collect(
        &mut self,
        context: &JobContext,
        remains: &dyn Remains,
    ) -> Result<(), JobError> {
        if context.partitions.any_offline() {
            // Its records may be anywhere.
            return Ok(());
        }
        let empty = self.empty_lanes(context, remains).await?;
        for incarnation in self.empty_lanes.intersection(&empty) {
            take_away(context, *incarnation).await?;
            let forgotten = remains.forget_incarnation(self.term, *incarnation).await;
            forgotten.map_err(JobError::Metadata)?;
            tracing::info!(lane = incarnation.0, "removed what was left of a lane");
        }
        self.empty_lanes = empty;
        clear_removed(context).await?;
        let gone = gone_topics(context, remains).await?;
        let forgotten: BTreeSet<_> = self.gone_topics.intersection(&gone).copied().collect();
        self.gone_topics = gone;
        if !forgotten.is_empty() {
            check_token(context).await?;
            remains.forget_deleted(self.term, forgotten).await.map_err(JobError::Metadata)?;
        }
        Ok(())
    }

    /// Removes what nobody needs in the lanes of the dead, and says which hold nothing any more
    /// that anybody does.
    async fn empty_lanes(
        &mut self,
        context: &JobContext,
        remains: &dyn Remains,
    ) -> Result<BTreeSet<Incarnation>, JobError> {
        let mut empty = BTreeSet::new();
        let known = std::mem::take(&mut self.rests);
        let given_up_before_ms = self.unmetered_kept.map(|kept| {
            let kept_ms = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
            context.clock.now_ms().saturating_sub(kept_ms)
        });
        for (incarnation, ended_at_ms) in remains.ended() {
            if incarnation >= self.term.incarnation() {
                continue;
            }
            let goes = |name: &str| known.contains(&(incarnation, name.to_owned()));
            let folder = context.lane_paths(incarnation).folder();
            let names = remove_files(context, &folder, goes).await?;
            // Without a name in it, it was taken away by one who did not come to forget it.
            let metered = names.is_empty()
                || names.iter().any(|name| name == METERED)
                || given_up_before_ms.is_some_and(|before_ms| ended_at_ms < before_ms);
            if metered && names.iter().all(|name| may_go(name)) {
                empty.insert(incarnation);
            }
            let rests = names.into_iter().filter(|name| is_rest(name));
            self.rests.extend(rests.map(|name| (incarnation, name)));
        }
        Ok(empty)
    }
}

fn has_ending(name: &str, ending: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, found)| found == ending)
}

/// Files that a lane was to use again, and what was never published.
fn is_rest(name: &str) -> bool {
    has_ending(name, "spare") || is_draft(name)
}

/// Whether a lane may go with this file in it: not with one of blocks, nor with a stranger's.
fn may_go(name: &str) -> bool {
    is_rest(name) || has_ending(name, "idx") || ["SEAL", "OWNER", METERED].contains(&name)
}

/// Gives a lane's folder the name of one that is removed.
async fn take_away(context: &JobContext, incarnation: Incarnation) -> Result<(), JobError> {
    check_token(context).await?;
    let paths = context.lane_paths(incarnation);
    match context.disk.rename(&paths.folder(), &paths.removed()).await {
        Err(DiskError::NotFound(_)) => return Ok(()),
        renamed => renamed.map_err(LaneError::from)?,
    }
    Ok(context.disk.make_durable(&paths.removed()).await.map_err(LaneError::from)?)
}

/// Removes the folders that were taken away, also by one who did not come to this.
async fn clear_removed(context: &JobContext) -> Result<(), JobError> {
    let lanes = LanePaths::lanes(&context.cluster);
    let names = context.disk.list(&lanes).await.map_err(LaneError::from)?;
    for name in names.iter().filter(|name| name.starts_with(REMOVED)) {
        let folder = lanes.join(name);
        remove_files(context, &folder, |_| true).await?;
        context.disk.remove_folder(&folder).await.map_err(LaneError::from)?;
    }
    Ok(())
}

/// Removes some files of a folder; gives the names of all that were there.
async fn remove_files(
    context: &JobContext,
    folder: &Path,
    goes: impl Fn(&str) -> bool,
) -> Result<Vec<String>, JobError> {
    let names = context.disk.list(folder).await.map_err(LaneError::from)?;
    for name in names.iter().filter(|name| goes(name)) {
        check_token(context).await?;
        context.disk.remove(&folder.join(name)).await.map_err(LaneError::from)?;
    }
    Ok(names)
}

/// Topics deleted long ago of which the object store has nothing any more. What a start could read
/// of a lane does not name them either: the lane of this incarnation began after they were gone, or
/// they are still too young to be forgotten.
async fn gone_topics(
    context: &JobContext,
    remains: &dyn Remains,
) -> Result<BTreeSet<TopicId>, JobError> {
    let before_ms = context.clock.now_ms().saturating_sub(DELETED_TOPIC_KEPT_MS);
    let mut gone = remains.deleted_before(before_ms);
    if !gone.is_empty() {
        for topic in context.store.list(&Manifest::root(&context.cluster)).await? {
            if let Ok(topic) = topic.parse::<TopicId>() {
                gone.remove(&topic);
            }
        }
    }
    Ok(gone)
}

async fn check_token(context: &JobContext) -> Result<(), JobError> {
    if context.sources.rules.hold(Rule::CheckBeforeDelete) {
        context.token.check().await?;
    }
    Ok(())
}
