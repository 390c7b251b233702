//! From frames to handlers and back: Kafka's sessions.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, SaslAuthenticateRequest, SaslHandshakeRequest};
use kafka_protocol::protocol::{Decodable, Encodable};

use super::service::{Outcome, Reply, Service, Session};
use crate::auth::principal::Principal;
use crate::auth::sasl::{Credentials, SaslFailure, SaslSession, SaslSettings};
use crate::auth::types::{ScramCredential, ScramMechanism};
use crate::handlers::{self, Broker, ClientFacts, ListenerFacts, RequestContext};
use crate::handlers::{api_versions, sasl_authenticate, sasl_handshake};
use crate::metadata::MetadataView;
use crate::protocol::fetch::FetchRequest;
use crate::protocol::guard;
use crate::protocol::header::{HeaderError, RequestHeader, frame_response};
use crate::protocol::produce::ProduceRequest;
use crate::wire::WireError;

/// A failed authentication is answered this late, so that guessing takes time (Kafka's
/// `connection.failed.authentication.delay.ms`).
const FAILED_AUTHENTICATION_DELAY: Duration = Duration::from_millis(100);

/// Kafka over one listener.
pub struct KafkaService {
    broker: Arc<Broker>,
    listener: Arc<ListenerFacts>,
    sasl: Option<Arc<SaslSettings>>,
}

/// The users of the view.
struct ViewedUsers(Arc<MetadataView>);

impl Credentials for ViewedUsers {
    fn scram(&self, user: &str, mechanism: ScramMechanism) -> Option<ScramCredential> {
        self.0.snapshot().scram.get(&(mechanism, user.to_owned())).cloned()
    }
}

impl KafkaService {
    /// Serves a broker through a listener.
    pub fn new(broker: Arc<Broker>, listener: ListenerFacts) -> Self {
        let sasl = (!listener.sasl_mechanisms.is_empty()).then(|| {
            Arc::new(SaslSettings {
                mechanisms: listener.sasl_mechanisms.clone(),
                credentials: Arc::new(ViewedUsers(Arc::clone(&broker.engine.view))),
                decoy: broker.decoy(),
                randomness: Arc::clone(&broker.engine.environment.randomness),
            })
        });
        Self { broker, listener: Arc::new(listener), sasl }
    }
}

impl Service for KafkaService {
    type Session = KafkaSession;

    fn connect(&self, peer: SocketAddr) -> KafkaSession {
        let broker = Arc::clone(&self.broker);
        let listener = Arc::clone(&self.listener);
        let facts = ClientFacts::new(broker, listener, Principal::anonymous(), peer.ip());
        KafkaSession {
            client: Arc::new(facts),
            sasl: self.sasl.as_ref().map(|settings| SaslSession::new(Arc::clone(settings))),
        }
    }
}

/// One client's requests.
pub struct KafkaSession {
    client: Arc<ClientFacts>,
    /// Present until the client is authenticated.
    sasl: Option<SaslSession>,
}

/// Why a request ends its connection.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error("{api:?}: {error}")]
    Body { api: ApiKey, error: WireError },
    #[error("{api:?}: {reason}")]
    Message { api: ApiKey, reason: String },
    #[error("{0:?} before authentication")]
    NotAuthenticated(ApiKey),
}

#[async_trait]
impl Session for KafkaSession {
    fn is_authenticated(&self) -> bool {
        self.sasl.is_none()
    }

    async fn handle(&mut self, frame: Bytes) -> Outcome {
        if self.sasl.as_ref().is_some_and(SaslSession::expects_raw_frames) {
            return self.take_bare_token(&frame).await;
        }
        let frame_bytes = frame.len();
        let outcome = match RequestHeader::decode(frame) {
            Ok((header, body)) => self.dispatch(header, body, frame_bytes).await,
            Err(HeaderError::UnsupportedVersion {
                api: ApiKey::ApiVersions,
                correlation_id,
                ..
            }) => {
                let call = Call { api: ApiKey::ApiVersions, version: 0, correlation_id };
                call.reply(&api_versions::unsupported()).map(Outcome::Reply)
            }
            Err(error) => Err(error.into()),
        };
        outcome.unwrap_or_else(|refusal| Outcome::Close(refusal.to_string()))
    }
}

/// What an answer needs to know of its request.
#[derive(Debug, Clone, Copy)]
struct Call {
    api: ApiKey,
    version: i16,
    correlation_id: i32,
}

impl Call {
    fn frame(self, pieces: Vec<Bytes>) -> Reply {
        Reply::new(frame_response(self.api, self.version, self.correlation_id, pieces))
    }

    fn reply(self, response: &impl Encodable) -> Result<Reply, Refusal> {
        let mut body = BytesMut::new();
        response.encode(&mut body, self.version).map_err(|error| {
            let (api, version) = (self.api, self.version);
            tracing::error!(?api, version, %error, "a response cannot be encoded");
            Refusal::Message { api, reason: error.to_string() }
        })?;
        Ok(self.frame(vec![body.freeze()]))
    }

    /// Decodes a body that was checked, or is checked here.
    fn request<R: Decodable>(self, body: &Bytes) -> Result<R, Refusal> {
        let api = self.api;
        guard::check(api, self.version, body).map_err(|error| Refusal::Body { api, error })?;
        R::decode(&mut body.clone(), self.version)
            .map_err(|error| Refusal::Message { api, reason: error.to_string() })
    }
}

