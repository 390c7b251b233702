// A load of many small requests: many producers, each record a request of its own. It speaks the
// protocol itself, from one thread: a hundred producers of librdkafka are four hundred threads,
// whose turns on one CPU would be measured instead of a broker. Producers are idempotent, have a
// connection per broker, and as many requests under way on it as Kafka's own allow. librdkafka is
// asked for who leads what, once. Prints one JSON line, the same as `produce.c`, and how late
// records were sent: what is late before a broker has it is the machine's doing or the generator's.
//
// usage: trickle BOOTSTRAP TOPIC RECORDS RECORD_SIZE [NAME=NUMBER]...
//        rate=N       so many records a second, and latencies count from when a record was due;
//                     0 is as many as are answered
//        producers=N  so many, in turn; each record goes to a partition drawn anew
//        stamp=1      each record begins with the moment at which it was due (8 bytes, ns)
//        skip_ms=N    latencies of the first so many milliseconds are not kept
//        partitions=N  BOOTSTRAP is one server that leads so many partitions, and is asked for
//                     nothing but to take records (`least.c`)

#include "producing.h"
#include "wire.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
  UNDER_WAY_MAX = 5,
  WAITING_MAX = 1000,
  EVENTS_MAX = 256,
  OPEN_SECONDS_MAX = 30,
  ANSWER_BYTES_MAX = 4096,
  PRODUCE = 0,
  PRODUCE_VERSION = 7,
  HOST_BYTES_MAX = 256,
  INIT_PRODUCER_ID = 22,
  ACK_TIMEOUT_MS = 30000,
  // Of a record batch, from its first byte.
  BATCH_LENGTH_AT = 8,
  CRC_AT = 17,
  ATTRIBUTES_AT = 21,
  BASE_TIMESTAMP_AT = 27,
  MAX_TIMESTAMP_AT = 35,
  BASE_SEQUENCE_AT = 53,
  BATCH_HEADER_BYTES = 61,
};

struct waiting {
  uint64_t due_ns;
  uint32_t partition;
};

// One producer's connection to one broker. Answers come in the order of requests.
struct connection {
  int socket;
  struct waiting queue[WAITING_MAX];  // a ring: those under way first
  uint32_t first, count, under_way;
  uint8_t answer[ANSWER_BYTES_MAX];
  size_t answered;
};

struct address {
  char host[HOST_BYTES_MAX];
  int port;
};

struct producer {
  int64_t id;
  int16_t epoch;
  uint32_t *sequences;  // by partition
  struct connection *connections;  // by broker
};

// Bytes of a request that are being put together.
struct request {
  uint8_t *bytes;
  size_t length;
};

struct load {
  struct options options;
  const char *topic;
  uint64_t partitions;
  uint32_t brokers;
  struct address *addresses;  // by broker
  uint32_t *leaders;  // by partition, as a place among the brokers
  struct producer *producers;
  struct request request;
  size_t batch_at, partition_at, value_at;
  struct outcome outcome;
  uint64_t sent;
  int epoll;
};

static uint32_t crc_table[256];

static void make_crc_table(void) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0x82F63B78 : crc >> 1;
    crc_table[i] = crc;
  }
}

static uint32_t crc32c(const uint8_t *bytes, size_t length) {
  uint32_t crc = UINT32_MAX;
  for (size_t i = 0; i < length; i++) crc = crc >> 8 ^ crc_table[(crc ^ bytes[i]) & 0xFF];
  return ~crc;
}

static void add_8(struct request *request, int8_t value) {
  request->bytes[request->length++] = (uint8_t)value;
}

static void add_16(struct request *request, int16_t value) {
  write_16(request->bytes + request->length, value);
  request->length += sizeof value;
}

static void add_32(struct request *request, int32_t value) {
  write_32(request->bytes + request->length, value);
  request->length += sizeof value;
}

static void add_64(struct request *request, int64_t value) {
  write_64(request->bytes + request->length, value);
  request->length += sizeof value;
}

static void add_text(struct request *request, const char *text) {
  size_t length = strlen(text);
  add_16(request, (int16_t)length);
  memcpy(request->bytes + request->length, text, length);
  request->length += length;
}

// Of a record: zigzag and seven bits a byte.
static void add_varint(struct request *request, int32_t value) {
  uint32_t left = (uint32_t)value << 1 ^ (uint32_t)(value >> 31);
  for (; left >= 0x80; left >>= 7) add_8(request, (int8_t)(left | 0x80));
  add_8(request, (int8_t)left);
}

