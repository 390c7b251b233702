//! The requests that a client may send before it is forwarded: ApiVersions, SaslHandshake and
//! SaslAuthenticate. The answers are built by the same code as a broker's.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{ApiKey, SaslAuthenticateRequest, SaslHandshakeRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Gateway;
use super::users::{Named, SUPER_USER, UserCredentials};
use freshet_access::derivation::{Decoy, ITERATIONS_MIN};
use freshet_access::principal::Principal;
use freshet_access::sasl::{SaslFailure, SaslSession, SaslSettings, Step, Verification, Verified};
use freshet_greeting::call::{Call, Refusal};
use freshet_greeting::{api_versions, sasl_authenticate, sasl_handshake};
use freshet_metadata::ClusterError;
use freshet_wire::protocol::frame::{FrameError, announced_length, read_body};
use freshet_wire::protocol::header::{HeaderError, RequestHeader};
use freshet_world::env::Stream;

/// The pause before a failed authentication is answered, as a broker makes it, so that guessing
/// takes time.
const FAILED_AUTHENTICATION_DELAY: Duration = Duration::from_millis(100);

/// Why a client was not let in.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoginError {
    #[error("the client left")]
    ClientLeft,
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Socket(#[from] std::io::Error),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("wrong credentials: {0}")]
    Failed(String),
    #[error("credentials cannot be looked up: {0}")]
    NoCredentials(ClusterError),
    #[error("{0}")]
    NotAdmitted(String),
}

impl LoginError {
    /// Whether it is worth a line in the log: something that no proper client does.
    pub(super) fn is_suspicious(&self) -> bool {
        match self {
            Self::ClientLeft | Self::Socket(_) | Self::Frame(FrameError::Io(_)) => false,
            Self::Frame(_) | Self::Refused(_) | Self::Failed(_) => true,
            Self::NoCredentials(_) | Self::NotAdmitted(_) => true,
        }
    }
}

/// Why a client that has proven who it is may not go on.
pub(super) enum NotAdmitted {
    /// It gets this text as an error.
    Refused(&'static str),
    /// Its connection is closed, so that it tries again.
    Closed(String),
}

/// The authentication of one client.
pub(super) struct Login<'a> {
    gateway: &'a Gateway,
    cluster: &'a Arc<str>,
    named: Arc<Named>,
    session: SaslSession,
    bytes_left: usize,
}

/// The outcome of one token.
enum Exchanged {
    Continue(Bytes),
    Authenticated(Principal, Bytes),
}

impl<'a> Login<'a> {
    pub(super) fn new(gateway: &'a Gateway, cluster: &'a Arc<str>) -> Self {
        let named = Arc::new(Named::default());
        let settings = Arc::new(SaslSettings {
            mechanisms: gateway.mechanisms.clone(),
            credentials: Arc::clone(&named) as _,
            decoy: Decoy::new(gateway.cell_secret.decoy(cluster), ITERATIONS_MIN),
            randomness: Arc::clone(&gateway.randomness),
        });
        let session = SaslSession::new(settings);
        Self { gateway, cluster, named, session, bytes_left: gateway.unauthenticated_bytes_max }
    }

    /// Answers requests until the client has authenticated and `admit` lets it in. The caller
    /// bounds the time.
    ///
    /// # Errors
    /// [`LoginError`], after the client got the answer that Kafka gives in that case. The caller
    /// closes the connection.
    pub(super) async fn run(
        mut self,
        stream: &mut dyn Stream,
        mut admit: impl FnMut(&Principal) -> Result<(), NotAdmitted>,
    ) -> Result<Principal, LoginError> {
        loop {
            let frame = self.next_frame(stream).await?;
            let authenticated = if self.session.expects_raw_frames() {
                self.take_bare_token(stream, &frame, &mut admit).await?
            } else {
                self.take_request(stream, frame, &mut admit).await?
            };
            if let Some(principal) = authenticated {
                return Ok(principal);
            }
        }
    }

