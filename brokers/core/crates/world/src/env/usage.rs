//! The use that this process makes of its machine, and how much its allocator may keep.
#![allow(clippy::disallowed_methods)]

use std::fs;

/// The current use of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProcessUsage {
    /// Processor time, user and system, in seconds.
    pub cpu_s: f64,
    /// Memory that is in RAM, in bytes.
    pub resident_bytes: i64,
    /// Memory that is mapped, in bytes.
    pub virtual_bytes: i64,
    /// Threads.
    pub threads: i64,
    /// Open descriptors.
    pub open_files: i64,
    /// Descriptors that may be open.
    pub open_files_max: i64,
}

/// The kernel's unit of processor time is a hundredth of a second, on every Linux.
const TICKS_PER_S: f64 = 100.0;
/// Bytes of a page on every machine that this is built for.
const PAGE_BYTES: i64 = 4096;

/// Sets the number of arenas of the allocator, before there are threads. By default there are eight
/// for each core, and each keeps the memory that was freed in it: requests that come and go then
/// take several times the memory that they hold.
#[allow(unsafe_code)]
pub fn bound_allocator(places: usize) {
    #[cfg(target_env = "gnu")]
    {
        let places = libc::c_int::try_from(places.max(1)).unwrap_or(libc::c_int::MAX);
        // SAFETY: the call sets a number of the allocator, under the allocator's own lock. Where it
        // does not accept the number, the default stays.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, places) };
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = places;
}

/// The use of this process; `None` where the kernel does not report it.
pub fn process_usage() -> Option<ProcessUsage> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let open_files = fs::read_dir("/proc/self/fd").ok()?.count();
    let usage = parse_stat(&stat)?;
    Some(ProcessUsage {
        open_files: i64::try_from(open_files).ok()?,
        open_files_max: parse_limit(&limits).unwrap_or(i64::MAX),
        ..usage
    })
}

/// Processor time of this process, user and system, in ms; `None` where the kernel does not report
/// it. It costs less than [`process_usage`].
pub fn process_cpu_ms() -> Option<u64> {
    let usage = parse_stat(&fs::read_to_string("/proc/self/stat").ok()?)?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    Some((usage.cpu_s * 1000.0) as u64)
}

/// Parses `/proc/<pid>/stat` after `proc(5)`: fields behind the name, which is in parentheses.
fn parse_stat(stat: &str) -> Option<ProcessUsage> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    // The third field of the file is the first of these.
    let number = |field: usize| fields.get(field - 3)?.trim().parse::<i64>().ok();
    let ticks = u32::try_from(number(14)? + number(15)?).ok()?;
    Some(ProcessUsage {
        cpu_s: f64::from(ticks) / TICKS_PER_S,
        threads: number(20)?,
        virtual_bytes: number(23)?,
        resident_bytes: number(24)? * PAGE_BYTES,
        ..ProcessUsage::default()
    })
}

/// The soft limit on open files; `None` where there is no limit.
fn parse_limit(limits: &str) -> Option<i64> {
    let line = limits.lines().find(|line| line.starts_with("Max open files"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_moves_no_field() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 10 0 0 0 150 50 0 0 20 0 9 0 80 1048576 256 1";
        let usage = parse_stat(stat).unwrap();
        assert_eq!((usage.threads, usage.virtual_bytes), (9, 1 << 20));
        assert_eq!(usage.resident_bytes, 256 * 4096);
        assert!((usage.cpu_s - 2.0).abs() < f64::EPSILON);
        assert_eq!(parse_stat("7 (short) S 1"), None);
    }

    #[test]
    fn this_process_has_memory_and_files() {
        let usage = process_usage().unwrap();
        assert!(usage.resident_bytes > 1 << 20);
        assert!(usage.open_files > 2 && usage.open_files <= usage.open_files_max);
    }
}
