// A load of many small requests: it has many producers, and each record is a request of its own. It
// speaks the protocol itself, in one thread: a hundred producers of librdkafka have four hundred
// threads, and how these share a CPU would be measured instead of a broker. The producers are
// idempotent. Each has one connection to each broker, and as many requests under way on it as
// Kafka's own clients allow. librdkafka is asked once which broker leads which partition. The
// program prints the same JSON line as `produce.c`, and also how late records were sent: that time
// is the machine's or the generator's, and not the broker's.
//
// usage: trickle BOOTSTRAP TOPIC RECORDS RECORD_SIZE [NAME=NUMBER]...
//        rate=N       sends N records a second, and a latency counts from when the record was due;
//                     0 sends as many as are answered
//        producers=N  sends with N producers in turn; each record goes to a random partition
//        stamp=1      writes into a record's first 8 bytes when it was due, in nanoseconds
//        skip_ms=N    keeps no latencies of the first N milliseconds
//        partitions=N  BOOTSTRAP is one server that leads N partitions and answers nothing but
//                     Produce requests (`least.c`), so that nobody is asked for leaders

#include "producing.h"
#include "protocol.h"

#include <sys/epoll.h>

enum {
  WAITING_MAX = 1000,
  EVENTS_MAX = 256,
  ANSWER_BYTES_MAX = 4096,
};

struct waiting {
  uint64_t due_ns;
  uint32_t partition;
};

// The connection of one producer to one broker. Answers arrive in the order of requests.
struct connection {
  int socket;
  struct waiting queue[WAITING_MAX];  // a ring, in which those under way come first
  uint32_t first, count, under_way;
  uint8_t answer[ANSWER_BYTES_MAX];
  size_t answered;
};

struct producer {
  int64_t id;
  int16_t epoch;
  uint32_t *sequences;  // by partition
  struct connection *connections;  // by broker
};

struct load {
  struct options options;
  const char *topic;
  struct cluster cluster;
  struct producer *producers;
  struct request request;
  size_t batch_at, partition_at, value_at;
  struct outcome outcome;
  uint64_t sent;
  int epoll;
};

// Adds a number as records have it: zigzag, seven bits in each byte.
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

