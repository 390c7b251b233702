//! The requests that a client may send before it is forwarded: ApiVersions, SaslHandshake and
//! SaslAuthenticate. The answers are built by the same code as a broker's.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{ApiKey, SaslAuthenticateRequest, SaslHandshakeRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep_until};

use super::Gateway;
use super::attempts::{Attempt, Digest};
use super::limits::{Full, Place};
use super::users::{Named, SUPER_USER, UserCredentials};
use super::view::check_usable;
use freshet_access::derivation::{Decoy, ITERATIONS_MIN};
use freshet_access::principal::Principal;
use freshet_access::sasl::{SaslFailure, SaslSession, SaslSettings, Step, Verification, Verified};
use freshet_greeting::call::{Call, Refusal};
use freshet_greeting::refusal_delay::delay_refusal;
use freshet_greeting::{api_versions, sasl_authenticate, sasl_handshake};
use freshet_metadata::ClusterError;
use freshet_wire::protocol::frame::{FrameError, announced_length};
use freshet_wire::protocol::header::{HeaderError, RequestHeader};
use freshet_world::env::Stream;

/// The first memory of a request that is longer, in bytes: more than any client's first requests
/// have.
const FIRST_BYTES: usize = 4 << 10;

/// A shorter wait for other attempts is none that anybody would ask about.
const NOTABLE_WAIT: Duration = Duration::from_millis(100);
/// So long before its time is over a connection is closed that has to wait for longer.
const CLOSING_TIME: Duration = Duration::from_millis(20);

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
    #[error(transparent)]
    Full(#[from] Full),
    #[error("{0}")]
    NotAdmitted(&'static str),
    #[error("too many wrong passwords for cluster {0}")]
    TooManyWrong(Arc<str>),
}

impl LoginError {
    /// Whether it is worth a line in the log: something that no proper client does.
    pub(super) fn is_suspicious(&self) -> bool {
        match self {
            Self::ClientLeft | Self::Socket(_) | Self::Frame(FrameError::Io(_)) => false,
            Self::Frame(_) | Self::Refused(_) | Self::Failed(_) => true,
            Self::NoCredentials(_) | Self::Full(_) | Self::NotAdmitted(_) => true,
            Self::TooManyWrong(_) => true,
        }
    }
}

/// The authentication of one client.
pub(super) struct Login<'a> {
    gateway: &'a Gateway,
    cluster: &'a Arc<str>,
    place: &'a mut Place,
    named: Arc<Named>,
    session: SaslSession,
    bytes_left: usize,
    /// When the client has to have authenticated.
    due: Instant,
}

/// The outcome of one token.
enum Exchanged {
    Continue(Bytes),
    Authenticated(Principal, Bytes),
}

impl<'a> Login<'a> {
    pub(super) fn new(
        gateway: &'a Gateway,
        cluster: &'a Arc<str>,
        place: &'a mut Place,
        due: Instant,
    ) -> Self {
        let named = Arc::new(Named::default());
        let settings = Arc::new(SaslSettings {
            mechanisms: gateway.mechanisms.clone(),
            credentials: Arc::clone(&named) as _,
            decoy: Decoy::new(gateway.cell_secret.decoy(cluster), ITERATIONS_MIN),
            randomness: Arc::clone(&gateway.randomness),
        });
        let session = SaslSession::new(settings);
        Self {
            gateway,
            cluster,
            place,
            named,
            session,
            bytes_left: gateway.unauthenticated_bytes_max,
            due,
        }
    }

