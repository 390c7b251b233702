// What both load generators that produce share: options, the load itself, what became of it.

#ifndef FRESHET_PRODUCING_H
#define FRESHET_PRODUCING_H

#include "generator.h"

// For the last records to be answered; bytes of a record's stamp.
enum { REST_SECONDS_MAX = 120, STAMP_BYTES = 8, OWN_ARGUMENTS = 5 };

struct options {
  uint64_t records, size, rate, producers, stamp, skip_ms;
};

// What became of the records. How late they were sent is known where no client library sends them.
struct outcome {
  struct latencies latencies, late;
  uint64_t delivered, errors, kept_from_ns, last_ns, gap_max_ns;
  char first_error[TEXT_MAX];
};

static inline bool take_own_option(const char *text, struct options *options) {
  return take_option(text, "rate", &options->rate) ||
         take_option(text, "producers", &options->producers) ||
         take_option(text, "stamp", &options->stamp) ||
         take_option(text, "skip_ms", &options->skip_ms);
}

// Of BOOTSTRAP TOPIC RECORDS RECORD_SIZE [KEY=VALUE]...; options that are not ours are left.
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

// The same numbers in every run (xorshift).
struct drawn {
  uint64_t state;
};

static const struct drawn FIRST_DRAWN = {88172645463325252ULL};

static inline uint64_t draw(struct drawn *drawn) {
  drawn->state ^= drawn->state << 13, drawn->state ^= drawn->state >> 7;
  return drawn->state ^= drawn->state << 17;
}

// Bytes that do not compress.
static inline void fill(char *bytes, size_t size) {
  struct drawn drawn = FIRST_DRAWN;
  for (size_t i = 0; i < size; i++) bytes[i] = (char)draw(&drawn);
}

// When the `number`th record is due, at a rate.
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
  if (due_ns >= outcome->kept_from_ns) keep(&outcome->latencies, due_ns, now);
  if (outcome->last_ns && now - outcome->last_ns > outcome->gap_max_ns)
    outcome->gap_max_ns = now - outcome->last_ns;
  outcome->last_ns = now;
}

static inline void note_error(struct outcome *outcome, rd_kafka_resp_err_t error) {
  if (outcome->errors++ == 0)
    snprintf(outcome->first_error, TEXT_MAX, "%s", rd_kafka_err2str(error));
}

static inline void print_outcome(struct outcome *outcome, double seconds, double cpu) {
  printf("{\"delivered\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"first_error\": \"%s\", ",
         outcome->delivered, outcome->errors, outcome->first_error);
  print_latencies(&outcome->latencies);
  if (outcome->late.count) {
    sort_latencies(&outcome->late);
    printf("\"late_p99_ms\": %.3f, ", percentile_ms(&outcome->late, 0.99));
  }
  printf("\"gap_max_ms\": %.3f, \"seconds\": %.6f, \"cpu_seconds\": %.3f}\n",
         (double)outcome->gap_max_ns / NS_PER_MS, seconds, cpu);
  fflush(stdout);
}

// Runs a load and prints what became of it. Gives the program's exit code.
static inline int measure(struct outcome *outcome, const struct options *options,
                          void (*send_all_records)(void *load), void *load) {
  double cpu_before = cpu_seconds();
  uint64_t began_ns = now_ns();
  outcome->kept_from_ns = began_ns + options->skip_ms * NS_PER_MS;
  send_all_records(load);
  double seconds = (double)(now_ns() - began_ns) / NS_PER_S;
  print_outcome(outcome, seconds, cpu_seconds() - cpu_before);
  return outcome->errors != 0;
}

#endif
