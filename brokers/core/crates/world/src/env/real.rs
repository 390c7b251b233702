//! The real world: this machine's clock, randomness, files and sockets.
#![allow(clippy::disallowed_methods)]

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio_util::task::AbortOnDropHandle;

use super::store::ObjectStore;
use super::{
    Clock, Disk, DiskError, DiskResult, Environment, File, Listener, Network, Randomness, Room,
    Stream, direct, draft_name, memory,
    thread::{self, Purpose},
    turns::{self, Turns},
};

impl Environment {
    /// The real world, with the shared file system mounted at `dfs` and the objects in what
    /// `open_bucket` opens.
    ///
    /// # Errors
    /// Where a folder cannot be created, its kind of file system cannot be determined, or the
    /// bucket cannot be opened.
    pub fn real<E>(
        dfs: &Path,
        open_bucket: impl FnOnce(Arc<dyn Randomness>) -> Result<Arc<dyn ObjectStore>, E>,
    ) -> io::Result<Self>
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let randomness: Arc<dyn Randomness> = Arc::new(SystemRandomness::open()?);
        Ok(Self {
            clock: Arc::new(SystemClock),
            disk: Arc::new(FolderDisk::new(dfs)?),
            bucket: open_bucket(Arc::clone(&randomness)).map_err(io::Error::other)?,
            randomness,
            network: Arc::new(Tcp),
        })
    }
}

/// The machine's clock.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
    }
}

/// The kernel's random device.
pub struct SystemRandomness(fs::File);

impl SystemRandomness {
    /// # Errors
    /// Where the device cannot be opened.
    pub fn open() -> io::Result<Self> {
        Ok(Self(fs::File::open("/dev/urandom")?))
    }
}

impl Randomness for SystemRandomness {
    fn fill(&self, buffer: &mut [u8]) {
        (&self.0).read_exact(buffer).expect("the kernel's random device never ends");
    }
}

/// A folder of a mounted file system.
pub struct FolderDisk {
    root: PathBuf,
    /// Whether the file system is served by another machine, so that this one's cache may be stale.
    remote: bool,
    /// For names of drafts.
    randomness: SystemRandomness,
}

impl FolderDisk {
    /// # Errors
    /// Where the kind of file system cannot be determined.
    pub fn new(root: &Path) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        let randomness = SystemRandomness::open()?;
        Ok(Self { root: root.to_owned(), remote: is_remote(root)?, randomness })
    }

    fn locate(&self, path: &Path) -> PathBuf {
        self.root.join(path)
    }

    async fn blocking<T: Send + 'static>(
        &self,
        path: &Path,
        work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> DiskResult<T> {
        let full = self.locate(path);
        run_blocking(full.display().to_string().into(), move || work(&full)).await
    }
}

/// Runs work that blocks; its error names `what`.
async fn run_blocking<T: Send + 'static>(
    what: Arc<str>,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> DiskResult<T> {
    match thread::blocking(work).await {
        Ok(result) => result.map_err(|error| disk_error(&what, &error)),
        Err(join) => Err(DiskError::Failed(what.to_string(), join.to_string())),
    }
}

fn disk_error(what: &str, error: &io::Error) -> DiskError {
    let what = what.to_owned();
    match error.kind() {
        io::ErrorKind::NotFound => DiskError::NotFound(what),
        io::ErrorKind::AlreadyExists => DiskError::Exists(what),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DiskError::NoSpace(what),
        _ => DiskError::Failed(what, error.to_string()),
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()
}

fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), sync_folder)
}

#[async_trait]
impl Disk for FolderDisk {
    async fn create_folders(&self, path: &Path) -> DiskResult<()> {
        let mut prefix = PathBuf::new();
        for part in path.components() {
            prefix.push(part);
            let created = self
                .blocking(&prefix, |full| match fs::create_dir(full) {
                    // Another process that created it may not have synced it yet.
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                    _ => sync_parent(full),
                })
                .await;
            created?;
        }
        Ok(())
    }

    async fn create_folder_exclusive(&self, path: &Path) -> DiskResult<()> {
        self.blocking(path, |full| {
            fs::create_dir(full)?;
            sync_parent(full)
        })
        .await
    }

    async fn create(&self, path: &Path, zeros: u64, room: Room) -> DiskResult<Arc<dyn File>> {
        let remote = self.remote;
        let file = self
            .blocking(path, move |full| {
                let file = OpenOptions::new().read(true).write(true).create_new(true).open(full)?;
                let filled = make_room(&file, zeros, room).and_then(|()| file.sync_all());
                if let Err(error) = filled {
                    // The file that was made in part would take the last room of a full disk.
                    absent_is_fine(fs::remove_file(full))?;
                    return Err(error);
                }
                sync_parent(full)?;
                OpenFile::new(full, file, remote)
            })
            .await?;
        Ok(Arc::new(file))
    }

