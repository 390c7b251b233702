// What load generators share that speak Kafka's protocol themselves: requests, the checksum of a
// batch, connections, and who leads which partition.

#ifndef FRESHET_PROTOCOL_H
#define FRESHET_PROTOCOL_H

#include "generator.h"
#include "wire.h"

#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
  OPEN_SECONDS_MAX = 30,
  HOST_BYTES_MAX = 256,
  PRODUCE = 0,
  PRODUCE_VERSION = 7,
  INIT_PRODUCER_ID = 22,
  ACK_TIMEOUT_MS = 30000,
  // Requests of one connection that wait for an answer at the same time: as many as the clients of
  // Kafka allow an idempotent producer.
  UNDER_WAY_MAX = 5,
  // Places in a record batch, counted from its first byte.
  BATCH_LENGTH_AT = 8,
  CRC_AT = 17,
  ATTRIBUTES_AT = 21,
  LAST_OFFSET_DELTA_AT = 23,
  BASE_TIMESTAMP_AT = 27,
  MAX_TIMESTAMP_AT = 35,
  PRODUCER_ID_AT = 43,
  PRODUCER_EPOCH_AT = 51,
  BASE_SEQUENCE_AT = 53,
  BATCH_HEADER_BYTES = 61,
};

// The polynomial of CRC-32C with its bits reversed, as the checksum of a batch has them.
static const uint32_t CRC_POLYNOMIAL = 0x82F63B78;

static uint32_t crc_table[256];

// Has to be called before `crc32c`.
static inline void make_crc_table(void) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ CRC_POLYNOMIAL : crc >> 1;
    crc_table[i] = crc;
  }
}

static inline uint32_t crc32c(const uint8_t *bytes, size_t length) {
  uint32_t crc = UINT32_MAX;
  for (size_t i = 0; i < length; i++) crc = crc >> 8 ^ crc_table[(crc ^ bytes[i]) & 0xFF];
  return ~crc;
}

// Returns the product of two polynomials modulo that of the checksum.
static inline uint32_t multiply_modulo(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 1U << 31; bit; bit >>= 1) {
    if (a & bit) product ^= b;
    b = b & 1 ? b >> 1 ^ CRC_POLYNOMIAL : b >> 1;
  }
  return product;
}

// Returns what the checksum of some bytes is multiplied by when `length` others follow them: the
// checksum of all is `multiply_modulo(factor, first) ^ second`. So what does not change from one
// request to the next is summed once.
static inline uint32_t crc_factor(uint64_t length) {
  uint32_t factor = 1U << 31, power = 1U << 23;  // the polynomials 1 and x to the 8th
  for (; length; length >>= 1) {
    if (length & 1) factor = multiply_modulo(power, factor);
    power = multiply_modulo(power, power);
  }
  return factor;
}

// A request while it is made: where its bytes are, and how many there are so far.
struct request {
  uint8_t *bytes;
  size_t length;
};

static inline void add_8(struct request *request, int8_t value) {
  request->bytes[request->length++] = (uint8_t)value;
}

static inline void add_16(struct request *request, int16_t value) {
  write_16(request->bytes + request->length, (uint16_t)value);
  request->length += sizeof value;
}

static inline void add_32(struct request *request, int32_t value) {
  write_32(request->bytes + request->length, (uint32_t)value);
  request->length += sizeof value;
}

static inline void add_64(struct request *request, int64_t value) {
  write_64(request->bytes + request->length, (uint64_t)value);
  request->length += sizeof value;
}

static inline void add_text(struct request *request, const char *text) {
  size_t length = strlen(text);
  add_16(request, (int16_t)length);
  memcpy(request->bytes + request->length, text, length);
  request->length += length;
}

static inline void add_header(struct request *request, int16_t api, int16_t version) {
  request->length = 0;
  add_32(request, 0);  // the length, which `close_request` writes
  add_16(request, api);
  add_16(request, version);
  add_32(request, 0);  // the correlation id
  add_text(request, "bench");
}

static inline void close_request(struct request *request) {
  write_32(request->bytes, (uint32_t)(request->length - 4));
}

// Begins a Produce request of one partition, up to its batch. Stores where the partition's number
// is, which may be changed later.
static inline void add_produce_header(struct request *request, const char *topic,
                                      size_t *partition_at, uint32_t batch_bytes) {
  add_header(request, PRODUCE, PRODUCE_VERSION);
  add_16(request, -1);  // no transaction
  add_16(request, -1);  // acks=all
  add_32(request, ACK_TIMEOUT_MS);
  add_32(request, 1);  // one topic
  add_text(request, topic);
  add_32(request, 1);  // one partition
  *partition_at = request->length;
  add_32(request, 0);
  add_32(request, (int32_t)batch_bytes);
}

// Returns the error code of the answer to such a request. The answer begins with its length.
static inline int16_t produce_error(const uint8_t *answer, const char *topic) {
  size_t topics_at = 4 + 4, partitions_at = topics_at + 4 + 2 + strlen(topic);
  return (int16_t)read_16(answer + partitions_at + 4 + 4);
}

