//! Who asks, and through which listener.

use std::net::IpAddr;
use std::sync::Arc;

use kafka_protocol::protocol::StrBytes;

use super::broker::Broker;
use crate::auth::principal::Principal;
use crate::auth::sasl::Mechanism;
use crate::coordinator::group::ClientInfo;
use crate::protocol::leader::NodeEndpoint;

/// A listener as clients see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerFacts {
    /// Its name.
    pub name: String,
    /// The host that clients are told to connect to.
    pub advertised_host: String,
    /// The port that clients are told to connect to.
    pub advertised_port: u16,
    /// How clients authenticate; where this is empty they need not, and are `User:ANONYMOUS`.
    pub sasl_mechanisms: Vec<Mechanism>,
}

/// What is known of a client from its connection.
pub struct ClientFacts {
    /// The broker that it talks to.
    pub broker: Arc<Broker>,
    /// The listener that it came through.
    pub listener: Arc<ListenerFacts>,
    /// Who it is.
    pub principal: Principal,
    /// Who pays: the principal as text.
    pub payer: Arc<str>,
    /// Its address.
    pub host: IpAddr,
}

impl ClientFacts {
    /// A client that is known to be `principal`.
    pub fn new(
        broker: Arc<Broker>,
        listener: Arc<ListenerFacts>,
        principal: Principal,
        host: IpAddr,
    ) -> Self {
        let payer = principal.as_str().into();
        Self { broker, listener, principal, payer, host: host.to_canonical() }
    }
}

/// A request's circumstances.
pub struct RequestContext {
    /// Who asks.
    pub client: Arc<ClientFacts>,
    /// What the client calls itself.
    pub client_id: StrBytes,
    /// Version of the API.
    pub api_version: i16,
}

impl RequestContext {
    /// The broker.
    pub fn broker(&self) -> &Arc<Broker> {
        &self.client.broker
    }

    /// Who asks, as the group coordinator remembers it.
    pub(super) fn client_info(&self) -> ClientInfo {
        ClientInfo {
            client_id: self.client_id.to_string(),
            client_host: format!("/{}", self.client.host),
        }
    }

    /// Where clients of this listener find this broker.
    pub fn endpoint(&self) -> NodeEndpoint {
        let listener = &self.client.listener;
        NodeEndpoint {
            node_id: self.broker().engine.node_id,
            host: listener.advertised_host.clone(),
            port: i32::from(listener.advertised_port),
            rack: None,
        }
    }
}
