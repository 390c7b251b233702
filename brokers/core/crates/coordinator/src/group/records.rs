//! The record formats of `__consumer_offsets`, as Apache Kafka writes them: a big-endian version,
//! then the fields of `OffsetCommitKey`/`OffsetCommitValue` (key versions 0 and 1) and of
//! `GroupMetadataKey`/`GroupMetadataValue` (key version 2), from the schemas of the same names in
//! Kafka's `group-coordinator/src/main/resources/common/message`.
//!
//! All value versions that Kafka 4.1 has are read. Versions 3 are written, and version 1 of an
//! offset that carries its own expiry, which version 3 cannot. Keys of other versions belong to
//! newer kinds of groups: [`Key::Unknown`], to be skipped.

use bytes::{BufMut, Bytes, BytesMut};

use super::offsets::CommittedOffset;
use crate::CoordinatorRecord;
use freshet_wire::codec::{Reader, WireError};

/// Versions of `OffsetCommitValue` and `GroupMetadataValue` that are read.
const VALUE_VERSIONS: std::ops::RangeInclusive<i16> = 0..=4;
/// The first version of either that has compact lengths and tagged fields.
const FLEXIBLE_VERSION: i16 = 4;
const OFFSET_KEY_VERSION: i16 = 1;
const GROUP_KEY_VERSION: i16 = 2;
const VALUE_VERSION: i16 = 3;
const EXPIRING_OFFSET_VERSION: i16 = 1;
/// The fewest bytes that a member has in any version, by which a count of members is checked before
/// memory is allocated for them.
const MEMBER_BYTES_MIN: usize = 12;

/// Why a record could not be read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The bytes do not have the form of the record.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A version of a value that this broker does not know.
    #[error("unknown version {0} of a value")]
    Version(i16),
    /// A field is longer than its length field can express.
    #[error("a field of {0} bytes is too long")]
    TooLong(usize),
}

/// What a record is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// A committed offset.
    Offset {
        /// The group.
        group: String,
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
    },
    /// A group's last generation.
    Group {
        /// The group.
        group: String,
    },
    /// A kind of record that only newer versions of Kafka have.
    Unknown {
        /// The version of the key.
        version: i16,
    },
}

/// `GroupMetadataValue`: a group's last generation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupMetadata {
    /// Empty for a group without one.
    pub protocol_type: String,
    /// The generation.
    pub generation: i32,
    /// The selected protocol.
    pub protocol: Option<String>,
    /// Member id of the leader.
    pub leader: Option<String>,
    /// When the group came to its state, in milliseconds since 1970. From version 2.
    pub state_timestamp_ms: Option<i64>,
    /// Nobody in an empty group.
    pub members: Vec<MemberMetadata>,
}

/// A member in [`GroupMetadata`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberMetadata {
    /// The member.
    pub member_id: String,
    /// Set for a static member. From version 3.
    pub instance_id: Option<String>,
    /// Its client id.
    pub client_id: String,
    /// Its address.
    pub client_host: String,
    /// Its rebalance timeout. From version 1.
    pub rebalance_timeout_ms: Option<i32>,
    /// Its session timeout.
    pub session_timeout_ms: i32,
    /// Its metadata for the selected protocol.
    pub subscription: Bytes,
    /// Its share of the work.
    pub assignment: Bytes,
}

/// Reads a key.
///
/// # Errors
/// [`RecordError::Wire`] where the bytes do not have the form of a known version.
pub fn read_key(bytes: Bytes) -> Result<Key, RecordError> {
    let mut fields = Fields { reader: Reader::new(bytes), flexible: false };
    match fields.reader.i16_be()? {
        0 | OFFSET_KEY_VERSION => Ok(Key::Offset {
            group: fields.string()?,
            topic: fields.string()?,
            partition: fields.reader.i32_be()?,
        }),
        GROUP_KEY_VERSION => Ok(Key::Group { group: fields.string()? }),
        version => Ok(Key::Unknown { version }),
    }
}

