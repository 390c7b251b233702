//! The schemas against the crate that they guard: bodies made from a schema must be exactly what
//! that crate reads and writes, in every version.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::requests::REQUESTS;
use super::schema::{Field, Kind, Request};
use super::{check, walk_body};
use crate::codec::WriteExt;
use crate::protocol::versions::ADVERTISED;

/// A body as the other implementation read and wrote it.
struct Roundtrip {
    left: usize,
    encoded: Bytes,
}

fn roundtrip<T: Decodable + Encodable>(mut body: Bytes, version: i16) -> Option<Roundtrip> {
    let message = T::decode(&mut body, version).ok()?;
    let mut out = BytesMut::new();
    message.encode(&mut out, version).unwrap();
    Some(Roundtrip { left: body.len(), encoded: out.freeze() })
}

macro_rules! dispatch {
    ($api:expr, $body:expr, $version:expr, $($name:ident $type:ident;)*) => {
        match $api {
            $(ApiKey::$name => roundtrip::<$type>($body, $version),)*
            other => panic!("{other:?} is not in the list of this test"),
        }
    };
}

fn decode(api: ApiKey, version: i16, body: Bytes) -> Option<Roundtrip> {
    dispatch! { api, body, version,
        ListOffsets ListOffsetsRequest;
        Metadata MetadataRequest;
        OffsetCommit OffsetCommitRequest;
        OffsetFetch OffsetFetchRequest;
        FindCoordinator FindCoordinatorRequest;
        JoinGroup JoinGroupRequest;
        Heartbeat HeartbeatRequest;
        LeaveGroup LeaveGroupRequest;
        SyncGroup SyncGroupRequest;
        DescribeGroups DescribeGroupsRequest;
        ListGroups ListGroupsRequest;
        SaslHandshake SaslHandshakeRequest;
        ApiVersions ApiVersionsRequest;
        CreateTopics CreateTopicsRequest;
        DeleteTopics DeleteTopicsRequest;
        DeleteRecords DeleteRecordsRequest;
        InitProducerId InitProducerIdRequest;
        OffsetForLeaderEpoch OffsetForLeaderEpochRequest;
        DescribeAcls DescribeAclsRequest;
        CreateAcls CreateAclsRequest;
        DeleteAcls DeleteAclsRequest;
        DescribeConfigs DescribeConfigsRequest;
        AlterConfigs AlterConfigsRequest;
        DescribeLogDirs DescribeLogDirsRequest;
        SaslAuthenticate SaslAuthenticateRequest;
        CreatePartitions CreatePartitionsRequest;
        DeleteGroups DeleteGroupsRequest;
        IncrementalAlterConfigs IncrementalAlterConfigsRequest;
        ElectLeaders ElectLeadersRequest;
        AlterPartitionReassignments AlterPartitionReassignmentsRequest;
        ListPartitionReassignments ListPartitionReassignmentsRequest;
        OffsetDelete OffsetDeleteRequest;
        DescribeClientQuotas DescribeClientQuotasRequest;
        AlterClientQuotas AlterClientQuotasRequest;
        DescribeUserScramCredentials DescribeUserScramCredentialsRequest;
        AlterUserScramCredentials AlterUserScramCredentialsRequest;
        DescribeCluster DescribeClusterRequest;
        DescribeTopicPartitions DescribeTopicPartitionsRequest;
    }
}

/// A length or count in a body.
#[derive(Debug, Clone, Copy)]
struct Length {
    at: usize,
    /// Bytes that it takes: 1 (compact), 2 or 4.
    width: usize,
}

/// Makes populated bodies from a schema and remembers where their lengths stand.
struct Generator {
    random: SmallRng,
    out: BytesMut,
    lengths: Vec<Length>,
    version: i16,
    flexible: bool,
}

impl Generator {
    fn body(request: &Request, version: i16, seed: u64) -> (Bytes, Vec<Length>) {
        let mut generator = Self {
            random: SmallRng::seed_from_u64(seed),
            out: BytesMut::new(),
            lengths: Vec::new(),
            version,
            flexible: version >= request.flexible_from,
        };
        generator.structure(request.fields);
        (generator.out.freeze(), generator.lengths)
    }

    fn length(&mut self, length: usize, width: usize) {
        let width = if self.flexible { 1 } else { width };
        self.lengths.push(Length { at: self.out.len(), width });
        match width {
            1 => self.out.put_u8(u8::try_from(length).unwrap() + 1),
            2 => self.out.put_i16(i16::try_from(length).unwrap()),
            _ => self.out.put_i32(i32::try_from(length).unwrap()),
        }
    }

    fn structure(&mut self, fields: &[Field]) {
        let version = self.version;
        for field in fields.iter().filter(|field| field.exists_in(version)) {
            self.value(field.kind);
        }
        if self.flexible {
            let count = self.random.random_range(0..3);
            self.lengths.push(Length { at: self.out.len(), width: 1 });
            self.out.put_u8(count);
            for tag in 0..count {
                self.out.put_uvarint(u64::from(tag) + 70);
                self.lengths.push(Length { at: self.out.len(), width: 1 });
                self.out.put_u8(3);
                self.out.put_slice(b"tag");
            }
        }
    }

