//! Kafka's sessions: decodes the header of a frame, authenticates the client, and has the request
//! answered.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{BufMut, Bytes, BytesMut};
use futures::FutureExt;
use futures::future::BoxFuture;
use kafka_protocol::messages::{ApiKey, SaslAuthenticateRequest, SaslHandshakeRequest};
use tokio::time::Instant;

use super::Server;
use super::answers::{answer_control, answer_fetch, bytes_of, stage_produce};
use super::service::{Outcome, Reply, Service, Session};
use crate::context::{Broker, ClientFacts, ListenerFacts, RequestContext, Tally, Throttling};
use crate::handlers::produce::Frame;
use crate::handlers::sasl_authenticate::{Exchanged, exchange_token};
use freshet_access::principal::Principal;
use freshet_access::sasl::{Credentials, SaslFailure, SaslSession, SaslSettings};
use freshet_access::types::{ScramCredential, ScramMechanism};
use freshet_greeting::call::{Call, Refusal};
use freshet_greeting::refusal_delay::delay_refusal;
use freshet_greeting::{api_versions, sasl_authenticate, sasl_handshake};
use freshet_metadata::MetadataView;
use freshet_quota::unbilled::UnbilledAccount;
use freshet_quota::{ConnectionGuard, ConnectionRefusal, Mute, SessionQuotas};
use freshet_wire::budget::RequestMemory;
use freshet_wire::protocol::header::{HeaderError, RequestHeader};
use freshet_world::env::Listener;

/// Serves Kafka's APIs over one listener.
pub struct KafkaService {
    broker: Arc<Broker>,
    listener: Arc<ListenerFacts>,
    sasl: Option<Arc<SaslSettings>>,
}

/// Looks up credentials in the image of the metadata.
struct ViewedUsers {
    view: Arc<MetadataView>,
    /// The users that the listener lets in; `None`: all that have a credential.
    only: Option<BTreeSet<Principal>>,
}

impl Credentials for ViewedUsers {
    fn scram(&self, user: &str, mechanism: ScramMechanism) -> Option<ScramCredential> {
        let credential = self.view.snapshot().scram.get(&(mechanism, user.to_owned())).cloned();
        let is_let_in = |only: &BTreeSet<Principal>| only.contains(&Principal::user(user));
        // Looked up in any case, so that the time does not tell which users exist.
        credential.filter(|_| self.only.as_ref().is_none_or(is_let_in))
    }
}

impl KafkaService {
    /// Creates it for a broker and one of its listeners.
    pub fn new(broker: Arc<Broker>, listener: ListenerFacts) -> Self {
        Self::with_users(broker, listener, None)
    }

    /// Creates it for a listener on which only super users can authenticate. For any other user it
    /// answers as for one that does not exist.
    pub fn for_super_users(broker: Arc<Broker>, listener: ListenerFacts) -> Self {
        let authorizer = broker.settings.authorizer.as_ref();
        let only = authorizer.map(|settings| settings.super_users.clone()).unwrap_or_default();
        Self::with_users(broker, listener, Some(only))
    }

    fn with_users(
        broker: Arc<Broker>,
        listener: ListenerFacts,
        only: Option<BTreeSet<Principal>>,
    ) -> Self {
        let view = &broker.engine.view;
        let sasl = (!listener.sasl_mechanisms.is_empty()).then(|| {
            Arc::new(SaslSettings {
                mechanisms: listener.sasl_mechanisms.clone(),
                credentials: Arc::new(ViewedUsers { view: Arc::clone(view), only }),
                decoy: broker.decoy(),
                randomness: Arc::clone(&broker.engine.environment.randomness),
            })
        });
        Self { broker, listener: Arc::new(listener), sasl }
    }

    /// Serves a listener until the engine ends and its connections have drained. The future is
    /// boxed so that the handlers are compiled in this crate only, and not again in each caller's.
    pub fn serve(self, server: Arc<Server>, listener: Box<dyn Listener>) -> BoxFuture<'static, ()> {
        server.run(listener, self).boxed()
    }
}