static uint32_t varint_bytes(int32_t value) {
  uint8_t bytes[8];
  struct request request = {bytes, 0};
  add_varint(&request, value);
  return (uint32_t)request.length;
}

static void add_header(struct request *request, int16_t api, int16_t version) {
  request->length = 0;
  add_32(request, 0);  // the length, written when it is known
  add_16(request, api);
  add_16(request, version);
  add_32(request, 0);  // the correlation
  add_text(request, "trickle");
}

static void close_request(struct request *request) {
  write_32(request->bytes, (uint32_t)(request->length - 4));
}

// Makes the request that all records are sent in: only a few numbers change from one to the next.
static void make_request(struct load *load) {
  struct request *request = &load->request;
  size_t size = load->options.size;
  request->bytes = allocate(size + strlen(load->topic) + 256, 1);
  add_header(request, PRODUCE, PRODUCE_VERSION);
  add_16(request, -1);  // no transaction
  add_16(request, -1);  // acks: all
  add_32(request, ACK_TIMEOUT_MS);
  add_32(request, 1);
  add_text(request, load->topic);
  add_32(request, 1);
  load->partition_at = request->length;
  add_32(request, 0);
  int32_t value = (int32_t)size;
  // attributes, timestamp, offset, no key, the value, no headers
  int32_t record = 4 + (int32_t)varint_bytes(value) + value + 1;
  int32_t batch = BATCH_HEADER_BYTES + (int32_t)varint_bytes(record) + record;
  add_32(request, batch);
  load->batch_at = request->length;
  add_64(request, 0);
  add_32(request, batch - BATCH_LENGTH_AT - 4);
  add_32(request, -1);
  add_8(request, 2);
  add_32(request, 0);  // the checksum
  add_16(request, 0);
  add_32(request, 0);  // one record
  add_64(request, 0), add_64(request, 0);  // timestamps
  add_64(request, 0), add_16(request, 0), add_32(request, 0);  // the producer and its sequence
  add_32(request, 1);
  add_varint(request, record);
  add_8(request, 0), add_varint(request, 0), add_varint(request, 0), add_varint(request, -1);
  add_varint(request, value);
  load->value_at = request->length;
  fill((char *)request->bytes + request->length, size);
  request->length += size;
  add_varint(request, 0);
  close_request(request);
}

static int64_t wall_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / NS_PER_MS;
}

// A socket's buffer takes all that may be under way, so nothing is ever sent in part.
static void send_all(int socket, const struct request *request) {
  ssize_t sent = send(socket, request->bytes, request->length, MSG_NOSIGNAL);
  if (sent != (ssize_t)request->length) fail("send", sent < 0 ? strerror(errno) : "in part");
}

static void send_record(struct load *load, struct producer *producer,
                        struct connection *connection) {
  const struct waiting *record =
      &connection->queue[(connection->first + connection->under_way) % WAITING_MAX];
  uint8_t *bytes = load->request.bytes, *batch = bytes + load->batch_at;
  write_32(bytes + load->partition_at, record->partition);
  int64_t moment_ms = wall_ms();
  write_64(batch + BASE_TIMESTAMP_AT, moment_ms);
  write_64(batch + MAX_TIMESTAMP_AT, moment_ms);
  write_64(batch + MAX_TIMESTAMP_AT + 8, producer->id);
  write_16(batch + MAX_TIMESTAMP_AT + 16, producer->epoch);
  write_32(batch + BASE_SEQUENCE_AT, producer->sequences[record->partition]++);
  if (load->options.stamp) memcpy(bytes + load->value_at, &record->due_ns, STAMP_BYTES);
  size_t checked = load->request.length - load->batch_at - ATTRIBUTES_AT;
  write_32(batch + CRC_AT, crc32c(batch + ATTRIBUTES_AT, checked));
  send_all(connection->socket, &load->request);
  note_sent(&load->outcome, record->due_ns, now_ns());
  connection->under_way++;
}

static void send_waiting(struct load *load, struct producer *producer,
                         struct connection *connection) {
  while (connection->under_way < connection->count && connection->under_way < UNDER_WAY_MAX)
    send_record(load, producer, connection);
}

static void take_answer(struct load *load, struct connection *connection, const uint8_t *answer) {
  // Length, correlation, one topic by name, one partition by index.
  int16_t error = (int16_t)read_16(answer + 8 + 4 + 2 + strlen(load->topic) + 4 + 4);
  uint64_t now = now_ns(), due_ns = connection->queue[connection->first].due_ns;
  connection->first = (connection->first + 1) % WAITING_MAX;
  connection->count--, connection->under_way--;
  if (error)
    note_error(&load->outcome, (rd_kafka_resp_err_t)error);
  else
    note_delivered(&load->outcome, due_ns, now);
}

