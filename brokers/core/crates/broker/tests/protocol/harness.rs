//! A broker under test and a client that speaks raw protocol.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use freshet_access::principal::Principal;
use freshet_access::sasl::Mechanism;
use freshet_access::types::{ScramCredential, ScramMechanism};
use freshet_broker::context::{Broker, BrokerSettings, ClientFacts, ListenerFacts, RequestContext};
use freshet_broker::server::dispatch::KafkaService;
use freshet_broker::server::links::KafkaLinks;
use freshet_broker::server::{Server, ServerLimits};
use freshet_engine::{Engine, EngineSettings};
use freshet_link::{self as link, LinkError, LinkSecret, LinkedClient};
use freshet_metadata::SqliteStore;
use freshet_metadata::schema::{BrokerPlace, TrafficLimit};
use freshet_metadata::store::MetadataStore;
use freshet_s3::open_world;
use freshet_wire::records::BatchBuilder;
use freshet_world::env::store::ObjectStore;
use freshet_world::env::{Environment, Listener, Stream};
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    ApiKey, CreateTopicsRequest, MetadataRequest, ProduceRequest, RequestHeader, ResponseHeader,
    TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// The host that the broker gives clients to connect to.
pub const HOST: &str = "broker.test";
pub const PORT: u16 = 9092;
/// The node that [`TestBroker::with_other`] adds.
pub const OTHER: i32 = 1;
/// The address of clients.
pub const ADDRESS: [u8; 4] = [10, 1, 2, 3];

/// Accepts the streams that a test makes.
struct Streams(mpsc::UnboundedReceiver<DuplexStream>);

#[async_trait]
impl Listener for Streams {
    async fn accept(&mut self) -> std::io::Result<(Box<dyn Stream>, SocketAddr)> {
        match self.0.recv().await {
            Some(stream) => Ok((Box::new(stream), SocketAddr::from((ADDRESS, 50_000)))),
            None => std::future::pending().await,
        }
    }

    fn local_address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], PORT))
    }
}

