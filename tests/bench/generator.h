// What all load generators share: the clock, options, percentiles and CPU time.

#ifndef FRESHET_GENERATOR_H
#define FRESHET_GENERATOR_H

#include <errno.h>
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { TEXT_MAX = 512, NS_PER_US = 1000, NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

// Returns the time in nanoseconds. The clock is the same for all processes of a machine: a record
// carries the moment at which it was due, and its reader subtracts that from the moment of reading.
static inline uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static inline void wait_until_ns(uint64_t moment) {
  struct timespec until = {(time_t)(moment / NS_PER_S), (long)(moment % NS_PER_S)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) continue;
}

// Ends the program with a message on standard error.
static inline void fail(const char *what, const char *why) {
  fprintf(stderr, "generator: %s: %s\n", what, why);
  exit(1);
}

// Returns memory that is set to zero. The program ends if there is none.
static inline void *allocate(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  if (!memory) fail("memory", strerror(ENOMEM));
  return memory;
}

// Sets one setting of librdkafka.
static inline void set(rd_kafka_conf_t *conf, const char *key, const char *value) {
  char why[TEXT_MAX];
  if (rd_kafka_conf_set(conf, key, value, why, sizeof why) != RD_KAFKA_CONF_OK) fail(key, why);
}

// If `text` is NAME=NUMBER with this name, stores the number and returns true.
static inline bool take_option(const char *text, const char *name, uint64_t *value) {
  size_t length = strlen(name);
  if (strncmp(text, name, length) != 0 || text[length] != '=') return false;
  *value = strtoull(text + length + 1, NULL, 10);
  return true;
}

// If `text` is NAME=TEXT with this name, stores where its text begins and returns true.
static inline bool take_text(const char *text, const char *name, const char **value) {
  size_t length = strlen(name);
  if (strncmp(text, name, length) != 0 || text[length] != '=') return false;
  *value = text + length + 1;
  return true;
}

// Passes KEY=VALUE to librdkafka.
static inline void take_setting(rd_kafka_conf_t *conf, char *text) {
  char *equals = strchr(text, '=');
  if (!equals) fail(text, "not KEY=VALUE");
  *equals = '\0';
  set(conf, text, equals + 1);
  *equals = '=';
}

// Returns the CPU time of this process so far, of user and system.
static inline double cpu_seconds(void) {
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

// Latencies in microseconds. Each one is kept, so that percentiles are exact.
struct latencies {
  uint32_t *us;
  uint64_t count;
  uint64_t count_max;
};

static inline void keep(struct latencies *latencies, uint64_t from_ns, uint64_t to_ns) {
  if (latencies->count == latencies->count_max) return;
  uint64_t us = to_ns > from_ns ? (to_ns - from_ns) / NS_PER_US : 0;
  latencies->us[latencies->count++] = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

static inline int by_value(const void *left, const void *right) {
  uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
  return (a > b) - (a < b);
}

static inline double percentile_ms(const struct latencies *latencies, double share) {
  if (latencies->count == 0) return 0;
  return latencies->us[(uint64_t)((double)(latencies->count - 1) * share)] / 1000.0;
}

// Has to be called before `percentile_ms`.
static inline void sort_latencies(struct latencies *latencies) {
  qsort(latencies->us, latencies->count, sizeof(uint32_t), by_value);
}

// Prints members of a JSON object, with a comma after the last one.
static inline void print_latencies(struct latencies *latencies) {
  sort_latencies(latencies);
  printf("\"samples\": %" PRIu64 ", \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"p999_ms\": %.3f, "
         "\"max_ms\": %.3f, ",
         latencies->count, percentile_ms(latencies, 0.5), percentile_ms(latencies, 0.99),
         percentile_ms(latencies, 0.999), percentile_ms(latencies, 1));
}

#endif
