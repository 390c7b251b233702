//! Jobs of one broker, on the partitions that it leads and on the lanes of earlier incarnations
//! that it took over.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::inherit::Inherited;
use super::split::Splitter;
use super::{
    JobContext, JobError, JobMessage, JobSettings, RETRY_AFTER_FIRST, TopicFacts, back_off,
    deletion, inbox, report_outcome, retention, rounds, ticks,
};
use freshet_storage::lane::writer::RolledFile;

/// The jobs of one broker: splitting, deletion of records, retention, and rewriting.
pub struct BrokerJobs {
    /// What jobs work with.
    pub context: Arc<JobContext>,
    /// Answers what jobs ask about topics.
    pub topics: Arc<dyn TopicFacts>,
    /// What ended incarnations left unsplit. It is split before anything else.
    pub inherited: Inherited,
    /// How often they run.
    pub settings: JobSettings,
    /// The requests to these jobs.
    pub messages: mpsc::UnboundedReceiver<JobMessage>,
}

impl BrokerJobs {
    /// Splits what earlier incarnations left, and tries until that succeeds. It comes first because
    /// a partition's segments must follow each other in order of offsets.
    pub(super) async fn settle(&mut self) -> Splitter {
        let (context, topics) = (Arc::clone(&self.context), Arc::clone(&self.topics));
        let mut splitter = Splitter::new(context, topics, self.settings.split);
        settle(&mut self.inherited, &mut splitter).await;
        splitter
    }

    /// Runs all jobs concurrently until the sender of `messages` is dropped.
    pub(super) async fn run(self, mut splitter: Splitter) {
        let Self { context, topics, settings, messages, inherited } = self;
        tokio::select! {
            biased;
            () = take_messages(&mut splitter, inherited, messages) => {}
            () = enforce_retention(&context, topics.as_ref(), settings) => {}
            () = rewrite_segments(&context, topics.as_ref(), settings) => {}
        }
    }
}

async fn settle(inherited: &mut Inherited, splitter: &mut Splitter) {
    let mut wait = RETRY_AFTER_FIRST;
    while let Err(error) = inherited.settle(splitter).await {
        report_outcome("inherit", Err(error));
        back_off(&mut wait).await;
    }
}

/// Does what cannot wait for other jobs: splits lane files, and answers requests.
async fn take_messages(
    splitter: &mut Splitter,
    mut inherited: Inherited,
    messages: mpsc::UnboundedReceiver<JobMessage>,
) {
    let context = Arc::clone(splitter.context());
    let mut inbox = inbox::Inbox::new(messages);
    while let Some(message) = inbox.take().await {
        match message {
            JobMessage::Rolled(file) => {
                let files = inbox.files_from(file, splitter.settings()).await;
                split_files(splitter, &files).await;
                // Others may have trimmed since what they had in these lanes.
                report_outcome("inherit", inherited.retire(splitter).await);
            }
            JobMessage::Inherit(lanes, registered) => {
                if registered.await.is_ok() {
                    inherited.lanes.extend(lanes);
                    settle(&mut inherited, splitter).await;
                }
            }
            // The send fails where the caller has stopped waiting, here and below.
            JobMessage::DeleteRecords(deletions, done) => {
                drop(done.send(deletion::delete_records(&context, &deletions).await));
            }
            JobMessage::Release(partitions, done) => {
                drop(done.send(context.release(partitions).await));
            }
            JobMessage::Drain(done) => {
                context.end_turns().await;
                let _ = done.send(());
            }
        }
    }
}

/// Enforces retention in rounds, and never returns.
async fn enforce_retention(context: &JobContext, topics: &dyn TopicFacts, settings: JobSettings) {
    let mut due = ticks(settings.retention_interval);
    loop {
        due.tick().await;
        report_outcome("retention", retention::enforce_retention(context, topics).await);
        retention::expire_producers(context, topics);
    }
}

/// Joins and compacts segments in rounds, and never returns.
async fn rewrite_segments(context: &JobContext, topics: &dyn TopicFacts, settings: JobSettings) {
    let mut rounds = rounds::Rounds::new(context, settings);
    let mut due = ticks(settings.rewrite_interval);
    loop {
        due.tick().await;
        report_outcome("rewrite", rounds.go_round(topics).await);
    }
}

/// Splits files, and tries until that succeeds: files are removed in the order in which they were
/// written, because a lane with a file missing between others counts as damaged.
async fn split_files(splitter: &mut Splitter, files: &[RolledFile]) {
    let mut wait = RETRY_AFTER_FIRST;
    while let Err(error) = splitter.split_files(files).await {
        if matches!(error, JobError::Stopping) {
            return;
        }
        report_outcome("split", Err(error));
        back_off(&mut wait).await;
    }
}