/// Wraps an object store.
pub type BeforeBucket = fn(Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore>;

/// The settings of a broker under test.
#[derive(Default)]
pub struct Setup {
    pub settings: BrokerSettings,
    pub sasl_mechanisms: Vec<Mechanism>,
    pub limits: ServerLimits,
    /// The zone of the broker.
    pub zone: &'static str,
    /// Memory for the newest batches, where it is not the default.
    pub hot_bytes: Option<usize>,
    /// Wraps the object store, where it is set.
    pub before_bucket: Option<BeforeBucket>,
}

/// A broker under test.
pub struct TestBroker {
    pub engine: Arc<Engine>,
    broker: Arc<Broker>,
    pub server: Arc<Server>,
    connect: mpsc::UnboundedSender<DuplexStream>,
    connect_link: mpsc::UnboundedSender<DuplexStream>,
    _serving: [AbortOnDropHandle<()>; 2],
    _folder: tempfile::TempDir,
}

impl TestBroker {
    pub async fn start() -> Self {
        Self::with(Setup::default()).await
    }

    pub async fn with(setup: Setup) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn MetadataStore> = Arc::new(SqliteStore::in_memory());
        let mut settings = EngineSettings::new("test");
        settings.offsets_partitions = 2;
        settings.groups.initial_rebalance_delay_ms = 0;
        settings.place.zone = setup.zone.to_owned();
        settings.hot_bytes = setup.hot_bytes.unwrap_or(settings.hot_bytes);
        let mut environment = environment(folder.path());
        if let Some(before) = setup.before_bucket {
            environment.bucket = before(environment.bucket);
        }
        let engine = Engine::start(environment, store, settings).await.unwrap();
        let broker = Broker::new(Arc::clone(&engine), setup.settings);
        let facts = listener(setup.sasl_mechanisms);
        let server = Server::new(setup.limits, engine.liveness.clone());
        let (connect, streams) = mpsc::unbounded_channel();
        let service = KafkaService::new(Arc::clone(&broker), facts);
        let clients = service.serve(Arc::clone(&server), Box::new(Streams(streams)));
        let (connect_link, streams) = mpsc::unbounded_channel();
        let links = KafkaLinks::new(Arc::clone(&broker), link_secret());
        let links = links.serve(Arc::clone(&server), Box::new(Streams(streams)));
        let serving = [tokio::spawn(clients), tokio::spawn(links)].map(AbortOnDropHandle::new);
        Self { engine, broker, server, connect, connect_link, _serving: serving, _folder: folder }
    }

    /// A broker whose cluster has another one that lives, and never answers.
    pub async fn with_other() -> Self {
        let broker = Self::start().await;
        let metadata = &broker.engine.metadata;
        let stored = metadata.set_scale(2).await.unwrap();
        broker.engine.view.wait_for(stored.revision).await.unwrap();
        let incarnation = metadata.next_incarnation().await.unwrap();
        let slot = OTHER.cast_unsigned();
        let place = BrokerPlace { kafka: "other.test:9092".to_owned(), ..BrokerPlace::default() };
        let fence = metadata.register_in_slot(incarnation, slot, "", place, None).await.unwrap();
        broker.engine.view.wait_for(fence.revision).await.unwrap();
        broker
    }

    /// A connection to the listener for gateways.
    pub fn link(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        self.connect_link.send(theirs).unwrap();
        ours
    }

    /// A client that comes through a gateway.
    pub async fn linked(&self, client: &LinkedClient) -> Result<Client, LinkError> {
        let mut stream = self.link();
        let randomness = self.engine.environment.randomness.as_ref();
        link::open(&mut stream, &link_secret(), randomness, client).await?;
        Ok(Client { stream, next_correlation_id: 1, name: "tests", payer: None, moved: 0 })
    }

    pub fn client(&self) -> Client {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        self.connect.send(theirs).unwrap();
        Client { stream: ours, next_correlation_id: 1, name: "tests", payer: None, moved: 0 }
    }

    /// The circumstances of a request, for handlers that are called directly.
    pub fn context(&self, api_version: i16) -> RequestContext {
        let (broker, listener) = (Arc::clone(&self.broker), Arc::new(listener(Vec::new())));
        let client =
            ClientFacts::new(broker, listener, Principal::anonymous(), IpAddr::from(ADDRESS));
        RequestContext::new(Arc::new(client), text("tests"), api_version)
    }

    /// Limits what clients produce and fetch, and returns once the broker knows it.
    pub async fn limit_traffic(&self, limit: Option<TrafficLimit>) {
        let mut limits = self.engine.view.traffic_limits();
        self.engine.metadata.set_traffic_limit(limit.as_ref()).await.unwrap();
        let is_shown = |shown: &Option<Arc<TrafficLimit>>| shown.as_deref() == limit.as_ref();
        limits.wait_for(is_shown).await.unwrap();
    }

    /// Creates a user that can authenticate.
    pub async fn add_user(&self, name: &str, password: &str) {
        let randomness = self.engine.environment.randomness.as_ref();
        let changes = [ScramMechanism::Sha256, ScramMechanism::Sha512].map(|mechanism| {
            let made = ScramCredential::from_password(password, mechanism, 4096, randomness);
            (mechanism, Some(made.unwrap()))
        });
        let revision = self.engine.metadata.alter_scram(None, name, &changes).await.unwrap();
        self.engine.view.wait_for(revision).await.unwrap();
    }
}

/// The secret that gateways of a broker under test know.
pub fn link_secret() -> LinkSecret {
    LinkSecret::new(&[7; 32]).unwrap()
}

fn listener(sasl_mechanisms: Vec<Mechanism>) -> ListenerFacts {
    ListenerFacts {
        name: "test".to_owned(),
        advertised_host: HOST.to_owned(),
        advertised_port: PORT,
        advertised_by_slot: Vec::new(),
        sasl_mechanisms,
    }
}

fn environment(folder: &Path) -> Environment {
    let (dfs, bucket) = (folder.join("dfs"), folder.join("bucket"));
    open_world(&dfs, bucket.to_str().unwrap()).unwrap()
}

/// The tag of the header's field that names who pays, which no message of Kafka has.
const PAYER_TAG: i32 = 1 << 20;

/// A client of a broker under test.
pub struct Client {
    stream: DuplexStream,
    next_correlation_id: i32,
    pub name: &'static str,
    /// The principal that its requests name as the one who pays, where their header has a place.
    pub payer: Option<&'static str>,
    /// Bytes that it sent and received, with the lengths of frames.
    pub moved: u64,
}

impl Client {
    /// Sends a request and returns its correlation id.
    pub async fn send<R: Request>(&mut self, version: i16, request: &R) -> i32 {
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id += 1;
        let api = ApiKey::try_from(R::KEY).unwrap();
        let mut header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(correlation_id)
            .with_client_id(Some(StrBytes::from_static_str(self.name)));
        let header_version = api.request_header_version(version);
        if let Some(payer) = self.payer.filter(|_| header_version >= 2) {
            header = header.with_unknown_tagged_field(PAYER_TAG, payer.into());
        }
        let mut frame = BytesMut::new();
        header.encode(&mut frame, header_version).unwrap();
        request.encode(&mut frame, version).unwrap();
        self.send_frame(&frame).await;
        correlation_id
    }

