//! Threads of their own, for tasks whose work on files must wait for nobody.
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

/// Runs a task on a thread of its own, with the timers of the runtime that this is called in. The
/// handle ends when the task does; dropping it drops the task, once a call that blocks returns.
///
/// # Errors
/// Where the system has no room for a thread.
pub(super) fn run(name: &str, task: BoxFuture<'static, ()>) -> io::Result<AbortOnDropHandle<()>> {
    let runtime = Handle::current();
    let (abort, aborted) = oneshot::channel::<()>();
    let (done, ended) = oneshot::channel::<()>();
    let work = move || {
        IS_OWN.set(true);
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