    async fn open(&self, path: &Path) -> DiskResult<Arc<dyn File>> {
        let remote = self.remote;
        let file = self
            .blocking(path, move |full| {
                let file = OpenOptions::new().read(true).write(true).open(full)?;
                OpenFile::new(full, file, remote)
            })
            .await?;
        Ok(Arc::new(file))
    }

    async fn publish(&self, path: &Path, pieces: Vec<Bytes>) -> DiskResult<()> {
        let mut suffix = [0; 8];
        self.randomness.fill(&mut suffix);
        let draft = draft_name(u64::from_le_bytes(suffix));
        self.blocking(path, move |full| {
            let draft = full.with_file_name(draft);
            let published = publish_through(&draft, full, &pieces);
            absent_is_fine(fs::remove_file(&draft))?;
            published
        })
        .await
    }

    async fn make_durable(&self, path: &Path) -> DiskResult<()> {
        self.blocking(path, |full| {
            fs::File::open(full)?.sync_all()?;
            sync_parent(full)
        })
        .await
    }

    async fn rename(&self, from: &Path, to: &Path) -> DiskResult<()> {
        let to = self.locate(to);
        self.blocking(from, move |from| fs::rename(from, to)).await
    }

    async fn remove(&self, path: &Path) -> DiskResult<()> {
        self.blocking(path, |full| absent_is_fine(fs::remove_file(full))).await
    }

    async fn remove_folder(&self, path: &Path) -> DiskResult<()> {
        self.blocking(path, |full| absent_is_fine(fs::remove_dir(full))).await
    }

    async fn list(&self, path: &Path) -> DiskResult<Vec<String>> {
        self.blocking(path, |full| {
            let entries = match fs::read_dir(full) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                entries => entries?,
            };
            let mut names = Vec::new();
            for entry in entries {
                names.push(entry?.file_name().to_string_lossy().into_owned());
            }
            names.sort();
            Ok(names)
        })
        .await
    }

    fn dedicate(&self, task: BoxFuture<'static, ()>) -> DiskResult<AbortOnDropHandle<()>> {
        on_own_thread("lane", Purpose::Disk, task)
    }

    fn set_aside(&self, task: BoxFuture<'static, ()>) -> DiskResult<AbortOnDropHandle<()>> {
        on_own_thread("jobs", Purpose::Background, task)
    }
}

fn on_own_thread(
    name: &str,
    purpose: Purpose,
    task: BoxFuture<'static, ()>,
) -> DiskResult<AbortOnDropHandle<()>> {
    // A runtime of one thread is a test's: its clock may stand still, and moves on when nothing
    // but threads that it does not know of are at work.
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return Ok(AbortOnDropHandle::new(tokio::spawn(task)));
    }
    thread::run(name, purpose, task).map_err(|error| disk_error("a thread", &error))
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Writes of more bytes than this go past the cache, since nobody reads them soon.
const CACHED_BYTES_MAX: usize = 256 << 10;
/// Reads of more bytes than this go past the cache. The engine keeps them in its own memory; in the
/// kernel's cache they would push out what is read again, and its pages cost more than the read.
const CACHED_READ_BYTES_MAX: usize = 256 << 10;

fn publish_through(draft: &Path, path: &Path, pieces: &[Bytes]) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(draft)?;
    let bytes: usize = pieces.iter().map(Bytes::len).sum();
    if bytes <= CACHED_BYTES_MAX || !publish_directly(&file, pieces, bytes as u64)? {
        write_all_vectored_at(&file, 0, pieces)?;
    }
    file.sync_all()?;
    fs::hard_link(draft, path)?;
    sync_parent(path)
}

/// Writes past the cache; returns whether the file takes such writes.
fn publish_directly(file: &fs::File, pieces: &[Bytes], bytes: u64) -> io::Result<bool> {
    let Ok(direct) = direct::open(file) else { return Ok(false) };
    direct::reserve(&direct, bytes.next_multiple_of(memory::ALIGNMENT as u64))?;
    let written = is_taken(direct::write_all_at(&direct, 0, pieces))?;
    file.set_len(bytes)?;
    Ok(written)
}

/// Whether a write past the cache was taken, or refused before anything was written.
fn is_taken(written: io::Result<()>) -> io::Result<bool> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(false),
        written => written.map(|()| true),
    }
}

