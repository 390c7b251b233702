// A light load generator on librdkafka: produces records of one size to one topic as fast as the
// brokers take them, or at a rate, and prints one JSON line. It stores one number per record, so
// that a core of it drives brokers harder than the Java producer can.
//
// usage: produce BOOTSTRAP TOPIC RECORDS RECORD_SIZE [KEY=VALUE]...
//        KEY=VALUE are settings of librdkafka, but for
//          rate=N       so many records a second, and latencies count from when a record was due:
//                       a broker that stalls is charged for all that should have been sent
//          producers=N  so many producers, each with connections of its own, in turn
//          stamp=1      each record begins with the moment at which it was due (8 bytes, ns)
//          skip_ms=N    latencies of the first so many milliseconds are not kept

#include "generator.h"

#include <pthread.h>
#include <stdatomic.h>

enum { POLL_MS = 100, QUEUE_FULL_NS = 200 * NS_PER_US, REST_SECONDS_MAX = 120, STAMP_BYTES = 8 };

struct options {
  uint64_t records, size, rate, producers, stamp, skip_ms;
};

struct deliveries {
  struct latencies latencies;
  _Atomic uint64_t done;
  uint64_t errors;
  uint64_t kept_from_ns;
  uint64_t last_ns;
  uint64_t gap_max_ns;
  char first_error[TEXT_MAX];
  pthread_mutex_t lock;
};

static void on_delivery(rd_kafka_t *producer, const rd_kafka_message_t *message, void *opaque) {
  (void)producer;
  struct deliveries *deliveries = opaque;
  uint64_t now = now_ns();
  pthread_mutex_lock(&deliveries->lock);
  if (message->err) {
    if (deliveries->errors++ == 0)
      snprintf(deliveries->first_error, TEXT_MAX, "%s", rd_kafka_err2str(message->err));
  } else {
    // The record's own opaque is the moment at which it was due.
    uint64_t due_ns = (uint64_t)(uintptr_t)message->_private;
    if (due_ns >= deliveries->kept_from_ns) keep(&deliveries->latencies, due_ns, now);
    if (deliveries->last_ns && now - deliveries->last_ns > deliveries->gap_max_ns)
      deliveries->gap_max_ns = now - deliveries->last_ns;
    deliveries->last_ns = now;
  }
  pthread_mutex_unlock(&deliveries->lock);
  atomic_fetch_add(&deliveries->done, 1);
}

static void *serve_deliveries(void *producer) {
  for (;;) rd_kafka_poll(producer, POLL_MS);
  return NULL;
}

static bool take_own_option(const char *text, struct options *options) {
  return take_option(text, "rate", &options->rate) ||
         take_option(text, "producers", &options->producers) ||
         take_option(text, "stamp", &options->stamp) ||
         take_option(text, "skip_ms", &options->skip_ms);
}

static rd_kafka_t *open_producer(int argc, char **argv, struct deliveries *deliveries) {
  char why[TEXT_MAX];
  struct options ignored;
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", argv[1]);
  for (int i = 5; i < argc; i++)
    if (!take_own_option(argv[i], &ignored)) take_setting(conf, argv[i]);
  rd_kafka_conf_set_opaque(conf, deliveries);
  rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  rd_kafka_t *producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
  if (!producer) fail("no producer", why);
  pthread_t server;
  if (pthread_create(&server, NULL, serve_deliveries, producer)) fail("thread", "not started");
  return producer;
}

// Connecting and looking the topic up are not part of the rate.
static rd_kafka_topic_t *open_topic(rd_kafka_t *producer, const char *name) {
  rd_kafka_topic_t *topic = rd_kafka_topic_new(producer, name, NULL);
  const struct rd_kafka_metadata *metadata;
  rd_kafka_resp_err_t error = rd_kafka_metadata(producer, 0, topic, &metadata, 30000);
  if (error) fail(name, rd_kafka_err2str(error));
  rd_kafka_metadata_destroy(metadata);
  return topic;
}