static void receive(struct load *load, struct connection *connection) {
  ssize_t got = recv(connection->socket, connection->answer + connection->answered,
                     ANSWER_BYTES_MAX - connection->answered, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) fail("receive", got < 0 ? strerror(errno) : "the broker closed a connection");
  connection->answered += (size_t)got;
  size_t taken = 0;
  while (connection->answered - taken >= 4) {
    const uint8_t *answer = connection->answer + taken;
    size_t length = 4 + (size_t)read_32(answer);
    if (length > ANSWER_BYTES_MAX) fail("receive", "an answer is too long");
    if (connection->answered - taken < length) break;
    take_answer(load, connection, answer);
    taken += length;
  }
  connection->answered -= taken;
  memmove(connection->answer, connection->answer + taken, connection->answered);
}

// Waits for answers until a moment, and sends what their places are for.
static void serve_until(struct load *load, uint64_t moment_ns) {
  struct epoll_event events[EVENTS_MAX];
  uint64_t now = now_ns(), left = moment_ns > now ? moment_ns - now : 0;
  struct timespec timeout = {(time_t)(left / NS_PER_S), (long)(left % NS_PER_S)};
  int ready = epoll_pwait2(load->epoll, events, EVENTS_MAX, &timeout, NULL);
  if (ready < 0 && errno != EINTR) fail("epoll", strerror(errno));
  for (int i = 0; i < ready; i++) {
    struct producer *producer = &load->producers[events[i].data.u64 / load->brokers];
    struct connection *connection = &producer->connections[events[i].data.u64 % load->brokers];
    receive(load, connection);
    send_waiting(load, producer, connection);
  }
}

static void send_all_records(void *opaque) {
  struct load *load = opaque;
  const struct options *options = &load->options;
  const struct outcome *outcome = &load->outcome;
  uint64_t began_ns = now_ns();
  struct drawn drawn = FIRST_DRAWN;
  while (load->sent < options->records) {
    uint64_t due_ns = now_ns();
    if (options->rate) {
      due_ns = due_ns_of(options, began_ns, load->sent);
      while (due_ns > now_ns()) serve_until(load, due_ns);
    }
    struct producer *producer = &load->producers[load->sent % options->producers];
    uint32_t partition = (uint32_t)(draw(&drawn) % load->partitions);
    struct connection *connection = &producer->connections[load->leaders[partition]];
    uint32_t room = options->rate ? WAITING_MAX : UNDER_WAY_MAX;
    while (connection->count == room) serve_until(load, now_ns() + NS_PER_MS);
    connection->queue[(connection->first + connection->count++) % WAITING_MAX] =
        (struct waiting){due_ns, partition};
    load->sent++;
    send_waiting(load, producer, connection);
    // Answers are not left lying while a load is late.
    if (load->sent % 16 == 0) serve_until(load, 0);
  }
  uint64_t until_ns = now_ns() + (uint64_t)REST_SECONDS_MAX * NS_PER_S;
  while (outcome->delivered + outcome->errors < options->records) {
    if (now_ns() > until_ns) fail("flush", "records were not answered in time");
    serve_until(load, now_ns() + NS_PER_MS);
  }
}

