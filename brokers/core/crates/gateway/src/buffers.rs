//! The buffers of forwarded connections. Each direction has a small one; a busy direction gets a
//! large one, as long as the cluster and the gateway have memory for it.
//!
//! A client that takes nothing keeps what its broker sent in such a buffer. Without a bound on all
//! of them together the connections of one tenant could take the memory of the process.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use freshet_wire::budget::{Budget, Share};

/// The buffer of a direction while it is quiet, in bytes, so that thousands of idle connections
/// need little memory.
pub(super) const SMALL_BYTES: usize = 8 << 10;
/// The buffer of a busy direction, in bytes, for fewer and larger system calls.
pub(super) const LARGE_BYTES: usize = 256 << 10;
/// After so many small pieces in a row the large buffer is given back.
const SMALL_PIECES: u32 = 64;
/// Bytes of the large buffers of all connections together.
const ALL_BYTES: usize = 256 << 20;
/// A cluster has at most this part of them.
const PART_OF_CLUSTER: usize = 4;

/// The memory for large buffers.
pub(super) struct BufferMemory {
    all: Budget,
    clusters: Mutex<BTreeMap<Arc<str>, Budget>>,
}

/// The memory from which a connection's large buffers are taken.
#[derive(Clone)]
pub(super) struct LargeBuffers {
    all: Budget,
    of_cluster: Budget,
}

impl Default for BufferMemory {
    fn default() -> Self {
        Self { all: Budget::new(ALL_BYTES), clusters: Mutex::default() }
    }
}

impl BufferMemory {
    /// The memory for connections of a cluster.
    pub(super) fn of_cluster(&self, cluster: &Arc<str>) -> LargeBuffers {
        let mut clusters = self.clusters.lock();
        let of_cluster = clusters
            .entry(Arc::clone(cluster))
            .or_insert_with(|| Budget::new(ALL_BYTES / PART_OF_CLUSTER));
        LargeBuffers { all: self.all.clone(), of_cluster: of_cluster.clone() }
    }

    /// Forgets a cluster that is gone.
    pub(super) fn forget(&self, cluster: &str) {
        self.clusters.lock().remove(cluster);
    }
}

impl LargeBuffers {
    /// Memory for one connection alone.
    #[cfg(test)]
    pub(super) fn alone(bytes: usize) -> Self {
        Self { all: Budget::new(bytes), of_cluster: Budget::new(bytes) }
    }

    #[cfg(test)]
    pub(super) fn used_bytes(&self) -> usize {
        self.of_cluster.used_bytes()
    }

    fn take(&self, bytes: usize) -> Option<(Share, Share)> {
        Some((self.of_cluster.try_acquire(bytes)?, self.all.try_acquire(bytes)?))
    }
}

/// The buffer of a direction.
pub(super) struct Buffer {
    pub bytes: Vec<u8>,
    source: LargeBuffers,
    /// Held while it is large.
    memory: Option<(Share, Share)>,
    small_pieces: u32,
}

impl Buffer {
    pub(super) fn new(source: LargeBuffers) -> Self {
        Self { bytes: vec![0; SMALL_BYTES], source, memory: None, small_pieces: 0 }
    }

    pub(super) fn is_large(&self) -> bool {
        self.memory.is_some()
    }

    /// Adapts its size to the piece that it held last.
    pub(super) fn adapt(&mut self, piece: usize) {
        self.small_pieces = if piece <= SMALL_BYTES { self.small_pieces + 1 } else { 0 };
        if piece == self.bytes.len() && piece < LARGE_BYTES {
            let size = (piece * 4).min(LARGE_BYTES);
            if let Some(memory) = self.source.take(size) {
                self.bytes = vec![0; size];
                self.memory = Some(memory);
            }
        } else if self.is_large() && self.small_pieces >= SMALL_PIECES {
            self.make_small();
        }
    }

    /// Gives its memory back.
    pub(super) fn make_small(&mut self) {
        self.bytes = vec![0; SMALL_BYTES];
        self.memory = None;
        self.small_pieces = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_directions_of_a_cluster_have_so_much_and_leave_the_rest_to_others() {
        let memory = BufferMemory::default();
        let (one, two): (Arc<str>, Arc<str>) = ("cl_1".into(), "cl_2".into());
        let busy = |cluster: &Arc<str>| {
            let mut buffer = Buffer::new(memory.of_cluster(cluster));
            while buffer.bytes.len() < LARGE_BYTES {
                let before = buffer.bytes.len();
                buffer.adapt(before);
                if buffer.bytes.len() == before {
                    break;
                }
            }
            buffer
        };
        let buffers: Vec<Buffer> = (0..300).map(|_| busy(&one)).collect();
        let large = buffers.iter().filter(|buffer| buffer.bytes.len() == LARGE_BYTES).count();
        assert!((250..=256).contains(&large), "{large}");
        assert!(busy(&two).is_large());
        drop(buffers);
        let mut again = busy(&one);
        assert_eq!(again.bytes.len(), LARGE_BYTES);
        for _ in 0..SMALL_PIECES {
            again.adapt(100);
        }
        assert!(!again.is_large() && again.bytes.len() == SMALL_BYTES);
        assert_eq!(memory.all.used_bytes(), 0);
        memory.forget("cl_1");
        assert_eq!(memory.clusters.lock().len(), 1);
    }
}
