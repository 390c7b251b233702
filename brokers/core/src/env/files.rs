//! Small files of a process itself, beside the storage that it serves: secrets, keys, certificates.
//! Read and written as a whole, by their paths on this machine.
#![allow(clippy::disallowed_methods)]

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// More than any such file has, in bytes.
const BYTES_MAX: u64 = 1 << 20;
/// Read and written by the owner only.
const PRIVATE: u32 = 0o600;
const PUBLIC: u32 = 0o644;

/// Why a file cannot be read or written. Never says what it holds.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct FileError {
    path: String,
    reason: String,
}

/// All of a file.
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

/// All of a file that must be open to its owner only.
///
/// # Errors
/// [`FileError`].
pub async fn read_private(path: &Path) -> Result<Vec<u8>, FileError> {
    let mode = mode(path).await?;
    if mode & 0o077 != 0 {
        let path = path.display().to_string();
        let reason = format!("mode {mode:04o} opens it to others, want {PRIVATE:04o}");
        return Err(FileError { path, reason });
    }
    read(path).await
}

/// Who may do what with a file.
///
/// # Errors
/// [`FileError`].
pub async fn mode(path: &Path) -> Result<u32, FileError> {
    blocking(path, |path| Ok(fs::metadata(path)?.permissions().mode() & 0o777)).await
}

/// Writes a file for its owner only, in the place of one that is there; makes its folder. Nobody
/// sees a part of it.
///
/// # Errors
/// [`FileError`].
pub async fn write_private(path: &Path, bytes: Vec<u8>) -> Result<(), FileError> {
    write(path, bytes, PRIVATE).await
}

/// As [`write_private`], for everybody to read.
///
/// # Errors
/// [`FileError`].
pub async fn write_public(path: &Path, bytes: Vec<u8>) -> Result<(), FileError> {
    write(path, bytes, PUBLIC).await
}

async fn write(path: &Path, bytes: Vec<u8>, mode: u32) -> Result<(), FileError> {
    blocking(path, move |path| {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{}.draft", std::process::id()));
        let draft = PathBuf::from(draft);
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(mode).open(&draft)?;
        // The mode above holds for a new file, and less what the process masks.
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
