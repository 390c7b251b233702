//! The preamble: what a gateway says of a client.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{LinkError, NONCE_BYTES, PREAMBLE_BYTES_MAX};
use freshet_access::principal::Principal;
use freshet_metadata::cluster::USER_BYTES_MAX;
use freshet_wire::text::{decode_hex, encode_hex, split_address};

/// The version of the JSON object.
const VERSION: u32 = 1;
/// The only type of principal that a gateway authenticates.
const USER_TYPE: &str = "User";
/// The most characters of a connection's id.
const CONNECTION_CHARS_MAX: usize = 64;

/// How a client came to the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ListenerKind {
    /// Without TLS.
    #[serde(rename = "SASL_PLAINTEXT")]
    SaslPlaintext,
    /// With TLS.
    #[serde(rename = "SASL_SSL")]
    SaslSsl,
}

impl ListenerKind {
    /// Kafka's name of the security protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::SaslPlaintext => "SASL_PLAINTEXT",
            Self::SaslSsl => "SASL_SSL",
        }
    }
}

impl fmt::Display for ListenerKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A client that a gateway has authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedClient {
    /// Its principal.
    pub principal: Principal,
    /// The listener that it connected to.
    pub listener: ListenerKind,
    /// The client's own address.
    pub address: SocketAddr,
    /// `host:port` by slot: the address at which the client reaches each broker of the cluster.
    pub advertised: Vec<String>,
    /// The gateway's id of the connection, for logs and the audit; empty from an older gateway. At
    /// most 64 characters of `[A-Za-z0-9_-]`.
    pub connection: Arc<str>,
}

/// The JSON object. Unknown fields are ignored, so that a gateway may be newer than a broker.
#[derive(Serialize, Deserialize)]
struct Fields {
    v: u32,
    principal: String,
    listener: ListenerKind,
    client_address: SocketAddr,
    advertised: Vec<String>,
    #[serde(default)]
    connection: String,
    gateway_nonce: String,
}

impl LinkedClient {
    /// The preamble's bytes.
    ///
    /// # Errors
    /// [`LinkError::Length`] where there are too many.
    pub fn encode(&self, nonce: [u8; NONCE_BYTES]) -> Result<Vec<u8>, LinkError> {
        let fields = Fields {
            v: VERSION,
            principal: self.principal.as_str().to_owned(),
            listener: self.listener,
            client_address: self.address,
            advertised: self.advertised.clone(),
            connection: self.connection.to_string(),
            gateway_nonce: encode_hex(&nonce),
        };
        let bytes = serde_json::to_vec(&fields).expect("a preamble is a JSON object");
        if bytes.len() > PREAMBLE_BYTES_MAX {
            return Err(LinkError::Length(u32::try_from(bytes.len()).unwrap_or(u32::MAX)));
        }
        Ok(bytes)
    }

    /// Reads a preamble, and the nonce in it.
    ///
    /// # Errors
    /// [`LinkError::Preamble`].
    pub fn decode(bytes: &[u8]) -> Result<(Self, [u8; NONCE_BYTES]), LinkError> {
        let refused = |reason: String| LinkError::Preamble(reason);
        let fields: Fields =
            serde_json::from_slice(bytes).map_err(|error| refused(error.to_string()))?;
        if fields.v != VERSION {
            return Err(refused(format!("of version {}, known is {VERSION}", fields.v)));
        }
        let principal = Principal::parse(&fields.principal)
            .ok()
            .filter(|principal| principal.principal_type() == USER_TYPE)
            .filter(|principal| (1..=USER_BYTES_MAX).contains(&principal.name().len()))
            .ok_or_else(|| refused("no principal of a user".to_owned()))?;
        if let Some(wrong) = fields.advertised.iter().find(|at| split_address(at).is_none()) {
            return Err(refused(format!("{wrong:?} as an address")));
        }
        if !is_harmless(&fields.connection) {
            return Err(refused(format!("{:?} as the id of a connection", fields.connection)));
        }
        let nonce = decode_hex(&fields.gateway_nonce)
            .and_then(|nonce| <[u8; NONCE_BYTES]>::try_from(nonce).ok())
            .ok_or_else(|| refused(format!("a nonce has {NONCE_BYTES} bytes")))?;
        let client = Self {
            principal,
            listener: fields.listener,
            address: fields.client_address,
            advertised: fields.advertised,
            connection: fields.connection.into(),
        };
        Ok((client, nonce))
    }
}

