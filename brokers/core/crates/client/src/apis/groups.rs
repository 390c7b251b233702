//! ListGroups, DescribeGroups and DeleteGroups.

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;

use super::{Request, plain_text, structures, text};
use freshet_wire::codec::WireError;
use freshet_wire::protocol::decode::Decoder;
use freshet_wire::protocol::encode::Encoder;

/// The longest name of a topic.
const TOPIC_CHARS_MAX: usize = 249;
/// The longest text of a member that is kept, in bytes.
const TEXT_BYTES_MAX: usize = 1024;
/// The protocol type of groups whose assignments are those of Kafka's own consumers.
const CONSUMER: &str = "consumer";

/// Asks a broker for the groups that it keeps.
pub(crate) struct ListGroups;

/// A group as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedGroup {
    /// Its id.
    pub group: String,
    /// What its members are: `consumer`, `connect` or any other text; empty without members.
    pub protocol_type: String,
    /// Its state, in Kafka's words.
    pub state: String,
    /// `classic` or `consumer`.
    pub kind: String,
}

impl Request for ListGroups {
    const API: ApiKey = ApiKey::ListGroups;
    const VERSION: i16 = 5;
    const NAME: &'static str = "ListGroups";
    type Answer = (i16, Vec<ListedGroup>);

    fn encode(&self, out: &mut Encoder) {
        out.array([] as [&str; 0], Encoder::string);
        out.array([] as [&str; 0], Encoder::string);
        out.tagged(&[]);
    }

    fn decode(input: &mut Decoder, _: bool) -> Result<Self::Answer, WireError> {
        input.i32()?;
        let code = input.i16()?;
        let groups = structures(input, |input| {
            Ok(ListedGroup {
                group: plain_text(input)?,
                protocol_type: plain_text(input)?,
                state: plain_text(input)?,
                kind: plain_text(input)?,
            })
        })?;
        Ok((code, groups))
    }
}

/// Asks a group's coordinator for its members.
pub(crate) struct DescribeGroup {
    pub group: String,
}

/// A group with its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedGroup {
    /// Its id.
    pub group: String,
    /// Its state, in Kafka's words; `Dead` where there is no such group.
    pub state: String,
    /// What its members are: `consumer`, `connect` or any other text.
    pub protocol_type: String,
    /// The assignor that its members agreed on.
    pub protocol: String,
    /// Its members.
    pub members: Vec<DescribedMember>,
    /// The node id of its coordinator; `None` where it is not known.
    pub coordinator: Option<i32>,
    /// Why its members are not known; `None` where they are.
    pub fault: Option<String>,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedMember {
    /// Its id.
    pub member_id: String,
    /// A static member's own name.
    pub instance_id: Option<String>,
    /// Its client id.
    pub client_id: String,
    /// Its address.
    pub host: String,
    /// Its partitions by topic, sorted. Empty where the assignment cannot be decoded.
    pub assignment: Vec<(String, Vec<i32>)>,
    /// Whether it has more partitions than `assignment`.
    pub is_truncated: bool,
    /// Whether the assignment has a format of its own, or is damaged.
    pub is_undecodable: bool,
}

impl DescribedMember {
    /// How many partitions its assignment holds.
    pub fn partitions(&self) -> usize {
        self.assignment.iter().map(|(_, numbers)| numbers.len()).sum()
    }

    /// Leaves out what is beyond so many partitions.
    pub(crate) fn truncate(&mut self, partitions_max: usize) {
        let mut left = partitions_max;
        for (_, numbers) in &mut self.assignment {
            self.is_truncated |= numbers.len() > left;
            numbers.truncate(left);
            left -= numbers.len();
        }
        self.assignment.retain(|(_, numbers)| !numbers.is_empty());
    }
}

impl Request for DescribeGroup {
    const API: ApiKey = ApiKey::DescribeGroups;
    const VERSION: i16 = 5;
    const NAME: &'static str = "DescribeGroups";
    type Answer = Vec<(i16, DescribedGroup)>;

    fn encode(&self, out: &mut Encoder) {
        out.array([&self.group], |out, group| out.string(group));
        out.i8(0);
        out.tagged(&[]);
    }

    fn decode(input: &mut Decoder, _: bool) -> Result<Self::Answer, WireError> {
        input.i32()?;
        structures(input, |input| {
            let code = input.i16()?;
            let (group, state) = (plain_text(input)?, plain_text(input)?);
            let (protocol_type, protocol) = (plain_text(input)?, plain_text(input)?);
            let is_consumer = protocol_type == CONSUMER;
            let members = structures(input, |input| decode_member(input, is_consumer))?;
            input.i32()?;
            let (coordinator, fault) = (None, None);
            let described = DescribedGroup {
                group,
                state,
                protocol_type,
                protocol,
                members,
                coordinator,
                fault,
            };
            Ok((code, described))
        })
    }
}

