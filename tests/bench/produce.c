// A light load generator on librdkafka: produces records of one size to one topic as fast as the
// brokers take them, or at a rate, and prints one JSON line. It copies no payload and stores one
// number per record, so that a core of it drives brokers harder than the Java producer can.
//
// usage: produce BOOTSTRAP TOPIC RECORDS RECORD_SIZE [KEY=VALUE]...
//        KEY=VALUE are settings of librdkafka, but for rate=N: so many records a second.

#include <errno.h>
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

// Serve delivery reports each time that many records were handed over.
enum { POLL_EVERY = 512, FLUSH_MS = 120000, MESSAGE_MAX = 512 };
// Who is so much ahead of the rate waits so long, serving delivery reports.
enum { AHEAD_US = 1000, AHEAD_MS = 1 };

struct deliveries {
  uint64_t done;
  uint64_t errors;
  uint32_t *latencies_us;  // of each record that was acknowledged, in order of arrival
  char first_error[MESSAGE_MAX];
};

static uint64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void on_delivery(rd_kafka_t *producer, const rd_kafka_message_t *message, void *opaque) {
  (void)producer;
  struct deliveries *deliveries = opaque;
  if (message->err) {
    if (deliveries->errors++ == 0)
      snprintf(deliveries->first_error, MESSAGE_MAX, "%s", rd_kafka_err2str(message->err));
    return;
  }
  // The record's own opaque is the time at which it was handed over.
  uint64_t sent_us = (uint64_t)(uintptr_t)message->_private;
  deliveries->latencies_us[deliveries->done++] = (uint32_t)(now_us() - sent_us);
}

static void fail(const char *what, const char *why) {
  fprintf(stderr, "produce: %s: %s\n", what, why);
  exit(1);
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value) {
  char why[MESSAGE_MAX];
  if (rd_kafka_conf_set(conf, key, value, why, sizeof why) != RD_KAFKA_CONF_OK) fail(key, why);
}

static rd_kafka_t *open_producer(int argc, char **argv, struct deliveries *deliveries,
                                 uint64_t *rate) {
  char why[MESSAGE_MAX];
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", argv[1]);
  for (int i = 5; i < argc; i++) {
    char *equals = strchr(argv[i], '=');
    if (!equals) fail(argv[i], "not KEY=VALUE");
    *equals = '\0';
    if (strcmp(argv[i], "rate") == 0) {
      *rate = strtoull(equals + 1, NULL, 10);
      continue;
    }
    set(conf, argv[i], equals + 1);
  }
  rd_kafka_conf_set_opaque(conf, deliveries);
  rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  rd_kafka_t *producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
  if (!producer) fail("no producer", why);
  return producer;
}

// Bytes that do not compress, the same in every run (xorshift).
static char *make_payload(size_t size) {
  char *payload = malloc(size ? size : 1);
  if (!payload) fail("payload", strerror(ENOMEM));
  uint64_t state = 88172645463325252ULL;
  for (size_t i = 0; i < size; i++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    payload[i] = (char)state;
  }
  return payload;
}

static void produce_all(rd_kafka_t *producer, rd_kafka_topic_t *topic, uint64_t records,
                        uint64_t rate, char *payload, size_t size) {
  uint64_t began_us = now_us();
  for (uint64_t sent = 0; sent < records;) {
    if (rate && began_us + sent * 1000000 / rate > now_us() + AHEAD_US) {
      rd_kafka_poll(producer, AHEAD_MS);
      continue;
    }
    void *sent_us = (void *)(uintptr_t)now_us();
    // No flags: the payload is neither copied nor freed.
    if (rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, 0, payload, size, NULL, 0, sent_us) == 0) {
      sent++;
      if (sent % POLL_EVERY == 0) rd_kafka_poll(producer, 0);
    } else if (rd_kafka_last_error() == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
      rd_kafka_poll(producer, 10);
    } else {
      fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
    }
  }
  if (rd_kafka_flush(producer, FLUSH_MS)) fail("flush", "records were not delivered in time");
}

static int by_value(const void *left, const void *right) {
  uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
  return (a > b) - (a < b);
}

static double percentile_ms(const struct deliveries *deliveries, double share) {
  if (deliveries->done == 0) return 0;
  return deliveries->latencies_us[(uint64_t)((double)(deliveries->done - 1) * share)] / 1000.0;
}

static double cpu_seconds(void) {
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv) {
  if (argc < 5) fail("usage", "produce BOOTSTRAP TOPIC RECORDS RECORD_SIZE [KEY=VALUE]...");
  uint64_t records = strtoull(argv[3], NULL, 10);
  size_t size = strtoull(argv[4], NULL, 10);
  struct deliveries deliveries = {.latencies_us = malloc(records * sizeof(uint32_t) + 1)};
  if (!deliveries.latencies_us) fail("records", strerror(ENOMEM));
  char *payload = make_payload(size);
  uint64_t rate = 0;
  rd_kafka_t *producer = open_producer(argc, argv, &deliveries, &rate);
  rd_kafka_topic_t *topic = rd_kafka_topic_new(producer, argv[2], NULL);
  const struct rd_kafka_metadata *metadata;
  // Connecting and looking the topic up are not part of the rate.
  rd_kafka_resp_err_t error = rd_kafka_metadata(producer, 0, topic, &metadata, 30000);
  if (error) fail(argv[2], rd_kafka_err2str(error));
  rd_kafka_metadata_destroy(metadata);

  double cpu_before = cpu_seconds();
  uint64_t began_us = now_us();
  produce_all(producer, topic, records, rate, payload, size);
  double seconds = (double)(now_us() - began_us) / 1e6;
  double cpu = cpu_seconds() - cpu_before;

  qsort(deliveries.latencies_us, deliveries.done, sizeof(uint32_t), by_value);
  printf("{\"delivered\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"first_error\": \"%s\", "
         "\"seconds\": %.6f, \"cpu_seconds\": %.3f, "
         "\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"p999_ms\": %.3f}\n",
         deliveries.done, deliveries.errors, deliveries.first_error, seconds, cpu,
         percentile_ms(&deliveries, 0.5), percentile_ms(&deliveries, 0.99),
         percentile_ms(&deliveries, 0.999));
  rd_kafka_topic_destroy(topic);
  rd_kafka_destroy(producer);
  free(payload);
  free(deliveries.latencies_us);
  return deliveries.errors != 0;
}
