//! Reads what producers sent, before anything of it is staged.
//!
//! A request of few bytes is read where it is handled, because that takes less time than to hand
//! it over. Others are read on threads for blocking work, as many at a time as there are threads
//! that serve clients. What decompresses to much more is read from its start again on a thread of
//! lower priority, one request at a time: so decompression bombs delay their own connection and,
//! hardly, others. All decompressions together hold a bounded amount of memory.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use kafka_protocol::ResponseError;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use freshet_wire::budget::{Budget, Share};
use freshet_wire::records::{
    ProduceLimits, ProducedBatch, ReadFailure, RecordRejection, RecordsError, UNPACKED_BYTES_MAX,
    UnpackLimits, ValidatedBatch,
};
use freshet_world::env::{Disk, DiskResult};

/// A request with at most so many bytes of batches is read where it is handled, if it decompresses
/// to at most [`HERE_OUTPUT_BYTES`].
const HERE_BYTES: usize = 32 << 10;
const HERE_OUTPUT_BYTES: usize = 128 << 10;
/// And if its decoder holds at most so much.
const HERE_MEMORY_BYTES: usize = 16 << 20;
/// A request that decompresses to more than this is read with low priority.
const PROMPT_OUTPUT_BYTES: usize = 4 << 20;

/// A batch, and the limits of its topic.
pub struct UnreadBatch {
    /// The batch as it came.
    pub batch: ProducedBatch,
    /// What the topic's configuration allows.
    pub limits: ProduceLimits,
}

/// The result for one batch.
pub type ReadBatch = Result<ValidatedBatch, RecordRejection>;

/// Where and how many batches are read at a time.
pub struct BatchReading {
    memory: Budget,
    prompt: Arc<Semaphore>,
    lengthy: Arc<Semaphore>,
    aside: Aside,
}

/// The thread of low priority, which is started when it is needed first. It remains, because the
/// kernel would not count the time that earlier threads took against a new one.
struct Aside {
    disk: Arc<dyn Disk>,
    thread: Mutex<Option<AsideThread>>,
}

struct AsideThread {
    work: mpsc::UnboundedSender<AsideWork>,
    _running: AbortOnDropHandle<()>,
}

/// Work for that thread, what it holds until it ends, and where its results go.
type AsideWork = (Work, Held, oneshot::Sender<Work>);

/// Sets a flag when it is dropped: the request's connection has ended.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The batches of a request, in order, each with its result once it has one.
struct Work {
    batches: Vec<UnreadBatch>,
    results: Vec<Option<ReadBatch>>,
    /// For how long it took a thread.
    busy: Duration,
    /// The most memory that one of the batches takes.
    memory_bytes: usize,
    /// The most memory that the decompression of one batch may hold.
    memory_bytes_max: usize,
    cancelled: Arc<AtomicBool>,
}

/// What a reading may hold until it ends, though its request may be gone before.
type Held = (OwnedSemaphorePermit, Share);

impl BatchReading {
    /// Reads with at most `memory_bytes` of memory, and with `threads` threads where clients wait.
    pub fn new(memory_bytes: usize, threads: usize, disk: Arc<dyn Disk>) -> Self {
        Self {
            memory: Budget::new(memory_bytes),
            prompt: Arc::new(Semaphore::new(threads.max(1))),
            lengthy: Arc::new(Semaphore::new(1)),
            aside: Aside { disk, thread: Mutex::new(None) },
        }
    }

    /// Reads the batches of a request. Returns a result for each, in order, and for how long the
    /// reading took a thread. Once the future is dropped, the work ends soon.
    pub async fn read(&self, batches: Vec<UnreadBatch>) -> (Vec<ReadBatch>, Duration) {
        let mut work = Work::new(batches, self.memory.total_bytes());
        let _cancel = CancelOnDrop(Arc::clone(&work.cancelled));
        self.read_here(&mut work);
        if work.is_unfinished() {
            let held = self.enter(&self.prompt, work.memory_bytes).await;
            work = read_on_blocking_thread(work, held).await;
        }
        if work.is_unfinished() {
            let held = self.enter(&self.lengthy, work.memory_bytes).await;
            work = self.aside.read(work, held).await;
        }
        let busy = work.busy;
        (work.results.into_iter().map(|result| result.unwrap_or_else(unread)).collect(), busy)
    }

