//! Objects in S3, or in a store with the same interface: each is written once by a conditional put.
//!
//! Every object bears a mark of the call that wrote it. Where an answer was lost, or a retry failed
//! because the object exists, the mark shows whether this call wrote it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::aws::{AmazonS3, AmazonS3Builder, S3ConditionalPut};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, BackoffConfig, ClientOptions, Error, GetOptions, ObjectStore as _,
    ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, RetryConfig,
};

use connector::Connector;
use credentials::KeyFile;
use freshet_wire::text::encode_hex;
use freshet_world::env::Randomness;
use freshet_world::env::store::{ObjectStore, StoreError, StoreMetrics, StoreResult};

mod connector;
mod credentials;

/// An object of at most this many bytes is written by one request; larger ones in parts.
const SINGLE_BYTES_MAX: usize = 16 << 20;
/// Bytes of a part, but for the last: some stores want all to be of one size, all want 5 MiB.
const PART_BYTES: usize = 8 << 20;
/// Parts of an object under way at a time.
const PARTS_AT_ONCE: usize = 4;
/// How often a put is begun that neither wrote its object nor met another's.
const PUT_ATTEMPTS: u32 = 4;
/// The name of the mark in the object's metadata.
const MARK: &str = "freshet-put";
const MARK_BYTES: usize = 16;

const CONNECT_TIME: Duration = Duration::from_secs(3);
/// The timeout of one request with its answer.
const REQUEST_TIME: Duration = Duration::from_secs(20);
/// After this time no request is repeated here. The caller may try again.
const RETRY_TIME: Duration = Duration::from_secs(20);
const RETRIES_MAX: usize = 6;
/// The first pause after a store was too busy (503, 429). Each one is twice as long, up to the
/// maximum.
const REST_FIRST: Duration = Duration::from_millis(50);
const REST_MAX: Duration = Duration::from_secs(1);

/// A place in S3.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct S3Options {
    /// The bucket.
    pub bucket: String,
    /// The prefix of every key, without slashes at its ends.
    pub prefix: String,
    /// The address of a store that is not Amazon's: `http://…` or `https://…`.
    pub endpoint: Option<String>,
    /// The region; `us-east-1` where it is `None`.
    pub region: Option<String>,
    /// File of shared credentials. Without one, the variables that Amazon's own programs read are
    /// used.
    pub key_file: Option<String>,
}

impl S3Options {
    fn builder(&self) -> AmazonS3Builder {
        let builder = match &self.key_file {
            Some(path) => {
                AmazonS3Builder::new().with_credentials(Arc::new(KeyFile::new(path)) as _)
            }
            None => AmazonS3Builder::from_env(),
        };
        let builder = match &self.endpoint {
            Some(endpoint) => builder.with_endpoint(endpoint),
            None => builder,
        };
        match &self.region {
            Some(region) => builder.with_region(region),
            None => builder,
        }
    }
}

/// The store (see the module).
pub struct S3Store {
    s3: AmazonS3,
    prefix: String,
    randomness: Arc<dyn Randomness>,
    metrics: StoreMetrics,
}

impl S3Store {
    /// The objects of a place in S3. No request is sent yet.
    ///
    /// # Errors
    /// Where the options, or those of the environment, make no sense.
    pub fn new(options: &S3Options, randomness: Arc<dyn Randomness>) -> Result<Self, String> {
        // The HTTP client uses the process's provider of cryptography. An error means that the
        // process has one already, which will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let backoff = BackoffConfig { init_backoff: REST_FIRST, max_backoff: REST_MAX, base: 2.0 };
        let retry = RetryConfig { backoff, max_retries: RETRIES_MAX, retry_timeout: RETRY_TIME };
        let metrics = StoreMetrics::default();
        let client = ClientOptions::new()
            .with_connect_timeout(CONNECT_TIME)
            .with_timeout(REQUEST_TIME)
            // Plain HTTP is used only where the endpoint says `http://`.
            .with_allow_http(true);
        let built = options
            .builder()
            .with_bucket_name(&options.bucket)
            .with_client_options(client)
            .with_retry(retry)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            // One request for each object, because not every store has the bulk request.
            .with_disable_bulk_delete(true)
            .with_http_connector(Connector::new(metrics.clone()))
            .build();
        let s3 = built.map_err(|error| error.to_string())?;
        Ok(Self { s3, prefix: options.prefix.clone(), randomness, metrics })
    }

