//! One request and the form of its answer.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::{Decodable, Encodable};

use super::service::Reply;
use crate::protocol::guard;
use crate::protocol::header::{HeaderError, frame_response};
use crate::wire::WireError;

/// Why a request ends its connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error("{api:?}: {error}")]
    Body { api: ApiKey, error: WireError },
    #[error("{api:?}: {reason}")]
    Message { api: ApiKey, reason: String },
    #[error("{0:?} before authentication")]
    NotAuthenticated(ApiKey),
}

/// What an answer needs to know of its request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) api: ApiKey,
    pub(crate) version: i16,
    pub(crate) correlation_id: i32,
}

impl Call {
    /// The frame of these pieces of a body.
    pub(crate) fn frame(self, pieces: Vec<Bytes>) -> Reply {
        Reply::new(frame_response(self.api, self.version, self.correlation_id, pieces))
    }

    /// The frame of a response.
    pub(crate) fn reply(self, response: &impl Encodable) -> Result<Reply, Refusal> {
        let mut body = BytesMut::new();
        response.encode(&mut body, self.version).map_err(|error| {
            let (api, version) = (self.api, self.version);
            tracing::error!(?api, version, %error, "a response cannot be encoded");
            Refusal::Message { api, reason: error.to_string() }
        })?;
        Ok(self.frame(vec![body.freeze()]))
    }

    /// Decodes a body that was checked, or is checked here.
    pub(crate) fn request<R: Decodable>(self, body: &Bytes) -> Result<R, Refusal> {
        let api = self.api;
        guard::check(api, self.version, body).map_err(|error| Refusal::Body { api, error })?;
        R::decode(&mut body.clone(), self.version)
            .map_err(|error| Refusal::Message { api, reason: error.to_string() })
    }
}
