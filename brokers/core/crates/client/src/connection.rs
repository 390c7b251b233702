//! One connection to a broker: logged in, one request at a time.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::apis::login::{ApiVersions, SaslAuthenticate, SaslHandshake, Versions};
use crate::apis::{Request, encoded};
use crate::error::{ClientError, KafkaError};
use crate::scram::{ScramClient, ScramFault};
use freshet_access::sasl::Mechanism;
use freshet_wire::budget::{Budget, Share};
use freshet_wire::codec::WireError;
use freshet_wire::protocol::decode::Decoder;
use freshet_wire::protocol::frame::announced_length;
use freshet_wire::protocol::header::request_fields;
use freshet_world::env::{Network, Randomness, Stream};

/// The largest answer that is read, in bytes. Of one with records the first part is still used.
pub(crate) const ANSWER_BYTES_MAX: usize = 16 << 20;
/// What is read of an answer before memory is asked for, in bytes.
const FREE_BYTES: usize = 64 << 10;
/// The most that is asked for at a time, in bytes.
const STEP_BYTES_MAX: usize = 1 << 20;
/// How long an answer waits for memory that others hold.
pub(crate) const MEMORY_TIME: Duration = Duration::from_secs(3);
/// The largest answer before the login is complete, in bytes.
const LOGIN_BYTES_MAX: usize = 64 << 10;

/// How to log in at the brokers of a cluster.
#[derive(Clone)]
pub struct Login {
    /// The user.
    pub user: String,
    /// Its password.
    pub password: String,
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The client id of all requests, for the brokers' logs.
    pub client_id: String,
}

/// The memory for answers: of one cluster, and of all clusters of the process.
#[derive(Debug, Clone)]
pub(crate) struct AnswerMemory {
    pub(crate) own: Budget,
    pub(crate) shared: Budget,
}

/// The shares of both budgets that an answer holds.
#[derive(Debug)]
pub(crate) struct AnswerShare {
    own: Share,
    shared: Share,
}

impl AnswerMemory {
    /// Waits for room for so many bytes. The caller bounds the time.
    pub(crate) async fn acquire(&self, bytes: usize) -> AnswerShare {
        // The cluster's own first: whoever waits for it holds nothing that others need.
        let own = self.own.acquire(bytes).await;
        AnswerShare { own, shared: self.shared.acquire(bytes).await }
    }
}

impl AnswerShare {
    fn merge(&mut self, more: Self) {
        self.own.merge(more.own);
        self.shared.merge(more.shared);
    }
}

/// An answer's body.
pub(crate) struct Reply {
    pub(crate) body: Bytes,
    /// Whether its end was not read.
    pub(crate) is_cut: bool,
    pub(crate) share: Option<AnswerShare>,
}

/// What opening a connection needs.
pub(crate) struct Opener {
    pub(crate) network: Arc<dyn Network>,
    pub(crate) randomness: Arc<dyn Randomness>,
    pub(crate) login: Login,
    pub(crate) memory: AnswerMemory,
}

/// A connection that is logged in.
pub(crate) struct BrokerConnection {
    stream: Box<dyn Stream>,
    address: String,
    versions: Versions,
    requests: i32,
    /// Whether the next request would be answered by the next frame.
    pub(crate) is_reusable: bool,
}

impl BrokerConnection {
    /// Connects and logs in.
    pub(crate) async fn open(opener: &Opener, address: &str) -> Result<Self, ClientError> {
        let stream = opener.network.connect(address).await;
        let mut connection = Self {
            stream: stream.map_err(|error| unreachable(address, &error))?,
            address: address.to_owned(),
            versions: Versions::from([(ApiKey::ApiVersions as i16, (0, 0))]),
            requests: 0,
            is_reusable: true,
        };
        let (code, versions) = connection.ask(opener, &ApiVersions).await?;
        KafkaError::check(code, None)?;
        connection.versions = versions;
        connection.log_in(opener).await?;
        Ok(connection)
    }

