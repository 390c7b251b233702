// A load of large batches that were made beforehand, compressed or not. A generator that compresses
// while the clock runs takes so much CPU that its own rate would be measured, and not the broker's.
// This one writes a few numbers into a batch's header and sends it. It speaks the protocol itself.
// Its producers are idempotent. Each has one connection to each broker, which a thread serves, and
// as many requests under way on it as Kafka's own clients allow. The program prints the same JSON
// line as `produce.c`, in which a latency is that of a batch.
//
// usage: prepared BOOTSTRAP TOPIC BATCHES FILE [producers=N]
//        It sends BATCHES batches, those of the file in turn, to the partitions in turn. Each batch
//        of the file follows its length in four bytes, the highest first.

#include "producing.h"
#include "protocol.h"

#include <pthread.h>

enum { ANSWER_BYTES_MAX = 4096, HEADER_BYTES_MAX = 1024, PRODUCERS = 4 };

// One batch of the file, and the checksum of what follows its header.
struct batch {
  const uint8_t *bytes;
  size_t length;
  uint32_t records, payload_crc, crc_factor;
};

struct load {
  struct options options;
  const char *topic;
  struct cluster cluster;
  struct batch *batches;
  uint64_t batch_count;
  struct sender *senders;
  struct outcome outcome;
  pthread_mutex_t lock;  // guards the outcome
};

// One producer's connection to one broker.
struct sender {
  struct load *load;
  pthread_t thread;
  int socket;
  uint64_t producer;
  uint32_t broker;
  int64_t id;
  int16_t epoch;
  uint32_t *sequences;  // by partition
  uint64_t due_ns[UNDER_WAY_MAX];  // a ring
  uint32_t first, under_way;
};

static void read_batches(struct load *load, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) fail(path, strerror(errno));
  size_t size = (size_t)ftell(file);
  rewind(file);
  uint8_t *bytes = allocate(size, 1);
  if (fread(bytes, 1, size, file) != size) fail(path, "read in part");
  fclose(file);
  load->batches = allocate(size / BATCH_HEADER_BYTES + 1, sizeof *load->batches);
  for (size_t at = 0; at < size;) {
    struct batch *batch = &load->batches[load->batch_count++];
    if (size - at < 4 + BATCH_HEADER_BYTES) fail(path, "it ends within a batch");
    batch->length = read_32(bytes + at);
    batch->bytes = bytes + at + 4;
    at += 4 + batch->length;
    if (at > size || batch->length < BATCH_HEADER_BYTES) fail(path, "it ends within a batch");
    size_t payload = batch->length - BATCH_HEADER_BYTES;
    batch->records = read_32(batch->bytes + LAST_OFFSET_DELTA_AT) + 1;
    batch->payload_crc = crc32c(batch->bytes + BATCH_HEADER_BYTES, payload);
    batch->crc_factor = crc_factor(payload);
  }
  if (load->batch_count == 0) fail(path, "it has no batch");
}

// Sends a batch: the request's header and that of the batch from a buffer, the rest where it is.
static void send_batch(struct sender *sender, const struct batch *batch, uint32_t partition) {
  struct load *load = sender->load;
  uint8_t bytes[HEADER_BYTES_MAX];
  struct request request = {bytes, 0};
  size_t partition_at, payload = batch->length - BATCH_HEADER_BYTES;
  add_produce_header(&request, load->topic, &partition_at, (uint32_t)batch->length);
  write_32(bytes + partition_at, partition);
  uint8_t *header = bytes + request.length;
  memcpy(header, batch->bytes, BATCH_HEADER_BYTES);
  request.length += BATCH_HEADER_BYTES;
  uint64_t moment_ms = (uint64_t)wall_ms();
  write_64(header + BASE_TIMESTAMP_AT, moment_ms);
  write_64(header + MAX_TIMESTAMP_AT, moment_ms);
  write_64(header + PRODUCER_ID_AT, (uint64_t)sender->id);
  write_16(header + PRODUCER_EPOCH_AT, (uint16_t)sender->epoch);
  write_32(header + BASE_SEQUENCE_AT, sender->sequences[partition]);
  sender->sequences[partition] += batch->records;
  uint32_t crc = crc32c(header + ATTRIBUTES_AT, BATCH_HEADER_BYTES - ATTRIBUTES_AT);
  write_32(header + CRC_AT, multiply_modulo(batch->crc_factor, crc) ^ batch->payload_crc);
  write_32(bytes, (uint32_t)(request.length + payload - 4));
  uint64_t due_ns = now_ns();
  sender->due_ns[(sender->first + sender->under_way++) % UNDER_WAY_MAX] = due_ns;
  send_exactly(sender->socket, bytes, request.length, MSG_MORE);
  send_exactly(sender->socket, batch->bytes + BATCH_HEADER_BYTES, payload, 0);
  pthread_mutex_lock(&load->lock);
  load->outcome.wire_bytes += request.length + payload;
  pthread_mutex_unlock(&load->lock);
}

