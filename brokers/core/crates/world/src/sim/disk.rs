//! A shared file system with a memory of what is durable.
//!
//! The server keeps two contents of each file: what readers see, and what would survive its
//! restart. Writes of a host that has crashed or is paused may still arrive, whole, in part, late
//! or never.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::faults::DiskFaults;
use super::random::Seeded;
use crate::env::{Disk, DiskError, DiskResult, File, Room};

/// A torn write leaves a whole number of sectors of this size.
const SECTOR_BYTES: usize = 512;
/// How long another host may not see a new name, where look-ups are stale.
const STALE_MS: u64 = 50;

/// The number of a host.
pub type HostId = u64;

#[derive(Default, Clone)]
struct Inode {
    visible: Vec<u8>,
    durable: Vec<u8>,
    /// Ranges of `visible` that are not in `durable`.
    dirty: Vec<(usize, usize)>,
    /// The hosts that wrote the dirty ranges.
    writers: BTreeSet<HostId>,
    /// Hosts whose unsynced writes were lost by a restart of the server: their next sync fails.
    losers: BTreeSet<HostId>,
}

impl Inode {
    fn write(&mut self, position: usize, bytes: &[u8]) {
        let end = position + bytes.len();
        if self.visible.len() < end {
            self.visible.resize(end, 0);
        }
        self.visible[position..end].copy_from_slice(bytes);
        self.dirty.push((position, end));
    }

    fn persist(&mut self, start: usize, end: usize) {
        if self.durable.len() < end {
            self.durable.resize(end, 0);
        }
        self.durable[start..end].copy_from_slice(&self.visible[start..end]);
    }

    fn sync(&mut self) {
        for (start, end) in std::mem::take(&mut self.dirty) {
            self.persist(start, end);
        }
        self.writers.clear();
    }
}

#[derive(Clone, Copy)]
struct Name {
    inode: u64,
    made_by: HostId,
    made_at_ms: u64,
}

/// What an operation does once it arrives at the server.
enum Operation {
    Write(u64, usize, Vec<u8>),
    Sync(u64),
    Read(u64, usize, usize),
    Size(u64),
    CreateFolders(PathBuf),
    CreateFolderExclusive(PathBuf),
    Create(PathBuf, Vec<u8>),
    Open(PathBuf),
    MakeDurable(PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    RemoveFolder(PathBuf),
    List(PathBuf),
}

enum Reply {
    Done,
    Opened(u64),
    Bytes(Bytes),
    Size(u64),
    Names(Vec<String>),
}

struct Pending {
    host: HostId,
    operation: Operation,
    reply: oneshot::Sender<DiskResult<Reply>>,
}

struct Server {
    now_ms: u64,
    random: Seeded,
    faults: DiskFaults,
    full: bool,
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
    names: BTreeMap<PathBuf, Name>,
    folders: BTreeSet<PathBuf>,
    /// Renames that a restart may still undo, oldest first.
    renames: Vec<(PathBuf, PathBuf)>,
    /// The number of lane files that were made from a recycled one.
    reused: u64,
    /// Operations under way, by their time of arrival, then by order of submission.
    pending: BTreeMap<(u64, u64), Pending>,
    submitted: u64,
    /// Until when nothing of a host arrives.
    hung: BTreeMap<HostId, u64>,
    /// When the last operation of a host on a file arrives. A host's operations on one file keep
    /// their order.
    last_arrival: BTreeMap<(HostId, u64), u64>,
}

/// The file server. Clone to share.
#[derive(Clone)]
pub struct SimServer(Arc<Mutex<Server>>);

impl SimServer {
    /// An empty file system.
    pub fn new(random: Seeded, faults: DiskFaults) -> Self {
        Self(Arc::new(Mutex::new(Server {
            now_ms: 0,
            random,
            faults,
            full: false,
            inodes: BTreeMap::new(),
            next_inode: 1,
            names: BTreeMap::new(),
            folders: BTreeSet::from([PathBuf::new()]),
            renames: Vec::new(),
            reused: 0,
            pending: BTreeMap::new(),
            submitted: 0,
            hung: BTreeMap::new(),
            last_arrival: BTreeMap::new(),
        })))
    }

