// Writes and reads numbers as Kafka's protocol has them: the highest byte first.

#ifndef FRESHET_WIRE_H
#define FRESHET_WIRE_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void write_16(uint8_t *at, uint16_t value) {
  uint16_t big = htobe16(value);
  memcpy(at, &big, sizeof big);
}

static inline void write_32(uint8_t *at, uint32_t value) {
  uint32_t big = htobe32(value);
  memcpy(at, &big, sizeof big);
}

static inline void write_64(uint8_t *at, uint64_t value) {
  uint64_t big = htobe64(value);
  memcpy(at, &big, sizeof big);
}

static inline uint16_t read_16(const uint8_t *at) {
  uint16_t big;
  memcpy(&big, at, sizeof big);
  return be16toh(big);
}

static inline uint32_t read_32(const uint8_t *at) {
  uint32_t big;
  memcpy(&big, at, sizeof big);
  return be32toh(big);
}

static inline uint64_t read_64(const uint8_t *at) {
  uint64_t big;
  memcpy(&big, at, sizeof big);
  return be64toh(big);
}

#endif