fn make_room(mut file: &fs::File, zeros: u64, room: Room) -> io::Result<()> {
    const CHUNK: usize = 1 << 20;
    if direct::reserve(file, zeros)? && room == Room::Reserved {
        return Ok(());
    }
    if zeros.is_multiple_of(memory::ALIGNMENT as u64)
        && let Ok(direct) = direct::open(file)
        && is_taken(direct::fill_with_zeros(&direct, zeros))?
    {
        return Ok(());
    }
    let chunk = vec![0_u8; CHUNK.min(usize::try_from(zeros).unwrap_or(CHUNK))];
    let mut left = zeros;
    while left > 0 {
        let now = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        file.write_all(&chunk[..now])?;
        left -= now as u64;
    }
    Ok(())
}

struct OpenFile {
    name: Arc<str>,
    descriptors: Arc<Descriptors>,
    /// Whether reads that must see what the server has go past this machine's cache: on a remote
    /// file system they do. A local one has a single cache that all its readers share.
    remote: bool,
}

struct Descriptors {
    cached: fs::File,
    /// The file opened past the cache, when that is first needed; `None` where the file system does
    /// not support it.
    direct: OnceLock<Option<fs::File>>,
}

impl Descriptors {
    fn direct(&self) -> Option<&fs::File> {
        self.direct.get_or_init(|| direct::open(&self.cached).ok()).as_ref()
    }

    /// Writes past the cache where that is possible.
    fn write_all_at(&self, position: u64, pieces: &[Bytes]) -> io::Result<()> {
        let bytes = pieces.iter().map(Bytes::len).sum();
        if direct::is_aligned(position, bytes)
            && let Some(file) = self.direct()
            && is_taken(direct::write_all_at(file, position, pieces))?
        {
            return Ok(());
        }
        write_all_vectored_at(&self.cached, position, pieces)
    }

    fn read_at(&self, position: u64, length: usize, turns: Option<&Turns>) -> io::Result<Bytes> {
        // Reads over the network delay no write of this machine's disk.
        if length > CACHED_READ_BYTES_MAX && turns.is_some() {
            return self.read_once_at(position, length, turns);
        }
        turns::read_at(&self.cached, position, length, turns)
    }

    /// Reads past the cache where that is possible.
    fn read_once_at(
        &self,
        position: u64,
        length: usize,
        turns: Option<&Turns>,
    ) -> io::Result<Bytes> {
        match self.direct().map(|file| direct::read_at(file, position, length, turns)) {
            // The file system takes no reads past the cache, as with writes.
            Some(Err(error)) if error.kind() == io::ErrorKind::InvalidInput => {}
            Some(read) => return read,
            None => {}
        }
        turns::read_at(&self.cached, position, length, turns)
    }
}

impl OpenFile {
    fn new(path: &Path, cached: fs::File, remote: bool) -> io::Result<Self> {
        if !remote {
            turns::read_only_what_is_asked(&cached);
        }
        let descriptors = Descriptors { cached, direct: OnceLock::new() };
        if remote && descriptors.direct().is_none() {
            let what = "a remote file system without O_DIRECT: a stale cache would not be noticed";
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        let name = path.display().to_string().into();
        Ok(Self { name, descriptors: Arc::new(descriptors), remote })
    }

    /// The turns of reads of a disk of this machine; `None` for a file server, which orders its own
    /// reads.
    fn turns(&self) -> Option<&'static Turns> {
        let turns = if thread::gives_way() { &turns::BACKGROUND } else { &turns::CLIENTS };
        (!self.remote).then_some(turns)
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Descriptors) -> io::Result<T> + Send + 'static,
    ) -> DiskResult<T> {
        let descriptors = Arc::clone(&self.descriptors);
        run_blocking(Arc::clone(&self.name), move || work(&descriptors)).await
    }
}

#[async_trait]
impl File for OpenFile {
    async fn write_at(&self, position: u64, pieces: Vec<Bytes>) -> DiskResult<()> {
        turns::WRITES.note();
        self.blocking(move |file| file.write_all_at(position, &pieces)).await
    }

    async fn sync(&self) -> DiskResult<()> {
        self.blocking(|file| file.cached.sync_data()).await
    }

    async fn write_and_sync(&self, position: u64, pieces: Vec<Bytes>) -> DiskResult<()> {
        self.blocking(move |file| {
            file.write_all_at(position, &pieces)?;
            file.cached.sync_data()
        })
        .await
    }

