//! Everything that the engine takes from the outside world, behind traits: wall clock, randomness,
//! disk and network. The simulator has its own; nothing else in the engine may reach past them
//! (`clippy.toml` bans the real ones).
//!
//! Timers are not here: the engine uses `tokio::time`, which the simulator runs on a paused clock.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::task::AbortOnDropHandle;

use store::ObjectStore;

pub mod background;
mod direct;
pub mod files;
pub mod hedge;
mod memory;
pub mod priority;
pub mod real;
pub mod store;
mod thread;
mod turns;
pub mod usage;

/// The wall clock. No step that could lose or duplicate data reads it.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970-01-01 UTC.
    fn now_ms(&self) -> i64;
}

/// Randomness for nonces, salts and jitter.
pub trait Randomness: Send + Sync {
    /// Fills the buffer.
    fn fill(&self, buffer: &mut [u8]);

    /// Sixty-four random bits.
    fn next_u64(&self) -> u64 {
        let mut buffer = [0; 8];
        self.fill(&mut buffer);
        u64::from_le_bytes(buffer)
    }
}

/// Errors of the disk. The caller acts by kind and never retries [`DiskError::Failed`] on the same
/// file: after a failed write or sync the state of the file is unknown.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DiskError {
    /// No such file or folder.
    #[error("{0}: not found")]
    NotFound(String),
    /// Exclusive creation found the name taken.
    #[error("{0}: exists")]
    Exists(String),
    /// The file system is full.
    #[error("{0}: no space left")]
    NoSpace(String),
    /// Anything else: what happened on the disk is unknown.
    #[error("{0}: {1}")]
    Failed(String, String),
}

/// The prefix of the names of drafts, which no other file has.
const DRAFT: &str = "draft-";

/// The name under which a file is written before it is published, by random bits.
pub fn draft_name(random: u64) -> String {
    format!("{DRAFT}{random:016x}")
}

/// Whether a name is that of a file that is being published, or was when its process died.
pub fn is_draft(name: &str) -> bool {
    name.starts_with(DRAFT)
}

/// Result of a disk operation.
pub type DiskResult<T> = Result<T, DiskError>;

/// One open file. Positions are explicit: nothing appends.
#[async_trait]
pub trait File: Send + Sync {
    /// Writes the pieces one after another from `position` on. Durable only after [`File::sync`].
    async fn write_at(&self, position: u64, pieces: Vec<Bytes>) -> DiskResult<()>;

    /// Makes all that was written durable (`fdatasync`, or `fsync` where the size changed).
    async fn sync(&self) -> DiskResult<()>;

    /// Writes and makes durable, in one call where that saves a change of threads.
    async fn write_and_sync(&self, position: u64, pieces: Vec<Bytes>) -> DiskResult<()> {
        self.write_at(position, pieces).await?;
        self.sync().await
    }

    /// Reads up to `length` bytes; fewer only at the end of the file.
    async fn read_at(&self, position: u64, length: usize) -> DiskResult<Bytes>;

    /// As [`File::read_at`], for bytes that nobody will read again: past the cache where that costs
    /// less.
    async fn read_once_at(&self, position: u64, length: usize) -> DiskResult<Bytes> {
        self.read_at(position, length).await
    }

    /// As [`File::read_at`], but past any cache of this machine: what the server has.
    async fn read_uncached_at(&self, position: u64, length: usize) -> DiskResult<Bytes>;

    /// Size in bytes.
    async fn size(&self) -> DiskResult<u64>;
}

/// How room is made for a new file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Room {
    /// Zeros are written, so that later writes change nothing but their bytes.
    #[default]
    Filled,
    /// Only reserved, where the file system can do that: the first write of each part takes longer
    /// to become durable.
    Reserved,
}

/// A shared file system. Paths are relative to its root.
#[async_trait]
pub trait Disk: Send + Sync {
    /// Creates a folder and its missing parents, each made durable in its parent.
    async fn create_folders(&self, path: &Path) -> DiskResult<()>;