impl Service for KafkaService {
    type Session = KafkaSession;

    fn connect(&self, peer: SocketAddr) -> KafkaSession {
        let broker = Arc::clone(&self.broker);
        let listener = Arc::clone(&self.listener);
        broker.engine.settings.metrics.connected();
        let facts = ClientFacts::new(broker, listener, Principal::anonymous(), peer.ip());
        let sasl = self.sasl.as_ref().map(|settings| SaslSession::new(Arc::clone(settings)));
        KafkaSession::new(facts, sasl)
    }
}

/// The session of one connection.
pub struct KafkaSession {
    client: Arc<ClientFacts>,
    /// Present until the client is authenticated.
    sasl: Option<SaslSession>,
    /// Its place among its user's connections; `None` until its first request after authentication.
    counted: Option<ConnectionGuard>,
    quotas: SessionQuotas,
    mute: Arc<Mute>,
    /// From where is taken what nobody is billed for; `None` before authentication, and for the
    /// service itself.
    unbilled: Option<Arc<UnbilledAccount>>,
}

impl KafkaSession {
    /// The session of a client that a gateway has authenticated.
    pub(super) fn authenticated(client: ClientFacts) -> Self {
        Self::new(client, None)
    }

    fn new(client: ClientFacts, sasl: Option<SaslSession>) -> Self {
        let mut session = Self {
            client: Arc::new(client),
            sasl,
            counted: None,
            quotas: SessionQuotas::default(),
            mute: Arc::default(),
            unbilled: None,
        };
        if session.sasl.is_none() {
            session.open_account();
        }
        session
    }

    /// Opens the account of what its principal is not billed for.
    fn open_account(&mut self) {
        let client = &self.client;
        if !client.exempt {
            let account = client.broker.quotas.unbilled.open(&client.payer, &self.mute);
            self.unbilled = Some(Arc::new(account));
        }
    }

    /// The tally of a request; `None` before authentication, when nobody is known for whom it
    /// could be counted.
    fn tally(&self, frame_bytes: usize) -> Option<Tally> {
        if self.sasl.is_some() {
            return None;
        }
        let client = &self.client;
        let mut tally =
            Tally::new(&client.broker.engine.settings.metrics, &client.payer, frame_bytes);
        tally.account.clone_from(&self.unbilled);
        tally.is_billed = !client.exempt;
        Some(tally)
    }

