//! SaslHandshake: choosing a mechanism.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{SaslHandshakeRequest, SaslHandshakeResponse};
use kafka_protocol::protocol::StrBytes;

use freshet_access::sasl::{SaslFailure, SaslSession};

/// Handles the request. A failure is returned beside the answer, after which the caller closes the
/// connection.
pub fn handle(
    session: &mut SaslSession,
    api_version: i16,
    request: &SaslHandshakeRequest,
) -> (SaslHandshakeResponse, Option<SaslFailure>) {
    let failure = session.handshake(api_version, &request.mechanism).err();
    let error_code = failure.as_ref().map_or(0, |failure| failure.error.code());
    let mechanisms = session.mechanisms().into_iter().map(StrBytes::from_static_str).collect();
    let response = SaslHandshakeResponse::default();
    (response.with_error_code(error_code).with_mechanisms(mechanisms), failure)
}

/// The answer to a client that need not authenticate, or has already.
pub fn unexpected() -> SaslHandshakeResponse {
    SaslHandshakeResponse::default().with_error_code(ResponseError::IllegalSaslState.code())
}