// Makes the request in which each record is sent. From one record to the next only a few numbers of
// it change.
static void make_request(struct load *load) {
  struct request *request = &load->request;
  size_t size = load->options.size;
  request->bytes = allocate(size + strlen(load->topic) + 256, 1);
  int32_t value = (int32_t)size;
  // The parts of a record: attributes, timestamp, offset, no key, the value, no headers.
  int32_t record = 4 + (int32_t)varint_bytes(value) + value + 1;
  int32_t batch = BATCH_HEADER_BYTES + (int32_t)varint_bytes(record) + record;
  add_produce_header(request, load->topic, &load->partition_at, (uint32_t)batch);
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

// Sends a request at once. The buffer of a socket has room for all requests that may be under way.
static void send_request(int descriptor, const struct request *request) {
  ssize_t sent = send(descriptor, request->bytes, request->length, MSG_NOSIGNAL);
  if (sent != (ssize_t)request->length) fail("send", sent < 0 ? strerror(errno) : "in part");
}

static void send_record(struct load *load, struct producer *producer,
                        struct connection *connection) {
  const struct waiting *record =
      &connection->queue[(connection->first + connection->under_way) % WAITING_MAX];
  uint8_t *bytes = load->request.bytes, *batch = bytes + load->batch_at;
  write_32(bytes + load->partition_at, record->partition);
  int64_t moment_ms = wall_ms();
  write_64(batch + BASE_TIMESTAMP_AT, (uint64_t)moment_ms);
  write_64(batch + MAX_TIMESTAMP_AT, (uint64_t)moment_ms);
  write_64(batch + PRODUCER_ID_AT, (uint64_t)producer->id);
  write_16(batch + PRODUCER_EPOCH_AT, (uint16_t)producer->epoch);
  write_32(batch + BASE_SEQUENCE_AT, producer->sequences[record->partition]++);
  if (load->options.stamp) memcpy(bytes + load->value_at, &record->due_ns, STAMP_BYTES);
  size_t checked = load->request.length - load->batch_at - ATTRIBUTES_AT;
  write_32(batch + CRC_AT, crc32c(batch + ATTRIBUTES_AT, checked));
  send_request(connection->socket, &load->request);
  note_sent(&load->outcome, record->due_ns, now_ns());
  load->outcome.wire_bytes += load->request.length;
  connection->under_way++;
}

static void send_waiting(struct load *load, struct producer *producer,
                         struct connection *connection) {
  while (connection->under_way < connection->count && connection->under_way < UNDER_WAY_MAX)
    send_record(load, producer, connection);
}

static void take_answer(struct load *load, struct connection *connection, const uint8_t *answer) {
  int16_t error = produce_error(answer, load->topic);
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

// Receives answers until a moment, and sends the requests for which they make room.
static void serve_until(struct load *load, uint64_t moment_ns) {
  struct epoll_event events[EVENTS_MAX];
  uint64_t now = now_ns(), left = moment_ns > now ? moment_ns - now : 0;
  struct timespec timeout = {(time_t)(left / NS_PER_S), (long)(left % NS_PER_S)};
  int ready = epoll_pwait2(load->epoll, events, EVENTS_MAX, &timeout, NULL);
  if (ready < 0 && errno != EINTR) fail("epoll", strerror(errno));
  for (int i = 0; i < ready; i++) {
    struct producer *producer = &load->producers[events[i].data.u64 / load->cluster.brokers];
    uint64_t broker = events[i].data.u64 % load->cluster.brokers;
    struct connection *connection = &producer->connections[broker];
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
    uint32_t partition = (uint32_t)(draw(&drawn) % load->cluster.partitions);
    struct connection *connection = &producer->connections[load->cluster.leaders[partition]];
    uint32_t room = options->rate ? WAITING_MAX : UNDER_WAY_MAX;
    while (connection->count == room) serve_until(load, now_ns() + NS_PER_MS);
    connection->queue[(connection->first + connection->count++) % WAITING_MAX] =
        (struct waiting){due_ns, partition};
    load->sent++;
    send_waiting(load, producer, connection);
    // A load that is late has to receive answers, too.
    if (load->sent % 16 == 0) serve_until(load, 0);
  }
  uint64_t until_ns = now_ns() + (uint64_t)REST_SECONDS_MAX * NS_PER_S;
  while (outcome->delivered + outcome->errors < options->records) {
    if (now_ns() > until_ns) fail("flush", "records were not answered in time");
    serve_until(load, now_ns() + NS_PER_MS);
  }
}

// Takes one server as the leader of all partitions.
static void take_as_leader(struct load *load, const char *bootstrap) {
  load->cluster.brokers = 1;
  load->cluster.leaders = allocate(load->cluster.partitions, sizeof *load->cluster.leaders);
  load->cluster.addresses = allocate(1, sizeof *load->cluster.addresses);
  const char *colon = strrchr(bootstrap, ':');
  if (!colon || colon - bootstrap >= HOST_BYTES_MAX) fail(bootstrap, "not HOST:PORT");
  memcpy(load->cluster.addresses->host, bootstrap, (size_t)(colon - bootstrap));
  load->cluster.addresses->port = atoi(colon + 1);
}

// Makes all connections, which is done before the clock starts.
static void open_all(struct load *load, const char *bootstrap) {
  bool is_broker = load->cluster.partitions == 0;
  if (is_broker)
    load->cluster = find_cluster(bootstrap, load->topic);
  else
    take_as_leader(load, bootstrap);
  load->epoll = epoll_create1(EPOLL_CLOEXEC);
  load->producers = allocate(load->options.producers, sizeof *load->producers);
  for (uint64_t i = 0; i < load->options.producers; i++) {
    struct producer *producer = &load->producers[i];
    producer->sequences = allocate(load->cluster.partitions, sizeof *producer->sequences);
    producer->connections = allocate(load->cluster.brokers, sizeof *producer->connections);
    for (uint32_t j = 0; j < load->cluster.brokers; j++) {
      int connected = connect_to(&load->cluster.addresses[j]);
      producer->connections[j].socket = connected;
      struct epoll_event event = {EPOLLIN, {.u64 = i * load->cluster.brokers + j}};
      if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, connected, &event)) fail("epoll", strerror(errno));
    }
    int first = producer->connections[0].socket;
    if (is_broker) ask_producer_id(first, &producer->id, &producer->epoch);
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
        !take_option(argv[i], "partitions", &load.cluster.partitions))
      fail(argv[i], "no such option");
  make_crc_table();
  make_request(&load);
  open_all(&load, argv[1]);
  _Exit(measure(&load.outcome, &options, send_all_records, &load));
}