fn decode_member(input: &mut Decoder, is_consumer: bool) -> Result<DescribedMember, WireError> {
    let (member_id, instance_id) = (short(plain_text(input)?), text(input)?.map(short));
    let (client_id, host) = (short(plain_text(input)?), short(plain_text(input)?));
    input.nullable_bytes()?;
    let content = input.nullable_bytes()?.unwrap_or_default();
    let decoded = if content.is_empty() {
        Some(Vec::new())
    } else {
        Some(content).filter(|_| is_consumer).and_then(decode_assignment)
    };
    let is_undecodable = decoded.is_none();
    let assignment = decoded.unwrap_or_default();
    let is_truncated = false;
    Ok(DescribedMember {
        member_id,
        instance_id,
        client_id,
        host,
        assignment,
        is_truncated,
        is_undecodable,
    })
}

fn short(mut text: String) -> String {
    let mut length = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    text.truncate(length);
    text
}

/// Decodes an assignment as Kafka's own consumers write it (`ConsumerProtocolAssignment.json`).
/// `None` where it has another format: an application may write any bytes.
pub(crate) fn decode_assignment(content: Bytes) -> Option<Vec<(String, Vec<i32>)>> {
    let mut input = Decoder::new(content, false);
    if input.i16().ok()? < 0 {
        return None;
    }
    let topics = input.array(6, |input| {
        let name = input.string()?.to_string();
        if name.is_empty() || name.len() > TOPIC_CHARS_MAX {
            return Err(WireError::Length { position: 0, length: name.len() as i64 });
        }
        let mut numbers = input.array(4, Decoder::i32)?;
        numbers.sort_unstable();
        Ok((name, numbers))
    });
    let mut topics = topics.ok()?;
    topics.sort_unstable();
    Some(topics)
}

/// Deletes a group with its committed offsets.
pub(crate) struct DeleteGroup {
    pub group: String,
}

impl Request for DeleteGroup {
    const API: ApiKey = ApiKey::DeleteGroups;
    const VERSION: i16 = 2;
    const NAME: &'static str = "DeleteGroups";
    type Answer = Vec<i16>;

    fn encode(&self, out: &mut Encoder) {
        out.array([&self.group], |out, group| out.string(group));
        out.tagged(&[]);
    }

    fn decode(input: &mut Decoder, _: bool) -> Result<Vec<i16>, WireError> {
        input.i32()?;
        structures(input, |input| {
            plain_text(input)?;
            input.i16()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::{BufMut, BytesMut};
    use proptest::prelude::*;

    fn assignment(topics: &[(&str, &[i32])]) -> Bytes {
        let mut out = BytesMut::new();
        out.put_i16(1);
        out.put_i32(i32::try_from(topics.len()).unwrap());
        for (name, numbers) in topics {
            out.put_i16(i16::try_from(name.len()).unwrap());
            out.put_slice(name.as_bytes());
            out.put_i32(i32::try_from(numbers.len()).unwrap());
            numbers.iter().for_each(|number| out.put_i32(*number));
        }
        out.put_i32(-1);
        out.freeze()
    }

    #[test]
    fn an_assignment_is_sorted_and_cut() {
        let content = assignment(&[("b", &[2, 0, 1]), ("a", &[7])]);
        let decoded = decode_assignment(content).unwrap();
        assert_eq!(decoded, [("a".to_owned(), vec![7]), ("b".to_owned(), vec![0, 1, 2])]);
        let mut member = DescribedMember {
            member_id: String::new(),
            instance_id: None,
            client_id: String::new(),
            host: String::new(),
            assignment: decoded,
            is_truncated: false,
            is_undecodable: false,
        };
        member.truncate(4);
        assert!(!member.is_truncated);
        member.truncate(2);
        assert_eq!((member.partitions(), member.is_truncated), (2, true));
        assert_eq!(member.assignment[1], ("b".to_owned(), vec![0]));
    }

    #[test]
    fn half_an_assignment_is_none() {
        let whole = assignment(&[("a-topic-of-some-length", &[1, 2, 3])]);
        for length in 1..whole.len() - 4 {
            assert_eq!(decode_assignment(whole.slice(..length)), None, "{length} bytes");
        }
        for other in [&b"\0"[..], b"\0\x01", b"{\"partitions\": [1, 2]}", &[0xff; 64]] {
            assert_eq!(decode_assignment(Bytes::from_static(other)), None);
        }
    }

    #[test]
    fn a_count_that_is_announced_alone_takes_no_memory() {
        let mut out = BytesMut::new();
        out.put_i16(1);
        out.put_i32(i32::MAX);
        assert_eq!(decode_assignment(out.freeze()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_assignment_or_none(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            if let Some(topics) = decode_assignment(bytes.into()) {
                prop_assert!(topics.iter().map(|(_, numbers)| numbers.len()).sum::<usize>() <= 50);
            }
        }
    }
}
