//! The owner token: the right to acknowledge what is in a lane.
//!
//! `OWNER` is one 4 KiB page: magic `FRLO`, version `u16` (1), zero `u16`, incarnation `u64` of who
//! may act, nonce (16 bytes), CRC-32C `u32` over all before it; the rest zeros. Its broker keeps
//! the file open and reads the token again after each sync: it acknowledges because the token is
//! there, never because a mark is absent. Fencing overwrites the token.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use super::{LaneError, LanePaths};
use freshet_wire::codec::crc32c;
use freshet_wire::ids::Incarnation;
use freshet_world::env::{Disk, DiskError, DiskResult, File, Randomness};

const TOKEN_BYTES: usize = 4096;
const MAGIC: &[u8; 4] = b"FRLO";
const VERSION: u16 = 1;

fn encode_token(holder: Incarnation, nonce: [u8; 16]) -> Bytes {
    let mut out = BytesMut::with_capacity(TOKEN_BYTES);
    out.put_slice(MAGIC);
    out.put_u16_le(VERSION);
    out.put_u16_le(0);
    out.put_u64_le(holder.0);
    out.put_slice(&nonce);
    let checksum = crc32c(&out);
    out.put_u32_le(checksum);
    out.resize(TOKEN_BYTES, 0);
    out.freeze()
}

fn fresh_nonce(randomness: &dyn Randomness) -> [u8; 16] {
    let mut nonce = [0; 16];
    randomness.fill(&mut nonce);
    nonce
}

/// The token of one's own lane.
pub struct OwnerToken {
    incarnation: Incarnation,
    content: Bytes,
    file: Arc<dyn File>,
}

impl OwnerToken {
    /// Claims a lane that nobody owns yet. The token appears whole or not at all, and the first one
    /// stays, so a successor that fenced the lane before keeps it fenced.
    ///
    /// # Errors
    /// [`LaneError::TokenLost`] where the lane has an owner already; [`LaneError::Disk`].
    pub async fn claim(
        disk: &dyn Disk,
        paths: &LanePaths,
        incarnation: Incarnation,
        randomness: &dyn Randomness,
    ) -> Result<Self, LaneError> {
        let content = encode_token(incarnation, fresh_nonce(randomness));
        match disk.publish(&paths.owner(), vec![content.clone()]).await {
            Err(DiskError::Exists(_)) => return Err(LaneError::TokenLost(incarnation)),
            published => published?,
        }
        let file = disk.open(&paths.owner()).await?;
        Ok(Self { incarnation, content, file })
    }

    /// Reads the token again, past any cache.
    ///
    /// # Errors
    /// [`LaneError::TokenLost`] where it is not exactly ours; [`LaneError::Disk`] where it cannot
    /// be read. After either the incarnation stands down.
    pub async fn check(&self) -> Result<(), LaneError> {
        let content = self.file.read_uncached_at(0, TOKEN_BYTES).await?;
        if content == self.content { Ok(()) } else { Err(LaneError::TokenLost(self.incarnation)) }
    }
}

/// Fences a lane. The new token is durable when this returns, and from then on the lane's broker
/// acknowledges nothing. That also holds for a broker that has made its folder but not yet its
/// token.
///
/// # Errors
/// [`DiskError`]; the lane counts as not fenced then.
pub async fn fence(
    disk: &dyn Disk,
    paths: &LanePaths,
    by: Incarnation,
    randomness: &dyn Randomness,
) -> DiskResult<()> {
    disk.create_folders(&paths.folder()).await?;
    let content = encode_token(by, fresh_nonce(randomness));
    match disk.publish(&paths.owner(), vec![content.clone()]).await {
        Err(DiskError::Exists(_)) => {}
        published => return published,
    }
    let file = disk.open(&paths.owner()).await?;
    file.write_and_sync(0, vec![content]).await?;
    // Another broker may have linked the token and died before its name was durable.
    disk.make_durable(&paths.owner()).await
}