static inline int64_t wall_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / NS_PER_MS;
}

struct address {
  char host[HOST_BYTES_MAX];
  int port;
};

// The brokers of a cluster, and the leader of each partition of one topic as an index of them.
struct cluster {
  uint32_t brokers;
  struct address *addresses;
  uint64_t partitions;
  uint32_t *leaders;
};

static inline int connect_to(const struct address *broker) {
  char service[16];
  snprintf(service, sizeof service, "%d", broker->port);
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *resolved;
  int error = getaddrinfo(broker->host, service, &hints, &resolved);
  if (error) fail(broker->host, gai_strerror(error));
  int descriptor = socket(resolved->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  if (descriptor < 0 || connect(descriptor, resolved->ai_addr, resolved->ai_addrlen))
    fail(broker->host, strerror(errno));
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  freeaddrinfo(resolved);
  return descriptor;
}

// `flags` are those of send(2).
static inline void send_exactly(int descriptor, const uint8_t *bytes, size_t length, int flags) {
  for (size_t sent = 0; sent < length;) {
    ssize_t part = send(descriptor, bytes + sent, length - sent, MSG_NOSIGNAL | flags);
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) fail("send", strerror(errno));
    sent += (size_t)part;
  }
}

static inline void receive_exactly(int descriptor, uint8_t *bytes, size_t length) {
  ssize_t received = recv(descriptor, bytes, length, MSG_WAITALL);
  if (received != (ssize_t)length)
    fail("receive", received < 0 ? strerror(errno) : "the broker closed the connection");
}

// Receives an answer with its length; returns how long it is with these four bytes.
static inline size_t receive_answer(int descriptor, uint8_t *bytes, size_t bytes_max) {
  receive_exactly(descriptor, bytes, 4);
  size_t length = read_32(bytes);
  if (length > bytes_max - 4) fail("receive", "an answer is too long");
  receive_exactly(descriptor, bytes + 4, length);
  return 4 + length;
}

// Asks for the id and the epoch of a new idempotent producer. A broker that has just started may
// have none to give yet, so it is asked again for a while.
static inline void ask_producer_id(int descriptor, int64_t *id, int16_t *epoch) {
  uint8_t bytes[64];
  struct request request = {bytes, 0};
  uint64_t until_ns = now_ns() + (uint64_t)OPEN_SECONDS_MAX * NS_PER_S;
  for (;;) {
    add_header(&request, INIT_PRODUCER_ID, 0);
    add_16(&request, -1);  // no transactional id
    add_32(&request, 0);  // the time limit of transactions
    close_request(&request);
    send_exactly(descriptor, request.bytes, request.length, 0);
    receive_answer(descriptor, bytes, sizeof bytes);
    int16_t error = (int16_t)read_16(bytes + 12);
    *id = (int64_t)read_64(bytes + 14), *epoch = (int16_t)read_16(bytes + 22);
    if (!error) return;
    if (now_ns() > until_ns) fail("producer id", rd_kafka_err2str((rd_kafka_resp_err_t)error));
    wait_until_ns(now_ns() + 100 * (uint64_t)NS_PER_MS);
  }
}

static inline uint32_t index_of_broker(const struct rd_kafka_metadata *metadata, int32_t id) {
  for (int i = 0; i < metadata->broker_cnt; i++)
    if (metadata->brokers[i].id == id) return (uint32_t)i;
  fail("metadata", "a partition has no leader");
  return 0;
}

// Has librdkafka ask for the brokers and for the leaders of a topic's partitions.
static inline struct cluster find_cluster(const char *bootstrap, const char *topic_name) {
  char why[TEXT_MAX];
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", bootstrap);
  rd_kafka_t *client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
  if (!client) fail("no client", why);
  rd_kafka_topic_t *topic = rd_kafka_topic_new(client, topic_name, NULL);
  const struct rd_kafka_metadata *metadata;
  rd_kafka_resp_err_t error =
      rd_kafka_metadata(client, 0, topic, &metadata, 1000 * OPEN_SECONDS_MAX);
  if (error) fail(topic_name, rd_kafka_err2str(error));
  const struct rd_kafka_metadata_topic *answered = &metadata->topics[0];
  if (answered->err) fail(topic_name, rd_kafka_err2str(answered->err));
  struct cluster cluster = {.brokers = (uint32_t)metadata->broker_cnt,
                            .partitions = (uint64_t)answered->partition_cnt};
  cluster.leaders = allocate(cluster.partitions, sizeof *cluster.leaders);
  for (uint64_t i = 0; i < cluster.partitions; i++)
    cluster.leaders[answered->partitions[i].id] =
        index_of_broker(metadata, answered->partitions[i].leader);
  cluster.addresses = allocate(cluster.brokers, sizeof *cluster.addresses);
  for (uint32_t i = 0; i < cluster.brokers; i++) {
    snprintf(cluster.addresses[i].host, HOST_BYTES_MAX, "%s", metadata->brokers[i].host);
    cluster.addresses[i].port = metadata->brokers[i].port;
  }
  rd_kafka_metadata_destroy(metadata);
  return cluster;
}

#endif