impl KafkaSession {
    async fn dispatch(
        &mut self,
        header: RequestHeader,
        body: Bytes,
        frame_bytes: usize,
    ) -> Result<Outcome, Refusal> {
        let RequestHeader { api, version, correlation_id, client_id } = header;
        let call = Call { api, version, correlation_id };
        match api {
            ApiKey::ApiVersions => {
                let response = api_versions::handle(version, &call.request(&body)?);
                return Ok(Outcome::Reply(call.reply(&response)?));
            }
            ApiKey::SaslHandshake => return self.handshake(call, &body),
            ApiKey::SaslAuthenticate => return self.authenticate(call, &body).await,
            _ if self.sasl.is_some() => return Err(Refusal::NotAuthenticated(api)),
            _ => {}
        }
        let context = RequestContext {
            client: Arc::clone(&self.client),
            client_id: client_id.unwrap_or_default(),
            api_version: version,
        };
        match api {
            ApiKey::Produce => produce(&context, call, body, frame_bytes),
            ApiKey::Fetch => fetch(context, call, body),
            _ => control(context, call, body).await,
        }
    }

    fn handshake(&mut self, call: Call, body: &Bytes) -> Result<Outcome, Refusal> {
        let request: SaslHandshakeRequest = call.request(body)?;
        let Some(session) = &mut self.sasl else {
            return Ok(Outcome::Reply(call.reply(&sasl_handshake::unexpected())?));
        };
        let (response, failure) = sasl_handshake::handle(session, call.version, &request);
        let reply = call.reply(&response)?;
        Ok(match failure {
            None => Outcome::Reply(reply),
            Some(failure) => Outcome::LastReply(reply, failure.message),
        })
    }

    async fn authenticate(&mut self, call: Call, body: &Bytes) -> Result<Outcome, Refusal> {
        let request: SaslAuthenticateRequest = call.request(body)?;
        if self.sasl.is_none() {
            return Ok(Outcome::Reply(call.reply(&sasl_authenticate::unexpected())?));
        }
        Ok(match self.exchange(&request.auth_bytes).await {
            Ok(token) => Outcome::Reply(call.reply(&sasl_authenticate::accepted(token))?),
            Err(failure) => {
                let reply = call.reply(&sasl_authenticate::refused(&failure))?;
                Outcome::LastReply(reply, failure.message)
            }
        })
    }

    /// Takes a token without a header, as it follows version 0 of the handshake.
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

    /// Takes a token; the client is authenticated afterwards, or another token is due.
    async fn exchange(&mut self, token: &[u8]) -> Result<Bytes, SaslFailure> {
        let session = self.sasl.as_mut().expect("asked for by the callers");
        let exchanged = sasl_authenticate::exchange(&self.client.broker, session, token).await;
        match exchanged {
            Ok(sasl_authenticate::Exchanged::Continue(token)) => Ok(token),
            Ok(sasl_authenticate::Exchanged::Authenticated(principal, token)) => {
                self.sasl = None;
                let known = &self.client;
                let (broker, listener) = (Arc::clone(&known.broker), Arc::clone(&known.listener));
                self.client = Arc::new(ClientFacts::new(broker, listener, principal, known.host));
                Ok(token)
            }
            Err(failure) => {
                tokio::time::sleep(FAILED_AUTHENTICATION_DELAY).await;
                Err(failure)
            }
        }
    }
}

fn produce(
    context: &RequestContext,
    call: Call,
    body: Bytes,
    frame_bytes: usize,
) -> Result<Outcome, Refusal> {
    let api = call.api;
    let request =
        ProduceRequest::decode(body, call.version).map_err(|error| Refusal::Body { api, error })?;
    let wants_answer = request.acks != 0;
    let staged = handlers::produce::stage(context, request, frame_bytes);
    if !wants_answer && staged.has_failed() {
        let reason = "an append with acks=0 failed".to_owned();
        return Err(Refusal::Message { api, reason });
    }
    Ok(Outcome::Staged(Box::pin(async move {
        let response = staged.acknowledge().await;
        match wants_answer {
            true => call.frame(vec![response.encode(call.version)]),
            false => Reply::default(),
        }
    })))
}

fn fetch(context: RequestContext, call: Call, body: Bytes) -> Result<Outcome, Refusal> {
    let api = call.api;
    let request =
        FetchRequest::decode(body, call.version).map_err(|error| Refusal::Body { api, error })?;
    Ok(Outcome::Waiting(Box::pin(async move {
        let fetched = handlers::fetch::handle(&context, request).await;
        let mut reply = call.frame(fetched.response.encode(call.version));
        let (egress, memory) = (fetched.egress, fetched.memory);
        reply.written = Some(Box::new(move || {
            let client = &context.client;
            for (topic, bytes) in egress {
                client.broker.engine.egress.add(topic, &client.payer, bytes);
            }
            drop(memory);
        }));
        reply
    })))
}

/// Has one of the other APIs handled to its end.
async fn control(context: RequestContext, call: Call, body: Bytes) -> Result<Outcome, Refusal> {
    let reply = match call.api {
        ApiKey::Metadata => {
            call.reply(&handlers::metadata::handle(&context, call.request(&body)?).await)
        }
        api => {
            let reason = "is advertised and not served".to_owned();
            return Err(Refusal::Message { api, reason });
        }
    };
    reply.map(Outcome::Reply)
}
