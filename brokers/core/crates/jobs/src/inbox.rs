//! The inbox of the job task: its requests, in the order in which they were sent.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use super::JobMessage;
use super::split::{FILES_AT_ONCE, SplitSettings};
use freshet_storage::lane::writer::RolledFile;

/// Receives the requests, and groups lane files that are split together.
pub(super) struct Inbox {
    messages: UnboundedReceiver<JobMessage>,
    /// A message that was received and not taken yet.
    next: Option<JobMessage>,
}

impl Inbox {
    pub(super) fn new(messages: UnboundedReceiver<JobMessage>) -> Self {
        Self { messages, next: None }
    }

    /// Waits for the next message. Returns `None` once the sender is dropped.
    pub(super) async fn take(&mut self) -> Option<JobMessage> {
        match self.next.take() {
            None => self.messages.recv().await,
            next => next,
        }
    }

    /// Returns the files that are split together, `first` and those that follow it in the inbox.
    /// Where files fill fast, it also waits for those that will be there soon. A message of another
    /// kind ends the wait.
    pub(super) async fn files_from(
        &mut self,
        first: RolledFile,
        sizes: SplitSettings,
    ) -> Vec<RolledFile> {
        let fits = |file: &RolledFile| sizes.are_large(&file.batches);
        let mut wait = wait_after(&first, sizes);
        let mut open = fits(&first);
        let mut files = vec![first];
        while open && files.len() < FILES_AT_ONCE {
            // `timeout` polls the inbox first, so a file that is there already is taken even where
            // the time is zero.
            match timeout(wait, self.take()).await {
                Ok(Some(JobMessage::Rolled(file))) if fits(&file) => {
                    wait = wait_after(&file, sizes);
                    files.push(file);
                }
                Ok(other) => {
                    self.next = other;
                    open = false;
                }
                Err(_) => open = false,
            }
        }
        files
    }
}

/// How long to wait for the file after this one: twice the time that this one took to fill, where
/// it filled fast; else not at all.
fn wait_after(file: &RolledFile, sizes: SplitSettings) -> Duration {
    let fast = file.filled_fast() && sizes.fill_an_object(&file.batches);
    if fast { 2 * file.filled_in } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{mpsc, oneshot};
    use tokio::time::Instant;

    use super::*;
    use freshet_storage::lane::leftover::Leftover;
    use freshet_storage::lane::{LaneFile, LaneSpot, PlacedBatch};
    use freshet_wire::ids::{Incarnation, PartitionId, TopicId};

    const SIZES: SplitSettings = SplitSettings { object_bytes: 2000, large_batch_bytes: 500 };
    const SECOND: Duration = Duration::from_secs(1);

    /// A file of two batches of that size.
    fn file(number: u64, filled_in: Duration, batch_bytes: u32) -> RolledFile {
        let incarnation = Incarnation(1);
        let spot = LaneSpot {
            incarnation,
            file: LaneFile::Wal(number),
            position: 0,
            length: batch_bytes,
            written_at_ms: 0,
        };
        let partition = PartitionId::new(TopicId::from_u128(1), 0);
        let batch = PlacedBatch { partition, epoch: 1, base_offset: 0, spot };
        let leftover =
            Leftover { incarnation, file: number, sequences: (0, 0), blocks: Vec::new() };
        RolledFile { batches: vec![batch; 2], leftover, filled_in }
    }

    /// The numbers of the files that are split together, and how long they were waited for.
    async fn together(inbox: &mut Inbox) -> (Vec<u64>, Duration) {
        let begun = Instant::now();
        let Some(JobMessage::Rolled(first)) = inbox.take().await else { panic!("no file") };
        let files = inbox.files_from(first, SIZES).await;
        (files.iter().map(|file| file.leftover.file).collect(), begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn files_of_large_batches_that_wait_are_split_together_and_others_alone() {
        let (sender, messages) = mpsc::unbounded_channel();
        let mut inbox = Inbox::new(messages);
        let mut sizes = vec![500; 10];
        sizes.extend([499, 500]);
        for (number, bytes) in (0..).zip(sizes) {
            sender.send(JobMessage::Rolled(file(number, 60 * SECOND, bytes))).unwrap();
        }
        let mut groups = Vec::new();
        for _ in 0..4 {
            groups.push(together(&mut inbox).await);
        }
        let groups: Vec<_> = groups.iter().map(|(files, waited)| (&files[..], *waited)).collect();
        let none = Duration::ZERO;
        let first: Vec<u64> = (0..8).collect();
        assert_eq!(groups, [(&first[..], none), (&[8, 9], none), (&[10], none), (&[11], none)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_filled_fast_waits_for_the_next_and_for_no_longer_than_it_should_take() {
        let (sender, messages) = mpsc::unbounded_channel();
        let mut inbox = Inbox::new(messages);
        sender.send(JobMessage::Rolled(file(0, SECOND, 1000))).unwrap();
        let late = tokio::spawn(async move {
            tokio::time::sleep(SECOND).await;
            sender.send(JobMessage::Rolled(file(1, 2 * SECOND, 1000))).unwrap();
            sender
        });
        assert_eq!(together(&mut inbox).await, (vec![0, 1], 5 * SECOND));
        let sender = late.await.unwrap();
        sender.send(JobMessage::Rolled(file(2, 3 * SECOND, 1000))).unwrap();
        assert_eq!(together(&mut inbox).await, (vec![2], Duration::ZERO), "it filled slowly");
        sender.send(JobMessage::Rolled(file(3, SECOND, 999))).unwrap();
        assert_eq!(together(&mut inbox).await, (vec![3], Duration::ZERO), "it ended early");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_asks_for_something_else_waits_for_no_file() {
        let (sender, messages) = mpsc::unbounded_channel();
        let mut inbox = Inbox::new(messages);
        let (done, _asked) = oneshot::channel();
        sender.send(JobMessage::Rolled(file(0, SECOND, 1000))).unwrap();
        sender.send(JobMessage::Drain(done)).unwrap();
        assert_eq!(together(&mut inbox).await, (vec![0], Duration::ZERO));
        assert!(matches!(inbox.take().await, Some(JobMessage::Drain(_))));
        drop(sender);
        assert!(inbox.take().await.is_none());
    }
}
