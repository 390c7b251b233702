//! The credentials for S3: a file of shared credentials that is read again when it changes, so that
//! keys can be replaced while processes run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use object_store::aws::AwsCredential;
use object_store::{CredentialProvider, Error, Result};
use tokio::sync::Mutex;
use tokio::time::Instant;

use freshet_world::env::files;

/// The part of the file that is read.
const PROFILE: &str = "[default]";
/// The file is checked for changes no more often than this.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A file of shared credentials in Amazon's format: `[default]`, and below it `aws_access_key_id`,
/// `aws_secret_access_key` and, for temporary keys, `aws_session_token`. Only its owner may read
/// it.
#[derive(Debug)]
pub struct KeyFile {
    path: PathBuf,
    last: Mutex<Option<Last>>,
}

#[derive(Debug)]
struct Last {
    credential: Arc<AwsCredential>,
    looked_at: Instant,
}

impl KeyFile {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), last: Mutex::default() }
    }

    async fn read(&self) -> Result<AwsCredential> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::Generic {
            store: "S3",
            source,
        };
        let bytes = files::read_private(&self.path).await;
        let bytes = bytes.map_err(|error| failed(error.into()))?;
        let parsed = std::str::from_utf8(&bytes).ok().and_then(parse_credentials);
        parsed.ok_or_else(|| {
            let path = self.path.display();
            failed(format!("{path}: no aws_access_key_id with its secret under {PROFILE}").into())
        })
    }
}

#[async_trait]
impl CredentialProvider for KeyFile {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> Result<Arc<AwsCredential>> {
        let mut last = self.last.lock().await;
        if let Some(last) = &*last
            && last.looked_at.elapsed() < LOOK_AGAIN
        {
            return Ok(Arc::clone(&last.credential));
        }
        let credential = match (self.read().await, &*last) {
            (Ok(credential), _) => Arc::new(credential),
            // It may be unreadable for a moment because it is being replaced.
            (Err(error), Some(last)) => {
                tracing::warn!(
                    %error,
                    "the file of credentials cannot be read: the key that was read before stays \
                     in use"
                );
                Arc::clone(&last.credential)
            }
            (Err(error), None) => return Err(error),
        };
        let looked_at = Instant::now();
        *last = Some(Last { credential: Arc::clone(&credential), looked_at });
        Ok(credential)
    }
}

/// The credentials of a file; `None` where a part is missing.
fn parse_credentials(text: &str) -> Option<AwsCredential> {
    let (mut key_id, mut secret_key, mut token) = (None, None, None);
    let mut here = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            here = line == PROFILE;
        }
        let Some((name, value)) = line.split_once('=').filter(|_| here) else { continue };
        let value = Some(value.trim().to_owned()).filter(|value| !value.is_empty());
        match name.trim_end() {
            "aws_access_key_id" => key_id = value,
            "aws_secret_access_key" => secret_key = value,
            "aws_session_token" => token = value,
            _ => {}
        }
    }
    Some(AwsCredential { key_id: key_id?, secret_key: secret_key?, token })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "[other]\naws_access_key_id = no\naws_secret_access_key = no\n\n\
                       [default]\n# why\naws_access_key_id = one\naws_secret_access_key=a=b/+\n";

    #[test]
    fn the_default_part_of_a_file_counts() {
        let read = parse_credentials(ONE).unwrap();
        assert_eq!((&read.key_id[..], &read.secret_key[..]), ("one", "a=b/+"));
        assert_eq!(read.token, None);
        let with_token = parse_credentials(&format!("{ONE}aws_session_token = t\n")).unwrap();
        assert_eq!(with_token.token.as_deref(), Some("t"));
        for incomplete in ["", "[default]\naws_access_key_id = one\n", "aws_access_key_id = one"] {
            assert!(parse_credentials(incomplete).is_none(), "{incomplete}");
        }
    }

    #[tokio::test]
    async fn another_key_is_taken_and_a_broken_file_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let keys = KeyFile::new(&path);
        assert!(keys.get_credential().await.is_err());
        let now = async || {
            // As if the last check was long ago.
            if let Some(last) = &mut *keys.last.lock().await {
                last.looked_at -= LOOK_AGAIN;
            }
            keys.get_credential().await.unwrap().key_id.clone()
        };
        files::write_private(&path, ONE.into()).await.unwrap();
        assert_eq!(now().await, "one");
        files::write_private(&path, ONE.replace("= one", "= two").into()).await.unwrap();
        assert_eq!(keys.get_credential().await.unwrap().key_id, "one", "not at every request");
        assert_eq!(now().await, "two");
        files::write_private(&path, b"[default]".to_vec()).await.unwrap();
        assert_eq!(now().await, "two");
        files::write_public(&path, ONE.into()).await.unwrap();
        assert_eq!(now().await, "two", "what others may read is no secret");
    }
}
