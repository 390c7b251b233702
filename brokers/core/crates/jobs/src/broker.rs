//! Jobs of one broker, on the partitions that it leads and the lanes that it inherited.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::inherit::Inherited;
use super::split::Splitter;
use super::{
    JobContext, JobError, JobMessage, JobSettings, RETRY_AFTER_FIRST, TopicFacts, deletion, inbox,
    pause, report, retention, rounds, ticks,
};
use freshet_storage::lane::writer::RolledFile;

/// Splitting, deleting records, retention, and rewriting.
pub struct BrokerJobs {
    /// What jobs work with.
    pub context: Arc<JobContext>,
    /// What they ask about topics.
    pub topics: Arc<dyn TopicFacts>,
    /// What earlier incarnations left unsplit; settled first.
    pub inherited: Inherited,
    /// How often they run.
    pub settings: JobSettings,
    /// What they are asked to do.
    pub messages: mpsc::UnboundedReceiver<JobMessage>,
}

impl BrokerJobs {
    /// Settles the inheritance however often it takes: new segments follow the inherited ones.
    pub(super) async fn settle(&self) -> Splitter {
        let mut splitter = Splitter::new(Arc::clone(&self.context), self.settings.split);
        let mut wait = RETRY_AFTER_FIRST;
        while let Err(error) = self.inherited.settle(&mut splitter).await {
            report("inherit", Err(error));
            pause(&mut wait).await;
        }
        splitter
    }

    /// All jobs beside each other, until nobody can ask any more.
    pub(super) async fn run(self, mut splitter: Splitter) {
        let Self { context, topics, settings, messages, .. } = self;
        tokio::select! {
            biased;
            () = take_messages(&mut splitter, messages) => {}
            () = enforce_retention(&context, topics.as_ref(), settings) => {}
            () = rewrite_segments(&context, topics.as_ref(), settings) => {}
        }
    }
}

/// What cannot wait for other jobs: splitting, and what somebody waits for.
async fn take_messages(splitter: &mut Splitter, messages: mpsc::UnboundedReceiver<JobMessage>) {
    let context = Arc::clone(splitter.context());
    let mut inbox = inbox::Inbox::new(messages);
    while let Some(message) = inbox.take().await {
        match message {
            JobMessage::Rolled(file) => {
                let files = inbox.files_from(file, splitter.settings()).await;
                split_files(splitter, &files).await;
            }
            // Whoever asked may have given up waiting, here and below.
            JobMessage::DeleteRecords(wanted, done) => {
                drop(done.send(deletion::delete_records(&context, &wanted).await));
            }
            JobMessage::Drain(done) => {
                context.end_turns().await;
                let _ = done.send(());
            }
        }
    }
}

/// Retention, for ever.
async fn enforce_retention(context: &JobContext, topics: &dyn TopicFacts, settings: JobSettings) {
    let mut due = ticks(settings.retention_interval);
    loop {
        due.tick().await;
        report("retention", retention::enforce(context, topics).await);
    }
}

/// Joining and compaction, for ever.
async fn rewrite_segments(context: &JobContext, topics: &dyn TopicFacts, settings: JobSettings) {
    let mut rounds = rounds::Rounds::new(context, settings);
    let mut due = ticks(settings.rewrite_interval);
    loop {
        due.tick().await;
        report("rewrite", rounds.go_round(topics).await);
    }
}

/// Splits files however often it takes: they go in the order in which they were written, since a
/// lane with a file missing between others counts as damaged.
async fn split_files(splitter: &mut Splitter, files: &[RolledFile]) {
    let mut wait = RETRY_AFTER_FIRST;
    while let Err(error) = splitter.split_files(files).await {
        if matches!(error, JobError::Stopping) {
            return;
        }
        report("split", Err(error));
        pause(&mut wait).await;
    }
}
