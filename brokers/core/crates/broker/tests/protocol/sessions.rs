//! The beginning of a connection: versions, authentication, and what ends it.

use bytes::Bytes;
use freshet_access::acl::AuthorizerSettings;
use freshet_access::sasl::Mechanism;
use freshet_broker::context::BrokerSettings;
use freshet_wire::protocol::versions::ADVERTISED;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, ResponseHeader,
    SaslAuthenticateRequest, SaslHandshakeRequest,
};
use kafka_protocol::protocol::{Decodable, StrBytes};

use super::harness::{Client, Setup, TestBroker, batch, produce_request, text};
use super::scram;

fn secured() -> Setup {
    let settings = BrokerSettings {
        authorizer: Some(AuthorizerSettings {
            allow_everyone_if_no_acl_found: true,
            ..AuthorizerSettings::default()
        }),
        ..BrokerSettings::default()
    };
    Setup { settings, sasl_mechanisms: Mechanism::ALL.to_vec(), ..Setup::default() }
}

fn versions() -> ApiVersionsRequest {
    ApiVersionsRequest::default()
        .with_client_software_name(text("tests"))
        .with_client_software_version(text("1.0"))
}

async fn handshake(client: &mut Client, version: i16, mechanism: &str) -> i16 {
    let request = SaslHandshakeRequest::default().with_mechanism(text(mechanism));
    let response = client.call(version, request).await;
    let offered: Vec<&str> = response.mechanisms.iter().map(StrBytes::as_str).collect();
    assert_eq!(offered, ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]);
    response.error_code
}

async fn authenticate(client: &mut Client, version: i16, token: &str) -> (i16, Bytes) {
    let token = Bytes::from(token.to_owned());
    let request = SaslAuthenticateRequest::default().with_auth_bytes(token);
    let response = client.call(version, request).await;
    (response.error_code, response.auth_bytes)
}

#[tokio::test]
async fn api_versions_reports_what_is_served_in_every_version() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    for version in 0..=4 {
        let response = client.call(version, versions()).await;
        assert_eq!(response.error_code, 0);
        let served: Vec<_> = response
            .api_keys
            .iter()
            .map(|api| (api.api_key, api.min_version, api.max_version))
            .collect();
        let expected: Vec<_> = ADVERTISED.iter().map(|api| (api.0 as i16, api.1, api.2)).collect();
        assert_eq!(served, expected);
        assert!(response.finalized_features.is_empty());
    }
    let nameless = client.call(3, ApiVersionsRequest::default()).await;
    assert_eq!(nameless.error_code, ResponseError::InvalidRequest.code());
}

#[tokio::test]
async fn an_api_versions_request_of_the_future_is_answered_in_version_0() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.send_frame(b"\0\x12\0\x63\0\0\0\x07\xff\xff\0whatever").await;
    let mut frame = client.receive_frame().await;
    assert_eq!(ResponseHeader::decode(&mut frame, 0).unwrap().correlation_id, 7);
    let response = ApiVersionsResponse::decode(&mut frame, 0).unwrap();
    assert_eq!(response.error_code, ResponseError::UnsupportedVersion.code());
    assert_eq!(response.api_keys.len(), ADVERTISED.len());
    assert_eq!(client.call(3, versions()).await.error_code, 0, "the connection goes on");
}

#[tokio::test]
async fn what_is_no_request_closes_the_connection() {
    let broker = TestBroker::start().await;
    let frames: [&[u8]; 6] = [
        b"",
        b"\0\x03",
        // An API that does not exist, and one that only brokers use among themselves.
        b"\x03\xe8\0\0\0\0\0\x01\xff\xff",
        b"\0\x34\0\0\0\0\0\x01\xff\xff",
        // A version that is not served, and a body with an impossible number of topics.
        b"\0\x03\0\x63\0\0\0\x01\xff\xff\0",
        b"\0\x03\0\x01\0\0\0\x01\xff\xff\x7f\xff\xff\xff",
    ];
    for frame in frames {
        let mut client = broker.client();
        client.send_frame(frame).await;
        client.is_closed().await;
    }
    assert_eq!(broker.client().call(0, versions()).await.error_code, 0);
}