    async fn read_at(&self, position: u64, length: usize) -> DiskResult<Bytes> {
        let turns = self.turns();
        self.blocking(move |file| file.read_at(position, length, turns)).await
    }

    async fn read_once_at(&self, position: u64, length: usize) -> DiskResult<Bytes> {
        let turns = self.turns();
        self.blocking(move |file| file.read_once_at(position, length, turns)).await
    }

    async fn read_uncached_at(&self, position: u64, length: usize) -> DiskResult<Bytes> {
        if !self.remote {
            return self.read_at(position, length).await;
        }
        self.blocking(move |file| {
            let direct = file.direct().expect("a remote file is opened with it");
            direct::read_at(direct, position, length, None)
        })
        .await
    }

    async fn size(&self) -> DiskResult<u64> {
        self.blocking(|file| Ok(file.cached.metadata()?.len())).await
    }
}

/// Writes all pieces at `position`. A short write is continued: only an error ends it early.
fn write_all_vectored_at(file: &fs::File, mut position: u64, pieces: &[Bytes]) -> io::Result<()> {
    const PIECES_MAX: usize = 1024;
    for group in pieces.chunks(PIECES_MAX) {
        // A write of nothing returns 0, which would look like a full disk.
        let pieces = group.iter().filter(|piece| !piece.is_empty());
        let mut slices: Vec<IoSlice<'_>> = pieces.map(|piece| IoSlice::new(piece)).collect();
        let mut slices = slices.as_mut_slice();
        while !slices.is_empty() {
            let written = pwritev(file, position, slices)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            position += written as u64;
            IoSlice::advance_slices(&mut slices, written);
        }
    }
    Ok(())
}

#[allow(unsafe_code)]
fn pwritev(file: &fs::File, position: u64, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    let offset = libc::off_t::try_from(position).map_err(|_| io::ErrorKind::InvalidInput)?;
    let count = libc::c_int::try_from(slices.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: `IoSlice` is ABI-compatible with `iovec`, the slices outlive the call, and the
    // descriptor is open as long as `file` is.
    let written = unsafe { libc::pwritev(file.as_raw_fd(), slices.as_ptr().cast(), count, offset) };
    if written >= 0 {
        return Ok(written.unsigned_abs());
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::Interrupted {
        pwritev(file, position, slices)
    } else {
        Err(error)
    }
}

/// Whether a file system's files may change without this machine's cache knowing.
///
/// # Errors
/// Where the folder does not exist, or its kind of file system cannot be determined.
#[allow(unsafe_code)]
pub fn is_remote(root: &Path) -> io::Result<bool> {
    use std::os::unix::ffi::OsStrExt;
    /// Magic numbers of `statfs(2)` for file systems that live on one machine.
    const LOCAL: [i64; 7] = [
        0xEF53,      // ext2, ext3, ext4
        0x5846_5342, // xfs
        0x9123_683E, // btrfs
        0x0102_1994, // tmpfs
        0x794C_7630, // overlayfs
        0x2FC1_2FC1, // zfs
        0xF2F5_2010, // f2fs
    ];
    let path = std::ffi::CString::new(root.as_os_str().as_bytes())?;
    // SAFETY: an all-zero `statfs` is a valid value, the path is a C string that outlives the call.
    let mut facts: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: as above; the kernel fills `facts`.
    if unsafe { libc::statfs(path.as_ptr(), &raw mut facts) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(!LOCAL.contains(&facts.f_type))
}

/// TCP of this machine.
pub struct Tcp;

#[async_trait]
impl Network for Tcp {
    async fn listen(&self, address: &str) -> io::Result<Box<dyn Listener>> {
        let listener = tokio::net::TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Box::new(TcpListener { listener, address }))
    }

    async fn connect(&self, address: &str) -> io::Result<Box<dyn Stream>> {
        let stream = tokio::net::TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}

impl Stream for tokio::net::TcpStream {
    fn reset_when_dropped(&mut self) {
        // An error means that the socket has failed already, and needs no reset.
        let _ = self.set_zero_linger();
    }
}

struct TcpListener {
    listener: tokio::net::TcpListener,
    address: std::net::SocketAddr,
}

#[async_trait]
impl Listener for TcpListener {
    async fn accept(&mut self) -> io::Result<(Box<dyn Stream>, std::net::SocketAddr)> {
        let (stream, peer) = self.listener.accept().await?;
        stream.set_nodelay(true)?;
        Ok((Box::new(stream), peer))
    }

    fn local_address(&self) -> std::net::SocketAddr {
        self.address
    }
}
