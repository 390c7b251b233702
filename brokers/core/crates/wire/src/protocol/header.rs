//! The header of requests and responses.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::StrBytes;

use super::decode::Decoder;
use super::encode::Encoder;
use super::versions;
use crate::codec::{WireError, WriteExt};

/// The tag of the field of a request's header that names who pays for the request: a principal,
/// whose text is all of the field. Kafka counts its tags up from 0, and skips those that it does
/// not know.
const PAYER_TAG: u32 = 1 << 20;

/// The header of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHeader {
    /// The API.
    pub api: ApiKey,
    /// Its version, one that is served.
    pub version: i16,
    /// The client's number of the request, which the answer repeats.
    pub correlation_id: i32,
    /// The client id. Bytes that are not UTF-8 are replaced.
    pub client_id: Option<StrBytes>,
    /// The principal that is to pay, as it came: anybody can send it, so only the service's own
    /// user may be believed. Requests with a header of version 1 cannot have it.
    pub payer: Option<Bytes>,
}

/// The tagged fields of a request's header: the field that names who pays, or none.
pub fn request_fields(payer: Option<&str>) -> Bytes {
    let field = payer.map(|payer| (PAYER_TAG, Bytes::copy_from_slice(payer.as_bytes())));
    Encoder::field(|out| out.tagged(field.as_slice()))
}

/// Why a request cannot be read. Except for ApiVersions, Kafka closes the connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Not a header.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// An API that does not exist or is not served.
    #[error("unknown API key {api_key}")]
    UnknownApi {
        /// The API key of the request.
        api_key: i16,
        /// Its correlation id.
        correlation_id: i32,
    },
    /// A version that is not served. An ApiVersions request is to be answered all the same, in
    /// version 0, with UNSUPPORTED_VERSION and the versions that are served (KIP-511).
    #[error("{api:?} version {version} is not served")]
    UnsupportedVersion {
        /// The API.
        api: ApiKey,
        /// The version that the client used.
        version: i16,
        /// Its correlation id.
        correlation_id: i32,
    },
}

impl RequestHeader {
    /// Splits a frame into header and body, which shares the frame's allocation.
    ///
    /// # Errors
    /// Any [`HeaderError`].
    pub fn decode(frame: Bytes) -> Result<(Self, Bytes), HeaderError> {
        let mut input = Decoder::new(frame, false);
        let api_key = input.i16()?;
        let version = input.i16()?;
        let correlation_id = input.i32()?;
        let unknown = HeaderError::UnknownApi { api_key, correlation_id };
        let api = ApiKey::try_from(api_key).map_err(|()| unknown.clone())?;
        if versions::advertised(api).is_none() {
            return Err(unknown);
        }
        if !versions::is_served(api, version) {
            return Err(HeaderError::UnsupportedVersion { api, version, correlation_id });
        }
        let client_id = input.nullable_text()?.as_ref().map(repaired);
        let mut rest = Decoder::new(input.rest(), api.request_header_version(version) >= 2);
        let mut payer = None;
        rest.tagged(|tag, field| {
            if tag == PAYER_TAG {
                payer = Some(field.clone().rest());
            }
            // Whether it is a principal is judged where it is known whom to believe.
            Ok(false)
        })?;
        Ok((Self { api, version, correlation_id, client_id, payer }, rest.rest()))
    }
}

fn repaired(text: &Bytes) -> StrBytes {
    StrBytes::from_utf8(text.clone())
        .unwrap_or_else(|_| StrBytes::from_string(String::from_utf8_lossy(text).into_owned()))
}

