//! Which threads the kernel runs first: those that serve clients interrupt those that do not.

use std::io;

/// What background work adds to its niceness. It is not more, because background work must not
/// starve either: producers wait where the splitter falls behind.
pub(super) const BACKGROUND_NICE: i32 = 10;
/// For how long a thread that serves clients runs before another may have the core. The kernel lets
/// a thread finish its slice, even where one of higher priority wakes up, unless that one's slice
/// is shorter: with the default of some milliseconds for both, background work would delay clients
/// by as much.
const SERVING_SLICE_NS: u64 = 300_000;
/// The kernel's own length of a slice.
const DEFAULT_SLICE: u64 = 0;
const THIS_THREAD: libc::pid_t = 0;

/// Makes this thread, which serves clients, interrupt background work. A kernel before Linux 6.12
/// ignores it.
pub fn serve_promptly() {
    if let Err(error) = set_slice(SERVING_SLICE_NS) {
        tracing::debug!(%error, "threads that serve clients wait for the slices of others");
    }
}

/// Lowers the priority of this thread, and of those that it starts, below that of clients.
pub(super) fn give_way() {
    let lowered = rustix::process::nice(BACKGROUND_NICE);
    // A thread inherits the slice of the one that starts it.
    let slice = set_slice(DEFAULT_SLICE);
    if let Err(error) = lowered.map_err(io::Error::from).and(slice) {
        tracing::warn!(%error, "background work has the same priority as clients");
    }
}

/// Sets the length of this thread's slices in nanoseconds. Its niceness remains.
#[allow(unsafe_code)]
fn set_slice(slice_ns: u64) -> io::Result<()> {
    let attributes = libc::sched_attr { sched_runtime: slice_ns, ..attributes()? };
    // SAFETY: the kernel reads `attributes.size` bytes of `attributes`, which outlives the call.
    checked(unsafe {
        libc::syscall(libc::SYS_sched_setattr, THIS_THREAD, &raw const attributes, 0)
    })
}

/// How the kernel schedules this thread.
#[allow(unsafe_code)]
fn attributes() -> io::Result<libc::sched_attr> {
    let size = u32::try_from(size_of::<libc::sched_attr>()).map_err(io::Error::other)?;
    // SAFETY: an all-zero `sched_attr` is a valid value.
    let mut read: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most `size` bytes to `read`, which outlives the call.
    checked(unsafe {
        libc::syscall(libc::SYS_sched_getattr, THIS_THREAD, &raw mut read, size, 0)
    })?;
    Ok(read)
}

fn checked(result: libc::c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "threads of the system are what is tested")]
    fn background_work_does_not_inherit_the_slice_of_the_thread_that_starts_it() {
        let slice = || attributes().unwrap().sched_runtime;
        let by_default = slice();
        let (serving, background) = thread::spawn(move || {
            serve_promptly();
            let background = thread::spawn(move || {
                give_way();
                slice()
            });
            (slice(), background.join().unwrap())
        })
        .join()
        .unwrap();
        assert_eq!(background, by_default);
        // A kernel without slices of a thread's own reports 0.
        assert_eq!(serving, if by_default == 0 { 0 } else { SERVING_SLICE_NS });
    }
}