    fn path(&self, key: &str) -> Path {
        if self.prefix.is_empty() {
            Path::from(key)
        } else {
            format!("{}/{key}", self.prefix).into()
        }
    }

    /// A mark that no other call has.
    fn mark(&self) -> String {
        let mut bytes = [0; MARK_BYTES];
        self.randomness.fill(&mut bytes);
        encode_hex(&bytes)
    }

    async fn put(&self, path: &Path, pieces: &[Bytes], mark: &str) -> Result<(), Error> {
        let attributes = marked_attributes(mark);
        if pieces.iter().map(Bytes::len).sum::<usize>() > SINGLE_BYTES_MAX {
            return self.upload(path, pieces, attributes).await;
        }
        let options = PutOptions { mode: PutMode::Create, attributes, ..PutOptions::default() };
        let payload = pieces.iter().cloned().collect::<PutPayload>();
        self.s3.put_opts(path, payload, options).await.map(drop)
    }

    /// Writes an object in parts. It is invisible until the last request completes it.
    async fn upload(
        &self,
        path: &Path,
        pieces: &[Bytes],
        attributes: Attributes,
    ) -> Result<(), Error> {
        let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
        let id = &self.s3.create_multipart_opts(path, options).await?;
        let parts = upload_parts(pieces, PART_BYTES).into_iter().enumerate();
        let parts = parts.map(|(number, part)| self.s3.put_part(path, id, number, part));
        let parts = stream::iter(parts).buffered(PARTS_AT_ONCE).try_collect::<Vec<_>>();
        let done = match parts.await {
            Ok(parts) => self.s3.complete_multipart(path, id, parts).await.map(drop),
            Err(error) => Err(error),
        };
        if done.is_err()
            && let Err(error) = self.s3.abort_multipart(path, id).await
        {
            // A rule of the bucket removes the parts of uploads that were never completed.
            tracing::debug!(
                %path, %error,
                "the parts of an upload could not be removed: the bucket's rule has to"
            );
        }
        done
    }

    /// The mark of the object that is there, if there is one.
    async fn mark_at(&self, path: &Path) -> Result<Option<String>, Error> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        match self.s3.get_opts(path, options).await {
            Ok(object) => {
                let mark = object.attributes.get(&Attribute::Metadata(MARK.into()));
                Ok(Some(mark.map(|mark| mark.to_string()).unwrap_or_default()))
            }
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn read(&self, key: &str, options: GetOptions) -> StoreResult<Bytes> {
        let failed = |error: Error| store_error(key, &error);
        let object = self.s3.get_opts(&self.path(key), options).await.map_err(failed)?;
        object.bytes().await.map_err(failed)
    }
}

fn marked_attributes(mark: &str) -> Attributes {
    Attributes::from_iter([(Attribute::Metadata(MARK.into()), mark.to_owned())])
}

/// Cuts an object into parts of `bytes` bytes; the last one may be shorter.
fn upload_parts(pieces: &[Bytes], bytes: usize) -> Vec<PutPayload> {
    let mut parts = Vec::new();
    let (mut part, mut room) = (Vec::new(), bytes);
    for piece in pieces {
        let mut left = piece.clone();
        while !left.is_empty() {
            let taken = left.split_to(left.len().min(room));
            room -= taken.len();
            part.push(taken);
            if room == 0 {
                parts.push(std::mem::take(&mut part).into_iter().collect());
                room = bytes;
            }
        }
    }
    if !part.is_empty() {
        parts.push(part.into_iter().collect());
    }
    parts
}

fn store_error(key: &str, error: &Error) -> StoreError {
    match error {
        Error::NotFound { .. } => StoreError::NotFound(key.to_owned()),
        _ => StoreError::Unavailable(error.to_string()),
    }
}

#[async_trait]
impl ObjectStore for S3Store {
    async fn put_new(&self, key: &str, pieces: Vec<Bytes>) -> StoreResult<()> {
        let (path, mark) = (self.path(key), self.mark());
        let mut attempt = 0;
        loop {
            attempt += 1;
            let Err(error) = self.put(&path, &pieces, &mark).await else { return Ok(()) };
            match self.mark_at(&path).await {
                // An earlier attempt wrote the object, and its answer was lost.
                Ok(Some(there)) if there == mark => return Ok(()),
                Ok(Some(_)) => return Err(StoreError::Exists(key.to_owned())),
                // Another put or a removal of the key was under way, or the upload has expired.
                Ok(None) if is_conflict(&error) && attempt < PUT_ATTEMPTS => {
                    tokio::time::sleep(REST_FIRST * attempt).await;
                }
                Ok(None) | Err(_) => return Err(StoreError::Unavailable(error.to_string())),
            }
        }
    }