/// Whether an id of a connection can be written into any log.
fn is_harmless(id: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    id.len() <= CONNECTION_CHARS_MAX && id.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn client() -> LinkedClient {
        LinkedClient {
            principal: Principal::user("alice: \"the\u{e9} first\""),
            listener: ListenerKind::SaslSsl,
            address: "[2001:db8::1]:50000".parse().unwrap(),
            advertised: vec!["b0-one.example:9443".into(), "[::1]:9443".into()],
            connection: "con_0123456789abcdef".into(),
        }
    }

    #[test]
    fn preambles_come_back() {
        let bytes = client().encode([7; NONCE_BYTES]).unwrap();
        assert_eq!(LinkedClient::decode(&bytes).unwrap(), (client(), [7; NONCE_BYTES]));
    }

    #[test]
    fn fields_that_a_newer_gateway_adds_are_overlooked() {
        let bytes = client().encode([7; NONCE_BYTES]).unwrap();
        let mut value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        value["colour"] = "green".into();
        assert!(LinkedClient::decode(value.to_string().as_bytes()).is_ok());
    }

    #[test]
    fn an_older_gateway_names_no_connection() {
        let bytes = client().encode([7; NONCE_BYTES]).unwrap();
        let mut value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        value.as_object_mut().unwrap().remove("connection").unwrap();
        let (read, _) = LinkedClient::decode(value.to_string().as_bytes()).unwrap();
        assert_eq!(read, LinkedClient { connection: "".into(), ..client() });
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let cases = [
            ("v", serde_json::json!(2)),
            ("principal", serde_json::json!("alice")),
            ("principal", serde_json::json!("Group:alice")),
            ("principal", serde_json::json!("User:")),
            ("principal", serde_json::json!(format!("User:{}", "x".repeat(USER_BYTES_MAX + 1)))),
            ("listener", serde_json::json!("PLAINTEXT")),
            ("client_address", serde_json::json!("example.org:1")),
            ("client_address", serde_json::json!(null)),
            ("advertised", serde_json::json!(["example.org"])),
            ("advertised", serde_json::json!("example.org:1")),
            ("connection", serde_json::json!("con_1\nINFO")),
            ("connection", serde_json::json!("x".repeat(CONNECTION_CHARS_MAX + 1))),
            ("gateway_nonce", serde_json::json!("00")),
        ];
        let bytes = client().encode([7; NONCE_BYTES]).unwrap();
        for (name, wrong) in cases {
            let mut value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            value[name] = wrong.clone();
            let read = LinkedClient::decode(value.to_string().as_bytes());
            assert!(matches!(read, Err(LinkError::Preamble(_))), "{name} {wrong}: {read:?}");
        }
    }

    #[test]
    fn a_field_given_twice_is_refused() {
        let bytes = client().encode([7; NONCE_BYTES]).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let twice = text.replacen('{', r#"{"principal":"User:admin","#, 1);
        assert!(matches!(LinkedClient::decode(twice.as_bytes()), Err(LinkError::Preamble(_))));
    }

    #[test]
    fn too_many_addresses_are_not_sent() {
        let mut client = client();
        client.advertised = vec!["a-rather-long-name-of-a-broker.example:9443".into(); 1000];
        assert!(matches!(client.encode([0; NONCE_BYTES]), Err(LinkError::Length(_))));
    }

    proptest! {
        #[test]
        fn reading_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = LinkedClient::decode(&bytes);
        }

        #[test]
        fn users_of_any_name_keep_it(name in ".{1,60}") {
            let client = LinkedClient { principal: Principal::user(&name), ..client() };
            let bytes = client.encode([1; NONCE_BYTES]).unwrap();
            prop_assert_eq!(LinkedClient::decode(&bytes).unwrap().0, client);
        }
    }
}
