// What all load generators that produce share: their options, the content of records, and what is
// counted of the records that were sent.

#ifndef FRESHET_PRODUCING_H
#define FRESHET_PRODUCING_H

#include "generator.h"

// REST_SECONDS_MAX is how long the last records may take to be acknowledged. A stamp is the moment
// at which a record was due, in its first bytes. Before OWN_ARGUMENTS are those that have no name.
// Acknowledgements are counted by second for the first CHART_SECONDS.
enum { REST_SECONDS_MAX = 120, STAMP_BYTES = 8, OWN_ARGUMENTS = 5, CHART_SECONDS = 300 };

struct options {
  uint64_t records, size, rate, producers, stamp, skip_ms;
  const char *payloads;  // a file, or NULL
};

// What is counted of the records. `late` is the time from when a record was due until it was handed
// to the socket, which only generators without a client library know. `wire_bytes` is what was sent
// to brokers, requests' headers included.
struct outcome {
  struct latencies latencies, late;
  uint64_t wire_bytes;
  uint64_t delivered, errors, began_ns, kept_from_ns, last_ns, gap_max_ns;
  uint64_t delivered_by_second[CHART_SECONDS];
  char first_error[TEXT_MAX];
};

static inline bool take_own_option(const char *text, struct options *options) {
  return take_option(text, "rate", &options->rate) ||
         take_option(text, "producers", &options->producers) ||
         take_option(text, "stamp", &options->stamp) ||
         take_option(text, "skip_ms", &options->skip_ms) ||
         take_text(text, "payloads", &options->payloads);
}

// Reads BOOTSTRAP TOPIC RECORDS RECORD_SIZE [KEY=VALUE]... It passes over options of librdkafka.
static inline struct options options_of(int argc, char **argv) {
  if (argc < OWN_ARGUMENTS)
    fail("usage", "BOOTSTRAP TOPIC RECORDS RECORD_SIZE [KEY=VALUE]...");
  struct options options = {.records = strtoull(argv[3], NULL, 10),
                            .size = strtoull(argv[4], NULL, 10),
                            .producers = 1};
  for (int i = OWN_ARGUMENTS; i < argc; i++) take_own_option(argv[i], &options);
  if (options.producers == 0) fail("producers", "at least one");
  if (options.stamp && options.size < STAMP_BYTES) fail("stamp", "records are too small");
  return options;
}

// Random numbers, the same in each run (xorshift).
struct drawn {
  uint64_t state;
};

static const struct drawn FIRST_DRAWN = {88172645463325252ULL};

static inline uint64_t draw(struct drawn *drawn) {
  drawn->state ^= drawn->state << 13, drawn->state ^= drawn->state >> 7;
  return drawn->state ^= drawn->state << 17;
}

// Fills memory with bytes that do not compress.
static inline void fill(char *bytes, size_t size) {
  struct drawn drawn = FIRST_DRAWN;
  for (size_t i = 0; i < size; i++) bytes[i] = (char)draw(&drawn);
}

// The content of records. It is ready before the clock starts.
struct payloads {
  char *bytes;
  uint64_t count;
  size_t step;  // from one record to the next
};

// Reads a file of records of `size` bytes, each followed by a line break.
static inline struct payloads read_payloads(const char *path, size_t size) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) fail(path, strerror(errno));
  long bytes = ftell(file);
  rewind(file);
  struct payloads payloads = {NULL, (uint64_t)bytes / (size + 1), size + 1};
  if (payloads.count == 0 || (uint64_t)bytes % payloads.step)
    fail(path, "it does not consist of records of this size");
  payloads.bytes = allocate((size_t)bytes, 1);
  if (fread(payloads.bytes, 1, (size_t)bytes, file) != (size_t)bytes) fail(path, "read in part");
  fclose(file);
  for (uint64_t i = 1; i <= payloads.count; i++)
    if (payloads.bytes[i * payloads.step - 1] != '\n') fail(path, "records differ in size");
  return payloads;
}

// Returns the records of the file that the options name, or one record that does not compress.
static inline struct payloads payloads_of(const struct options *options) {
  if (options->payloads) return read_payloads(options->payloads, options->size);
  struct payloads payloads = {allocate(options->size, 1), 1, options->size};
  fill(payloads.bytes, options->size);
  return payloads;
}

static inline char *payload_of(const struct payloads *payloads, uint64_t number) {
  return payloads->bytes + number % payloads->count * payloads->step;
}

// Returns when the record with this number is due, for a load at a rate.
static inline uint64_t due_ns_of(const struct options *options, uint64_t began_ns,
                                 uint64_t number) {
  return began_ns + (uint64_t)((double)number * NS_PER_S / (double)options->rate);
}

static inline struct outcome outcome_of(const struct options *options) {
  return (struct outcome){.latencies = {allocate(options->records, 4), 0, options->records}};
}

static inline void note_sent(struct outcome *outcome, uint64_t due_ns, uint64_t now) {
  if (due_ns >= outcome->kept_from_ns) keep(&outcome->late, due_ns, now);
}

static inline void note_delivered(struct outcome *outcome, uint64_t due_ns, uint64_t now) {
  outcome->delivered++;
  uint64_t second = (now - outcome->began_ns) / NS_PER_S;
  if (second < CHART_SECONDS) outcome->delivered_by_second[second]++;
  if (due_ns >= outcome->kept_from_ns) keep(&outcome->latencies, due_ns, now);
  if (outcome->last_ns && now - outcome->last_ns > outcome->gap_max_ns)
    outcome->gap_max_ns = now - outcome->last_ns;
  outcome->last_ns = now;
}

static inline void note_error(struct outcome *outcome, rd_kafka_resp_err_t error) {
  if (outcome->errors++ == 0)
    snprintf(outcome->first_error, TEXT_MAX, "%s", rd_kafka_err2str(error));
}

// Prints how many records were acknowledged in each second, until the last one with any.
static inline void print_by_second(const struct outcome *outcome) {
  size_t count = CHART_SECONDS;
  while (count && !outcome->delivered_by_second[count - 1]) count--;
  printf("\"delivered_by_second\": [");
  for (size_t i = 0; i < count; i++)
    printf("%s%" PRIu64, i ? ", " : "", outcome->delivered_by_second[i]);
  printf("], ");
}

static inline void print_outcome(struct outcome *outcome, double seconds, double cpu) {
  printf("{\"delivered\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"first_error\": \"%s\", ",
         outcome->delivered, outcome->errors, outcome->first_error);
  print_latencies(&outcome->latencies);
  print_by_second(outcome);
  if (outcome->late.count) {
    sort_latencies(&outcome->late);
    printf("\"late_p99_ms\": %.3f, ", percentile_ms(&outcome->late, 0.99));
  }
  printf("\"gap_max_ms\": %.3f, \"wire_bytes\": %" PRIu64
         ", \"seconds\": %.6f, \"cpu_seconds\": %.3f}\n",
         (double)outcome->gap_max_ns / NS_PER_MS, outcome->wire_bytes, seconds, cpu);
  fflush(stdout);
}

// Runs a load and prints its outcome. Returns the program's exit code.
static inline int measure(struct outcome *outcome, const struct options *options,
                          void (*send_all_records)(void *load), void *load) {
  double cpu_before = cpu_seconds();
  outcome->began_ns = now_ns();
  outcome->kept_from_ns = outcome->began_ns + options->skip_ms * NS_PER_MS;
  send_all_records(load);
  double seconds = (double)(now_ns() - outcome->began_ns) / NS_PER_S;
  print_outcome(outcome, seconds, cpu_seconds() - cpu_before);
  return outcome->errors != 0;
}

#endif
