//! Computations that somebody waits for and that take a core for milliseconds, such as the check of
//! a password: on threads of their own, which serve no client and give way to those that do.
#![allow(clippy::disallowed_methods)]

use std::io;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::task::JoinError;

use super::priority::give_way;

/// Threads for computations (see the module).
pub struct ComputeThreads {
    pool: Option<Runtime>,
    threads: usize,
}

impl ComputeThreads {
    /// At most so many threads, which are started when they are needed. In a runtime of one thread,
    /// which is a test's, there are none: its clock may stand still, and moves on while threads
    /// that it does not know of are at work.
    ///
    /// # Errors
    /// Where the system has no room for them.
    pub fn new(name: &str, threads: usize) -> io::Result<Self> {
        let threads = threads.max(1);
        if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
            return Ok(Self { pool: None, threads });
        }
        let pool = Builder::new_current_thread()
            .max_blocking_threads(threads)
            .thread_name(name)
            .on_thread_start(give_way)
            .build()?;
        Ok(Self { pool: Some(pool), threads })
    }

    /// How many threads there are at most.
    pub fn count(&self) -> usize {
        self.threads
    }

    /// Runs a computation. Where all threads are busy it waits, in the order of asking.
    ///
    /// # Errors
    /// Where it panics, or the threads end first.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        match &self.pool {
            Some(pool) => pool.handle().spawn_blocking(work).await,
            None => tokio::task::spawn_blocking(work).await,
        }
    }
}

impl Drop for ComputeThreads {
    fn drop(&mut self) {
        // A runtime must not be dropped by a task of another.
        if let Some(pool) = self.pool.take() {
            pool.shutdown_background();
        }
    }
}

/// How long this thread has computed since it began.
pub fn thread_cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("never negative")
}

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn computations_give_way_to_whoever_serves() {
        let niceness = || getpriority_process(None).unwrap();
        let own = niceness();
        let threads = ComputeThreads::new("test", 2).unwrap();
        let computing = threads.run(niceness).await.unwrap();
        assert!(computing > own || own == 19, "{computing} is not above {own}");
        assert_eq!(niceness(), own);
    }

    #[tokio::test]
    async fn a_test_with_one_thread_computes_as_well() {
        let threads = ComputeThreads::new("test", 2).unwrap();
        assert_eq!(threads.run(|| 7).await.unwrap(), 7);
    }
}