#[tokio::test]
async fn before_authentication_nothing_else_is_answered() {
    let broker = TestBroker::with(secured()).await;
    let mut client = broker.client();
    assert_eq!(client.call(3, versions()).await.error_code, 0);
    client.send(1, &MetadataRequest::default()).await;
    client.is_closed().await;
    let mut client = broker.client();
    client.send(9, &produce_request("t", 0, batch(&["x"]))).await;
    client.is_closed().await;
}

#[tokio::test]
async fn plain_authenticates_by_password() {
    let broker = TestBroker::with(secured()).await;
    broker.add_user("alice", "secret").await;
    for version in 0..=2 {
        let mut client = broker.client();
        assert_eq!(handshake(&mut client, 1, "PLAIN").await, 0);
        assert_eq!(authenticate(&mut client, version, "\0alice\0secret").await.0, 0);
        assert_eq!(client.metadata(&[]).await.brokers.len(), 1);
        // One authentication is enough.
        let (code, _) = authenticate(&mut client, version, "\0alice\0secret").await;
        assert_eq!(code, ResponseError::IllegalSaslState.code());
    }
    for token in ["\0alice\0wrong", "\0nobody\0secret", "nonsense"] {
        let mut client = broker.client();
        assert_eq!(handshake(&mut client, 1, "PLAIN").await, 0);
        let (code, _) = authenticate(&mut client, 2, token).await;
        assert_eq!(code, ResponseError::SaslAuthenticationFailed.code());
        client.is_closed().await;
    }
}

#[tokio::test]
async fn scram_authenticates_both_sides() {
    let broker = TestBroker::with(secured()).await;
    broker.add_user("alice", "secret").await;
    let mut client = broker.client();
    assert_eq!(handshake(&mut client, 1, "SCRAM-SHA-256").await, 0);
    let (code, challenge) = authenticate(&mut client, 2, &scram::first_message("alice")).await;
    assert_eq!(code, 0);
    let challenge = std::str::from_utf8(&challenge).unwrap();
    let (message, expected) = scram::final_message("alice", "secret", challenge);
    assert_eq!(authenticate(&mut client, 2, &message).await, (0, expected.into()));
    assert_eq!(client.metadata(&[]).await.brokers.len(), 1);
    for (user, password) in [("alice", "wrong"), ("nobody", "secret")] {
        let mut client = broker.client();
        assert_eq!(handshake(&mut client, 1, "SCRAM-SHA-256").await, 0);
        let (_, challenge) = authenticate(&mut client, 2, &scram::first_message(user)).await;
        let challenge = std::str::from_utf8(&challenge).unwrap();
        let (message, _) = scram::final_message(user, password, challenge);
        let (code, _) = authenticate(&mut client, 2, &message).await;
        assert_eq!(code, ResponseError::SaslAuthenticationFailed.code());
        client.is_closed().await;
    }
}

#[tokio::test]
async fn tokens_without_headers_follow_version_0_of_the_handshake() {
    let broker = TestBroker::with(secured()).await;
    broker.add_user("alice", "secret").await;
    let mut client = broker.client();
    assert_eq!(handshake(&mut client, 0, "PLAIN").await, 0);
    client.send_frame(b"\0alice\0secret").await;
    assert_eq!(client.receive_frame().await, "");
    assert_eq!(client.metadata(&[]).await.brokers.len(), 1);
    let mut client = broker.client();
    assert_eq!(handshake(&mut client, 0, "PLAIN").await, 0);
    client.send_frame(b"\0alice\0wrong").await;
    client.is_closed().await;
}

#[tokio::test]
async fn an_unknown_mechanism_is_reported_and_ends_the_connection() {
    let broker = TestBroker::with(secured()).await;
    let mut client = broker.client();
    let code = handshake(&mut client, 1, "GSSAPI").await;
    assert_eq!(code, ResponseError::UnsupportedSaslMechanism.code());
    client.is_closed().await;
}

#[tokio::test]
async fn a_listener_without_authentication_refuses_it_and_serves_on() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    let request = SaslHandshakeRequest::default().with_mechanism(text("PLAIN"));
    let response = client.call(1, request).await;
    assert_eq!(response.error_code, ResponseError::IllegalSaslState.code());
    let (code, _) = authenticate(&mut client, 2, "\0a\0b").await;
    assert_eq!(code, ResponseError::IllegalSaslState.code());
    assert_eq!(client.metadata(&[]).await.brokers.len(), 1);
}