    /// The file system as one host mounts it.
    pub fn mount(&self, host: HostId) -> Arc<dyn Disk> {
        Arc::new(Mount { server: self.clone(), host })
    }

    /// Changes which faults are injected from now on.
    pub fn set_faults(&self, faults: DiskFaults) {
        self.0.lock().faults = faults;
    }

    /// Fills the disk up, or makes room again.
    pub fn set_full(&self, full: bool) {
        self.0.lock().full = full;
    }

    /// Nothing that a host asks for from now on arrives before this time.
    pub fn hang(&self, host: HostId, until_ms: u64) {
        self.0.lock().hung.insert(host, until_ms);
    }

    /// The number of lane files that were made from a recycled one.
    pub fn reused_files(&self) -> u64 {
        self.0.lock().reused
    }

    /// Lets time pass and carries out what arrives.
    pub fn advance(&self, now_ms: u64) {
        loop {
            let mut server = self.0.lock();
            server.now_ms = now_ms;
            let due = server.pending.first_key_value().is_some_and(|(key, _)| key.0 <= now_ms);
            if !due {
                return;
            }
            let (_, pending) = server.pending.pop_first().expect("just seen");
            let outcome = server.carry_out(pending.host, pending.operation);
            drop(server);
            // The host may have crashed meanwhile; its operation was carried out all the same.
            let _ = pending.reply.send(outcome);
        }
    }

    /// A host has crashed: each of its operations under way arrives late, in part, or never.
    pub fn crash_host(&self, host: HostId) {
        let mut server = self.0.lock();
        let under_way: Vec<_> = server
            .pending
            .iter()
            .filter(|(_, pending)| pending.host == host)
            .map(|(key, _)| *key)
            .collect();
        for key in under_way {
            let Some(mut pending) = server.pending.remove(&key) else { continue };
            if server.random.chance(500) {
                continue;
            }
            if let Operation::Write(_, _, bytes) = &mut pending.operation {
                let sectors = bytes.len().div_ceil(SECTOR_BYTES) as u64;
                let kept = usize::try_from(server.random.below(sectors + 1)).expect("small");
                bytes.truncate(kept * SECTOR_BYTES);
            }
            let late = server.random.below(300);
            server.pending.insert((key.0 + late, key.1), pending);
        }
    }

    /// The server restarts: what was not synced is lost, sector by sector, and operations under way
    /// fail.
    pub fn restart(&self) {
        let mut server = self.0.lock();
        let failed = std::mem::take(&mut server.pending);
        let mut inodes = std::mem::take(&mut server.inodes);
        for inode in inodes.values_mut() {
            for (start, end) in std::mem::take(&mut inode.dirty) {
                for sector in (start..end).step_by(SECTOR_BYTES) {
                    if server.random.chance(300) {
                        inode.persist(sector, end.min(sector + SECTOR_BYTES));
                    }
                }
            }
            inode.visible.clone_from(&inode.durable);
            inode.losers.append(&mut inode.writers);
        }
        server.inodes = inodes;
        server.undo_renames();
        drop(server);
        for pending in failed.into_values() {
            let lost = DiskError::Failed("the file server".into(), "restarted".into());
            // The host may have crashed meanwhile.
            let _ = pending.reply.send(Err(lost));
        }
    }

    /// Flips a byte of the medium, under whatever was durable there.
    pub fn rot(&self, path: &Path, position: usize) {
        let mut server = self.0.lock();
        let Some(name) = server.names.get(path).copied() else { return };
        if let Some(inode) = server.inodes.get_mut(&name.inode) {
            for content in [&mut inode.visible, &mut inode.durable] {
                if let Some(byte) = content.get_mut(position) {
                    *byte ^= 0x20;
                }
            }
        }
    }

    /// Makes an empty file as another program would, where its folder exists and the name is free.
    pub fn touch(&self, path: &Path) {
        let mut server = self.0.lock();
        // A file that exists already will do.
        let _ = server.create(HostId::MAX, path.to_owned(), Vec::new());
    }