    fn read_here(&self, work: &mut Work) {
        let bytes: usize = work.batches.iter().map(|unread| unread.batch.size_bytes()).sum();
        if bytes > HERE_BYTES || work.memory_bytes > HERE_MEMORY_BYTES {
            return;
        }
        if let Some(_memory) = self.memory.try_acquire(work.memory_bytes) {
            work.read(HERE_OUTPUT_BYTES);
        }
    }

    async fn enter(&self, turns: &Arc<Semaphore>, memory_bytes: usize) -> Held {
        let turn = Arc::clone(turns).acquire_owned().await;
        (turn.expect("the semaphore is never closed"), self.memory.acquire(memory_bytes).await)
    }
}

impl Aside {
    /// Reads with low priority, up to any size that is accepted.
    async fn read(&self, work: Work, held: Held) -> Work {
        let lost = work.lost();
        let (done, ended) = oneshot::channel();
        match self.hand_over((work, held, done)) {
            Ok(()) => ended.await.unwrap_or(lost),
            Err(error) => {
                tracing::error!(%error, "there is no thread to read a produced batch on");
                lost
            }
        }
    }

    fn hand_over(&self, mut work: AsideWork) -> DiskResult<()> {
        let mut thread = self.thread.lock();
        if let Some(running) = &*thread {
            match running.work.send(work) {
                Ok(()) => return Ok(()),
                // It panicked, and with it the request that it had.
                Err(mpsc::error::SendError(returned)) => work = returned,
            }
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        let running = self.disk.set_aside(read_all_aside(receiver).boxed())?;
        // The receiver lives as long as the task, which has only begun.
        let _ = sender.send(work);
        *thread = Some(AsideThread { work: sender, _running: running });
        Ok(())
    }
}

async fn read_all_aside(mut works: mpsc::UnboundedReceiver<AsideWork>) {
    while let Some((mut work, held, done)) = works.recv().await {
        work.read(usize::MAX);
        drop(held);
        // Nobody waits any more where the connection has ended.
        let _ = done.send(work);
    }
}

#[allow(clippy::disallowed_methods, reason = "it computes, and waits for nothing")]
async fn read_on_blocking_thread(mut work: Work, held: Held) -> Work {
    let lost = work.lost();
    let read = tokio::task::spawn_blocking(move || {
        work.read(PROMPT_OUTPUT_BYTES);
        drop(held);
        work
    });
    read.await.unwrap_or_else(|error| {
        tracing::error!(%error, "the reading of a produced batch ended early");
        lost
    })
}

impl Work {
    fn new(batches: Vec<UnreadBatch>, memory_bytes_max: usize) -> Self {
        let results = batches.iter().map(|_| None).collect();
        let memory = batches.iter().map(|unread| unread.batch.memory_to_read());
        let memory_bytes = memory.max().unwrap_or(0);
        let (busy, cancelled) = (Duration::ZERO, Arc::default());
        Self { batches, results, busy, memory_bytes, memory_bytes_max, cancelled }
    }

    /// What is left of the work where its thread does not return it.
    fn lost(&self) -> Self {
        let results = self.batches.iter().map(|_| Some(unread())).collect();
        Self { results, ..Self::new(Vec::new(), self.memory_bytes_max) }
    }

    fn is_unfinished(&self) -> bool {
        self.results.iter().any(Option::is_none)
    }

    /// Reads the batches that have no result, until more than `output_bytes` came out of their
    /// decompression.
    fn read(&mut self, output_bytes: usize) {
        let begun = Instant::now();
        let left = Cell::new(output_bytes);
        let cancelled = &self.cancelled;
        let goes_on = |piece_bytes: usize| {
            left.set(left.get().saturating_sub(piece_bytes));
            left.get() > 0 && !cancelled.load(Ordering::Relaxed)
        };
        let unpack = UnpackLimits {
            output_bytes: UNPACKED_BYTES_MAX,
            memory_bytes: self.memory_bytes_max,
            goes_on: Some(&goes_on),
        };
        for (unread, result) in self.batches.iter().zip(&mut self.results) {
            if result.is_some() {
                continue;
            }
            match unread.batch.read(&unread.limits, unpack) {
                Err(ReadFailure::Unfinished(RecordsError::Stopped)) => break,
                read => *result = Some(read.map_err(RecordRejection::from)),
            }
        }
        self.busy += begun.elapsed();
    }
}

/// The answer for a batch that was not read, through no fault of its producer.
fn unread() -> ReadBatch {
    Err(RecordRejection {
        error: ResponseError::UnknownServerError,
        message: "the records were not read".to_owned(),
        record_errors: Vec::new(),
    })
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
