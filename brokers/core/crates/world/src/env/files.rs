//! Small files of a process itself, beside the storage that it serves: secrets, keys, certificates.
//! Read and written as a whole, by their paths on this machine.
#![allow(clippy::disallowed_methods)]

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The most bytes of such a file.
const BYTES_MAX: u64 = 1 << 20;
/// Read and written by the owner only.
const PRIVATE: u32 = 0o600;
const PUBLIC: u32 = 0o644;
const ROOT: u32 = 0;
/// The permissions of everybody but the owner.
const OTHERS: u32 = 0o077;
const GROUP_READS: u32 = 0o040;

/// Why a file cannot be read or written. The text never has the file's content.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct FileError {
    path: String,
    reason: String,
}

/// Reads all of a file.
///
/// # Errors
/// [`FileError`].
pub async fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    blocking(path, |path| {
        if fs::metadata(path)?.len() > BYTES_MAX {
            return Err(io::Error::other(format!("more than {BYTES_MAX} bytes")));
        }
        fs::read(path)
    })
    .await
}

/// Reads all of a file that only its owner may read. Where root owns it, its group may read it,
/// too: that is how Kubernetes mounts a secret for a user who is not root.
///
/// # Errors
/// [`FileError`].
pub async fn read_private(path: &Path) -> Result<Vec<u8>, FileError> {
    let (mode, owner) = access_of(path).await?;
    if !is_private(mode, owner) {
        let path = path.display().to_string();
        let reason = format!("mode {mode:04o} opens it to others, want {PRIVATE:04o}");
        return Err(FileError { path, reason });
    }
    read(path).await
}

/// The permissions of a file.
///
/// # Errors
/// [`FileError`].
pub async fn mode(path: &Path) -> Result<u32, FileError> {
    access_of(path).await.map(|(mode, _)| mode)
}

/// Permissions and owner.
async fn access_of(path: &Path) -> Result<(u32, u32), FileError> {
    blocking(path, |path| {
        let facts = fs::metadata(path)?;
        Ok((facts.mode() & 0o777, facts.uid()))
    })
    .await
}

fn is_private(mode: u32, owner: u32) -> bool {
    let closed = if owner == ROOT { OTHERS & !GROUP_READS } else { OTHERS };
    mode & closed == 0
}

/// Writes a file that only its owner may read, in the place of one that exists, and makes its
/// folder. Nobody sees a part of it.
///
/// # Errors
/// [`FileError`].
pub async fn write_private(path: &Path, bytes: Vec<u8>) -> Result<(), FileError> {
    write_file(path, bytes, PRIVATE).await
}

/// As [`write_private`], for everybody to read.
///
/// # Errors
/// [`FileError`].
pub async fn write_public(path: &Path, bytes: Vec<u8>) -> Result<(), FileError> {
    write_file(path, bytes, PUBLIC).await
}

async fn write_file(path: &Path, bytes: Vec<u8>, mode: u32) -> Result<(), FileError> {
    blocking(path, move |path| {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{}.draft", std::process::id()));
        let draft = PathBuf::from(draft);
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(mode).open(&draft)?;
        // The mode at opening counts only for a new file, and the process's mask reduces it.
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&draft, path)
    })
    .await
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> Result<T, FileError> {
    let owned = path.to_owned();
    let done = tokio::task::spawn_blocking(move || work(&owned)).await;
    let done = done.unwrap_or_else(|error| Err(io::Error::other(error.to_string())));
    let path = path.display().to_string();
    done.map_err(|error| FileError { path, reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_may_read_what_root_owns_and_nothing_else() {
        for (mode, owner, private) in [
            (0o600, 1000, true),
            (0o400, 1000, true),
            (0o640, 1000, false),
            (0o640, ROOT, true),
            (0o440, ROOT, true),
            (0o660, ROOT, false),
            (0o450, ROOT, false),
            (0o444, ROOT, false),
            (0o604, ROOT, false),
        ] {
            assert_eq!(is_private(mode, owner), private, "{mode:o} of {owner}");
        }
    }

    #[tokio::test]
    async fn private_files_are_private_and_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("key");
        assert!(read(&path).await.unwrap_err().to_string().contains("deep/key: "));
        write_private(&path, b"one".to_vec()).await.unwrap();
        write_private(&path, b"two".to_vec()).await.unwrap();
        assert_eq!(mode(&path).await.unwrap(), PRIVATE);
        assert_eq!(read_private(&path).await.unwrap(), b"two");
        write_public(&path, b"three".to_vec()).await.unwrap();
        assert_eq!(read(&path).await.unwrap(), b"three");
        let error = read_private(&path).await.unwrap_err().to_string();
        assert!(error.ends_with("mode 0644 opens it to others, want 0600"), "{error}");
    }
}