    async fn log_in(&mut self, opener: &Opener) -> Result<(), ClientError> {
        let login = &opener.login;
        let handshake = SaslHandshake { mechanism: login.mechanism.name() };
        let code = self.ask(opener, &handshake).await?;
        KafkaError::check(code, None)?;
        match login.mechanism {
            Mechanism::Plain => {
                let token = format!("\0{}\0{}", login.user, login.password);
                self.authenticate(opener, token.into_bytes()).await.map(drop)
            }
            Mechanism::Scram(mechanism) => {
                let randomness = opener.randomness.as_ref();
                let mut scram =
                    ScramClient::new(mechanism, &login.user, &login.password, randomness);
                let challenge = self.authenticate(opener, scram.first()).await?;
                let proof = scram.answer(&challenge).map_err(distrusted)?;
                let verdict = self.authenticate(opener, proof).await?;
                scram.check(&verdict).map_err(distrusted)
            }
        }
    }

    async fn authenticate(
        &mut self,
        opener: &Opener,
        token: Vec<u8>,
    ) -> Result<Bytes, ClientError> {
        let answer = self.ask(opener, &SaslAuthenticate { token: token.into() }).await?;
        KafkaError::check(answer.code, answer.message)?;
        Ok(answer.token)
    }

    /// Sends a request of the login and reads its answer.
    async fn ask<R: Request>(
        &mut self,
        opener: &Opener,
        request: &R,
    ) -> Result<R::Answer, ClientError> {
        let reply = self.call::<R>(opener, None, encoded(request), LOGIN_BYTES_MAX).await?;
        decoded::<R>(&reply)
    }

    /// Sends a request, for which `payer` pays where there is one, and reads its answer, of which
    /// at most `bytes_max` bytes. Where this is dropped or fails, the connection is of no further
    /// use.
    pub(crate) async fn call<R: Request>(
        &mut self,
        opener: &Opener,
        payer: Option<&str>,
        body: Bytes,
        bytes_max: usize,
    ) -> Result<Reply, ClientError> {
        let range = self.versions.get(&(R::API as i16));
        if !range.is_some_and(|(oldest, newest)| (*oldest..=*newest).contains(&R::VERSION)) {
            let message = format!("the broker has no version {} of {}", R::VERSION, R::NAME);
            return Err(ClientError::refused(ResponseError::UnsupportedVersion, message));
        }
        self.is_reusable = false;
        self.requests = self.requests.wrapping_add(1);
        let client_id = &opener.login.client_id;
        let head = request_head::<R>(self.requests, client_id, payer, body.len());
        let broken = |error: &io::Error| unreachable(&self.address, error);
        for piece in [head, body] {
            self.stream.write_all(&piece).await.map_err(|error| broken(&error))?;
        }
        self.stream.flush().await.map_err(|error| broken(&error))?;
        let mut reply = read_answer(self.stream.as_mut(), &opener.memory, bytes_max, R::NAME)
            .await
            .map_err(|fault| match fault {
                ReadFault::Io(error) => unreachable(&self.address, &error),
                ReadFault::Length(reason) => ClientError::Undecodable { api: R::NAME, reason },
                ReadFault::Busy => ClientError::Busy,
            })?;
        reply.body = self.without_head::<R>(reply.body)?;
        self.is_reusable = !reply.is_cut;
        Ok(reply)
    }

    fn without_head<R: Request>(&self, body: Bytes) -> Result<Bytes, ClientError> {
        let is_flexible = R::API.response_header_version(R::VERSION) >= 1;
        let mut input = Decoder::new(body, is_flexible);
        let number = input.i32().and_then(|number| input.skip_tagged().map(|()| number));
        let number = number.map_err(undecodable::<R>)?;
        if number != self.requests {
            let reason = format!("it answers request {number}, not {}", self.requests);
            return Err(ClientError::Undecodable { api: R::NAME, reason });
        }
        Ok(input.rest())
    }

    /// Whether the broker has neither closed the connection nor sent anything unasked.
    pub(crate) fn is_alive(&mut self) -> bool {
        let mut byte = [0; 1];
        let reading = std::pin::pin!(self.stream.read(&mut byte));
        futures::FutureExt::now_or_never(reading).is_none()
    }
}

fn unreachable(address: &str, error: &io::Error) -> ClientError {
    let reason = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the broker closed the connection".to_owned(),
        _ => error.to_string(),
    };
    ClientError::Unreachable { address: address.to_owned(), reason }
}

fn distrusted(fault: ScramFault) -> ClientError {
    ClientError::refused(ResponseError::SaslAuthenticationFailed, fault.to_string())
}

fn undecodable<R: Request>(error: WireError) -> ClientError {
    ClientError::Undecodable { api: R::NAME, reason: error.to_string() }
}

