//! Threads for single tasks: those that must not wait for other tasks, and those that must not
//! delay others.
#![allow(clippy::disallowed_methods)]

use std::cell::RefCell;
use std::io;

use futures::future::BoxFuture;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinError;
use tokio_util::task::AbortOnDropHandle;

use super::priority::give_way;

/// Why a task has a thread of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It waits for the disk and has nothing else to do: calls that block take place on it.
    Disk,
    /// It computes for long and nobody waits for it. Where clients need the processor, it gets a
    /// tenth of what one of their threads gets. So do the threads on which its calls block.
    Background,
}

const BACKGROUND_CALLS_MAX: usize = 16;

/// Where calls that block are made.
#[derive(Clone)]
enum Place {
    /// In the runtime's own pool.
    Shared,
    /// On the thread itself.
    Here,
    /// In the pool of another runtime.
    Pool(Handle),
}

thread_local! {
    static PLACE: RefCell<Place> = const { RefCell::new(Place::Shared) };
}

/// Runs work that blocks on a thread where it delays no other task.
///
/// # Errors
/// Where the work panics, or the runtime ends first.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    match PLACE.with_borrow(Place::clone) {
        Place::Shared => tokio::task::spawn_blocking(work).await,
        Place::Here => Ok(work()),
        Place::Pool(pool) => pool.spawn_blocking(work).await,
    }
}

/// Whether calls that block are made on threads with a lower priority than those of clients.
pub(super) fn gives_way() -> bool {
    PLACE.with_borrow(|place| matches!(place, Place::Pool(_)))
}

/// Runs a task on a thread of its own, with the timers of the runtime that this is called in. The
/// handle ends when the task does; dropping it drops the task, once a call that blocks returns.
///
/// # Errors
/// Where the system has no room for a thread.
pub(super) fn run(
    name: &str,
    purpose: Purpose,
    task: BoxFuture<'static, ()>,
) -> io::Result<AbortOnDropHandle<()>> {
    let runtime = Handle::current();
    let (abort, aborted) = oneshot::channel::<()>();
    let (done, ended) = oneshot::channel::<()>();
    let pool = (purpose == Purpose::Background).then(|| background_pool(name)).transpose()?;
    let work = move || {
        match &pool {
            None => PLACE.set(Place::Here),
            Some(pool) => {
                give_way();
                PLACE.set(Place::Pool(pool.handle().clone()));
            }
        }
        runtime.block_on(async {
            tokio::select! {
                biased;
                _ = aborted => {}
                () = task => {}
            }
        });
        drop(done);
        if let Some(pool) = pool {
            pool.shutdown_background();
        }
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
    Ok(AbortOnDropHandle::new(tokio::spawn(async move {
        // Dropped with this task.
        let _abort = abort;
        // Nothing is ever sent: the sender is dropped with the thread, also where that panics.
        let _ = ended.await;
    })))
}

/// A runtime of which only the pool for blocking calls is used.
fn background_pool(name: &str) -> io::Result<Runtime> {
    Builder::new_current_thread()
        .max_blocking_threads(BACKGROUND_CALLS_MAX)
        .thread_name(format!("{name}-io"))
        .build()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use rustix::process::getpriority_process;

    use super::super::priority::BACKGROUND_NICE;
    use super::*;

    /// The niceness of a task's thread and of those on which its calls block.
    async fn niceness(purpose: Purpose) -> (i32, i32) {
        let (sender, receiver) = oneshot::channel();
        let task = async move {
            let own = getpriority_process(None).unwrap();
            let of_calls = blocking(|| getpriority_process(None).unwrap()).await.unwrap();
            sender.send((own, of_calls)).unwrap();
        };
        let _task = run("test", purpose, task.boxed()).unwrap();
        receiver.await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn background_work_gives_way_and_nothing_else_does() {
        let before = getpriority_process(None).unwrap();
        let nicer = (before + BACKGROUND_NICE).min(19);
        assert_eq!(niceness(Purpose::Background).await, (nicer, nicer));
        assert_eq!(niceness(Purpose::Disk).await, (before, before));
        let of_clients = blocking(|| getpriority_process(None).unwrap()).await.unwrap();
        assert_eq!((getpriority_process(None).unwrap(), of_clients), (before, before));
    }
}
