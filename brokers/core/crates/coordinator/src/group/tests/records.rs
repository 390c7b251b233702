//! The formats of `__consumer_offsets`: golden bytes, round trips, damage.

use bytes::{BufMut, Bytes, BytesMut};
use proptest::prelude::*;

use crate::group::CommittedOffset;
use crate::group::records::{
    GroupMetadata, Key, MemberMetadata, RecordError, group_record, offset_record, read_group,
    read_key, read_offset,
};

fn offset() -> CommittedOffset {
    CommittedOffset {
        offset: 0x0102_0304_0506_0708,
        leader_epoch: 9,
        metadata: "m\u{fc}".to_owned(),
        commit_timestamp_ms: 0x0a0b,
        expire_timestamp_ms: None,
    }
}

fn group() -> GroupMetadata {
    GroupMetadata {
        protocol_type: "consumer".to_owned(),
        generation: 3,
        protocol: Some("range".to_owned()),
        leader: Some("a".to_owned()),
        state_timestamp_ms: Some(0x0c0d),
        members: vec![MemberMetadata {
            member_id: "a".to_owned(),
            instance_id: Some("i".to_owned()),
            client_id: "c".to_owned(),
            client_host: "/h".to_owned(),
            rebalance_timeout_ms: Some(60_000),
            session_timeout_ms: 10_000,
            subscription: Bytes::from_static(b"sub"),
            assignment: Bytes::from_static(b"as"),
        }],
    }
}

#[test]
fn an_offset_is_written_as_kafka_writes_it() {
    let record = offset_record("grp", "topic", 4, Some(&offset())).unwrap();
    assert_eq!(&record.key[..], b"\x00\x01\x00\x03grp\x00\x05topic\x00\x00\x00\x04");
    let value = b"\x00\x03\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x00\x09\x00\x03m\xc3\xbc\
        \x00\x00\x00\x00\x00\x00\x0a\x0b";
    assert_eq!(record.value.as_deref(), Some(&value[..]));
}

#[test]
fn an_offset_with_an_expiry_of_its_own_is_written_in_version_1() {
    let expiring = CommittedOffset { expire_timestamp_ms: Some(0x0e0f), ..offset() };
    let record = offset_record("g", "t", 0, Some(&expiring)).unwrap();
    let value = b"\x00\x01\x01\x02\x03\x04\x05\x06\x07\x08\x00\x03m\xc3\xbc\
        \x00\x00\x00\x00\x00\x00\x0a\x0b\x00\x00\x00\x00\x00\x00\x0e\x0f";
    assert_eq!(record.value.as_deref(), Some(&value[..]));
    let read = read_offset(record.value.unwrap()).unwrap();
    assert_eq!(read, CommittedOffset { leader_epoch: -1, ..expiring });
}

#[test]
fn a_group_is_written_as_kafka_writes_it() {
    let record = group_record("grp", Some(&group())).unwrap();
    assert_eq!(&record.key[..], b"\x00\x02\x00\x03grp");
    let value = b"\x00\x03\x00\x08consumer\x00\x00\x00\x03\x00\x05range\x00\x01a\
        \x00\x00\x00\x00\x00\x00\x0c\x0d\x00\x00\x00\x01\
        \x00\x01a\x00\x01i\x00\x01c\x00\x02/h\x00\x00\xea\x60\x00\x00\x27\x10\
        \x00\x00\x00\x03sub\x00\x00\x00\x02as";
    assert_eq!(record.value.as_deref(), Some(&value[..]));
}

#[test]
fn an_empty_group_has_nulls() {
    let empty = GroupMetadata { protocol_type: "consumer".to_owned(), ..GroupMetadata::default() };
    let record = group_record("g", Some(&empty)).unwrap();
    let value = b"\x00\x03\x00\x08consumer\x00\x00\x00\x00\xff\xff\xff\xff\
        \xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00";
    assert_eq!(record.value.as_deref(), Some(&value[..]));
    assert_eq!(read_group(record.value.unwrap()), Ok(empty));
}