    /// Everything that is durable, by path: what an independent reader would find.
    pub fn durable_files(&self) -> BTreeMap<PathBuf, Bytes> {
        let server = self.0.lock();
        let files = server.names.iter().map(|(path, name)| {
            (path.clone(), Bytes::copy_from_slice(&server.inodes[&name.inode].durable))
        });
        files.collect()
    }

    fn submit(&self, host: HostId, operation: Operation) -> oneshot::Receiver<DiskResult<Reply>> {
        let (reply, answered) = oneshot::channel();
        let mut server = self.0.lock();
        let slow = server.faults.slow;
        let latency = if server.random.chance(slow) {
            server.random.between(50, 1000)
        } else {
            server.random.between(0, 3)
        };
        let hung_until = server.hung.get(&host).copied().unwrap_or(0);
        let mut arrival = server.now_ms.max(hung_until) + latency;
        if let Operation::Write(inode, ..) | Operation::Sync(inode) = &operation {
            let last = server.last_arrival.entry((host, *inode)).or_insert(0);
            arrival = arrival.max(*last);
            *last = arrival;
        }
        server.submitted += 1;
        let key = (arrival, server.submitted);
        server.pending.insert(key, Pending { host, operation, reply });
        answered
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

impl Server {
    fn carry_out(&mut self, host: HostId, operation: Operation) -> DiskResult<Reply> {
        match operation {
            Operation::Write(inode, position, bytes) => self.write(host, inode, position, &bytes),
            Operation::Sync(inode) => self.sync(host, inode),
            Operation::Read(inode, position, length) => {
                let content = &self.inode(inode)?.visible;
                let start = position.min(content.len());
                let end = (position + length).min(content.len());
                Ok(Reply::Bytes(Bytes::copy_from_slice(&content[start..end])))
            }
            Operation::Size(inode) => Ok(Reply::Size(self.inode(inode)?.visible.len() as u64)),
            Operation::CreateFolders(path) => {
                for ancestor in path.ancestors() {
                    self.folders.insert(ancestor.to_owned());
                }
                Ok(Reply::Done)
            }
            Operation::CreateFolderExclusive(path) => {
                self.require_parent(&path)?;
                if self.folders.insert(path.clone()) {
                    Ok(Reply::Done)
                } else {
                    Err(DiskError::Exists(text(&path)))
                }
            }
            Operation::Create(path, content) => self.create(host, path, content),
            Operation::Open(path) => self.open(host, &path),
            Operation::Rename(from, to) => {
                if !self.folders.contains(&from) && !self.names.contains_key(&from) {
                    return Err(DiskError::NotFound(text(&from)));
                }
                self.rename(&from, &to);
                if let Some(name) = self.names.get_mut(&to) {
                    (name.made_by, name.made_at_ms) = (host, self.now_ms);
                }
                self.reused += u64::from(to.extension().is_some_and(|ending| ending == "wal"));
                self.renames.push((from, to));
                Ok(Reply::Done)
            }
            Operation::MakeDurable(path) => {
                let opened = if self.folders.contains(&path) {
                    Reply::Done
                } else {
                    self.open(host, &path)?
                };
                // A folder is synced as a whole.
                let synced = [path.parent(), Some(path.as_path())];
                self.renames.retain(|(from, _)| !synced.contains(&from.parent()));
                Ok(opened)
            }
            Operation::Remove(path) => {
                self.names.remove(&path);
                Ok(Reply::Done)
            }
            Operation::RemoveFolder(path) => {
                if !self.list(&path).is_empty() {
                    return Err(DiskError::Failed(text(&path), "not empty".into()));
                }
                self.folders.remove(&path);
                Ok(Reply::Done)
            }
            Operation::List(path) => Ok(Reply::Names(self.list(&path))),
        }
    }

    /// Undoes the last of the renames that nobody made durable.
    fn undo_renames(&mut self) {
        let kept = self.random.below(self.renames.len() as u64 + 1);
        let kept = usize::try_from(kept).expect("few renames");
        for (from, to) in self.renames.split_off(kept).into_iter().rev() {
            // It may have been removed meanwhile.
            self.rename(&to, &from);
        }
        self.renames.clear();
    }

    /// Renames a file or a folder, if it exists.
    fn rename(&mut self, from: &Path, to: &Path) {
        let place = |path: &Path| match path.strip_prefix(from) {
            Ok(below) if below.as_os_str().is_empty() => to.to_owned(),
            Ok(below) => to.join(below),
            Err(_) => path.to_owned(),
        };
        let (moved, stays): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.names)
            .into_iter()
            .partition(|(path, _)| path.starts_with(from));
        self.names = stays;
        self.names.extend(moved.into_iter().map(|(path, name)| (place(&path), name)));
        self.folders = std::mem::take(&mut self.folders).iter().map(|path| place(path)).collect();
    }

    fn inode(&self, inode: u64) -> DiskResult<&Inode> {
        let stale = || DiskError::Failed(format!("inode {inode}"), "stale file handle".into());
        self.inodes.get(&inode).ok_or_else(stale)
    }

    fn refuse_when_full(&mut self, what: &str) -> DiskResult<()> {
        let full = self.faults.full;
        if self.full || self.random.chance(full) {
            return Err(DiskError::NoSpace(what.to_owned()));
        }
        Ok(())
    }

    fn write(
        &mut self,
        host: HostId,
        inode: u64,
        position: usize,
        bytes: &[u8],
    ) -> DiskResult<Reply> {
        let what = format!("inode {inode}");
        self.refuse_when_full(&what)?;
        let chance = self.faults.failed_write;
        let fails = self.random.chance(chance);
        let done = if fails {
            usize::try_from(self.random.below(bytes.len() as u64 + 1)).expect("small")
        } else {
            bytes.len()
        };
        let Some(file) = self.inodes.get_mut(&inode) else {
            return Err(DiskError::Failed(what, "stale file handle".into()));
        };
        file.write(position, &bytes[..done]);
        file.writers.insert(host);
        if fails { Err(DiskError::Failed(what, "write failed".into())) } else { Ok(Reply::Done) }
    }

    fn sync(&mut self, host: HostId, inode: u64) -> DiskResult<Reply> {
        let chance = self.faults.failed_sync;
        let fails = self.random.chance(chance);
        let Some(file) = self.inodes.get_mut(&inode) else {
            return Err(DiskError::Failed(format!("inode {inode}"), "stale file handle".into()));
        };
        if fails || file.losers.remove(&host) {
            // As Linux does it: the pages count as clean afterwards, and the next sync succeeds.
            file.dirty.clear();
            return Err(DiskError::Failed(format!("inode {inode}"), "sync failed".into()));
        }
        file.sync();
        Ok(Reply::Done)
    }

    fn require_parent(&self, path: &Path) -> DiskResult<()> {
        match path.parent() {
            Some(parent) if !self.folders.contains(parent) => {
                Err(DiskError::NotFound(text(parent)))
            }
            _ => Ok(()),
        }
    }

    fn create(&mut self, host: HostId, path: PathBuf, content: Vec<u8>) -> DiskResult<Reply> {
        self.require_parent(&path)?;
        self.refuse_when_full(&text(&path))?;
        if self.names.contains_key(&path) {
            return Err(DiskError::Exists(text(&path)));
        }
        let inode = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(
            inode,
            Inode { durable: content.clone(), visible: content, ..Inode::default() },
        );
        self.names.insert(path, Name { inode, made_by: host, made_at_ms: self.now_ms });
        Ok(Reply::Opened(inode))
    }

    fn open(&mut self, host: HostId, path: &Path) -> DiskResult<Reply> {
        let absent = DiskError::NotFound(text(path));
        let name = *self.names.get(path).ok_or_else(|| absent.clone())?;
        let recent = name.made_by != host && self.now_ms < name.made_at_ms + STALE_MS;
        let stale = self.faults.stale_look_up;
        if recent && self.random.chance(stale) {
            return Err(absent);
        }
        Ok(Reply::Opened(name.inode))
    }

    fn list(&self, path: &Path) -> Vec<String> {
        let inside = |candidate: &Path| candidate.parent() == Some(path) && candidate != path;
        let files = self.names.keys().filter(|name| inside(name));
        let folders = self.folders.iter().filter(|name| inside(name));
        let names = files.chain(folders).filter_map(|name| name.file_name());
        let sorted: BTreeSet<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        sorted.into_iter().collect()
    }
}

struct Mount {
    server: SimServer,
    host: HostId,
}

impl Mount {
    async fn ask(&self, operation: Operation) -> DiskResult<Reply> {
        let answered = self.server.submit(self.host, operation).await;
        answered.unwrap_or_else(|_| Err(DiskError::Failed("disk".into(), "no answer".into())))
    }

