//! What every disk must do, passed by folders and by the simulator.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use freshet_world::env::{Disk, DiskError, Room};
use freshet_world::sim::faults::DiskFaults;
use freshet_world::sim::world::World;

use crate::Folder;

/// The suite. The disk must be empty.
pub async fn conformance(disk: &dyn Disk) {
    folders(disk).await;
    files(disk).await;
    published_files(disk).await;
    renaming(disk).await;
    removal(disk).await;
}

async fn folders(disk: &dyn Disk) {
    let nested = Path::new("a/b/c");
    assert_eq!(disk.list(nested).await.unwrap(), Vec::<String>::new(), "an absent folder is empty");
    for _ in 0..2 {
        disk.create_folders(nested).await.unwrap();
    }
    assert_eq!(disk.list(Path::new("a")).await.unwrap(), ["b"]);
    let exclusive = Path::new("a/mine");
    disk.create_folder_exclusive(exclusive).await.unwrap();
    let again = disk.create_folder_exclusive(exclusive).await;
    assert!(matches!(again, Err(DiskError::Exists(_))), "{again:?}");
    let orphan = disk.create_folder_exclusive(Path::new("none/mine")).await;
    assert!(matches!(orphan, Err(DiskError::NotFound(_))), "{orphan:?}");
}

async fn files(disk: &dyn Disk) {
    let path = Path::new("a/file");
    assert!(matches!(disk.open(path).await.err(), Some(DiskError::NotFound(_))));
    let reserved = Path::new("a/reserved");
    let file = disk.create(reserved, 1 << 20, Room::Reserved).await.unwrap();
    assert_eq!(file.size().await.unwrap(), 1 << 20);
    file.write_and_sync(4096, vec![Bytes::from_static(&[7; 4096])]).await.unwrap();
    let expected = [[0; 4096], [7; 4096], [0; 4096]].concat();
    assert_eq!(file.read_at(0, expected.len()).await.unwrap(), expected);
    assert_eq!(file.read_uncached_at(0, expected.len()).await.unwrap(), expected);
    disk.remove(reserved).await.unwrap();
    let file = disk.create(path, 10, Room::Filled).await.unwrap();
    assert_eq!(file.size().await.unwrap(), 10);
    assert_eq!(file.read_at(0, 10).await.unwrap(), [0; 10][..]);
    assert!(matches!(disk.create(path, 0, Room::Filled).await.err(), Some(DiskError::Exists(_))));
    let pieces = vec![Bytes::from_static(b"ab"), Bytes::new(), Bytes::from_static(b"cd")];
    file.write_and_sync(2, pieces).await.unwrap();
    file.write_and_sync(0, vec![Bytes::new()]).await.unwrap();
    let other = disk.open(path).await.unwrap();
    for read in [other.read_at(0, 8).await, other.read_uncached_at(0, 8).await] {
        assert_eq!(&read.unwrap()[..], b"\0\0abcd\0\0");
    }
    other.write_at(12, vec![Bytes::from_static(b"end")]).await.unwrap();
    other.sync().await.unwrap();
    assert_eq!(file.size().await.unwrap(), 15, "a write past the end makes the file longer");
    assert_eq!(&file.read_at(9, 100).await.unwrap()[..], b"\0\0\0end", "short only at the end");
    assert_eq!(&file.read_uncached_at(13, 100).await.unwrap()[..], b"nd");
    assert_eq!(&file.read_once_at(3, 100).await.unwrap()[..], b"bcd\0\0\0\0\0\0end");
    assert!(file.read_once_at(15, 5).await.unwrap().is_empty());
    assert!(file.read_at(15, 5).await.unwrap().is_empty());
    assert!(file.read_uncached_at(5000, 5).await.unwrap().is_empty());
}

async fn published_files(disk: &dyn Disk) {
    let path = Path::new("a/published");
    let absent = disk.make_durable(path).await;
    assert!(matches!(absent, Err(DiskError::NotFound(_))), "{absent:?}");
    let large = Bytes::from(vec![7; 100_000]);
    disk.publish(path, vec![large.clone(), Bytes::from_static(b"x")]).await.unwrap();
    disk.make_durable(path).await.unwrap();
    let again = disk.publish(path, vec![Bytes::from_static(b"other")]).await;
    assert!(matches!(again, Err(DiskError::Exists(_))), "{again:?}");
    let file = disk.open(path).await.unwrap();
    assert_eq!(file.size().await.unwrap(), 100_001);
    assert_eq!(file.read_at(0, 100_000).await.unwrap(), large, "the first one stands");
    let orphan = disk.publish(Path::new("none/published"), vec![large]).await;
    assert!(matches!(orphan, Err(DiskError::NotFound(_))), "{orphan:?}");
    disk.publish(Path::new("a/empty"), Vec::new()).await.unwrap();
    assert_eq!(disk.open(Path::new("a/empty")).await.unwrap().size().await.unwrap(), 0);
    let names = disk.list(Path::new("a")).await.unwrap();
    assert_eq!(names, ["b", "empty", "file", "mine", "published"], "sorted, without drafts");
}