    /// Reads one frame, within the bytes that the client may still send. Nothing behind it is read.
    async fn next_frame(&mut self, stream: &mut dyn Stream) -> Result<Bytes, LoginError> {
        let mut prefix = [0; 4];
        match stream.read(&mut prefix).await? {
            0 => return Err(LoginError::ClientLeft),
            read => stream.read_exact(&mut prefix[read..]).await?,
        };
        let length = announced_length(prefix, self.bytes_left)?;
        self.bytes_left = (self.bytes_left - length).saturating_sub(prefix.len());
        let _memory = self.gateway.unauthenticated_memory.acquire(length).await;
        let mut stream = stream;
        Ok(read_body(&mut stream, length).await?)
    }

    async fn take_request(
        &mut self,
        stream: &mut dyn Stream,
        frame: Bytes,
        admit: &mut impl FnMut(&Principal) -> Result<(), NotAdmitted>,
    ) -> Result<Option<Principal>, LoginError> {
        let (header, body) = match RequestHeader::decode(frame) {
            Ok(decoded) => decoded,
            Err(HeaderError::UnsupportedVersion {
                api: ApiKey::ApiVersions,
                correlation_id,
                ..
            }) => {
                let call = Call { api: ApiKey::ApiVersions, version: 0, correlation_id };
                send_pieces(stream, call.answer(&api_versions::unsupported())?).await?;
                return Ok(None);
            }
            Err(error) => return Err(Refusal::from(error).into()),
        };
        let RequestHeader { api, version, correlation_id, .. } = header;
        let call = Call { api, version, correlation_id };
        match api {
            ApiKey::ApiVersions => {
                let response = api_versions::handle(version, &call.request(&body)?);
                send_pieces(stream, call.answer(&response)?).await?;
            }
            ApiKey::SaslHandshake => {
                let request: SaslHandshakeRequest = call.request(&body)?;
                let handled = sasl_handshake::handle(&mut self.session, version, &request);
                send_pieces(stream, call.answer(&handled.0)?).await?;
                if let Some(failure) = handled.1 {
                    return Err(LoginError::Failed(failure.message));
                }
            }
            ApiKey::SaslAuthenticate => {
                let request: SaslAuthenticateRequest = call.request(&body)?;
                return self.take_token(stream, call, &request.auth_bytes, admit).await;
            }
            api => return Err(Refusal::NotAuthenticated(api).into()),
        }
        Ok(None)
    }

    async fn take_token(
        &mut self,
        stream: &mut dyn Stream,
        call: Call,
        token: &[u8],
        admit: &mut impl FnMut(&Principal) -> Result<(), NotAdmitted>,
    ) -> Result<Option<Principal>, LoginError> {
        let failure = match self.exchange(token).await? {
            Ok(Exchanged::Continue(token)) => {
                send_pieces(stream, call.answer(&sasl_authenticate::accepted(token))?).await?;
                return Ok(None);
            }
            Ok(Exchanged::Authenticated(principal, token)) => match admit(&principal) {
                Ok(()) => {
                    send_pieces(stream, call.answer(&sasl_authenticate::accepted(token))?).await?;
                    return Ok(Some(principal));
                }
                Err(NotAdmitted::Closed(reason)) => return Err(LoginError::NotAdmitted(reason)),
                Err(NotAdmitted::Refused(reason)) => {
                    let error = ResponseError::SaslAuthenticationFailed;
                    let message = format!("Authentication failed: {reason}");
                    let failure = SaslFailure { error, message };
                    send_pieces(stream, call.answer(&sasl_authenticate::refused(&failure))?)
                        .await?;
                    return Err(LoginError::NotAdmitted(reason.to_owned()));
                }
            },
            Err(failure) => failure,
        };
        send_pieces(stream, call.answer(&sasl_authenticate::refused(&failure))?).await?;
        Err(LoginError::Failed(failure.message))
    }