    pub async fn send_frame(&mut self, frame: &[u8]) {
        let mut bytes = BytesMut::with_capacity(4 + frame.len());
        bytes.put_u32(u32::try_from(frame.len()).unwrap());
        bytes.put_slice(frame);
        self.send_bytes(&bytes).await;
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
        self.moved += bytes.len() as u64;
    }

    pub async fn receive_frame(&mut self) -> Bytes {
        let length = self.stream.read_u32().await.unwrap();
        let mut frame = vec![0; length as usize];
        self.stream.read_exact(&mut frame).await.unwrap();
        self.moved += 4 + frame.len() as u64;
        frame.into()
    }

    /// Receives the answer to the request of this correlation id, which must be the next.
    pub async fn receive<R: Request>(&mut self, version: i16, correlation_id: i32) -> R::Response {
        let mut frame = self.receive_frame().await;
        let header_version = R::Response::header_version(version);
        let header = ResponseHeader::decode(&mut frame, header_version).unwrap();
        assert_eq!(header.correlation_id, correlation_id, "answers leave in order");
        let response = R::Response::decode(&mut frame, version).unwrap();
        assert!(!frame.has_remaining(), "bytes follow the response");
        response
    }

    pub async fn call<R: Request>(&mut self, version: i16, request: R) -> R::Response {
        let correlation_id = self.send(version, &request).await;
        self.receive::<R>(version, correlation_id).await
    }

    /// Waits until the broker has closed the connection, without an answer.
    pub async fn is_closed(&mut self) {
        assert_eq!(self.stream.read(&mut [0]).await.unwrap_or(0), 0, "an answer came");
    }

    /// Waits for an answer, or for the end of the connection, and returns which came.
    pub async fn was_answered(&mut self) -> bool {
        self.stream.read(&mut [0]).await.unwrap_or(0) > 0
    }

    /// Creates a topic and returns its id.
    pub async fn create_topic(
        &mut self,
        name: &str,
        partitions: i32,
        configs: &[(&str, &str)],
    ) -> uuid::Uuid {
        let configs = configs.iter().map(|(name, value)| {
            CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value)))
        });
        let topic = CreatableTopic::default()
            .with_name(topic_name(name))
            .with_num_partitions(partitions)
            .with_replication_factor(3)
            .with_configs(configs.collect());
        let request = CreateTopicsRequest::default().with_topics(vec![topic]);
        let response = self.call(7, request.with_timeout_ms(10_000)).await;
        assert_eq!(response.topics[0].error_code, 0, "{:?}", response.topics[0].error_message);
        response.topics[0].topic_id
    }

    /// Produces one batch. Returns the error code and the base offset.
    pub async fn produce(&mut self, topic: &str, partition: i32, batch: Bytes) -> (i16, i64) {
        let request = produce_request(topic, partition, batch);
        let response = self.call(9, request).await;
        let answer = &response.responses[0].partition_responses[0];
        (answer.error_code, answer.base_offset)
    }

    /// Metadata of some topics.
    pub async fn metadata(
        &mut self,
        topics: &[&str],
    ) -> kafka_protocol::messages::MetadataResponse {
        let topics = topics
            .iter()
            .map(|name| MetadataRequestTopic::default().with_name(Some(topic_name(name))))
            .collect();
        let request = MetadataRequest::default()
            .with_topics(Some(topics))
            .with_allow_auto_topic_creation(false);
        self.call(12, request).await
    }
}

pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub fn topic_name(name: &str) -> TopicName {
    TopicName(text(name))
}

/// A batch of these values.
pub fn batch(values: &[&str]) -> Bytes {
    let empty = BatchBuilder::new(0);
    let records = values.iter().zip(1_700_000_000_000..);
    records.fold(empty, |batch, (value, at)| batch.record(at, None, Some(value.as_bytes()))).build()
}

/// A request with one batch.
pub fn produce_request(topic: &str, partition: i32, batch: Bytes) -> ProduceRequest {
    let data = PartitionProduceData::default().with_index(partition).with_records(Some(batch));
    let topic =
        TopicProduceData::default().with_name(topic_name(topic)).with_partition_data(vec![data]);
    ProduceRequest::default().with_acks(-1).with_timeout_ms(10_000).with_topic_data(vec![topic])
}
