//! What tests of a gateway share: a cell, its brokers and clients. The module is compiled into the
//! crate, because it uses private parts of it.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{
    ApiKey, RequestHeader, ResponseHeader, SaslAuthenticateRequest, SaslHandshakeRequest,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request};
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tokio_util::task::AbortOnDropHandle;

use super::tls::{Certificate, ensure_authority};
use super::view::{CellView, Names};
use super::{CellSecret, Gateway, GatewaySettings, World};
use freshet_access::scram::client as scram_client;
use freshet_access::types::{ScramCredential, ScramMechanism};
use freshet_link::{LinkError, LinkedClient};
use freshet_metadata::cell::CellMetadata;
use freshet_metadata::samples::spec;
use freshet_metadata::schema::Stored;
use freshet_metadata::schema::cell::{
    BrokerStatus, ClusterSpec, ClusterStatus, Phase, WakeRequest,
};
use freshet_metadata::schema::{
    BrokerPlace, IncarnationRecord, IncarnationState, Key, ScramRecord, SealedEnd, encode,
};
use freshet_metadata::store::{Change, Entry, Page, Transaction, Watch};
use freshet_metadata::{MetadataError, MetadataStore, ScopedStore, SqliteStore};
use freshet_wire::ids::Incarnation;
use freshet_world::env::background::ComputeThreads;
use freshet_world::env::files;
use freshet_world::env::{Clock, Listener, Network, Stream};
use freshet_world::sim::random::{Seeded, SeededRandomness};

/// A clock that shows one time.
pub struct StoppedClock(pub i64);

impl Clock for StoppedClock {
    fn now_ms(&self) -> i64 {
        self.0
    }
}

/// A store in memory that can be made unavailable, and counts its watches.
pub struct Switched {
    store: SqliteStore,
    off: AtomicBool,
    no_watches: AtomicBool,
    watches: Arc<()>,
}

impl Switched {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            store: SqliteStore::in_memory(),
            off: AtomicBool::new(false),
            no_watches: AtomicBool::new(false),
            watches: Arc::default(),
        })
    }

    /// Whether new watches are refused.
    pub fn refuse_watches(&self, refused: bool) {
        self.no_watches.store(refused, Ordering::Relaxed);
    }

    /// How many watches there are.
    pub fn watches(&self) -> usize {
        Arc::strong_count(&self.watches) - 1
    }

    pub fn turn_off(&self) {
        self.off.store(true, Ordering::Relaxed);
    }

    pub fn turn_on(&self) {
        self.off.store(false, Ordering::Relaxed);
    }

    fn check(&self) -> Result<(), MetadataError> {
        if self.off.load(Ordering::Relaxed) {
            return Err(MetadataError::Unavailable("turned off".to_owned()));
        }
        Ok(())
    }
}

#[async_trait]
impl MetadataStore for Switched {
    async fn get(&self, key: &str) -> Result<Option<Entry>, MetadataError> {
        self.check()?;
        self.store.get(key).await
    }

    async fn range(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page, MetadataError> {
        self.check()?;
        self.store.range(prefix, after, limit).await
    }

    async fn commit(&self, transaction: Transaction) -> Result<u64, MetadataError> {
        self.check()?;
        self.store.commit(transaction).await
    }

    async fn watch(&self, prefix: &str, after: u64) -> Result<Box<dyn Watch>, MetadataError> {
        self.check()?;
        if self.no_watches.load(Ordering::Relaxed) {
            return Err(MetadataError::Unavailable("no watches".to_owned()));
        }
        let watch = self.store.watch(prefix, after).await?;
        Ok(Box::new(CountedWatch { watch, _counted: Arc::clone(&self.watches) }))
    }
}

struct CountedWatch {
    watch: Box<dyn Watch>,
    _counted: Arc<()>,
}

#[async_trait]
impl Watch for CountedWatch {
    async fn next(&mut self) -> Result<Vec<Change>, MetadataError> {
        self.watch.next().await
    }
}

/// Gives a user a password, for both mechanisms.
pub async fn add_user(store: &Arc<dyn MetadataStore>, cluster: &str, user: &str, password: &str) {
    let randomness = SeededRandomness::new(Seeded::new(1));
    let mut transaction = Transaction::new();
    for mechanism in [ScramMechanism::Sha256, ScramMechanism::Sha512] {
        let credential =
            ScramCredential::from_password(password, mechanism, 4096, &randomness).unwrap();
        let record = ScramRecord { mechanism, user: user.to_owned(), credential };
        let key = Key::Scram(mechanism, user.to_owned()).to_string();
        transaction = transaction.put(key, encode(&record));
    }
    scoped(store, cluster).commit(transaction).await.unwrap();
}

/// Removes a user.
pub async fn remove_user(store: &Arc<dyn MetadataStore>, cluster: &str, user: &str) {
    let keys = [ScramMechanism::Sha256, ScramMechanism::Sha512]
        .map(|mechanism| Key::Scram(mechanism, user.to_owned()).to_string());
    let transaction = keys.into_iter().fold(Transaction::new(), Transaction::delete);
    scoped(store, cluster).commit(transaction).await.unwrap();
}

/// A start of a broker as its cluster's metadata has it.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    pub incarnation: u64,
    pub slot: u32,
    pub link: &'a str,
    pub zone: &'a str,
}