    /// Handles a token without a header, as clients send it after version 0 of the handshake. A
    /// failure closes the connection without an answer, as in Kafka.
    async fn take_bare_token(
        &mut self,
        stream: &mut dyn Stream,
        token: &[u8],
        admit: &mut impl FnMut(&Principal) -> Result<(), NotAdmitted>,
    ) -> Result<Option<Principal>, LoginError> {
        let (principal, token) = match self.exchange(token).await? {
            Ok(Exchanged::Continue(token)) => (None, token),
            Ok(Exchanged::Authenticated(principal, token)) => (Some(principal), token),
            Err(failure) => return Err(LoginError::Failed(failure.message)),
        };
        match principal.as_ref().map(admit) {
            None | Some(Ok(())) => {}
            Some(Err(NotAdmitted::Refused(reason))) => {
                return Err(LoginError::NotAdmitted(reason.to_owned()));
            }
            Some(Err(NotAdmitted::Closed(reason))) => return Err(LoginError::NotAdmitted(reason)),
        }
        let mut length = BytesMut::with_capacity(4);
        length.put_u32(u32::try_from(token.len()).expect("tokens are short"));
        send_pieces(stream, vec![length.freeze(), token]).await?;
        Ok(principal)
    }

    /// Handles a token. The outer error ends the connection without an answer: the user's
    /// credentials could not be read, so an answer that the user is unknown might be wrong.
    async fn exchange(
        &mut self,
        token: &[u8],
    ) -> Result<Result<Exchanged, SaslFailure>, LoginError> {
        if let Some(user) = self.session.named_user(token) {
            let mechanisms = self.gateway.users.look_up(self.cluster, &user).await;
            self.named.set(user, mechanisms.map_err(LoginError::NoCredentials)?);
        }
        let mut step = self.session.authenticate(token);
        loop {
            match step {
                Ok(Step::Continue(bytes)) => return Ok(Ok(Exchanged::Continue(bytes.into()))),
                Ok(Step::Authenticated(principal, bytes)) => {
                    return Ok(self.authenticated(principal, bytes.into()));
                }
                Ok(Step::Verify(verification)) => {
                    let verified = self.gateway.verify(self.cluster, verification).await;
                    step = self.session.verified(verified);
                }
                Err(failure) => {
                    self.gateway.metrics.authentication_failed(self.cluster);
                    tokio::time::sleep(FAILED_AUTHENTICATION_DELAY).await;
                    return Ok(Err(failure));
                }
            }
        }
    }

    fn authenticated(&self, principal: Principal, token: Bytes) -> Result<Exchanged, SaslFailure> {
        let credentials: Option<UserCredentials> = self.named.take(principal.name());
        // Neither can happen, and a bug here must not let anybody in: the credentials are of the
        // user that was proven, and that is never the super user.
        let Some(credentials) = credentials.filter(|_| principal.name() != SUPER_USER) else {
            return Err(SaslFailure {
                error: ResponseError::SaslAuthenticationFailed,
                message: "Authentication failed".to_owned(),
            });
        };
        self.gateway.users.remember(self.cluster, principal.name(), credentials);
        Ok(Exchanged::Authenticated(principal, token))
    }
}

impl Gateway {
    /// Checks a password off the threads that serve connections: one of a cluster at a time, so
    /// that guessing a password of one cluster does not delay the others, and
    /// [`VERIFICATIONS_AT_ONCE`] in all.
    async fn verify(&self, cluster: &Arc<str>, verification: Verification) -> Verified {
        let of_cluster = self.verifications_of(cluster);
        let closed = "the semaphore is never closed";
        let _turn = of_cluster.acquire().await.expect(closed);
        let _turn_in_all = self.verifications.acquire().await.expect(closed);
        #[allow(clippy::disallowed_methods, reason = "simulations have no gateway")]
        let checking = tokio::task::spawn_blocking(move || verification.run());
        checking.await.expect("checking a password does not panic")
    }
}

async fn send_pieces(stream: &mut dyn Stream, pieces: Vec<Bytes>) -> Result<(), LoginError> {
    let mut bytes = Vec::new();
    for piece in &pieces {
        bytes.extend_from_slice(piece);
    }
    stream.write_all(&bytes).await?;
    Ok(stream.flush().await?)
}
