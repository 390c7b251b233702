//! Threads of their own, for tasks that must wait for nobody or must hold up nobody.
#![allow(clippy::disallowed_methods)]

use std::cell::Cell;
use std::io;

use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

thread_local! {
    static IS_OWN: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread belongs to one task, which may block it.
pub(super) fn may_block() -> bool {
    IS_OWN.get()
}

/// Where the operations on files of a task with a thread of its own take place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Files {
    /// On that thread, which has nothing else to do.
    Inline,
    /// Where those of all other tasks do: several at a time.
    Elsewhere,
}

/// Runs a task on a thread of its own, with the timers of the runtime that this is called in. The
/// handle ends when the task does; dropping it drops the task, once a call that blocks returns.
///
/// # Errors
/// Where the system has no room for a thread.
pub(super) fn run(
    name: &str,
    files: Files,
    task: BoxFuture<'static, ()>,
) -> io::Result<AbortOnDropHandle<()>> {
    let runtime = Handle::current();
    let (abort, aborted) = oneshot::channel::<()>();
    let (done, ended) = oneshot::channel::<()>();
    let work = move || {
        IS_OWN.set(files == Files::Inline);
        runtime.block_on(async {
            tokio::select! {
                biased;
                _ = aborted => {}
                () = task => {}
            }
        });
        drop(done);
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
    Ok(AbortOnDropHandle::new(tokio::spawn(async move {
        // Dropped with this task.
        let _abort = abort;
        // Nothing is ever sent: the sender goes with the thread, also where that panics.
        let _ = ended.await;
    })))
}
