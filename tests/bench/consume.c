// A light consumer on librdkafka. It reads partitions of one topic and discards the records. It
// prints `ready` when it knows the offsets from which it will read, and one JSON line at the end.
//
// usage: consume BOOTSTRAP TOPIC PARTITIONS RECORDS [KEY=VALUE]...
//        It ends when each reader has read RECORDS.
//        KEY=VALUE are settings of librdkafka, except these:
//          readers=N    reads with N consumers, each with its own connections; each reads all
//          divide=1     divides the partitions among the readers, which read RECORDS together
//          from_end=1   reads from the present end of the log, and not from its beginning
//          stamped=1    takes from the first 8 bytes of a record when it was due, in nanoseconds,
//                       and keeps the latency from then on
//          skip_ms=N    keeps no latencies of the first N milliseconds
//          bytes_per_s=N  reads at most N bytes a second with all readers together
//          seconds=N    ends after N seconds, even if not all was read

#include "generator.h"
#include "sockets.h"

#include <pthread.h>
#include <stdatomic.h>

enum { POLL_MS = 100, QUERY_MS = 30000, STAMP_BYTES = 8 };

struct options {
  uint64_t partitions, records, readers, divide, from_end, stamped, skip_ms, bytes_per_s, seconds;
};

struct reader {
  rd_kafka_t *consumer;
  rd_kafka_queue_t *queue;
  rd_kafka_topic_partition_list_t *places;
  const struct options *options;
  struct latencies latencies;
  pthread_t thread;
  uint64_t records, bytes, began_ns, first_ns, last_ns, errors;
  char first_error[TEXT_MAX];
};

// The records of all readers, for those that divide the partitions.
static _Atomic uint64_t records_together;

static bool take_own_option(const char *text, struct options *options) {
  return take_option(text, "readers", &options->readers) ||
         take_option(text, "divide", &options->divide) ||
         take_option(text, "from_end", &options->from_end) ||
         take_option(text, "stamped", &options->stamped) ||
         take_option(text, "skip_ms", &options->skip_ms) ||
         take_option(text, "bytes_per_s", &options->bytes_per_s) ||
         take_option(text, "seconds", &options->seconds);
}

// Waits if the reader is ahead of its rate. It has to do so after each record, because librdkafka
// calls back for all the records that it has. Meanwhile its queue fills, and it stops fetching.
static void hold_back(const struct reader *reader) {
  const struct options *options = reader->options;
  if (!options->bytes_per_s) return;
  double share = (double)options->bytes_per_s / (double)options->readers;
  uint64_t due_ns = reader->began_ns + (uint64_t)((double)reader->bytes * NS_PER_S / share);
  if (due_ns > now_ns() + NS_PER_MS) wait_until_ns(due_ns);
}

static bool is_over(const struct reader *reader) {
  uint64_t limit_ns = reader->options->seconds * NS_PER_S;
  return limit_ns && now_ns() - reader->began_ns >= limit_ns;
}

static void on_record(rd_kafka_message_t *message, void *opaque) {
  struct reader *reader = opaque;
  if (is_over(reader)) return;
  if (message->err) {
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) return;
    if (reader->errors++ == 0)
      snprintf(reader->first_error, TEXT_MAX, "%s", rd_kafka_err2str(message->err));
    return;
  }
  uint64_t now = now_ns();
  if (!reader->first_ns) reader->first_ns = now;
  reader->last_ns = now;
  reader->records++;
  atomic_fetch_add_explicit(&records_together, 1, memory_order_relaxed);
  reader->bytes += message->len;
  if (reader->options->stamped && message->len >= STAMP_BYTES) {
    uint64_t due_ns;
    memcpy(&due_ns, message->payload, STAMP_BYTES);
    if (due_ns >= reader->first_ns + reader->options->skip_ms * NS_PER_MS)
      keep(&reader->latencies, due_ns, now);
  }
  hold_back(reader);
}

static bool has_all(const struct reader *reader) {
  const struct options *options = reader->options;
  return (options->divide ? records_together : reader->records) >= options->records;
}

static void *read_all(void *opaque) {
  struct reader *reader = opaque;
  reader->began_ns = now_ns();
  rd_kafka_resp_err_t error = rd_kafka_assign(reader->consumer, reader->places);
  if (error) fail("assign", rd_kafka_err2str(error));
  while (!has_all(reader) && !is_over(reader))
    rd_kafka_consume_callback_queue(reader->queue, POLL_MS, on_record, reader);
  return NULL;
}

