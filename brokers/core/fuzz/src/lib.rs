//! What the fuzz targets share.

use bytes::Bytes;
use freshet_wire::protocol::versions::{ADVERTISED, is_served};
use freshet_wire::records::{ProduceLimits, TimestampType};
use freshet_world::env::Randomness;
use kafka_protocol::messages::ApiKey;

/// How much one batch may decompress to, in bytes: more costs a target its speed.
pub const DECOMPRESSED_BYTES_MAX: usize = 1 << 20;

/// The limits of a topic with Kafka's defaults, at a fixed time.
#[must_use]
pub fn limits(compacted: bool) -> ProduceLimits {
    ProduceLimits {
        max_message_bytes: DECOMPRESSED_BYTES_MAX,
        now_ms: 1_700_000_000_000,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: 3_600_000,
        message_timestamp_type: TimestampType::CreateTime,
        compacted,
        stored_codec: None,
    }
}

/// A served version that the first two bytes choose, and the rest; of an API that `select` wants.
/// None where there are too few bytes.
#[must_use]
pub fn choose_version(
    data: &[u8],
    select: impl Fn(ApiKey) -> bool,
) -> Option<(ApiKey, i16, Bytes)> {
    let [api, version, body @ ..] = data else { return None };
    let served: Vec<(ApiKey, i16)> = ADVERTISED
        .iter()
        .filter(|(api, _, _)| select(*api))
        .flat_map(|&(api, oldest, newest)| (oldest..=newest).map(move |version| (api, version)))
        .filter(|&(api, version)| is_served(api, version))
        .collect();
    let index = usize::from(u16::from_be_bytes([*api, *version])) % served.len();
    let (api, version) = served[index];
    Some((api, version, Bytes::copy_from_slice(body)))
}

/// The place of a version among those that [`choose_version`] chooses from, as its two bytes.
#[must_use]
pub fn version_bytes(
    api: ApiKey,
    version: i16,
    select: impl Fn(ApiKey) -> bool,
) -> Option<[u8; 2]> {
    let mut served = ADVERTISED
        .iter()
        .filter(|(api, _, _)| select(*api))
        .flat_map(|&(api, oldest, newest)| (oldest..=newest).map(move |version| (api, version)))
        .filter(|&(api, version)| is_served(api, version));
    let index = served.position(|one| one == (api, version))?;
    Some(u16::try_from(index).ok()?.to_be_bytes())
}

/// Every API but Produce and Fetch, which have decoders of their own.
#[must_use]
pub fn is_control(api: ApiKey) -> bool {
    !matches!(api, ApiKey::Produce | ApiKey::Fetch)
}

/// The same bytes each time, so that a finding is found again.
pub struct NoRandomness;

impl Randomness for NoRandomness {
    fn fill(&self, buffer: &mut [u8]) {
        buffer.fill(7);
    }
}
