//! What a connection begins with: ApiVersions, SaslHandshake and SaslAuthenticate.

use std::collections::BTreeMap;

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;

use super::{Request, text};
use freshet_wire::codec::WireError;
use freshet_wire::protocol::decode::Decoder;
use freshet_wire::protocol::encode::Encoder;

/// Asks which APIs the broker has.
pub(crate) struct ApiVersions;

/// The oldest and newest version of each API, by its number.
pub(crate) type Versions = BTreeMap<i16, (i16, i16)>;

impl Request for ApiVersions {
    const API: ApiKey = ApiKey::ApiVersions;
    const VERSION: i16 = 0;
    const NAME: &'static str = "ApiVersions";
    type Answer = (i16, Versions);

    fn encode(&self, _: &mut Encoder) {}

    fn decode(input: &mut Decoder, _: bool) -> Result<Self::Answer, WireError> {
        let code = input.i16()?;
        let ranges = input.array(6, |input| Ok((input.i16()?, (input.i16()?, input.i16()?))))?;
        Ok((code, ranges.into_iter().collect()))
    }
}

/// Chooses a SASL mechanism.
pub(crate) struct SaslHandshake {
    pub mechanism: &'static str,
}

impl Request for SaslHandshake {
    const API: ApiKey = ApiKey::SaslHandshake;
    const VERSION: i16 = 1;
    const NAME: &'static str = "SaslHandshake";
    type Answer = i16;

    fn encode(&self, out: &mut Encoder) {
        out.string(self.mechanism);
    }

    fn decode(input: &mut Decoder, _: bool) -> Result<i16, WireError> {
        input.i16()
    }
}

/// Sends a token of a SASL exchange.
pub(crate) struct SaslAuthenticate {
    pub token: Bytes,
}

/// The broker's token, or its error.
pub(crate) struct SaslAnswer {
    pub code: i16,
    pub message: Option<String>,
    pub token: Bytes,
}

impl Request for SaslAuthenticate {
    const API: ApiKey = ApiKey::SaslAuthenticate;
    const VERSION: i16 = 0;
    const NAME: &'static str = "SaslAuthenticate";
    type Answer = SaslAnswer;

    fn encode(&self, out: &mut Encoder) {
        out.byte_pieces([self.token.clone()]);
    }

    fn decode(input: &mut Decoder, _: bool) -> Result<SaslAnswer, WireError> {
        let (code, message) = (input.i16()?, text(input)?);
        Ok(SaslAnswer { code, message, token: input.nullable_bytes()?.unwrap_or_default() })
    }
}
