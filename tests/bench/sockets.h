// Counts the bytes that librdkafka sends and receives: it opens and closes its sockets by functions
// of this file, and the kernel says what each of them carried.

#ifndef FRESHET_SOCKETS_H
#define FRESHET_SOCKETS_H

#include "generator.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DESCRIPTORS_MAX = 65536 };

struct carried {
  uint64_t sent, received;
};

// The sockets that are open now, by descriptor, and what those carried that were closed.
static bool is_open[DESCRIPTORS_MAX];
static struct carried by_closed;
static pthread_mutex_t sockets_lock = PTHREAD_MUTEX_INITIALIZER;

static inline void add_carried(struct carried *sum, int descriptor) {
  struct tcp_info info;
  socklen_t length = sizeof info;
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length)) return;
  sum->sent += info.tcpi_bytes_acked;
  sum->received += info.tcpi_bytes_received;
}

static inline int open_socket(int domain, int type, int protocol, void *opaque) {
  (void)opaque;
  int descriptor = socket(domain, type | SOCK_CLOEXEC, protocol);
  if (descriptor >= DESCRIPTORS_MAX) fail("socket", "too many descriptors");
  if (descriptor >= 0) {
    pthread_mutex_lock(&sockets_lock);
    is_open[descriptor] = true;
    pthread_mutex_unlock(&sockets_lock);
  }
  return descriptor;
}

static inline int close_socket(int descriptor, void *opaque) {
  (void)opaque;
  pthread_mutex_lock(&sockets_lock);
  add_carried(&by_closed, descriptor);
  is_open[descriptor] = false;
  pthread_mutex_unlock(&sockets_lock);
  return close(descriptor);
}

// Has a client that is made of these settings open its sockets here.
static inline void count_sockets_of(rd_kafka_conf_t *conf) {
  rd_kafka_conf_set_socket_cb(conf, open_socket);
  rd_kafka_conf_set_closesocket_cb(conf, close_socket);
}

// Returns what all sockets carried so far.
static inline struct carried bytes_carried(void) {
  pthread_mutex_lock(&sockets_lock);
  struct carried sum = by_closed;
  for (int descriptor = 0; descriptor < DESCRIPTORS_MAX; descriptor++)
    if (is_open[descriptor]) add_carried(&sum, descriptor);
  pthread_mutex_unlock(&sockets_lock);
  return sum;
}

#endif