#[test]
fn tombstones_have_no_value() {
    assert_eq!(offset_record("g", "t", 0, None).unwrap().value, None);
    assert_eq!(group_record("g", None).unwrap().value, None);
}

#[test]
fn old_versions_of_an_offset_are_read() {
    let version_0 = b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x00\x01m\
        \x00\x00\x00\x00\x00\x00\x00\x08";
    let read = read_offset(Bytes::from_static(version_0)).unwrap();
    assert_eq!((read.offset, read.leader_epoch, read.commit_timestamp_ms), (7, -1, 8));
    let mut version_2 = version_0.to_vec();
    version_2[1] = 2;
    assert_eq!(read_offset(version_2.into()), Ok(read));
    let version_1 = b"\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\
        \x00\x00\x00\x00\x00\x00\x00\x08\xff\xff\xff\xff\xff\xff\xff\xff";
    let read = read_offset(Bytes::from_static(version_1)).unwrap();
    assert_eq!(read.expire_timestamp_ms, None);
}

#[test]
fn the_flexible_version_of_an_offset_is_read_with_tags_it_does_not_know() {
    let version_4 = b"\x00\x04\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x02\x02m\
        \x00\x00\x00\x00\x00\x00\x00\x08\x01\x00\x03abc";
    let read = read_offset(Bytes::from_static(version_4)).unwrap();
    assert_eq!((read.offset, read.leader_epoch, read.metadata.as_str()), (7, 2, "m"));
}

#[test]
fn old_versions_of_a_group_are_read() {
    let version_0 = b"\x00\x00\x00\x01x\x00\x00\x00\x03\x00\x01p\x00\x01a\x00\x00\x00\x01\
        \x00\x01a\x00\x01c\x00\x01h\x00\x00\x27\x10\x00\x00\x00\x01s\x00\x00\x00\x00";
    let read = read_group(Bytes::from_static(version_0)).unwrap();
    assert_eq!((read.generation, read.state_timestamp_ms), (3, None));
    assert_eq!(read.members[0].rebalance_timeout_ms, None);
    assert_eq!(read.members[0].session_timeout_ms, 10_000);
    let version_2 = b"\x00\x02\x00\x01x\x00\x00\x00\x03\xff\xff\xff\xff\
        \x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x01\
        \x00\x01a\x00\x01c\x00\x01h\x00\x00\x00\x01\x00\x00\x27\x10\
        \x00\x00\x00\x01s\x00\x00\x00\x00";
    let read = read_group(Bytes::from_static(version_2)).unwrap();
    assert_eq!((read.state_timestamp_ms, read.members[0].rebalance_timeout_ms), (Some(5), Some(1)));
}

#[test]
fn the_flexible_version_of_a_group_is_read() {
    let version_4 = b"\x00\x04\x02x\x00\x00\x00\x03\x02p\x00\x00\x00\x00\x00\x00\x00\x00\x05\x02\
        \x02a\x00\x02c\x02h\x00\x00\x00\x01\x00\x00\x27\x10\x02s\x01\x00\x00";
    let read = read_group(Bytes::from_static(version_4)).unwrap();
    assert_eq!((read.protocol.as_deref(), read.leader), (Some("p"), None));
    let member = &read.members[0];
    assert_eq!((member.member_id.as_str(), &member.instance_id), ("a", &None));
    assert_eq!((&member.subscription[..], &member.assignment[..]), (&b"s"[..], &b""[..]));
}