    fn value(&mut self, kind: Kind) {
        match kind {
            // 0 and 1 are the only bytes that a Bool is written back as.
            Kind::Fixed(1) => {
                let value = self.random.random_range(0..2);
                self.out.put_u8(value);
            }
            Kind::Fixed(bytes) => {
                for _ in 0..bytes {
                    let value = self.random.random();
                    self.out.put_u8(value);
                }
            }
            Kind::String | Kind::Bytes => {
                let length = self.random.random_range(0..20);
                self.length(length, if matches!(kind, Kind::String) { 2 } else { 4 });
                for _ in 0..length {
                    let value = self.random.random_range(b'a'..=b'z');
                    self.out.put_u8(value);
                }
            }
            Kind::Array(element) => {
                let count = self.random.random_range(0..4);
                self.length(count, 4);
                for _ in 0..count {
                    self.value(*element);
                }
            }
            Kind::Structure(fields) => self.structure(fields),
            Kind::Nullable(fields) => {
                let present = self.random.random::<bool>();
                self.out.put_i8(if present { 1 } else { -1 });
                if present {
                    self.structure(fields);
                }
            }
        }
    }
}

/// Each request in each version, with some bodies.
fn for_each_body(mut test: impl FnMut(&'static Request, i16, Bytes, &[Length])) {
    for request in REQUESTS {
        let (_, oldest, newest) =
            *ADVERTISED.iter().find(|range| range.0 == request.api).expect("an advertised API");
        for version in oldest..=newest {
            for seed in 0..20 {
                let (body, lengths) = Generator::body(request, version, seed);
                test(request, version, body, &lengths);
            }
        }
    }
}

#[test]
fn every_advertised_api_has_a_schema_or_a_decoder_of_its_own() {
    for &(api, _, _) in ADVERTISED {
        let own = matches!(api, ApiKey::Produce | ApiKey::Fetch);
        assert_eq!(super::requests::schema(api).is_none(), own, "{api:?}");
    }
    assert!(check(ApiKey::Vote, 0, &Bytes::new()).is_err());
}

#[test]
fn flexible_versions_begin_where_the_header_says() {
    for request in REQUESTS {
        for version in 0..=request.api.valid_versions().max {
            let flexible = request.api.request_header_version(version) >= 2;
            assert_eq!(version >= request.flexible_from, flexible, "{:?} {version}", request.api);
        }
    }
}

#[test]
fn bodies_are_read_and_written_alike_by_the_guarded_decoder() {
    for_each_body(|request, version, body, _| {
        let context = format!("{:?} {version} {body:?}", request.api);
        let theirs = decode(request.api, version, body.clone()).expect(&context);
        assert_eq!((theirs.left, &theirs.encoded), (0, &body), "{context}");
        assert_eq!(
            walk_body(request, version, theirs.encoded).expect(&context).len(),
            0,
            "{context}"
        );
    });
}

#[test]
fn truncated_bodies_are_refused() {
    for_each_body(|request, version, body, _| {
        for length in 0..body.len() {
            let cut = body.slice(..length);
            assert!(check(request.api, version, &cut).is_err(), "{:?} {version}", request.api);
        }
    });
}

#[test]
fn impossible_lengths_are_refused_wherever_they_stand() {
    for_each_body(|request, version, body, lengths| {
        for length in lengths {
            let lies: &[&[u8]] = match length.width {
                1 => {
                    &[b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\x01"]
                }
                2 => &[&[0x7f, 0xff], &[0xff, 0xfe], &[0x80, 0]],
                _ => &[&[0x7f, 0xff, 0xff, 0xff], &[0xff, 0xff, 0xff, 0xfe], &[0x80, 0, 0, 0]],
            };
            for lie in lies {
                let (before, after) = (&body[..length.at], &body[length.at + length.width..]);
                let lying = Bytes::from([before, lie, after].concat());
                let result = check(request.api, version, &lying);
                assert!(result.is_err(), "{:?} {version} {length:?}", request.api);
            }
        }
    });
}

#[test]
fn null_is_passed_on_wherever_a_length_stands() {
    for request in REQUESTS {
        for kind in request.fields.iter().map(|field| field.kind) {
            let width = match kind {
                Kind::String => 2,
                Kind::Bytes | Kind::Array(_) => 4,
                _ => continue,
            };
            let field: &'static [Field] =
                Box::leak(Box::new([Field { kind, oldest: 0, newest: 0 }]));
            let alone = Request { api: request.api, flexible_from: i16::MAX, fields: field };
            walk_body(&alone, 0, vec![0xff; width].into()).unwrap();
            let alone = Request { flexible_from: 0, ..alone };
            walk_body(&alone, 0, vec![0; 2].into()).unwrap();
        }
    }
}

/// Whatever the guard lets through, the guarded decoder reads or refuses, and it reads no further.
#[test]
fn the_guard_and_the_decoder_agree_on_damaged_bodies() {
    let mut random = SmallRng::seed_from_u64(1);
    let mut accepted = 0;
    for_each_body(|request, version, body, _| {
        for _ in 0..20 {
            let mut bytes = body.to_vec();
            if bytes.is_empty() {
                continue;
            }
            let at = random.random_range(0..bytes.len());
            bytes[at] = *[0, 1, 2, 0x7f, 0x80, 0xff, random.random()]
                .get(random.random_range(0..7))
                .unwrap();
            let bytes = Bytes::from(bytes);
            let Ok(rest) = walk_body(request, version, bytes.clone()) else { continue };
            if let Some(theirs) = decode(request.api, version, bytes) {
                accepted += 1;
                assert_eq!(theirs.left, rest.len(), "{:?} {version}", request.api);
            }
        }
    });
    assert!(accepted > 1000);
}