static void take_answer(struct sender *sender) {
  struct load *load = sender->load;
  uint8_t answer[ANSWER_BYTES_MAX];
  receive_answer(sender->socket, answer, sizeof answer);
  int16_t error = produce_error(answer, load->topic);
  uint64_t now = now_ns(), due_ns = sender->due_ns[sender->first];
  sender->first = (sender->first + 1) % UNDER_WAY_MAX;
  sender->under_way--;
  pthread_mutex_lock(&load->lock);
  if (error)
    note_error(&load->outcome, (rd_kafka_resp_err_t)error);
  else
    note_delivered(&load->outcome, due_ns, now);
  pthread_mutex_unlock(&load->lock);
}

// Sends the batches of one producer whose partitions one broker leads.
static void *send_own_batches(void *opaque) {
  struct sender *sender = opaque;
  struct load *load = sender->load;
  const struct options *options = &load->options;
  for (uint64_t i = sender->producer; i < options->records; i += options->producers) {
    uint32_t partition = (uint32_t)(i % load->cluster.partitions);
    if (load->cluster.leaders[partition] != sender->broker) continue;
    if (sender->under_way == UNDER_WAY_MAX) take_answer(sender);
    send_batch(sender, &load->batches[i % load->batch_count], partition);
  }
  while (sender->under_way) take_answer(sender);
  return NULL;
}

static uint64_t senders_of(const struct load *load) {
  return load->options.producers * load->cluster.brokers;
}

// Makes all connections, which is done before the clock starts.
static void open_all(struct load *load) {
  load->senders = allocate(senders_of(load), sizeof *load->senders);
  struct timeval answer_max = {REST_SECONDS_MAX, 0};
  for (uint64_t i = 0; i < senders_of(load); i++) {
    struct sender *sender = &load->senders[i];
    sender->load = load;
    sender->producer = i / load->cluster.brokers;
    sender->broker = (uint32_t)(i % load->cluster.brokers);
    sender->socket = connect_to(&load->cluster.addresses[sender->broker]);
    setsockopt(sender->socket, SOL_SOCKET, SO_RCVTIMEO, &answer_max, sizeof answer_max);
    sender->sequences = allocate(load->cluster.partitions, sizeof *sender->sequences);
    ask_producer_id(sender->socket, &sender->id, &sender->epoch);
  }
}

static void send_all_batches(void *opaque) {
  struct load *load = opaque;
  for (uint64_t i = 0; i < senders_of(load); i++) {
    struct sender *sender = &load->senders[i];
    if (pthread_create(&sender->thread, NULL, send_own_batches, sender))
      fail("thread", "not started");
  }
  for (uint64_t i = 0; i < senders_of(load); i++) pthread_join(load->senders[i].thread, NULL);
}

int main(int argc, char **argv) {
  if (argc < OWN_ARGUMENTS) fail("usage", "BOOTSTRAP TOPIC BATCHES FILE [producers=N]");
  struct options options = {.records = strtoull(argv[3], NULL, 10), .producers = PRODUCERS};
  for (int i = OWN_ARGUMENTS; i < argc; i++)
    if (!take_option(argv[i], "producers", &options.producers)) fail(argv[i], "no such option");
  if (options.producers == 0) fail("producers", "at least one");
  struct load load = {.options = options,
                      .topic = argv[2],
                      .outcome = outcome_of(&options),
                      .lock = PTHREAD_MUTEX_INITIALIZER};
  if (strlen(load.topic) > HEADER_BYTES_MAX / 2) fail(load.topic, "the name is too long");
  make_crc_table();
  read_batches(&load, argv[4]);
  load.cluster = find_cluster(argv[1], load.topic);
  open_all(&load);
  _Exit(measure(&load.outcome, &options, send_all_batches, &load));
}