impl Start<'_> {
    /// Its key and its record in a state.
    pub fn entry(&self, state: IncarnationState) -> (String, Bytes) {
        let has_end = matches!(state, IncarnationState::Sealed | IncarnationState::Closed);
        let (link, zone) = (self.link.to_owned(), self.zone.to_owned());
        let record = IncarnationRecord {
            state,
            slot: self.slot,
            sealed_end: has_end.then_some(SealedEnd { file: 1, sequence: 2 }),
            started_at_ms: 0,
            ended_at_ms: None,
            host: String::new(),
            place: BrokerPlace { link, zone, ..BrokerPlace::default() },
        };
        (Key::Incarnation(Incarnation(self.incarnation)).to_string(), encode(&record))
    }
}

/// Writes, in one transaction, in which states starts of a cluster's brokers are.
pub async fn put_starts(
    store: &Arc<dyn MetadataStore>,
    cluster: &str,
    starts: &[(Start<'_>, IncarnationState)],
) {
    let entries = starts.iter().map(|(start, state)| start.entry(*state));
    let put = |transaction: Transaction, (key, value)| transaction.put(key, value);
    let transaction = entries.fold(Transaction::new(), put);
    scoped(store, cluster).commit(transaction).await.unwrap();
}

/// A broker as the keeper lists it.
pub fn listed(slot: u32, link: &str) -> BrokerStatus {
    let (kafka, metrics) = (String::new(), String::new());
    BrokerStatus { slot, link: link.to_owned(), kafka, metrics, pid: None }
}

/// The status of a cluster with these brokers, by slot and address.
pub fn running(brokers: &[(u32, &str)]) -> ClusterStatus {
    ClusterStatus {
        observed_generation: 1,
        phase: Phase::Running,
        since_ms: 0,
        brokers: brokers.iter().map(|(slot, link)| listed(*slot, link)).collect(),
        connections: 0,
        restarts: 0,
        message: String::new(),
        started_for: "gateway con_1".to_owned(),
    }
}

fn scoped(store: &Arc<dyn MetadataStore>, cluster: &str) -> ScopedStore {
    ScopedStore::new(Arc::clone(store), cluster).unwrap()
}

/// A network in memory: connections to an address are pipes to the broker that was added for it.
#[derive(Default)]
struct Pipes(Mutex<BTreeMap<String, mpsc::UnboundedSender<DuplexStream>>>);

#[async_trait]
impl Network for Pipes {
    async fn listen(&self, _address: &str) -> io::Result<Box<dyn Listener>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn connect(&self, address: &str) -> io::Result<Box<dyn Stream>> {
        let (near, far) = tokio::io::duplex(1 << 16);
        let brokers = self.0.lock();
        let broker = brokers.get(address).ok_or(io::ErrorKind::ConnectionRefused)?;
        broker.send(far).map_err(|_| io::ErrorKind::ConnectionRefused)?;
        Ok(Box::new(near))
    }
}

const CELL_SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// A cell with a gateway: cluster `cl_1` with users alice and bob at port 9092, `cl_2` with alice
/// at port 9093. Both sleep.
pub struct Cell {
    pub gateway: Arc<Gateway>,
    pub metadata: CellMetadata,
    pub switch: Arc<Switched>,
    network: Arc<Pipes>,
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    _folder: tempfile::TempDir,
    _background: AbortOnDropHandle<()>,
}

impl Cell {
    pub async fn new() -> Self {
        Self::with(&GatewaySettings::default()).await
    }

    /// A cell whose gateway has these settings.
    pub async fn with(settings: &GatewaySettings) -> Self {
        let switch = Switched::new();
        let store: Arc<dyn MetadataStore> = switch.clone();
        let metadata = CellMetadata::new(Arc::clone(&store));
        metadata.put_spec(&spec("cl_1", 1)).await.unwrap();
        let other = ClusterSpec { host: "other".into(), ports: vec![9093], ..spec("cl_2", 1) };
        metadata.put_spec(&other).await.unwrap();
        for (cluster, user) in [("cl_1", "alice"), ("cl_1", "bob"), ("cl_2", "alice")] {
            add_user(&store, cluster, user, "secret").await;
        }
        // A record of the super user, written past the handlers, must let nobody in.
        add_user(&store, "cl_1", super::users::SUPER_USER, "secret").await;
        let network = Arc::new(Pipes::default());
        let (gateway, background) = gateway(settings, store, network.clone(), 3).await;
        let folder = tempfile::tempdir().unwrap();
        let made = ensure_authority(folder.path(), "kafka.localhost", &StoppedClock(now())).await;
        let certificate = Certificate::load(made.unwrap(), "kafka.localhost").await.unwrap();
        let authority = files::read(&folder.path().join("ca.pem")).await.unwrap();
        Self {
            gateway,
            metadata,
            switch,
            network,
            acceptor: certificate.acceptor(),
            connector: connector(&authority),
            _folder: folder,
            _background: background,
        }
    }

    /// Another gateway of the cell, and the task that keeps its view current.
    pub async fn beside(&self) -> (Arc<Gateway>, AbortOnDropHandle<()>) {
        gateway(&GatewaySettings::default(), self.store(), self.network.clone(), 4).await
    }

    pub fn store(&self) -> Arc<dyn MetadataStore> {
        self.switch.clone()
    }

    /// A client at the port of `cl_1`.
    pub fn client(&self) -> Client {
        self.client_of(9092)
    }

    /// A client at the port of `cl_1`, from an address.
    pub fn client_from(&self, address: &str) -> Client {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let peer = SocketAddr::new(address.parse().unwrap(), 50_000);
        self.gateway.spawn_plain(Box::new(theirs), peer, 9092);
        Client { stream: Box::new(ours) }
    }

    pub fn client_of(&self, port: u16) -> Client {
        client_at(&self.gateway, port)
    }

    /// A client with TLS that asks for a name.
    pub async fn tls_client(&self, name: &str) -> Client {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let peer = "192.0.2.1:50000".parse().unwrap();
        self.gateway.spawn_tls(Box::new(theirs), peer, self.acceptor.clone());
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let stream = self.connector.connect(name, ours).await.unwrap();
        Client { stream: Box::new(Encrypted(stream)) }
    }

    /// A client of `cl_1` and the broker's end of its connection.
    pub async fn forwarded(&self) -> (Client, Box<DuplexStream>) {
        self.forwarded_as("alice").await
    }

    pub async fn forwarded_as(&self, user: &str) -> (Client, Box<DuplexStream>) {
        let mut broker = self.broker_at("cl_1", "127.0.0.1:7000");
        self.runs("cl_1", "127.0.0.1:7000").await;
        self.sees(|view| view.spec("cl_1").is_some()).await;
        let mut client = self.client();
        client.log_in(user, "secret").await.unwrap();
        let (stream, _) = broker.accept().await;
        (client, Box::new(stream))
    }

    /// A broker of a cluster listens there from now on.
    pub fn broker_at(&self, cluster: &str, address: &str) -> Broker {
        let (sender, connections) = mpsc::unbounded_channel();
        self.network.0.lock().insert(address.to_owned(), sender);
        let secret = CellSecret::from_text(CELL_SECRET).unwrap().link(cluster);
        Broker { secret, connections }
    }

    /// Nobody listens there any more.
    pub fn refuse_at(&self, address: &str) {
        self.network.0.lock().remove(address);
    }

    /// Writes, as the keeper does, that a cluster runs with one broker.
    pub async fn runs(&self, cluster: &str, link: &str) {
        self.runs_at(cluster, &[(0, link)]).await;
    }

    /// Writes, as the keeper does, that a cluster runs with these brokers, by slot and address.
    pub async fn runs_at(&self, cluster: &str, brokers: &[(u32, &str)]) {
        self.metadata.put_status(cluster, &running(brokers)).await.unwrap();
    }

    /// Waits for a wake request of a cluster, and removes it as the keeper does.
    pub async fn next_wake(&self, cluster: &str) -> Stored<WakeRequest> {
        loop {
            if let Some(wake) = self.metadata.wake(cluster).await.unwrap() {
                self.metadata.remove_wake(cluster, wake.revision).await.unwrap();
                return wake;
            }
            tokio::task::yield_now().await;
        }
    }

    pub async fn spec(&self, cluster: &str) -> ClusterSpec {
        self.metadata.spec(cluster).await.unwrap().unwrap().record
    }

    /// Waits until the gateway knows something.
    pub async fn sees(&self, known: impl Fn(&CellView) -> bool) {
        self.gateway.view.clone().wait_for(|view| known(view)).await.unwrap();
    }
}

async fn gateway(
    settings: &GatewaySettings,
    store: Arc<dyn MetadataStore>,
    network: Arc<Pipes>,
    seed: u64,
) -> (Arc<Gateway>, AbortOnDropHandle<()>) {
    let names =
        Names { plain_host: "127.0.0.1".into(), domain: "kafka.localhost".into(), tls_port: 9443 };
    let world = World {
        store,
        clock: Arc::new(StoppedClock(7)),
        randomness: Arc::new(SeededRandomness::new(Seeded::new(seed))),
        network,
        compute: ComputeThreads::new("test", 2).unwrap(),
    };
    let secret = CellSecret::from_text(CELL_SECRET).unwrap();
    let made = Gateway::new(settings, names, secret, world).await;
    let (gateway, background) = made.unwrap();
    (gateway, AbortOnDropHandle::new(tokio::spawn(background)))
}

/// A client at a port of a gateway.
pub fn client_at(gateway: &Arc<Gateway>, port: u16) -> Client {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    gateway.spawn_plain(Box::new(theirs), "192.0.2.1:50000".parse().unwrap(), port);
    Client { stream: Box::new(ours) }
}

fn now() -> i64 {
    freshet_world::env::real::SystemClock.now_ms()
}

fn connector(authority: &[u8]) -> TlsConnector {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// A broker's listener for gateways.
pub struct Broker {
    secret: freshet_link::LinkSecret,
    connections: mpsc::UnboundedReceiver<DuplexStream>,
}

impl Broker {
    async fn greet(&mut self) -> (DuplexStream, Result<LinkedClient, LinkError>) {
        let mut stream = self.connections.recv().await.unwrap();
        let randomness = SeededRandomness::new(Seeded::new(4));
        let greeted = freshet_link::accept(&mut stream, &self.secret, &randomness, Ok).await;
        (stream, greeted)
    }

    pub async fn accept(&mut self) -> (DuplexStream, LinkedClient) {
        let (stream, greeted) = self.greet().await;
        (stream, greeted.unwrap())
    }

    /// Waits for a connection, and says nothing.
    pub async fn connection(&mut self) -> DuplexStream {
        self.connections.recv().await.unwrap()
    }

    pub async fn refuses(&mut self) {
        let (_, greeted) = self.greet().await;
        assert!(matches!(greeted, Err(LinkError::Unproven)), "{greeted:?}");
    }
}

struct Encrypted(tokio_rustls::client::TlsStream<DuplexStream>);

impl tokio::io::AsyncRead for Encrypted {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::pin::Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl tokio::io::AsyncWrite for Encrypted {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<io::Result<usize>> {
        std::pin::Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::pin::Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::pin::Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl Stream for Encrypted {}

/// A client that speaks raw protocol.
pub struct Client {
    pub stream: Box<dyn Stream>,
}

/// Error code and message.
type Refused = (i16, String);

impl Client {
    /// Authenticates with PLAIN.
    pub async fn log_in(&mut self, user: &str, password: &str) -> Result<(), Refused> {
        self.authenticate("PLAIN", user, password).await
    }

    /// Sends the credentials, without waiting for the last answer.
    pub async fn hand_in(&mut self, user: &str, password: &str) {
        self.handshake("PLAIN").await;
        self.send_token(format!("\0{user}\0{password}").into_bytes()).await;
    }

    pub async fn authenticate(
        &mut self,
        mechanism: &str,
        user: &str,
        password: &str,
    ) -> Result<(), Refused> {
        self.handshake(mechanism).await;
        let hash = match mechanism {
            "SCRAM-SHA-256" => ScramMechanism::Sha256,
            "SCRAM-SHA-512" => ScramMechanism::Sha512,
            _ => {
                let token = format!("\0{user}\0{password}").into_bytes();
                return self.token(token).await.map(|_| ());
            }
        };
        let first = scram_client::first_message(user);
        let challenge = self.token(first.clone().into_bytes()).await?;
        let challenge = String::from_utf8(challenge.to_vec()).unwrap();
        let (last, signature) = scram_client::answer(hash, &first, &challenge, password);
        let proof = self.token(last.into_bytes()).await?;
        assert_eq!(proof, signature, "the gateway knows the password too");
        Ok(())
    }

    async fn handshake(&mut self, mechanism: &str) {
        let request = SaslHandshakeRequest::default().with_mechanism(mechanism.to_owned().into());
        self.send(ApiKey::SaslHandshake, 1, &request).await;
        let answer = self.receive::<SaslHandshakeRequest>(1).await;
        assert_eq!(answer.error_code, 0);
    }

    async fn send_token(&mut self, token: Vec<u8>) {
        let request = SaslAuthenticateRequest::default().with_auth_bytes(token.into());
        self.send(ApiKey::SaslAuthenticate, 2, &request).await;
    }

    async fn token(&mut self, token: Vec<u8>) -> Result<Bytes, Refused> {
        self.send_token(token).await;
        let answer = self.receive::<SaslAuthenticateRequest>(2).await;
        match answer.error_code {
            0 => Ok(answer.auth_bytes),
            code => Err((code, answer.error_message.unwrap_or_default().to_string())),
        }
    }

    /// Sends a request whose answer is not asked for.
    pub async fn call<R: Request>(&mut self, version: i16, request: &R) {
        self.send(ApiKey::try_from(R::KEY).unwrap(), version, request).await;
    }

    pub async fn send<R: Request>(&mut self, api: ApiKey, version: i16, request: &R) {
        let header = RequestHeader::default()
            .with_request_api_key(api as i16)
            .with_request_api_version(version)
            .with_correlation_id(1)
            .with_client_id(Some("tests".to_owned().into()));
        let mut frame = BytesMut::new();
        header.encode(&mut frame, api.request_header_version(version)).unwrap();
        request.encode(&mut frame, version).unwrap();
        self.send_frame(&frame).await;
    }

    pub async fn send_frame(&mut self, frame: &[u8]) {
        let mut bytes = BytesMut::new();
        bytes.put_u32(u32::try_from(frame.len()).unwrap());
        bytes.put_slice(frame);
        self.stream.write_all(&bytes).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    pub async fn receive<R: Request>(&mut self, version: i16) -> R::Response {
        let mut frame = self.receive_frame().await;
        ResponseHeader::decode(&mut frame, R::Response::header_version(version)).unwrap();
        R::Response::decode(&mut frame, version).unwrap()
    }

    pub async fn receive_frame(&mut self) -> Bytes {
        let length = self.stream.read_u32().await.unwrap();
        let mut frame = vec![0; length as usize];
        self.stream.read_exact(&mut frame).await.unwrap();
        frame.into()
    }

    /// Waits until the gateway has closed the connection, and asserts that it sends nothing before.
    pub async fn is_closed(&mut self) {
        assert_eq!(self.stream.read(&mut [0]).await.unwrap_or(0), 0, "an answer came");
    }
}