/// Reads `OffsetCommitValue`.
///
/// # Errors
/// Where the bytes do not fit, or [`RecordError::Version`].
pub fn read_offset(bytes: Bytes) -> Result<CommittedOffset, RecordError> {
    let (version, mut fields) = Fields::of_value(bytes)?;
    let offset = fields.reader.i64_be()?;
    let leader_epoch = if version >= 3 { fields.reader.i32_be()? } else { -1 };
    let metadata = fields.string()?;
    let commit_timestamp_ms = fields.reader.i64_be()?;
    let expire_timestamp_ms = if version == 1 { fields.reader.i64_be()? } else { -1 };
    fields.tagged_fields()?;
    Ok(CommittedOffset {
        offset,
        leader_epoch,
        metadata,
        commit_timestamp_ms,
        expire_timestamp_ms: (expire_timestamp_ms != -1).then_some(expire_timestamp_ms),
    })
}

/// Reads `GroupMetadataValue`.
///
/// # Errors
/// Where the bytes do not fit, or [`RecordError::Version`].
pub fn read_group(bytes: Bytes) -> Result<GroupMetadata, RecordError> {
    let (version, mut fields) = Fields::of_value(bytes)?;
    let protocol_type = fields.string()?;
    let generation = fields.reader.i32_be()?;
    let protocol = fields.nullable_string()?;
    let leader = fields.nullable_string()?;
    let timestamp = if version >= 2 { fields.reader.i64_be()? } else { -1 };
    let mut members = Vec::new();
    for _ in 0..fields.count(MEMBER_BYTES_MIN)? {
        members.push(fields.member(version)?);
    }
    fields.tagged_fields()?;
    let state_timestamp_ms = (timestamp != -1).then_some(timestamp);
    Ok(GroupMetadata { protocol_type, generation, protocol, leader, state_timestamp_ms, members })
}

/// The record of a committed offset, or its tombstone.
///
/// # Errors
/// [`RecordError::TooLong`].
pub fn offset_record(
    group: &str,
    topic: &str,
    partition: i32,
    value: Option<&CommittedOffset>,
) -> Result<CoordinatorRecord, RecordError> {
    let mut key = BytesMut::with_capacity(10 + group.len() + topic.len());
    key.put_i16(OFFSET_KEY_VERSION);
    put_string(&mut key, group)?;
    put_string(&mut key, topic)?;
    key.put_i32(partition);
    let value = value.map(offset_value).transpose()?;
    Ok(CoordinatorRecord { key: key.freeze(), value })
}

fn offset_value(value: &CommittedOffset) -> Result<Bytes, RecordError> {
    let mut out = BytesMut::with_capacity(24 + value.metadata.len());
    if let Some(expire_timestamp_ms) = value.expire_timestamp_ms {
        out.put_i16(EXPIRING_OFFSET_VERSION);
        out.put_i64(value.offset);
        put_string(&mut out, &value.metadata)?;
        out.put_i64(value.commit_timestamp_ms);
        out.put_i64(expire_timestamp_ms);
    } else {
        out.put_i16(VALUE_VERSION);
        out.put_i64(value.offset);
        out.put_i32(value.leader_epoch);
        put_string(&mut out, &value.metadata)?;
        out.put_i64(value.commit_timestamp_ms);
    }
    Ok(out.freeze())
}

/// The record of a group, or its tombstone.
///
/// # Errors
/// [`RecordError::TooLong`].
pub fn group_record(
    group: &str,
    value: Option<&GroupMetadata>,
) -> Result<CoordinatorRecord, RecordError> {
    let mut key = BytesMut::with_capacity(4 + group.len());
    key.put_i16(GROUP_KEY_VERSION);
    put_string(&mut key, group)?;
    let value = value.map(group_value).transpose()?;
    Ok(CoordinatorRecord { key: key.freeze(), value })
}

fn group_value(value: &GroupMetadata) -> Result<Bytes, RecordError> {
    let mut out = BytesMut::new();
    out.put_i16(VALUE_VERSION);
    put_string(&mut out, &value.protocol_type)?;
    out.put_i32(value.generation);
    put_nullable_string(&mut out, value.protocol.as_deref())?;
    put_nullable_string(&mut out, value.leader.as_deref())?;
    out.put_i64(value.state_timestamp_ms.unwrap_or(-1));
    put_length(&mut out, value.members.len())?;
    for member in &value.members {
        put_string(&mut out, &member.member_id)?;
        put_nullable_string(&mut out, member.instance_id.as_deref())?;
        put_string(&mut out, &member.client_id)?;
        put_string(&mut out, &member.client_host)?;
        out.put_i32(member.rebalance_timeout_ms.unwrap_or(-1));
        out.put_i32(member.session_timeout_ms);
        put_length(&mut out, member.subscription.len())?;
        out.put_slice(&member.subscription);
        put_length(&mut out, member.assignment.len())?;
        out.put_slice(&member.assignment);
    }
    Ok(out.freeze())
}

