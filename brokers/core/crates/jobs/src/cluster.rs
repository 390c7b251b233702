//! Jobs of the whole cluster, which the broker with the term runs: they remove what nothing names
//! any more, whichever incarnation wrote it.

use std::sync::Arc;

use super::garbage::{Garbage, Remains};
use super::sweep::Sweeper;
use super::{JobContext, JobSettings, TopicFacts, report_outcome, ticks};
use freshet_metadata::cluster::Term;

/// The jobs of the cluster: sweeping the object store, and removing what ended incarnations left.
pub struct ClusterJobs {
    /// The right to run them.
    pub term: Term,
    /// What jobs work with.
    pub context: Arc<JobContext>,
    /// Answers what jobs ask about topics.
    pub topics: Arc<dyn TopicFacts>,
    /// Answers what the metadata store knows of ended incarnations.
    pub remains: Arc<dyn Remains>,
    /// How often they run.
    pub settings: JobSettings,
}

impl ClusterJobs {
    /// Runs the jobs one after the other in rounds, and never returns.
    pub(super) async fn run(self) {
        let Self { term, context, topics, remains, settings } = self;
        let mut sweeper = Sweeper::new(term);
        let mut garbage = Garbage::new(term, settings.unmetered_lanes_kept);
        let mut due = ticks(settings.sweep_interval);
        loop {
            due.tick().await;
            report_outcome("sweep", sweeper.sweep(&context, topics.as_ref()).await);
            report_outcome("garbage", garbage.collect(&context, remains.as_ref()).await);
        }
    }
}
