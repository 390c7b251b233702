//! Jobs that remove what nothing names any more: each broker does so for what it wrote itself, and
//! the one with the term for what ended incarnations wrote.

use std::sync::Arc;

use super::garbage::{Garbage, Remains};
use super::sweep::Sweeper;
use super::{JobContext, JobSettings, TopicFacts, report_outcome, ticks};
use freshet_metadata::cluster::Term;
use freshet_world::watch;

/// The jobs of the cluster: sweeping the object store, and removing what ended incarnations left.
pub struct ClusterJobs {
    /// The term that this broker has, where it has one.
    pub term: watch::Receiver<Option<Term>>,
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
        let mut sweeper = Sweeper::default();
        let mut garbage: Option<Garbage> = None;
        let mut due = ticks(settings.sweep_interval);
        loop {
            due.tick().await;
            let term = *term.borrow();
            let facts = (topics.as_ref(), remains.as_ref());
            report_outcome("sweep", sweeper.sweep(&context, facts, term).await);
            let Some(term) = term else {
                garbage = None;
                continue;
            };
            let collector = garbage.take().filter(|garbage| garbage.term() == term);
            let mut collector =
                collector.unwrap_or_else(|| Garbage::new(term, settings.unmetered_lanes_kept));
            report_outcome("garbage", collector.collect(&context, remains.as_ref()).await);
            garbage = Some(collector);
        }
    }
}
