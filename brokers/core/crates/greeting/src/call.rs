//! One request and the form of its answer.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::{Decodable, Encodable};

use freshet_wire::codec::WireError;
use freshet_wire::protocol::guard;
use freshet_wire::protocol::header::{HeaderError, frame_response};

/// Why a request ends its connection.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Its header cannot be decoded.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// Lengths in its body are not those of the bytes that came.
    #[error("{api:?}: {error}")]
    Body {
        /// The request's API.
        api: ApiKey,
        /// What is wrong.
        error: WireError,
    },
    /// Its body does not decode, or its answer does not encode.
    #[error("{api:?}: {reason}")]
    Message {
        /// The request's API.
        api: ApiKey,
        /// What is wrong.
        reason: String,
    },
    /// A client may not send it before it has authenticated.
    #[error("{0:?} before authentication")]
    NotAuthenticated(ApiKey),
}

/// What an answer needs to know of its request.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// The request's API.
    pub api: ApiKey,
    /// The version of the request.
    pub version: i16,
    /// The client's number of the request, which the answer repeats.
    pub correlation_id: i32,
}

impl Call {
    /// The frame whose body is these pieces.
    pub fn frame(self, pieces: Vec<Bytes>) -> Vec<Bytes> {
        frame_response(self.api, self.version, self.correlation_id, pieces)
    }

    /// The frame of a response, piece by piece.
    pub fn answer(self, response: &impl Encodable) -> Result<Vec<Bytes>, Refusal> {
        let mut body = BytesMut::new();
        response.encode(&mut body, self.version).map_err(|error| {
            let (api, version) = (self.api, self.version);
            tracing::error!(?api, version, %error, "a response cannot be encoded");
            Refusal::Message { api, reason: error.to_string() }
        })?;
        Ok(self.frame(vec![body.freeze()]))
    }

    /// Decodes the body of the request.
    pub fn request<R: Decodable>(self, body: &Bytes) -> Result<R, Refusal> {
        let api = self.api;
        guard::check(api, self.version, body).map_err(|error| Refusal::Body { api, error })?;
        R::decode(&mut body.clone(), self.version)
            .map_err(|error| Refusal::Message { api, reason: error.to_string() })
    }
}
