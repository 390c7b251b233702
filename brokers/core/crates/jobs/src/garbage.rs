//! Removes what ended incarnations leave behind: folders of lanes that nobody needs any more, the
//! incarnations' records in the metadata store, and the marks of topics that were deleted long ago.
//!
//! A lane is removed once all of this holds: its incarnation has ended; no partition's extent names
//! it; its records are in segments, that is, no file with blocks is left; and the metering agent
//! has marked the lane as recorded, or a configured time has passed (where no agent runs, no mark
//! would ever come). Two rounds in a row must find it so. The folder is renamed in one step before
//! it is emptied, because its broker may still be running and could create a file in a folder that
//! is being emptied. The newest lane is always the own one and stays, so that the number of an
//! incarnation is never given twice, whatever backup the metadata store is restored from.

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

/// The mark of a deleted topic is kept for 40 days: usage up to the deletion may be counted late,
/// and the bill of a month is closed some days after its end.
pub const DELETED_TOPIC_KEPT_MS: i64 = 40 * 24 * 3_600_000;

/// What the metadata store knows of ended incarnations and deleted topics, and how it forgets them.
#[async_trait]
pub trait Remains: Send + Sync {
    /// The incarnations of which the metadata store has no end now. Also what a fenced one made
    /// may count, until its lane is sealed. The error is a message for the log.
    async fn unended(&self) -> Result<BTreeSet<Incarnation>, String>;

    /// The incarnations that have ended and that no partition's extent names. Each comes with a
    /// time in ms since 1970 at which it had certainly ended.
    fn ended(&self) -> BTreeMap<Incarnation, i64>;

    /// The topics that were deleted before `before_ms` (ms since 1970).
    fn deleted_before(&self, before_ms: i64) -> BTreeSet<TopicId>;

    /// Removes an ended incarnation from the metadata store. The error is a message for the log.
    async fn forget_incarnation(&self, term: Term, incarnation: Incarnation) -> Result<(), String>;

    /// Removes the marks of deleted topics. The error is a message for the log.
    async fn forget_deleted(&self, term: Term, topics: BTreeSet<TopicId>) -> Result<(), String>;
}

/// Collects garbage in rounds, and remembers what the last round found.
pub struct Garbage {
    term: Term,
    /// How long an ended lane waits for the mark of the metering agent; `None`: for ever.
    unmetered_kept: Option<Duration>,
    /// Recycled files and drafts that the last round found. They are removed in the next one, since
    /// a broker that is not known to have ended could be about to publish them.
    rests: BTreeSet<(Incarnation, String)>,
    empty_lanes: BTreeSet<Incarnation>,
    gone_topics: BTreeSet<TopicId>,
}

impl Garbage {
    /// Creates it for a term, before its first round.
    pub fn new(term: Term, unmetered_kept: Option<Duration>) -> Self {
        Self {
            term,
            unmetered_kept,
            rests: BTreeSet::new(),
            empty_lanes: BTreeSet::new(),
            gone_topics: BTreeSet::new(),
        }
    }

    /// The term in which it collects.
    pub fn term(&self) -> Term {
        self.term
    }

    /// Performs one round.
    ///
    /// # Errors
    /// Any [`JobError`]; then nothing more is removed.
    pub async fn collect(
        &mut self,
        context: &JobContext,
        remains: &dyn Remains,
    ) -> Result<(), JobError> {
        if context.partitions.any_offline() {
            // The records of an offline partition may be in any lane.
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

    /// Removes the files that nobody needs from ended lanes, and returns the lanes that hold
    /// nothing any more that anybody needs.
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
            // An empty list means that the folder was renamed in a round that was interrupted
            // before the incarnation was forgotten.
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
    name.rsplit_once('.').is_some_and(|(_, suffix)| suffix == ending)
}

/// Whether the file is a recycled file, or a draft that was never published.
fn is_rest(name: &str) -> bool {
    has_ending(name, "spare") || is_draft(name)
}

/// Whether a lane with this file in it may be removed: not where the file holds blocks, nor where
/// it is an unknown file.
fn may_go(name: &str) -> bool {
    is_rest(name) || has_ending(name, "idx") || ["SEAL", "OWNER", METERED].contains(&name)
}

/// Renames a lane's folder, which marks it as being removed. Does nothing where it is gone.
async fn take_away(context: &JobContext, incarnation: Incarnation) -> Result<(), JobError> {
    check_token(context).await?;
    let paths = context.lane_paths(incarnation);
    match context.disk.rename(&paths.folder(), &paths.removed()).await {
        Err(DiskError::NotFound(_)) => return Ok(()),
        renamed => renamed.map_err(LaneError::from)?,
    }
    Ok(context.disk.make_durable(&paths.removed()).await.map_err(LaneError::from)?)
}

/// Removes the folders that were renamed for removal, also those of rounds that were interrupted.
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

/// Removes the files of a folder that `goes` selects, and returns the names of all that were there.
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

/// The topics deleted long ago of which the object store has nothing any more. No lane that a start
/// would read names them either: those lanes began after the topics were gone, or the topics were
/// not deleted long enough ago.
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
