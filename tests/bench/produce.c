// A light load generator on librdkafka. It produces records of one size to one topic, at a rate or
// as fast as the brokers take them, and prints one JSON line. It stores one number for each record,
// so that on one core it loads brokers more than the Java producer can.
//
// usage: produce BOOTSTRAP TOPIC RECORDS RECORD_SIZE [KEY=VALUE]...
//        KEY=VALUE are settings of librdkafka, except these:
//          rate=N       sends N records a second. The latency of a record then counts from when it
//                       was due, so that a stall counts for all records that were due meanwhile.
//          producers=N  sends with N producers in turn, each with its own connections
//          stamp=1      writes into a record's first 8 bytes when it was due, in nanoseconds
//          skip_ms=N    keeps no latencies of the first N milliseconds
//          payloads=F   sends the records of the file F in turn, which has one of RECORD_SIZE bytes
//                       in each line, and not always the same bytes that do not compress

#include "producing.h"
#include "sockets.h"

#include <pthread.h>
#include <stdatomic.h>

enum { POLL_MS = 100, QUEUE_FULL_NS = 200 * NS_PER_US };

struct load {
  struct options options;
  rd_kafka_topic_t **topics;  // by producer
  struct payloads payloads;
  struct outcome outcome;
  _Atomic uint64_t done;
  pthread_mutex_t lock;  // guards the outcome
};

static void on_delivery(rd_kafka_t *producer, const rd_kafka_message_t *message, void *opaque) {
  (void)producer;
  struct load *load = opaque;
  uint64_t now = now_ns();  // taken before waiting for the lock
  pthread_mutex_lock(&load->lock);
  if (message->err)
    note_error(&load->outcome, message->err);
  else
    // A record's opaque is the moment at which it was due.
    note_delivered(&load->outcome, (uint64_t)(uintptr_t)message->_private, now);
  pthread_mutex_unlock(&load->lock);
  atomic_fetch_add(&load->done, 1);
}

static void *serve_deliveries(void *producer) {
  for (;;) rd_kafka_poll(producer, POLL_MS);
  return NULL;
}

static rd_kafka_t *open_producer(int argc, char **argv, struct load *load) {
  char why[TEXT_MAX];
  struct options ignored;
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", argv[1]);
  for (int i = OWN_ARGUMENTS; i < argc; i++)
    if (!take_own_option(argv[i], &ignored)) take_setting(conf, argv[i]);
  count_sockets_of(conf);
  rd_kafka_conf_set_opaque(conf, load);
  rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  rd_kafka_t *producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
  if (!producer) fail("no producer", why);
  pthread_t server;
  if (pthread_create(&server, NULL, serve_deliveries, producer)) fail("thread", "not started");
  return producer;
}

// Connects and looks up the topic, which is done before the clock starts.
static rd_kafka_topic_t *open_topic(rd_kafka_t *producer, const char *name) {
  rd_kafka_topic_t *topic = rd_kafka_topic_new(producer, name, NULL);
  const struct rd_kafka_metadata *metadata;
  rd_kafka_resp_err_t error = rd_kafka_metadata(producer, 0, topic, &metadata, 30000);
  if (error) fail(name, rd_kafka_err2str(error));
  rd_kafka_metadata_destroy(metadata);
  return topic;
}

static void wait_for_deliveries(struct load *load) {
  uint64_t until_ns = now_ns() + (uint64_t)REST_SECONDS_MAX * NS_PER_S;
  while (atomic_load(&load->done) < load->options.records) {
    if (now_ns() > until_ns) fail("flush", "records were not delivered in time");
    wait_until_ns(now_ns() + NS_PER_MS);
  }
}

static void send_all_records(void *opaque) {
  struct load *load = opaque;
  const struct options *options = &load->options;
  uint64_t began_ns = now_ns();
  // Without a stamp librdkafka reads the payload where it is, and does not free it.
  int flags = options->stamp ? RD_KAFKA_MSG_F_COPY : 0;
  for (uint64_t sent = 0; sent < options->records;) {
    uint64_t due_ns = now_ns();
    if (options->rate) {
      due_ns = due_ns_of(options, began_ns, sent);
      if (due_ns > now_ns()) wait_until_ns(due_ns);
    }
    char *payload = payload_of(&load->payloads, sent);
    if (options->stamp) memcpy(payload, &due_ns, STAMP_BYTES);
    if (rd_kafka_produce(load->topics[sent % options->producers], RD_KAFKA_PARTITION_UA, flags,
                         payload, options->size, NULL, 0, (void *)(uintptr_t)due_ns) == 0)
      sent++;
    else if (rd_kafka_last_error() == RD_KAFKA_RESP_ERR__QUEUE_FULL)
      wait_until_ns(now_ns() + QUEUE_FULL_NS);
    else
      fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
  }
  wait_for_deliveries(load);
  load->outcome.wire_bytes = bytes_carried().sent;
}

int main(int argc, char **argv) {
  struct options options = options_of(argc, argv);
  struct load load = {.options = options,
                      .topics = allocate(options.producers, sizeof *load.topics),
                      .payloads = payloads_of(&options),
                      .outcome = outcome_of(&options),
                      .lock = PTHREAD_MUTEX_INITIALIZER};
  for (uint64_t i = 0; i < options.producers; i++)
    load.topics[i] = open_topic(open_producer(argc, argv, &load), argv[2]);
  // Producers would take a while to end in order. The kernel ends them at once.
  _Exit(measure(&load.outcome, &options, send_all_records, &load));
}