    fn handle(&self, inode: u64) -> Arc<dyn File> {
        let mount = Self { server: self.server.clone(), host: self.host };
        Arc::new(Handle { mount, inode })
    }
}

#[async_trait]
impl Disk for Mount {
    async fn create_folders(&self, path: &Path) -> DiskResult<()> {
        self.ask(Operation::CreateFolders(path.to_owned())).await.map(drop)
    }

    async fn create_folder_exclusive(&self, path: &Path) -> DiskResult<()> {
        self.ask(Operation::CreateFolderExclusive(path.to_owned())).await.map(drop)
    }

    async fn create(&self, path: &Path, zeros: u64, _room: Room) -> DiskResult<Arc<dyn File>> {
        let zeros = vec![0; usize::try_from(zeros).expect("small files")];
        match self.ask(Operation::Create(path.to_owned(), zeros)).await? {
            Reply::Opened(inode) => Ok(self.handle(inode)),
            _ => unreachable!("create answers with a file"),
        }
    }

    async fn open(&self, path: &Path) -> DiskResult<Arc<dyn File>> {
        match self.ask(Operation::Open(path.to_owned())).await? {
            Reply::Opened(inode) => Ok(self.handle(inode)),
            _ => unreachable!("open answers with a file"),
        }
    }

    async fn publish(&self, path: &Path, pieces: Vec<Bytes>) -> DiskResult<()> {
        self.ask(Operation::Create(path.to_owned(), pieces.concat())).await.map(drop)
    }

