//! SaslAuthenticate: what is answered to a token.

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::SaslAuthenticateResponse;
use kafka_protocol::protocol::StrBytes;

use freshet_access::sasl::SaslFailure;

/// The answer to a token that was accepted.
pub fn accepted(token: Bytes) -> SaslAuthenticateResponse {
    SaslAuthenticateResponse::default().with_error_message(None).with_auth_bytes(token)
}

/// The answer to a token that was not.
pub fn refused(failure: &SaslFailure) -> SaslAuthenticateResponse {
    SaslAuthenticateResponse::default()
        .with_error_code(failure.error.code())
        .with_error_message(Some(StrBytes::from_string(failure.message.clone())))
}

/// The answer to a client that need not authenticate, or has already.
pub fn unexpected() -> SaslAuthenticateResponse {
    refused(&SaslFailure {
        error: ResponseError::IllegalSaslState,
        message: "SaslAuthenticate request received after successful authentication".to_owned(),
    })
}