#[test]
fn keys_are_read_and_unknown_ones_named() {
    let key = |bytes: &'static [u8]| read_key(Bytes::from_static(bytes));
    let expected = Key::Offset { group: "g".to_owned(), topic: "t".to_owned(), partition: 2 };
    assert_eq!(key(b"\x00\x00\x00\x01g\x00\x01t\x00\x00\x00\x02"), Ok(expected.clone()));
    assert_eq!(key(b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x02"), Ok(expected));
    assert_eq!(key(b"\x00\x02\x00\x01g"), Ok(Key::Group { group: "g".to_owned() }));
    assert_eq!(key(b"\x00\x03\xff\xff"), Ok(Key::Unknown { version: 3 }));
    assert_eq!(key(b"\xff\xff"), Ok(Key::Unknown { version: -1 }));
    assert!(key(b"\x00").is_err());
}

#[test]
fn unknown_versions_of_values_are_named() {
    for version in [-1_i16, 5] {
        let mut value = BytesMut::new();
        value.put_i16(version);
        value.put_bytes(0, 64);
        let value = value.freeze();
        assert_eq!(read_offset(value.clone()), Err(RecordError::Version(version)));
        assert_eq!(read_group(value), Err(RecordError::Version(version)));
    }
}

#[test]
fn no_part_of_a_record_is_taken_for_the_whole() {
    let value = group_record("g", Some(&group())).unwrap().value.unwrap();
    for length in 0..value.len() {
        assert!(read_group(value.slice(..length)).is_err(), "{length} bytes");
    }
    let record = offset_record("g", "t", 0, Some(&offset())).unwrap();
    let value = record.value.unwrap();
    for length in 0..value.len() {
        assert!(read_offset(value.slice(..length)).is_err(), "{length} bytes");
    }
    for length in 0..record.key.len() {
        assert!(read_key(record.key.slice(..length)).is_err(), "{length} bytes");
    }
}

#[test]
fn a_field_that_is_too_long_cannot_be_written() {
    let long = "x".repeat(40_000);
    assert_eq!(group_record(&long, None), Err(RecordError::TooLong(40_000)));
    let value = CommittedOffset { metadata: long, ..offset() };
    assert_eq!(offset_record("g", "t", 0, Some(&value)), Err(RecordError::TooLong(40_000)));
}

proptest! {
    #[test]
    fn offsets_round_trip(
        group in ".{0,40}",
        topic in "[a-z]{1,40}",
        partition: i32,
        offset: i64,
        leader_epoch: i32,
        metadata in ".{0,200}",
        commit_timestamp_ms: i64,
    ) {
        let value = CommittedOffset {
            offset,
            leader_epoch,
            metadata,
            commit_timestamp_ms,
            expire_timestamp_ms: None,
        };
        let record = offset_record(&group, &topic, partition, Some(&value)).unwrap();
        prop_assert_eq!(read_key(record.key), Ok(Key::Offset { group, topic, partition }));
        prop_assert_eq!(read_offset(record.value.unwrap()), Ok(value));
    }

    #[test]
    fn groups_round_trip(
        generation: i32,
        timestamp in 0_i64..,
        names in proptest::collection::vec(("[a-z]{1,9}", "[a-z]{0,9}", any::<Vec<u8>>()), 0..6),
    ) {
        let members = names.into_iter().map(|(id, instance, bytes)| MemberMetadata {
            member_id: id,
            instance_id: Some(instance).filter(|text| !text.is_empty()),
            client_id: "client".to_owned(),
            client_host: "/host".to_owned(),
            rebalance_timeout_ms: Some(generation & 0xffff),
            session_timeout_ms: generation,
            subscription: bytes.clone().into(),
            assignment: bytes.into(),
        });
        let value = GroupMetadata {
            members: members.collect(),
            generation,
            state_timestamp_ms: Some(timestamp),
            ..group()
        };
        let record = group_record("g", Some(&value)).unwrap();
        prop_assert_eq!(read_group(record.value.unwrap()), Ok(value));
    }

    #[test]
    fn no_bytes_make_a_reader_panic(mut bytes: Vec<u8>, version in 0_u8..5) {
        let _ = read_key(bytes.clone().into());
        if bytes.len() > 1 {
            bytes[0] = 0;
            bytes[1] = version;
        }
        let _ = read_key(bytes.clone().into());
        let _ = read_offset(bytes.clone().into());
        let _ = read_group(bytes.into());
    }
}
