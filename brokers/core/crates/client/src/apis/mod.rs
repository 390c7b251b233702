//! The requests that the client sends, each in one version, with what it reads of the answers.
//!
//! Answers are read by `wire`'s bounded decoder and never by the crate `kafka-protocol`, which
//! allocates for counts that nobody has checked.

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;

use freshet_wire::codec::WireError;
use freshet_wire::protocol::decode::Decoder;
use freshet_wire::protocol::encode::Encoder;

pub(crate) mod access;
pub(crate) mod groups;
pub(crate) mod login;
pub(crate) mod metadata;
pub(crate) mod offsets;
pub(crate) mod records;

/// The smallest array element that is more than a number, in bytes.
const ELEMENT_BYTES_MIN: usize = 2;

/// A request of one API in one version.
pub(crate) trait Request {
    /// The API.
    const API: ApiKey;
    /// The version.
    const VERSION: i16;
    /// The API's name, for people.
    const NAME: &'static str;
    /// What is read of its answer.
    type Answer;

    /// Writes the request's body.
    fn encode(&self, out: &mut Encoder);

    /// Reads the answer's body. Where `cut` is set, its end was not read.
    ///
    /// # Errors
    /// Any [`WireError`].
    fn decode(input: &mut Decoder, cut: bool) -> Result<Self::Answer, WireError>;

    /// Whether the version has compact lengths and tagged fields.
    fn is_flexible() -> bool {
        Self::API.request_header_version(Self::VERSION) >= 2
    }
}

/// A request's body with the number of its API, ready to be sent.
pub(crate) fn encoded<R: Request>(request: &R) -> Bytes {
    let mut out = Encoder::new(R::is_flexible());
    request.encode(&mut out);
    out.into_bytes()
}

/// A text that may be null. What is not UTF-8 in it is replaced: a name of any bytes hides nothing.
fn text(input: &mut Decoder) -> Result<Option<String>, WireError> {
    let bytes = input.nullable_text()?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// A text, empty where it is null.
fn plain_text(input: &mut Decoder) -> Result<String, WireError> {
    Ok(text(input)?.unwrap_or_default())
}

/// An array of elements that each end with tagged fields.
fn structures<T>(
    input: &mut Decoder,
    mut element: impl FnMut(&mut Decoder) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    input.array(ELEMENT_BYTES_MIN, |input| {
        let value = element(input)?;
        input.skip_tagged()?;
        Ok(value)
    })
}

#[cfg(test)]
mod tests {
    use super::{Request, metadata, offsets, records};

    #[test]
    fn whatever_a_reader_or_producer_sends_can_name_who_pays() {
        assert!(records::Fetch::is_flexible() && records::Produce::is_flexible());
        assert!(metadata::Metadata::is_flexible() && offsets::ListOffsets::is_flexible());
        assert!(offsets::InitProducerId::is_flexible());
    }
}