/// A response ready to be written: the frame's length and the header, then the body's pieces.
///
/// # Panics
/// Where the response is larger than a frame can be (2 GiB).
pub fn frame_response(
    api: ApiKey,
    version: i16,
    correlation_id: i32,
    body: impl IntoIterator<Item = Bytes>,
) -> Vec<Bytes> {
    let mut pieces = vec![Bytes::new()];
    pieces.extend(body);
    let flexible = api.response_header_version(version) >= 1;
    let header_bytes = if flexible { 5 } else { 4 };
    let length = header_bytes + pieces.iter().map(Bytes::len).sum::<usize>();
    let mut head = BytesMut::with_capacity(9);
    head.put_i32(i32::try_from(length).expect("a response is smaller than 2 GiB"));
    head.put_i32(correlation_id);
    if flexible {
        head.put_uvarint(0);
    }
    pieces[0] = head.freeze();
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::{RequestHeader as TheirHeader, ResponseHeader};
    use kafka_protocol::protocol::{Decodable, Encodable};

    fn frame(api: i16, version: i16, header_version: i16, client: Option<&'static str>) -> Bytes {
        let mut out = BytesMut::new();
        let mut header = TheirHeader::default()
            .with_request_api_key(api)
            .with_request_api_version(version)
            .with_correlation_id(77)
            .with_client_id(client.map(StrBytes::from_static_str));
        if header_version >= 2 {
            header = header.with_unknown_tagged_field(3, Bytes::from_static(b"tag"));
        }
        header.encode(&mut out, header_version).unwrap();
        out.put_slice(b"body");
        out.freeze()
    }

    #[test]
    fn every_served_header_is_split_from_its_body() {
        for &(api, oldest, newest) in versions::ADVERTISED {
            for version in oldest..=newest {
                if !versions::is_served(api, version) {
                    continue;
                }
                for client in [None, Some(""), Some("me")] {
                    let bytes =
                        frame(api as i16, version, api.request_header_version(version), client);
                    let (header, body) = RequestHeader::decode(bytes.clone()).unwrap();
                    assert_eq!((header.api, header.version), (api, version));
                    assert_eq!(header.correlation_id, 77);
                    assert_eq!(header.client_id.as_deref(), client);
                    assert_eq!(header.payer, None);
                    assert_eq!(body, b"body"[..]);
                    for length in 0..bytes.len() - b"body".len() {
                        let cut = RequestHeader::decode(bytes.slice(..length));
                        assert!(matches!(cut, Err(HeaderError::Wire(_))));
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_not_served_keeps_its_correlation_id() {
        let (api, correlation_id) = (ApiKey::ApiVersions, 77);
        let result = RequestHeader::decode(frame(18, 99, 2, Some("me")));
        assert_eq!(
            result,
            Err(HeaderError::UnsupportedVersion { api, version: 99, correlation_id })
        );
        let result = RequestHeader::decode(frame(0, 2, 1, None));
        assert!(matches!(
            result,
            Err(HeaderError::UnsupportedVersion { api: ApiKey::Produce, version: 2, .. })
        ));
        for api_key in [-1, 4, 52, 1000] {
            let result = RequestHeader::decode(frame(api_key, 0, 1, None));
            assert_eq!(result, Err(HeaderError::UnknownApi { api_key, correlation_id }));
        }
    }

    #[test]
    fn a_client_id_that_is_not_text_is_repaired() {
        let bytes = b"\0\x12\0\0\0\0\0\x01\0\x02a\xff";
        let (header, _) = RequestHeader::decode(Bytes::from_static(bytes)).unwrap();
        assert_eq!(header.client_id.as_deref(), Some("a\u{fffd}"));
    }

    #[test]
    fn a_payer_is_read_as_it_came_among_other_fields() {
        let own = [&b"\0\x12\0\x03\0\0\0\x01\0\x01c"[..], &request_fields(Some("Any:\u{1}é"))];
        let (header, body) =
            RequestHeader::decode([&own.concat()[..], b"body"].concat().into()).unwrap();
        assert_eq!(header.payer.as_deref(), Some("Any:\u{1}é".as_bytes()));
        assert_eq!(body, b"body"[..]);
        assert_eq!(request_fields(None), b"\0"[..]);
        // Kafka's own codec skips it, and gives it back as it came.
        let theirs = TheirHeader::decode(&mut Bytes::from(own.concat()), 2).unwrap();
        let tag = i32::try_from(PAYER_TAG).unwrap();
        assert_eq!(theirs.unknown_tagged_fields[&tag], "Any:\u{1}é".as_bytes());
        let field = Bytes::from(vec![0xff; 70_000]);
        let mut out = BytesMut::new();
        TheirHeader::default()
            .with_request_api_key(18)
            .with_request_api_version(3)
            .with_unknown_tagged_field(3, Bytes::from_static(b"tag"))
            .with_unknown_tagged_field(tag, field.clone())
            .encode(&mut out, 2)
            .unwrap();
        assert_eq!(RequestHeader::decode(out.freeze()).unwrap().0.payer, Some(field));
    }

    #[test]
    fn responses_carry_the_header_that_their_version_has() {
        for (api, version) in [
            (ApiKey::ApiVersions, 0),
            (ApiKey::ApiVersions, 4),
            (ApiKey::Produce, 8),
            (ApiKey::Produce, 9),
        ] {
            let body = [Bytes::from_static(b"one"), Bytes::from_static(b"two")];
            let mut all = Bytes::from(frame_response(api, version, 77, body).concat());
            let length = all.split_to(4);
            assert_eq!(length, u32::try_from(all.len()).unwrap().to_be_bytes()[..]);
            let header_version = api.response_header_version(version);
            let header = ResponseHeader::decode(&mut all, header_version).unwrap();
            assert_eq!((header.correlation_id, &all[..]), (77, &b"onetwo"[..]));
        }
    }
}