    /// Creates one folder that must not exist, made durable in its parent.
    async fn create_folder_exclusive(&self, path: &Path) -> DiskResult<()>;

    /// Creates a file that must not exist, of `zeros` bytes that read as zero. The name and the
    /// length are durable when this returns, and there is room for the bytes.
    async fn create(&self, path: &Path, zeros: u64, room: Room) -> DiskResult<Arc<dyn File>>;

    /// Opens a file for reading and writing.
    async fn open(&self, path: &Path) -> DiskResult<Arc<dyn File>>;

    /// Creates a whole file under a name that must not exist: content and name are durable, and
    /// nobody sees a part of it (write under another name, sync, link; the only atomic "put if
    /// absent" that POSIX has).
    async fn publish(&self, path: &Path, pieces: Vec<Bytes>) -> DiskResult<()>;

    /// Makes a file or folder and its name durable, whoever created it: another process that
    /// created it may not have synced it yet.
    async fn make_durable(&self, path: &Path) -> DiskResult<()>;

    /// Renames a file, in the place of one that has the new name, or a folder to a name that
    /// nothing has. The rename is durable only after [`Disk::make_durable`]; open files stay open.
    async fn rename(&self, from: &Path, to: &Path) -> DiskResult<()>;

    /// Removes a name. Absent is not an error.
    async fn remove(&self, path: &Path) -> DiskResult<()>;

    /// Removes an empty folder. Absent is not an error.
    async fn remove_folder(&self, path: &Path) -> DiskResult<()>;

    /// Names in a folder, sorted; empty where the folder does not exist.
    async fn list(&self, path: &Path) -> DiskResult<Vec<String>>;

    /// Runs a task that mostly waits for this disk where its operations cost least: on a thread of
    /// its own, if that saves anything. Dropping the handle ends the task.
    fn dedicate(&self, task: BoxFuture<'static, ()>) -> DiskResult<AbortOnDropHandle<()>> {
        Ok(AbortOnDropHandle::new(tokio::spawn(task)))
    }

    /// Runs a task that computes for long between its operations where it delays no client: on a
    /// thread of its own with a lower priority, if there are threads. Dropping the handle ends the
    /// task.
    fn set_aside(&self, task: BoxFuture<'static, ()>) -> DiskResult<AbortOnDropHandle<()>> {
        Ok(AbortOnDropHandle::new(tokio::spawn(task)))
    }
}

/// A connection's byte stream.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {
    /// Makes the other end get a reset instead of an orderly end when this is dropped; bytes that
    /// were not sent by then are discarded. Does nothing where a stream has no resets.
    fn reset_when_dropped(&mut self) {}
}

impl Stream for tokio::io::DuplexStream {}

/// Something that accepts connections.
#[async_trait]
pub trait Listener: Send {
    /// The next connection, with the address of its other end.
    async fn accept(&mut self) -> std::io::Result<(Box<dyn Stream>, std::net::SocketAddr)>;

    /// The address on which it listens; for port 0, with the port that the system chose.
    fn local_address(&self) -> std::net::SocketAddr;
}

/// The network, as far as a broker needs it.
#[async_trait]
pub trait Network: Send + Sync {
    /// Binds `address`, which is `host:port`, and returns what accepts connections there. With port
    /// 0 the system chooses a port, which [`Listener::local_address`] returns.
    ///
    /// # Errors
    /// [`std::io::Error`] where the host is unknown, or the port is in use or not allowed.
    async fn listen(&self, address: &str) -> std::io::Result<Box<dyn Listener>>;

    /// Connects to `host:port`. The caller bounds the time.
    async fn connect(&self, address: &str) -> std::io::Result<Box<dyn Stream>>;
}

/// The outside world of one engine.
#[derive(Clone)]
pub struct Environment {
    /// Wall clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub randomness: Arc<dyn Randomness>,
    /// The shared file system with the lanes.
    pub disk: Arc<dyn Disk>,
    /// The object store.
    pub bucket: Arc<dyn ObjectStore>,
    /// The network.
    pub network: Arc<dyn Network>,
}