    /// Answers requests until the client has authenticated and the cluster has a place for it. The
    /// caller bounds the time.
    ///
    /// # Errors
    /// [`LoginError`], after the client got the answer that Kafka gives in that case. The caller
    /// closes the connection.
    pub(super) async fn run(mut self, stream: &mut dyn Stream) -> Result<Principal, LoginError> {
        loop {
            self.place.set_waiting(true);
            let frame = self.next_frame(stream).await?;
            self.place.set_waiting(false);
            let authenticated = if self.session.expects_raw_frames() {
                self.take_bare_token(stream, &frame).await?
            } else {
                self.take_request(stream, frame).await?
            };
            self.place.release();
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
        self.read_body(stream, length).await
    }

    /// Reads what follows a frame's length. Memory is taken for what arrives: the buffer has at
    /// most [`FIRST_BYTES`] or twice what has arrived. Where there is no memory for it the
    /// connection ends at once, so that no client waits for another.
    async fn read_body(
        &mut self,
        stream: &mut dyn Stream,
        length: usize,
    ) -> Result<Bytes, LoginError> {
        let mut frame = Vec::new();
        while frame.len() < length {
            if frame.len() == frame.capacity() {
                let capacity = (2 * frame.len()).max(FIRST_BYTES).min(length);
                self.place.hold(capacity)?;
                frame.reserve_exact(capacity - frame.len());
            }
            let room = frame.capacity().min(length) - frame.len();
            if stream.read_buf(&mut (&mut frame).limit(room)).await? == 0 {
                return Err(LoginError::ClientLeft);
            }
        }
        Ok(frame.into())
    }

    async fn take_request(
        &mut self,
        stream: &mut dyn Stream,
        frame: Bytes,
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
                return self.take_token(stream, call, &request.auth_bytes).await;
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
    ) -> Result<Option<Principal>, LoginError> {
        let failure = match self.exchange(token).await? {
            Ok(Exchanged::Continue(token)) => {
                send_pieces(stream, call.answer(&sasl_authenticate::accepted(token))?).await?;
                return Ok(None);
            }
            Ok(Exchanged::Authenticated(principal, token)) => match self.admit()? {
                Ok(()) => {
                    send_pieces(stream, call.answer(&sasl_authenticate::accepted(token))?).await?;
                    return Ok(Some(principal));
                }
                Err(reason) => {
                    let error = ResponseError::SaslAuthenticationFailed;
                    let message = format!("Authentication failed: {reason}");
                    let failure = SaslFailure { error, message };
                    send_pieces(stream, call.answer(&sasl_authenticate::refused(&failure))?)
                        .await?;
                    return Err(LoginError::NotAdmitted(reason));
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
    ) -> Result<Option<Principal>, LoginError> {
        let (principal, token) = match self.exchange(token).await? {
            Ok(Exchanged::Continue(token)) => (None, token),
            Ok(Exchanged::Authenticated(principal, token)) => {
                self.admit()?.map_err(LoginError::NotAdmitted)?;
                (Some(principal), token)
            }
            Err(failure) => return Err(LoginError::Failed(failure.message)),
        };
        let mut length = BytesMut::with_capacity(4);
        length.put_u32(u32::try_from(token.len()).expect("tokens are short"));
        send_pieces(stream, vec![length.freeze(), token]).await?;
        Ok(principal)
    }

    /// Whether a client that has proven who it is may go on. The inner error is the text that it
    /// gets. After the outer one its connection is closed without an answer, so that it tries
    /// again.
    fn admit(&mut self) -> Result<Result<(), &'static str>, Full> {
        let view = self.gateway.view.borrow().clone();
        let spec = view.spec(self.cluster);
        if let Err(reason) = check_usable(spec) {
            return Ok(Err(reason));
        }
        let most = spec.map_or(0, |spec| spec.connections_max);
        self.place.join(self.cluster, usize::try_from(most).unwrap_or(usize::MAX))?;
        Ok(Ok(()))
    }

    /// Handles a token. The outer error ends the connection without an answer: the user's
    /// credentials could not be read, so an answer that the user is unknown might be wrong.
    async fn exchange(
        &mut self,
        token: &[u8],
    ) -> Result<Result<Exchanged, SaslFailure>, LoginError> {
        let arrived_at = Instant::now();
        if let Some(user) = self.session.named_user(token) {
            let mechanisms = {
                let address = self.place.shared_address();
                let _turn = self.gateway.look_ups.take(self.cluster, address).await;
                self.gateway.users.look_up(self.cluster, &user).await
            };
            self.named.set(user, mechanisms.map_err(LoginError::NoCredentials)?);
        }
        let outcome = if self.session.expects_proof() {
            let attempt = self.begin_attempt().await?;
            let step = self.session.authenticate(token);
            conclude(attempt, None, step)
        } else {
            match self.session.authenticate(token) {
                Ok(Step::Verify(verification)) => self.check(token, verification).await?,
                other => other,
            }
        };
        match outcome {
            Ok(Step::Continue(bytes)) => Ok(Ok(Exchanged::Continue(bytes.into()))),
            Ok(Step::Authenticated(principal, bytes)) => {
                Ok(self.authenticated(principal, bytes.into()))
            }
            Ok(Step::Verify(_)) => unreachable!("a check was made before"),
            Err(failure) => {
                self.gateway.metrics.authentication_failed(self.cluster);
                delay_refusal(arrived_at).await;
                Ok(Err(failure))
            }
        }
    }

    /// Waits until this client may try a password. It holds its place meanwhile, which another
    /// client may take. Where it would have to wait for longer than it has, its connection ends
    /// without an answer when its time is over: Kafka's clients take a refusal as final, and its
    /// password may be right.
    async fn begin_attempt(&self) -> Result<Attempt, LoginError> {
        let user = self.named.name();
        let address = self.place.shared_address();
        let mut waiting = self.gateway.attempts.announce(self.cluster, &user, address);
        let mut waits = false;
        loop {
            let until = match waiting.begin() {
                Ok(attempt) => {
                    self.place.set_waiting(false);
                    return Ok(attempt);
                }
                Err(until) => until,
            };
            if !waits && until > Instant::now() + NOTABLE_WAIT {
                waits = true;
                self.gateway.metrics.authentication_waits(self.cluster);
                self.place.set_waiting(true);
            }
            let last = self.due - CLOSING_TIME;
            if until >= last {
                // Others do not wait behind it.
                drop(waiting);
                sleep_until(last).await;
                return Err(LoginError::TooManyWrong(Arc::clone(self.cluster)));
            }
            sleep_until(until).await;
        }
    }

    /// Checks a password, unless the client has tried the same before.
    async fn check(
        &mut self,
        token: &[u8],
        verification: Verification,
    ) -> Result<Result<Step, SaslFailure>, LoginError> {
        let attempt = self.begin_attempt().await?;
        let password = self.digest(token);
        let verified = if attempt.is_known_as_wrong(password) {
            Verification::refuse()
        } else {
            self.verify(verification).await
        };
        let step = self.session.verified(verified);
        Ok(conclude(attempt, Some(password), step))
    }

    /// A digest of what the client tries, and of the user's password of this moment.
    fn digest(&self, token: &[u8]) -> Digest {
        let credentials = self.named.credentials();
        let stored = credentials.stored_keys().map(str::as_bytes);
        self.gateway.attempts.digest(stored.chain([token]))
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

    /// Checks a password on a thread that gives way to those that serve, when it is this client's
    /// turn.
    async fn verify(&self, verification: Verification) -> Verified {
        let address = self.place.shared_address();
        let _turn = self.gateway.verifications.take(self.cluster, address).await;
        let checking = self.gateway.verifying.run(move || verification.run());
        checking.await.expect("checking a password does not panic")
    }
}

/// Notes the outcome of an attempt. The answer to a failure says how long the next one has to wait.
fn conclude(
    attempt: Attempt,
    password: Option<Digest>,
    outcome: Result<Step, SaslFailure>,
) -> Result<Step, SaslFailure> {
    let mut failure = match outcome {
        Ok(step) => {
            attempt.succeed();
            return Ok(step);
        }
        Err(failure) => failure,
    };
    let wait_s = attempt.fail(password).as_secs();
    if wait_s > 0 {
        let more = format!(". There were several in a row: wait {wait_s} s before the next try");
        failure.message.push_str(&more);
    }
    Err(failure)
}

async fn send_pieces(stream: &mut dyn Stream, pieces: Vec<Bytes>) -> Result<(), LoginError> {
    let mut bytes = Vec::new();
    for piece in &pieces {
        bytes.extend_from_slice(piece);
    }
    stream.write_all(&bytes).await?;
    Ok(stream.flush().await?)
}