static void find_places(struct reader *reader, const char *topic, uint64_t number) {
  const struct options *options = reader->options;
  reader->places = rd_kafka_topic_partition_list_new(1);
  for (uint64_t partition = 0; partition < options->partitions; partition++) {
    if (options->divide && partition % options->readers != number) continue;
    int64_t first, end;
    rd_kafka_resp_err_t error = rd_kafka_query_watermark_offsets(
        reader->consumer, topic, (int32_t)partition, &first, &end, QUERY_MS);
    if (error) fail(topic, rd_kafka_err2str(error));
    rd_kafka_topic_partition_list_add(reader->places, topic, (int32_t)partition)->offset =
        options->from_end ? end : first;
  }
}

static void open_reader(struct reader *reader, int argc, char **argv) {
  char why[TEXT_MAX];
  struct options ignored;
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", argv[1]);
  // librdkafka requires a group, although no offset is committed.
  set(conf, "group.id", "bench");
  set(conf, "enable.auto.commit", "false");
  for (int i = 5; i < argc; i++)
    if (!take_own_option(argv[i], &ignored)) take_setting(conf, argv[i]);
  count_sockets_of(conf);
  reader->consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
  if (!reader->consumer) fail("no consumer", why);
  rd_kafka_poll_set_consumer(reader->consumer);
  reader->queue = rd_kafka_queue_get_consumer(reader->consumer);
}

static void print_result(struct reader *readers, const struct options *options, double cpu) {
  struct latencies all = {NULL, 0, 0};
  uint64_t records = 0, bytes = 0, errors = 0, began_ns = UINT64_MAX, ended_ns = 0;
  const char *first_error = "";
  for (uint64_t i = 0; i < options->readers; i++) {
    struct reader *reader = &readers[i];
    records += reader->records, bytes += reader->bytes, errors += reader->errors;
    if (reader->errors && !*first_error) first_error = reader->first_error;
    if (reader->began_ns < began_ns) began_ns = reader->began_ns;
    if (reader->last_ns > ended_ns) ended_ns = reader->last_ns;
    all.count_max += reader->latencies.count;
  }
  all.us = allocate(all.count_max, sizeof *all.us);
  for (uint64_t i = 0; i < options->readers; i++) {
    struct latencies *own = &readers[i].latencies;
    memcpy(all.us + all.count, own->us, own->count * sizeof *own->us);
    all.count += own->count;
  }
  printf("{\"records\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"errors\": %" PRIu64
         ", \"first_error\": \"%s\", ",
         records, bytes, errors, first_error);
  print_latencies(&all);
  printf("\"wire_bytes\": %" PRIu64 ", \"seconds\": %.6f, \"cpu_seconds\": %.3f}\n",
         bytes_carried().received,
         ended_ns > began_ns ? (double)(ended_ns - began_ns) / NS_PER_S : 0, cpu);
}

int main(int argc, char **argv) {
  if (argc < 5) fail("usage", "consume BOOTSTRAP TOPIC PARTITIONS RECORDS [KEY=VALUE]...");
  struct options options = {.partitions = strtoull(argv[3], NULL, 10),
                            .records = strtoull(argv[4], NULL, 10),
                            .readers = 1};
  for (int i = 5; i < argc; i++) take_own_option(argv[i], &options);
  if (options.readers == 0) fail("readers", "at least one");
  struct reader *readers = allocate(options.readers, sizeof *readers);
  for (uint64_t i = 0; i < options.readers; i++) {
    readers[i].options = &options;
    uint64_t kept = options.stamped ? options.records : 0;
    readers[i].latencies = (struct latencies){allocate(kept, 4), 0, kept};
    open_reader(&readers[i], argc, argv);
    find_places(&readers[i], argv[2], i);
  }
  puts("ready");
  fflush(stdout);
  double cpu_before = cpu_seconds();
  for (uint64_t i = 0; i < options.readers; i++)
    if (pthread_create(&readers[i].thread, NULL, read_all, &readers[i])) fail("thread", "none");
  for (uint64_t i = 0; i < options.readers; i++) pthread_join(readers[i].thread, NULL);
  print_result(readers, &options, cpu_seconds() - cpu_before);
  fflush(stdout);
  _Exit(0);
}