fn put_string(out: &mut BytesMut, text: &str) -> Result<(), RecordError> {
    out.put_i16(i16::try_from(text.len()).map_err(|_| RecordError::TooLong(text.len()))?);
    out.put_slice(text.as_bytes());
    Ok(())
}

fn put_nullable_string(out: &mut BytesMut, text: Option<&str>) -> Result<(), RecordError> {
    if let Some(text) = text {
        return put_string(out, text);
    }
    out.put_i16(-1);
    Ok(())
}

fn put_length(out: &mut BytesMut, length: usize) -> Result<(), RecordError> {
    out.put_i32(i32::try_from(length).map_err(|_| RecordError::TooLong(length))?);
    Ok(())
}

/// Reads fields in either form of Kafka's protocol, the older one or the flexible one.
struct Fields {
    reader: Reader,
    /// Lengths are varints of one more than the length, and tagged fields follow.
    flexible: bool,
}

impl Fields {
    fn of_value(bytes: Bytes) -> Result<(i16, Self), RecordError> {
        let mut reader = Reader::new(bytes);
        let version = reader.i16_be()?;
        if !VALUE_VERSIONS.contains(&version) {
            return Err(RecordError::Version(version));
        }
        Ok((version, Self { reader, flexible: version >= FLEXIBLE_VERSION }))
    }

    /// Reads a length, which has `fixed` bytes or is a varint. `None` stands for null.
    fn length(
        &mut self,
        fixed: fn(&mut Reader) -> Result<i64, WireError>,
    ) -> Result<Option<usize>, WireError> {
        let length = if self.flexible {
            i64::try_from(self.reader.uvarint()?).unwrap_or(i64::MAX) - 1
        } else {
            fixed(&mut self.reader)?
        };
        if length == -1 {
            return Ok(None);
        }
        self.reader.count(length, 1).map(Some)
    }

    fn nullable_string(&mut self) -> Result<Option<String>, WireError> {
        let position = self.reader.position();
        let Some(length) = self.length(|reader| reader.i16_be().map(i64::from))? else {
            return Ok(None);
        };
        let text = String::from_utf8(self.reader.take(length)?.into());
        text.map(Some).map_err(|_| WireError::Utf8 { position })
    }

    fn string(&mut self) -> Result<String, WireError> {
        let position = self.reader.position();
        self.nullable_string()?.ok_or(WireError::Length { position, length: -1 })
    }

    /// Reads bytes into an allocation of their own, so that they do not keep the batch in memory.
    fn bytes(&mut self) -> Result<Bytes, WireError> {
        let position = self.reader.position();
        let length = self.length(|reader| reader.i32_be().map(i64::from))?;
        let length = length.ok_or(WireError::Length { position, length: -1 })?;
        Ok(Bytes::copy_from_slice(&self.reader.take(length)?))
    }

    fn count(&mut self, bytes_each: usize) -> Result<usize, WireError> {
        let position = self.reader.position();
        let length = self.length(|reader| reader.i32_be().map(i64::from))?;
        let count = length.ok_or(WireError::Length { position, length: -1 })?;
        self.reader.count(i64::try_from(count).unwrap_or(i64::MAX), bytes_each)
    }

    fn member(&mut self, version: i16) -> Result<MemberMetadata, WireError> {
        let member = MemberMetadata {
            member_id: self.string()?,
            instance_id: if version >= 3 { self.nullable_string()? } else { None },
            client_id: self.string()?,
            client_host: self.string()?,
            rebalance_timeout_ms: match version {
                0 => None,
                _ => Some(self.reader.i32_be()?).filter(|timeout| *timeout != -1),
            },
            session_timeout_ms: self.reader.i32_be()?,
            subscription: self.bytes()?,
            assignment: self.bytes()?,
        };
        self.tagged_fields()?;
        Ok(member)
    }

    /// Skips tagged fields, which newer brokers may add.
    fn tagged_fields(&mut self) -> Result<(), WireError> {
        if !self.flexible {
            return Ok(());
        }
        for _ in 0..self.reader.uvarint()? {
            self.reader.uvarint()?;
            let size = i64::try_from(self.reader.uvarint()?).unwrap_or(i64::MAX);
            let size = self.reader.count(size, 1)?;
            self.reader.take(size)?;
        }
        Ok(())
    }
}