    /// Counts the connection for its user, at the first call only.
    ///
    /// # Errors
    /// [`ConnectionRefusal`] where the user has too many connections, or opens them too fast.
    async fn count(&mut self) -> Result<(), ConnectionRefusal> {
        if self.sasl.is_some() || self.counted.is_some() {
            return Ok(());
        }
        let client = &self.client;
        let (user, exempt) = (client.principal.name(), client.exempt);
        match client.broker.quotas.connect(user, client.host, exempt) {
            Ok(counted) => self.counted = Some(counted),
            Err(refusal) => {
                if let ConnectionRefusal::TooOften { pause, .. } = &refusal {
                    // Delayed, because clients that are refused at once reconnect at once.
                    tokio::time::sleep(*pause).await;
                }
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// The circumstances of a request of a client that is authenticated.
    ///
    /// # Errors
    /// [`Refusal`] where the service names somebody who cannot pay. From anybody else the name is
    /// ignored, as is every field that a broker does not know.
    fn context(
        &mut self,
        header: RequestHeader,
        mut tally: Tally,
    ) -> Result<RequestContext, Refusal> {
        let RequestHeader { api, version, client_id, payer, .. } = header;
        let client_id = client_id.unwrap_or_default();
        tally.client_id = client_id.clone();
        let client = Arc::clone(&self.client);
        let Some(payer) = payer.filter(|_| client.exempt) else {
            let throttling = self.throttling(&client_id);
            let context = RequestContext::counted(client, client_id, version, tally);
            return Ok(RequestContext { throttling, ..context });
        };
        let payer = client.broker.payers.find(&payer).ok_or_else(|| Refusal::Message {
            api,
            reason: "it is made for a principal that cannot pay".to_owned(),
        })?;
        // The connection serves others too, and so is never muted.
        let mute = Arc::default();
        let quotas = &client.broker.quotas;
        let limits = quotas.limits_of_payer(&payer);
        let throttling = Throttling::of(limits, quotas.limit_of_cluster(), mute);
        (tally.payer, tally.is_billed) = (payer, true);
        let context = RequestContext::counted(client, client_id, version, tally);
        Ok(RequestContext { throttling, is_on_behalf: true, ..context })
    }

    /// What limits how much the client takes; `None` where nothing does.
    fn throttling(&mut self, client_id: &str) -> Option<Throttling> {
        let client = &self.client;
        if client.exempt || self.sasl.is_some() {
            return None;
        }
        let (user, quotas) = (client.principal.name(), &client.broker.quotas);
        let limits = self.quotas.limits(quotas, user, client_id);
        Throttling::of(limits, quotas.limit_of_cluster(), Arc::clone(&self.mute))
    }
}

#[async_trait]
impl Session for KafkaSession {
    fn is_authenticated(&self) -> bool {
        self.sasl.is_none()
    }

    fn muted_until(&self) -> Option<Instant> {
        match &self.unbilled {
            Some(account) => account.muted_until(),
            None => self.mute.until(),
        }
    }

    async fn handle(&mut self, frame: Bytes, memory: &mut Option<RequestMemory>) -> Outcome {
        if let Err(refusal) = self.count().await {
            return Outcome::Close(refusal.to_string());
        }
        if self.sasl.as_ref().is_some_and(SaslSession::expects_raw_frames) {
            return self.take_bare_token(&frame).await;
        }
        let frame_bytes = frame.len();
        let tally = self.tally(frame_bytes);
        let outcome = match RequestHeader::decode(frame) {
            Ok((header, body)) => {
                let requests = &self.client.broker.engine.settings.metrics;
                let timer = requests.requests.arrived(header.api, frame_bytes);
                let queued = self.wait_for_room(header.api).await;
                let begun = Instant::now();
                let outcome = self.dispatch(header, body, tally, frame_bytes, memory).await;
                outcome.map(|outcome| outcome.timed(timer, queued, begun.elapsed()))
            }
            Err(HeaderError::UnsupportedVersion {
                api: ApiKey::ApiVersions,
                correlation_id,
                ..
            }) => {
                let call = Call { api: ApiKey::ApiVersions, version: 0, correlation_id };
                call.answer(&api_versions::unsupported()).map(|pieces| counted(tally, pieces))
            }
            Err(error) => Err(error.into()),
        };
        outcome.unwrap_or_else(|refusal| Outcome::Close(refusal.to_string()))
    }

    fn cut_off(&mut self, bytes: usize) {
        // It is counted when it is dropped.
        drop(self.tally(bytes));
    }
}

/// An answer of the session itself, which has no field for a pause.
fn counted(tally: Option<Tally>, pieces: Vec<Bytes>) -> Outcome {
    if let Some(tally) = tally {
        tally.answered(bytes_of(&pieces));
    }
    Outcome::Reply(Reply::new(pieces))
}

impl KafkaSession {
    /// Lets producers wait while the disk or the splitter is behind. Returns for how long it
    /// waited.
    async fn wait_for_room(&self, api: ApiKey) -> Duration {
        if api != ApiKey::Produce || self.sasl.is_some() {
            return Duration::ZERO;
        }
        let begun = Instant::now();
        let engine = &self.client.broker.engine;
        engine.lane.room().await;
        engine.sources.backlog.room().await;
        begun.elapsed()
    }

    async fn dispatch(
        &mut self,
        header: RequestHeader,
        body: Bytes,
        tally: Option<Tally>,
        frame_bytes: usize,
        memory: &mut Option<RequestMemory>,
    ) -> Result<Outcome, Refusal> {
        let RequestHeader { api, version, correlation_id, .. } = header;
        let call = Call { api, version, correlation_id };
        match api {
            ApiKey::ApiVersions => {
                let response = api_versions::handle(version, &call.request(&body)?);
                return Ok(counted(tally, call.answer(&response)?));
            }
            ApiKey::SaslHandshake => return self.handshake(call, &body, tally),
            ApiKey::SaslAuthenticate => return self.authenticate(call, &body, tally).await,
            _ => {}
        }
        let Some(tally) = tally else { return Err(Refusal::NotAuthenticated(api)) };
        let context = self.context(header, tally)?;
        match api {
            ApiKey::Produce => {
                let frame = Frame { bytes: frame_bytes, memory: memory.take() };
                stage_produce(&context, call, body, frame).await
            }
            ApiKey::Fetch => answer_fetch(context, call, body),
            _ => answer_control(context, call, body).await,
        }
    }

    fn handshake(
        &mut self,
        call: Call,
        body: &Bytes,
        tally: Option<Tally>,
    ) -> Result<Outcome, Refusal> {
        let request: SaslHandshakeRequest = call.request(body)?;
        let Some(session) = &mut self.sasl else {
            return Ok(counted(tally, call.answer(&sasl_handshake::unexpected())?));
        };
        let (response, failure) = sasl_handshake::handle(session, call.version, &request);
        let reply = Reply::new(call.answer(&response)?);
        Ok(match failure {
            None => Outcome::Reply(reply),
            Some(failure) => Outcome::LastReply(reply, failure.message),
        })
    }

    async fn authenticate(
        &mut self,
        call: Call,
        body: &Bytes,
        tally: Option<Tally>,
    ) -> Result<Outcome, Refusal> {
        let request: SaslAuthenticateRequest = call.request(body)?;
        if self.sasl.is_none() {
            return Ok(counted(tally, call.answer(&sasl_authenticate::unexpected())?));
        }
        Ok(match self.exchange(&request.auth_bytes).await {
            Ok(token) => {
                Outcome::Reply(Reply::new(call.answer(&sasl_authenticate::accepted(token))?))
            }
            Err(failure) => {
                let reply = Reply::new(call.answer(&sasl_authenticate::refused(&failure))?);
                Outcome::LastReply(reply, failure.message)
            }
        })
    }

    /// Answers a SASL token that came without a request header, which is the form that follows
    /// version 0 of SaslHandshake. The answer is the next token with its length.
    async fn take_bare_token(&mut self, token: &[u8]) -> Outcome {
        match self.exchange(token).await {
            Ok(token) => {
                let mut length = BytesMut::with_capacity(4);
                length.put_u32(u32::try_from(token.len()).expect("tokens are short"));
                Outcome::Reply(Reply::new(vec![length.freeze(), token]))
            }
            Err(failure) => Outcome::Close(failure.message),
        }
    }

    /// Processes a SASL token and returns the next one for the client. Once the exchange is
    /// complete, the session is that of the authenticated client.
    ///
    /// # Errors
    /// [`SaslFailure`] where the client is refused; it is returned after a delay, which does not
    /// depend on the user.
    async fn exchange(&mut self, token: &[u8]) -> Result<Bytes, SaslFailure> {
        let arrived_at = Instant::now();
        let session = self.sasl.as_mut().expect("asked for by the callers");
        let exchanged = exchange_token(&self.client.broker, session, token).await;
        match exchanged {
            Ok(Exchanged::Continue(token)) => Ok(token),
            Ok(Exchanged::Authenticated(principal, token)) => {
                self.sasl = None;
                let known = &self.client;
                let (broker, listener) = (Arc::clone(&known.broker), Arc::clone(&known.listener));
                broker.engine.settings.metrics.authenticated();
                self.client = Arc::new(ClientFacts::new(broker, listener, principal, known.host));
                self.open_account();
                Ok(token)
            }
            Err(failure) => {
                self.client.broker.engine.settings.metrics.authentication_failed();
                delay_refusal(arrived_at).await;
                Err(failure)
            }
        }
    }
}