/// Reads an answer.
pub(crate) fn decoded<R: Request>(reply: &Reply) -> Result<R::Answer, ClientError> {
    let mut input = Decoder::new(reply.body.clone(), R::is_flexible());
    R::decode(&mut input, reply.is_cut).map_err(undecodable::<R>)
}

/// The frame's length and the request's header. An older header has no place for who pays.
fn request_head<R: Request>(
    number: i32,
    client_id: &str,
    payer: Option<&str>,
    body_bytes: usize,
) -> Bytes {
    let mut header = BytesMut::new();
    header.put_i16(R::API as i16);
    header.put_i16(R::VERSION);
    header.put_i32(number);
    header.put_i16(i16::try_from(client_id.len()).expect("a client id is short"));
    header.put_slice(client_id.as_bytes());
    if R::is_flexible() {
        header.put_slice(&request_fields(payer));
    }
    let length = i32::try_from(header.len() + body_bytes).expect("a request is below 2 GiB");
    let mut head = BytesMut::with_capacity(4 + header.len());
    head.put_i32(length);
    head.put_slice(&header);
    head.freeze()
}

/// Why an answer was not read.
enum ReadFault {
    Io(io::Error),
    Length(String),
    Busy,
}

impl From<io::Error> for ReadFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads a frame. Beyond its first [`FREE_BYTES`] memory is asked for as bytes arrive, so that a
/// broker which announces much and sends nothing takes nothing from others. Two answers that wait
/// for each other's memory end with their calls' deadlines.
async fn read_answer(
    stream: &mut dyn Stream,
    memory: &AnswerMemory,
    bytes_max: usize,
    api: &'static str,
) -> Result<Reply, ReadFault> {
    let mut prefix = [0; 4];
    stream.read_exact(&mut prefix).await?;
    let announced = announced_length(prefix, usize::MAX)
        .map_err(|error| ReadFault::Length(error.to_string()))?;
    let is_cut = announced > bytes_max;
    if is_cut && api != crate::apis::records::Fetch::NAME {
        let reason = format!("it has {announced} bytes, of which at most {bytes_max} are read");
        return Err(ReadFault::Length(reason));
    }
    let length = announced.min(bytes_max);
    let (mut body, mut share) = (Vec::new(), None::<AnswerShare>);
    let mut room = FREE_BYTES.min(length);
    loop {
        read_up_to(stream, &mut body, room).await?;
        if body.len() == length {
            return Ok(Reply { body: body.into(), is_cut, share });
        }
        let step = room.min(STEP_BYTES_MAX).min(length - room);
        let more = timeout(MEMORY_TIME, memory.acquire(step)).await;
        let more = more.map_err(|_| ReadFault::Busy)?;
        match &mut share {
            Some(share) => share.merge(more),
            None => share = Some(more),
        }
        room += step;
    }
}

/// Reads until the buffer holds `length` bytes.
async fn read_up_to(
    stream: &mut (impl AsyncRead + Unpin + ?Sized),
    body: &mut Vec<u8>,
    length: usize,
) -> io::Result<()> {
    body.reserve_exact(length - body.len());
    while body.len() < length {
        let left = length - body.len();
        if stream.read_buf(&mut (&mut *body).limit(left)).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apis::metadata::Metadata;
    use freshet_wire::protocol::header::RequestHeader;

    fn sent<R: Request>(payer: Option<&str>) -> (RequestHeader, Bytes) {
        let mut frame = BytesMut::from(&request_head::<R>(7, "console", payer, 4)[..]);
        frame.put_slice(b"body");
        let mut frame = frame.freeze();
        let length = frame.split_to(4);
        assert_eq!(length, u32::try_from(frame.len()).expect("it is short").to_be_bytes()[..]);
        RequestHeader::decode(frame).expect("a broker reads it")
    }

    #[test]
    fn a_request_names_who_pays_and_any_other_names_nobody() {
        let (header, body) = sent::<Metadata>(Some("ApiKey:key_a"));
        assert_eq!(header.payer.as_deref(), Some(&b"ApiKey:key_a"[..]));
        assert_eq!((header.correlation_id, header.client_id.as_deref()), (7, Some("console")));
        assert_eq!(body, b"body"[..]);
        assert_eq!(sent::<Metadata>(None).0.payer, None);
        // Its header has no fields beside those of every request.
        assert_eq!(sent::<SaslHandshake>(Some("ApiKey:key_a")), sent::<SaslHandshake>(None));
    }
}
