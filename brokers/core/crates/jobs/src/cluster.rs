//! Jobs of the whole cluster, which its controller does: what nothing names goes, whoever made it.

use std::sync::Arc;

use super::garbage::{Garbage, Remains};
use super::sweep::Sweeper;
use super::{JobContext, JobSettings, TopicFacts, report, ticks};
use freshet_metadata::cluster::Term;

/// Sweeping the object store, and removing what dead incarnations leave behind.
pub struct ClusterJobs {
    /// The right to do them.
    pub term: Term,
    /// What jobs work with.
    pub context: Arc<JobContext>,
    /// What they ask about topics.
    pub topics: Arc<dyn TopicFacts>,
    /// What the metadata store says of the dead.
    pub remains: Arc<dyn Remains>,
    /// How often they run.
    pub settings: JobSettings,
}

impl ClusterJobs {
    /// One after the other, for ever.
    pub(super) async fn run(self) {
        let Self { term, context, topics, remains, settings } = self;
        let mut sweeper = Sweeper::new(term);
        let mut garbage = Garbage::new(term, settings.unmetered_lanes_kept);
        let mut due = ticks(settings.sweep_interval);
        loop {
            due.tick().await;
            report("sweep", sweeper.sweep(&context, topics.as_ref()).await);
            report("garbage", garbage.collect(&context, remains.as_ref()).await);
        }
    }
}