static int connect_to(const char *host, int port) {
  char service[16];
  snprintf(service, sizeof service, "%d", port);
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
  int error = getaddrinfo(host, service, &hints, &found);
  if (error) fail(host, gai_strerror(error));
  int connected = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  if (connected < 0 || connect(connected, found->ai_addr, found->ai_addrlen))
    fail(host, strerror(errno));
  setsockopt(connected, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  freeaddrinfo(found);
  return connected;
}

static void receive_exactly(int socket, uint8_t *bytes, size_t length) {
  ssize_t got = recv(socket, bytes, length, MSG_WAITALL);
  if (got != (ssize_t)length) fail("receive", got < 0 ? strerror(errno) : "the broker hung up");
}

// A broker that has just started may have no ids to give yet.
static void name_producer(struct producer *producer) {
  uint8_t bytes[64];
  struct request request = {bytes, 0};
  uint64_t until_ns = now_ns() + (uint64_t)OPEN_SECONDS_MAX * NS_PER_S;
  for (;;) {
    add_header(&request, INIT_PRODUCER_ID, 0);
    add_16(&request, -1);
    add_32(&request, 0);
    close_request(&request);
    int socket = producer->connections[0].socket;
    send_all(socket, &request);
    receive_exactly(socket, bytes, 4);
    size_t length = read_32(bytes);
    if (length > sizeof bytes) fail("producer id", "an answer is too long");
    receive_exactly(socket, bytes, length);
    int16_t error = (int16_t)read_16(bytes + 8);
    producer->id = (int64_t)read_64(bytes + 10), producer->epoch = (int16_t)read_16(bytes + 18);
    if (!error) return;
    if (now_ns() > until_ns) fail("producer id", rd_kafka_err2str((rd_kafka_resp_err_t)error));
    wait_until_ns(now_ns() + 100 * (uint64_t)NS_PER_MS);
  }
}

static uint32_t place_of(const struct rd_kafka_metadata *metadata, int32_t id) {
  for (int i = 0; i < metadata->broker_cnt; i++)
    if (metadata->brokers[i].id == id) return (uint32_t)i;
  fail("metadata", "a partition has no leader");
  return 0;
}

// Has librdkafka find the brokers, and who leads what.
static void find_brokers(struct load *load, const char *bootstrap) {
  char why[TEXT_MAX];
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", bootstrap);
  rd_kafka_t *client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
  if (!client) fail("no client", why);
  rd_kafka_topic_t *topic = rd_kafka_topic_new(client, load->topic, NULL);
  const struct rd_kafka_metadata *metadata;
  rd_kafka_resp_err_t error =
      rd_kafka_metadata(client, 0, topic, &metadata, 1000 * OPEN_SECONDS_MAX);
  if (error) fail(load->topic, rd_kafka_err2str(error));
  const struct rd_kafka_metadata_topic *found = &metadata->topics[0];
  if (found->err) fail(load->topic, rd_kafka_err2str(found->err));
  load->partitions = (uint64_t)found->partition_cnt;
  load->brokers = (uint32_t)metadata->broker_cnt;
  load->leaders = allocate(load->partitions, sizeof *load->leaders);
  for (uint64_t i = 0; i < load->partitions; i++)
    load->leaders[found->partitions[i].id] = place_of(metadata, found->partitions[i].leader);
  load->addresses = allocate(load->brokers, sizeof *load->addresses);
  for (uint32_t i = 0; i < load->brokers; i++) {
    snprintf(load->addresses[i].host, HOST_BYTES_MAX, "%s", metadata->brokers[i].host);
    load->addresses[i].port = metadata->brokers[i].port;
  }
  rd_kafka_metadata_destroy(metadata);
}

static void take_as_leader(struct load *load, const char *bootstrap) {
  load->brokers = 1;
  load->leaders = allocate(load->partitions, sizeof *load->leaders);
  load->addresses = allocate(1, sizeof *load->addresses);
  const char *colon = strrchr(bootstrap, ':');
  if (!colon || colon - bootstrap >= HOST_BYTES_MAX) fail(bootstrap, "not HOST:PORT");
  memcpy(load->addresses->host, bootstrap, (size_t)(colon - bootstrap));
  load->addresses->port = atoi(colon + 1);
}

// Connecting is not part of the rate.
static void open_all(struct load *load, const char *bootstrap) {
  bool is_broker = load->partitions == 0;
  is_broker ? find_brokers(load, bootstrap) : take_as_leader(load, bootstrap);
  load->epoll = epoll_create1(EPOLL_CLOEXEC);
  load->producers = allocate(load->options.producers, sizeof *load->producers);
  for (uint64_t i = 0; i < load->options.producers; i++) {
    struct producer *producer = &load->producers[i];
    producer->sequences = allocate(load->partitions, sizeof *producer->sequences);
    producer->connections = allocate(load->brokers, sizeof *producer->connections);
    for (uint32_t j = 0; j < load->brokers; j++) {
      const struct address *broker = &load->addresses[j];
      int connected = producer->connections[j].socket = connect_to(broker->host, broker->port);
      struct epoll_event event = {EPOLLIN, {.u64 = i * load->brokers + j}};
      if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, connected, &event)) fail("epoll", strerror(errno));
    }
    if (is_broker) name_producer(producer);
  }
}

int main(int argc, char **argv) {
  struct options options = options_of(argc, argv), ignored;
  struct load load = {.options = options,
                      .topic = argv[2],
                      .outcome = outcome_of(&options)};
  load.outcome.late = (struct latencies){allocate(options.records, 4), 0, options.records};
  for (int i = OWN_ARGUMENTS; i < argc; i++)
    if (!take_own_option(argv[i], &ignored) &&
        !take_option(argv[i], "partitions", &load.partitions))
      fail(argv[i], "no such option");
  make_crc_table();
  make_request(&load);
  open_all(&load, argv[1]);
  _Exit(measure(&load.outcome, &options, send_all_records, &load));
}