    async fn get(&self, key: &str) -> StoreResult<Bytes> {
        self.read(key, GetOptions::default()).await
    }

    async fn get_range(&self, key: &str, position: u64, length: u64) -> StoreResult<Bytes> {
        if length == 0 {
            // HTTP cannot ask for an empty range.
            return Ok(Bytes::new());
        }
        let range = position..position.saturating_add(length);
        let options = GetOptions { range: Some(range.into()), ..GetOptions::default() };
        let bytes = self.read(key, options).await?;
        if bytes.len() as u64 == length {
            return Ok(bytes);
        }
        Err(StoreError::Unavailable(format!("{key} is shorter than {position} + {length}")))
    }

    async fn list(&self, folder: &str) -> StoreResult<Vec<String>> {
        let listed = self.s3.list_with_delimiter(Some(&self.path(folder))).await;
        let listed = listed.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let objects = listed.objects.iter().map(|object| &object.location);
        let last = |path: &Path| path.filename().map(str::to_owned);
        let mut names: Vec<_> =
            listed.common_prefixes.iter().chain(objects).filter_map(last).collect();
        names.sort_unstable();
        Ok(names)
    }

    async fn delete(&self, key: &str) -> StoreResult<()> {
        match self.s3.delete(&self.path(key)).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(StoreError::Unavailable(error.to_string())),
        }
    }

    /// Parts of objects that were never completed are not objects; the bucket's own rules expire
    /// them.
    async fn list_half_made(&self, _folder: &str) -> StoreResult<Vec<String>> {
        Ok(Vec::new())
    }

    fn metrics(&self) -> Option<&StoreMetrics> {
        Some(&self.metrics)
    }
}

/// Whether the same put may succeed the next time.
fn is_conflict(error: &Error) -> bool {
    matches!(
        error,
        Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotFound { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_all_bytes_in_order_and_one_size() {
        let pieces: Vec<Bytes> = (0..40_u8).map(|n| Bytes::from(vec![n; usize::from(n)])).collect();
        let whole = pieces.concat();
        for bytes in [1, 7, 260, whole.len(), whole.len() + 1] {
            let parts = upload_parts(&pieces, bytes);
            let sizes: Vec<_> = parts.iter().map(PutPayload::content_length).collect();
            assert!(
                sizes[..sizes.len() - 1].iter().all(|size| *size == bytes),
                "{bytes}: {sizes:?}"
            );
            let joined: Vec<_> = parts.into_iter().map(Bytes::from).collect();
            assert_eq!(joined.concat(), whole);
        }
        assert!(upload_parts(&[], 7).is_empty());
    }
}
