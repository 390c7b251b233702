//! How settings name a bucket: a folder, or a place in S3.
//!
//! `s3://bucket[/prefix][?option=value[&option=value…]]`. Options: `endpoint` (`http://…` or
//! `https://…`, of a store that is not Amazon's), `region`, and `key_file`, a file of shared
//! credentials as Amazon's own programs have it. Nothing is escaped, so no name may hold `&` or
//! `?`. A folder is a path, or `file://path`.

use std::io;
use std::path::Path;
use std::sync::Arc;

use freshet_world::env::hedge::HedgedStore;
use freshet_world::env::real::FolderDisk;
use freshet_world::env::store::{FolderStore, ObjectStore};
use freshet_world::env::{Environment, Randomness};

pub mod s3;

use s3::{S3Options, S3Store};

const FILE: &str = "file://";
const S3: &str = "s3://";

/// Why a bucket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// The location is malformed.
    #[error("{location}: {reason}")]
    Invalid {
        /// The location, as the settings have it.
        location: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The folder cannot be used.
    #[error("{path}: {error}")]
    Folder {
        /// Its path.
        path: String,
        /// The system's error.
        error: io::Error,
    },
}

/// Opens the bucket that `location` names. A folder is made where there is none. No request is sent
/// to S3 before something is read or written.
///
/// # Errors
/// [`BucketError`].
pub fn open_bucket(
    location: &str,
    randomness: Arc<dyn Randomness>,
) -> Result<Arc<dyn ObjectStore>, BucketError> {
    let invalid = |reason: String| BucketError::Invalid { location: location.to_owned(), reason };
    if let Some(options) = parse_location(location).map_err(invalid)? {
        let s3 = Arc::new(S3Store::new(&options, randomness).map_err(invalid)?);
        return Ok(Arc::new(HedgedStore::new(s3)));
    }
    let path = location.strip_prefix(FILE).unwrap_or(location);
    let disk = FolderDisk::new(Path::new(path));
    let disk = disk.map_err(|error| BucketError::Folder { path: path.to_owned(), error })?;
    Ok(Arc::new(FolderStore::new(Arc::new(disk))))
}

/// The real world, with the shared file system mounted at `dfs` and the objects in `bucket`, a
/// location as [`open_bucket`] takes it.
///
/// # Errors
/// Where a folder cannot be created, its kind of file system cannot be determined, or the
/// location makes no sense.
pub fn open_world(dfs: &Path, bucket: &str) -> io::Result<Environment> {
    Environment::real(dfs, |randomness| open_bucket(bucket, randomness))
}

/// Parses a location in S3; `None` where it is a folder.
fn parse_location(location: &str) -> Result<Option<S3Options>, String> {
    let Some(rest) = location.strip_prefix(S3) else { return Ok(None) };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
    if bucket.is_empty() {
        return Err("no bucket is named".to_owned());
    }
    let mut options = S3Options {
        bucket: bucket.to_owned(),
        prefix: prefix.trim_matches('/').to_owned(),
        ..S3Options::default()
    };
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let place = match name {
            "endpoint" => &mut options.endpoint,
            "region" => &mut options.region,
            "key_file" => &mut options.key_file,
            _ => return Err(format!("there is no option {name:?}")),
        };
        if value.is_empty() || place.replace(value.to_owned()).is_some() {
            return Err(format!("{name} wants one value"));
        }
    }
    let schemes = ["http://", "https://"];
    match &options.endpoint {
        Some(endpoint) if !schemes.iter().any(|scheme| endpoint.starts_with(scheme)) => {
            Err("endpoint wants http:// or https://".to_owned())
        }
        _ => Ok(Some(options)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_s3_has_a_bucket_a_prefix_and_options() {
        let plain = S3Options { bucket: "b".to_owned(), ..S3Options::default() };
        for location in ["s3://b", "s3://b/", "s3://b?"] {
            assert_eq!(parse_location(location).unwrap(), Some(plain.clone()), "{location}");
        }
        let all = "s3://b/cell/one/?endpoint=http://h:1&region=eu-1&key_file=/etc/key";
        let expected = S3Options {
            bucket: "b".to_owned(),
            prefix: "cell/one".to_owned(),
            endpoint: Some("http://h:1".to_owned()),
            region: Some("eu-1".to_owned()),
            key_file: Some("/etc/key".to_owned()),
        };
        assert_eq!(parse_location(all).unwrap(), Some(expected));
        for path in ["bucket", "/a/b", "file:///a/b", "./s3:"] {
            assert_eq!(parse_location(path).unwrap(), None, "{path}");
        }
    }

    #[test]
    fn bad_places_are_refused_with_the_reason() {
        for (location, reason) in [
            ("s3://", "no bucket"),
            ("s3:///prefix", "no bucket"),
            ("s3://b?colour=red", "no option \"colour\""),
            ("s3://b?region=", "one value"),
            ("s3://b?region=a&region=b", "one value"),
            ("s3://b?endpoint=h:1", "http://"),
        ] {
            let error = parse_location(location).unwrap_err();
            assert!(error.contains(reason), "{location}: {error}");
        }
    }
}