async fn renaming(disk: &dyn Disk) {
    let (from, to) = (Path::new("a/recycled"), Path::new("a/renamed"));
    let absent = disk.rename(from, to).await;
    assert!(matches!(absent, Err(DiskError::NotFound(_))), "{absent:?}");
    let open = disk.create(from, 3, Room::Filled).await.unwrap();
    disk.rename(from, to).await.unwrap();
    disk.make_durable(to).await.unwrap();
    assert!(matches!(disk.open(from).await.err(), Some(DiskError::NotFound(_))));
    open.write_and_sync(0, vec![Bytes::from_static(b"new")]).await.unwrap();
    let content = disk.open(to).await.unwrap().read_at(0, 3).await.unwrap();
    assert_eq!(content, "new", "who has it open writes on");
    disk.remove(to).await.unwrap();
    let (from, to) = (Path::new("a/lane"), Path::new("a/removed"));
    let absent = disk.rename(from, to).await;
    assert!(matches!(absent, Err(DiskError::NotFound(_))), "{absent:?}");
    disk.create_folder_exclusive(from).await.unwrap();
    let open = disk.create(&from.join("file"), 3, Room::Filled).await.unwrap();
    disk.rename(from, to).await.unwrap();
    disk.make_durable(to).await.unwrap();
    let late = disk.create(&from.join("late"), 3, Room::Filled).await.err();
    assert!(matches!(late, Some(DiskError::NotFound(_))), "the folder is gone: {late:?}");
    open.write_and_sync(0, vec![Bytes::from_static(b"new")]).await.unwrap();
    assert_eq!(disk.list(to).await.unwrap(), ["file"]);
    disk.remove(&to.join("file")).await.unwrap();
    disk.remove_folder(to).await.unwrap();
}

async fn removal(disk: &dyn Disk) {
    let path = Path::new("a/published");
    let open = disk.open(path).await.unwrap();
    for _ in 0..2 {
        disk.remove(path).await.unwrap();
    }
    assert!(matches!(disk.open(path).await.err(), Some(DiskError::NotFound(_))));
    assert_eq!(open.read_at(100_000, 1).await.unwrap(), "x", "who has it open reads on");
    for _ in 0..2 {
        disk.remove_folder(Path::new("a/mine")).await.unwrap();
    }
    assert!(
        disk.remove_folder(Path::new("a")).await.is_err(),
        "a folder with something in it stays"
    );
    assert_eq!(disk.list(Path::new("a")).await.unwrap(), ["b", "empty", "file"]);
}

/// More pieces than one system call takes, the last ones empty.
#[tokio::test]
async fn a_folder_takes_any_number_of_pieces() {
    let folder = Folder::new();
    let file = folder.disk.create(Path::new("file"), 0, Room::Filled).await.unwrap();
    for pieces in [1, 1023, 1024, 1025, 3000] {
        let mut write: Vec<Bytes> =
            (0..pieces).map(|number: u32| Bytes::from(number.to_le_bytes().to_vec())).collect();
        let expected = write.concat();
        write.extend(std::iter::repeat_n(Bytes::new(), 2049 - pieces as usize % 1024));
        file.write_and_sync(5, write).await.unwrap();
        assert_eq!(file.read_at(5, expected.len()).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn a_folder_conforms() {
    conformance(Folder::new().disk.as_ref()).await;
}

/// Runs a suite on a simulated host.
pub fn on_simulated_host<F>(suite: impl FnOnce(Arc<dyn Disk>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut world = World::new(3, DiskFaults::none());
    let finished = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&finished);
    world.start(|_, environment| {
        let run = suite(environment.disk);
        async move {
            run.await;
            end.store(true, Ordering::Relaxed);
        }
    });
    assert!(world.step_until(60_000, |_| finished.load(Ordering::Relaxed)), "the suite ends");
}

#[test]
fn the_simulated_disk_conforms() {
    on_simulated_host(|disk| async move { conformance(disk.as_ref()).await });
}
