//! Serves links: connections from gateways, each of which carries one client that the gateway has
//! authenticated.

use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::Server;
use super::dispatch::KafkaSession;
use super::service::{LinkService, Peer};
use crate::context::{Broker, ClientFacts, ListenerFacts};
use freshet_link::{LinkError, LinkSecret, LinkedClient};
use freshet_wire::text::split_address;
use freshet_world::env::{Listener, Stream};

/// Serves Kafka's APIs to clients that come through gateways.
pub struct KafkaLinks {
    broker: Arc<Broker>,
    secret: LinkSecret,
}

impl KafkaLinks {
    /// Creates it for a broker and the gateways that know this secret.
    pub fn new(broker: Arc<Broker>, secret: LinkSecret) -> Self {
        Self { broker, secret }
    }

    /// Does what [`super::dispatch::KafkaService::serve`] does, for a listener to which gateways
    /// connect.
    pub fn serve(self, server: Arc<Server>, listener: Box<dyn Listener>) -> BoxFuture<'static, ()> {
        server.run_links(listener, self).boxed()
    }

    /// The facts of a client as its gateway states them.
    ///
    /// # Errors
    /// [`LinkError`] where the principal is a super user: those never come through a gateway, so
    /// the gateway must be wrong or taken over.
    fn facts(&self, client: LinkedClient) -> Result<ClientFacts, LinkError> {
        let refused = |reason: &str| Err(LinkError::Preamble(reason.to_owned()));
        let authorizer = self.broker.settings.authorizer.as_ref();
        if authorizer.is_some_and(|settings| settings.super_users.contains(&client.principal)) {
            return refused("a super user");
        }
        let slot = usize::try_from(self.broker.engine.node_id).unwrap_or(usize::MAX);
        // A cluster with one port for all of its brokers names the first one.
        let address = client.advertised.get(slot).or(client.advertised.first());
        let address = address.and_then(|address| split_address(address));
        let Some((host, port)) = address else {
            return refused("no address of this broker");
        };
        let listener = ListenerFacts {
            name: client.listener.name().to_owned(),
            advertised_host: host.to_owned(),
            advertised_port: port,
            advertised_by_slot: client.advertised.clone(),
            sasl_mechanisms: Vec::new(),
        };
        let (broker, from) = (Arc::clone(&self.broker), client.address.ip());
        let facts = ClientFacts::new(broker, Arc::new(listener), client.principal, from);
        Ok(facts.through(client.connection))
    }
}

#[async_trait]
impl LinkService for KafkaLinks {
    type Session = KafkaSession;

    async fn greet(&self, stream: &mut dyn Stream) -> Result<(Peer, KafkaSession), LinkError> {
        let engine = &self.broker.engine;
        let metrics = &engine.settings.metrics;
        let randomness = engine.environment.randomness.as_ref();
        let accepted = freshet_link::accept(stream, &self.secret, randomness, |client| {
            let (address, connection) = (client.address, Arc::clone(&client.connection));
            let session = KafkaSession::authenticated(self.facts(client)?);
            Ok((Peer { address, connection }, session))
        });
        let accepted = accepted.await;
        match &accepted {
            Ok((peer, _)) => {
                metrics.connected();
                tracing::debug!(peer = %peer.address, connection = peer.connection(), "linked");
            }
            Err(LinkError::Unproven) => metrics.authentication_failed(),
            Err(_) => {}
        }
        accepted
    }
}
