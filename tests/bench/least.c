// The least time that an acknowledgement takes on a machine. This server receives the requests of
// `trickle.c`, writes what has arrived past the page cache, syncs it, and answers. It does not
// check the requests and does not remember them. A rate that it does not reach, no broker reaches
// on that machine. It prints `ready`, and runs until it is killed.
//
// usage: least PORT FILE TOPIC

#define _GNU_SOURCE  // for O_DIRECT

#include "generator.h"
#include "wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
  CLIENTS_MAX = 1024,
  EVENTS_MAX = 256,
  REQUEST_BYTES_MAX = 1 << 16,
  // Each request has a record of a kilobyte, so that no more of them arrive together.
  WAITING_MAX = EVENTS_MAX * (REQUEST_BYTES_MAX >> 10),
  PAGE_BYTES = 4096,
  WRITE_BYTES_MAX = EVENTS_MAX * REQUEST_BYTES_MAX,
  FILE_BYTES = 64 << 20,
  ANSWER_BYTES_MAX = 512,
  LISTENER = CLIENTS_MAX,
  // Places in a request and in its answer, counted from the first byte of the length.
  CORRELATION_AT = 8,
  TOPIC_AT = 14,
};

struct client {
  int socket;
  size_t length;
  uint8_t bytes[REQUEST_BYTES_MAX];
};

struct waiting {
  int socket;
  uint8_t correlation[4];
};

struct server {
  int listener, epoll, file;
  const char *topic;
  struct client *clients[CLIENTS_MAX];
  struct waiting waiting[WAITING_MAX];
  size_t waiting_count;
  uint8_t *write;
  size_t write_bytes;
  off_t position;
};

// Opens the file and fills it. Later writes then go over blocks that exist, so that a sync has only
// their content to write.
static void open_file(struct server *server, const char *path) {
  server->file = open(path, O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
  if (server->file < 0) fail(path, strerror(errno));
  if (posix_memalign((void **)&server->write, PAGE_BYTES, WRITE_BYTES_MAX))
    fail("memory", strerror(ENOMEM));
  memset(server->write, 0, WRITE_BYTES_MAX);
  for (off_t at = 0; at < FILE_BYTES; at += WRITE_BYTES_MAX)
    if (pwrite(server->file, server->write, WRITE_BYTES_MAX, at) != WRITE_BYTES_MAX)
      fail(path, strerror(errno));
  if (fsync(server->file)) fail(path, strerror(errno));
}

static void watch(const struct server *server, int socket, uint64_t number) {
  struct epoll_event event = {EPOLLIN, {.u64 = number}};
  if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, socket, &event)) fail("epoll", strerror(errno));
}

static void listen_on(struct server *server, int port) {
  int yes = 1;
  server->epoll = epoll_create1(EPOLL_CLOEXEC);
  server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr = {htonl(INADDR_LOOPBACK)}};
  if (bind(server->listener, (struct sockaddr *)&address, sizeof address) ||
      listen(server->listener, CLIENTS_MAX))
    fail("listen", strerror(errno));
  watch(server, server->listener, LISTENER);
}

static void take_client(struct server *server) {
  int accepted = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC), yes = 1;
  if (accepted < 0) fail("accept", strerror(errno));
  setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  uint64_t number = 0;
  while (number < CLIENTS_MAX && server->clients[number]) number++;
  if (number == CLIENTS_MAX) fail("accept", "too many clients");
  server->clients[number] = allocate(1, sizeof(struct client));
  server->clients[number]->socket = accepted;
  watch(server, accepted, number);
}

static void take_request(struct server *server, const struct client *client,
                         const uint8_t *request, size_t length) {
  if (server->waiting_count == WAITING_MAX) fail("requests", "too small ones");
  struct waiting *waiting = &server->waiting[server->waiting_count++];
  waiting->socket = client->socket;
  memcpy(waiting->correlation, request + CORRELATION_AT, sizeof waiting->correlation);
  memcpy(server->write + server->write_bytes, request, length);
  server->write_bytes += length;
}

static void receive(struct server *server, uint64_t number) {
  struct client *client = server->clients[number];
  ssize_t got = recv(client->socket, client->bytes + client->length,
                     REQUEST_BYTES_MAX - client->length, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    close(client->socket);
    free(client);
    server->clients[number] = NULL;
    return;
  }
  client->length += (size_t)got;
  size_t taken = 0;
  while (client->length - taken >= 4) {
    size_t length = 4 + (size_t)read_32(client->bytes + taken);
    if (length > REQUEST_BYTES_MAX) fail("receive", "a request is too long");
    if (client->length - taken < length) break;
    take_request(server, client, client->bytes + taken, length);
    taken += length;
  }
  client->length -= taken;
  memmove(client->bytes, client->bytes + taken, client->length);
}

static void make_durable(struct server *server) {
  size_t bytes = (server->write_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
  if (server->position + (off_t)bytes > FILE_BYTES) server->position = 0;
  if (pwrite(server->file, server->write, bytes, server->position) != (ssize_t)bytes ||
      fdatasync(server->file))
    fail("write", strerror(errno));
  server->position += (off_t)bytes;
  server->write_bytes = 0;
}

// Answers each request: its topic, one partition, and zeros, which say that there was no error.
static void answer_all(struct server *server) {
  uint8_t answer[ANSWER_BYTES_MAX] = {0};
  size_t name = strlen(server->topic), length = TOPIC_AT + name + 4 + 4 + 2 + 8 + 8 + 8 + 4;
  if (length > sizeof answer) fail(server->topic, "the name is too long");
  write_32(answer, (uint32_t)(length - 4));
  write_32(answer + 8, 1);
  answer[TOPIC_AT - 1] = (uint8_t)name;
  memcpy(answer + TOPIC_AT, server->topic, name);
  write_32(answer + TOPIC_AT + name, 1);
  for (size_t i = 0; i < server->waiting_count; i++) {
    memcpy(answer + 4, server->waiting[i].correlation, sizeof server->waiting[i].correlation);
    // A client may have closed its connection meanwhile.
    send(server->waiting[i].socket, answer, length, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  server->waiting_count = 0;
}

int main(int argc, char **argv) {
  if (argc != 4) fail("usage", "least PORT FILE TOPIC");
  struct server *server = allocate(1, sizeof *server);
  server->topic = argv[3];
  open_file(server, argv[2]);
  listen_on(server, atoi(argv[1]));
  puts("ready");
  fflush(stdout);
  struct epoll_event events[EVENTS_MAX];
  for (;;) {
    int ready = epoll_wait(server->epoll, events, EVENTS_MAX, -1);
    for (int i = 0; i < ready; i++) {
      if (events[i].data.u64 == LISTENER)
        take_client(server);
      else
        receive(server, events[i].data.u64);
    }
    if (server->waiting_count) {
      make_durable(server);
      answer_all(server);
    }
  }
}