// Bytes that do not compress, the same in every run (xorshift).
static char *make_payload(size_t size) {
  char *payload = allocate(size, 1);
  uint64_t state = 88172645463325252ULL;
  for (size_t i = 0; i < size; i++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    payload[i] = (char)state;
  }
  return payload;
}

static void produce_all(rd_kafka_topic_t **topics, const struct options *options, char *payload) {
  uint64_t began_ns = now_ns();
  // Without a stamp the payload is neither copied nor freed.
  int flags = options->stamp ? RD_KAFKA_MSG_F_COPY : 0;
  for (uint64_t sent = 0; sent < options->records;) {
    uint64_t due_ns = now_ns();
    if (options->rate) {
      due_ns = began_ns + (uint64_t)((double)sent * NS_PER_S / (double)options->rate);
      if (due_ns > now_ns()) wait_until_ns(due_ns);
    }
    if (options->stamp) memcpy(payload, &due_ns, STAMP_BYTES);
    if (rd_kafka_produce(topics[sent % options->producers], RD_KAFKA_PARTITION_UA, flags, payload,
                         options->size, NULL, 0, (void *)(uintptr_t)due_ns) == 0)
      sent++;
    else if (rd_kafka_last_error() == RD_KAFKA_RESP_ERR__QUEUE_FULL)
      wait_until_ns(now_ns() + QUEUE_FULL_NS);
    else
      fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
  }
}

static void wait_for_deliveries(struct deliveries *deliveries, uint64_t records) {
  uint64_t until_ns = now_ns() + (uint64_t)REST_SECONDS_MAX * NS_PER_S;
  while (atomic_load(&deliveries->done) < records) {
    if (now_ns() > until_ns) fail("flush", "records were not delivered in time");
    wait_until_ns(now_ns() + NS_PER_MS);
  }
}

static void print_result(struct deliveries *deliveries, double seconds, double cpu) {
  printf("{\"delivered\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"first_error\": \"%s\", ",
         atomic_load(&deliveries->done) - deliveries->errors, deliveries->errors,
         deliveries->first_error);
  print_latencies(&deliveries->latencies);
  printf("\"gap_max_ms\": %.3f, \"seconds\": %.6f, \"cpu_seconds\": %.3f}\n",
         (double)deliveries->gap_max_ns / NS_PER_MS, seconds, cpu);
}

int main(int argc, char **argv) {
  if (argc < 5) fail("usage", "produce BOOTSTRAP TOPIC RECORDS RECORD_SIZE [KEY=VALUE]...");
  struct options options = {strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10), 0, 1, 0, 0};
  for (int i = 5; i < argc; i++) take_own_option(argv[i], &options);
  if (options.producers == 0) fail("producers", "at least one");
  if (options.stamp && options.size < STAMP_BYTES) fail("stamp", "records are too small");
  struct deliveries deliveries = {.latencies = {allocate(options.records, 4), 0, options.records},
                                  .lock = PTHREAD_MUTEX_INITIALIZER};
  char *payload = make_payload(options.size);
  rd_kafka_topic_t **topics = allocate(options.producers, sizeof *topics);
  for (uint64_t i = 0; i < options.producers; i++)
    topics[i] = open_topic(open_producer(argc, argv, &deliveries), argv[2]);

  double cpu_before = cpu_seconds();
  uint64_t began_ns = now_ns();
  deliveries.kept_from_ns = began_ns + options.skip_ms * NS_PER_MS;
  produce_all(topics, &options, payload);
  wait_for_deliveries(&deliveries, options.records);
  double seconds = (double)(now_ns() - began_ns) / NS_PER_S;
  double cpu = cpu_seconds() - cpu_before;

  print_result(&deliveries, seconds, cpu);
  fflush(stdout);
  // Producers would take their time to end in order; the kernel does it at once.
  _Exit(deliveries.errors != 0);
}