    async fn make_durable(&self, path: &Path) -> DiskResult<()> {
        self.ask(Operation::MakeDurable(path.to_owned())).await.map(drop)
    }

    async fn rename(&self, from: &Path, to: &Path) -> DiskResult<()> {
        self.ask(Operation::Rename(from.to_owned(), to.to_owned())).await.map(drop)
    }

    async fn remove(&self, path: &Path) -> DiskResult<()> {
        self.ask(Operation::Remove(path.to_owned())).await.map(drop)
    }

    async fn remove_folder(&self, path: &Path) -> DiskResult<()> {
        self.ask(Operation::RemoveFolder(path.to_owned())).await.map(drop)
    }

    async fn list(&self, path: &Path) -> DiskResult<Vec<String>> {
        match self.ask(Operation::List(path.to_owned())).await? {
            Reply::Names(names) => Ok(names),
            _ => unreachable!("list answers with names"),
        }
    }
}

struct Handle {
    mount: Mount,
    inode: u64,
}

#[async_trait]
impl File for Handle {
    async fn write_at(&self, position: u64, pieces: Vec<Bytes>) -> DiskResult<()> {
        let position = usize::try_from(position).expect("small files");
        let write = Operation::Write(self.inode, position, pieces.concat());
        self.mount.ask(write).await.map(drop)
    }

    async fn sync(&self) -> DiskResult<()> {
        self.mount.ask(Operation::Sync(self.inode)).await.map(drop)
    }

    async fn read_at(&self, position: u64, length: usize) -> DiskResult<Bytes> {
        let position = usize::try_from(position).expect("small files");
        match self.mount.ask(Operation::Read(self.inode, position, length)).await? {
            Reply::Bytes(bytes) => Ok(bytes),
            _ => unreachable!("read answers with bytes"),
        }
    }

    async fn read_uncached_at(&self, position: u64, length: usize) -> DiskResult<Bytes> {
        self.read_at(position, length).await
    }

    async fn size(&self) -> DiskResult<u64> {
        match self.mount.ask(Operation::Size(self.inode)).await? {
            Reply::Size(size) => Ok(size),
            _ => unreachable!("size answers with a size"),
        }
    }
}
