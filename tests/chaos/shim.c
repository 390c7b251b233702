/* Loaded into brokers before the C library (`LD_PRELOAD`): a clock that the harness shifts, and an
 * address of its own for each process, by which the harness tells whose packets these are.
 *
 * `LD_CHAOS_FOLDER` names a folder. The process creates a file there, named by its process id, with
 * one number of 8 bytes: the nanoseconds that its wall clock is ahead. The monotonic clock is left
 * alone, as a wrong clock of a machine leaves it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static volatile int64_t *ahead_ns;
static int (*real_clock_gettime)(clockid_t, struct timespec *);
static int (*real_connect)(int, const struct sockaddr *, socklen_t);

__attribute__((constructor)) static void find_clock(void)
{
    real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    real_connect = dlsym(RTLD_NEXT, "connect");
    const char *folder = getenv("LD_CHAOS_FOLDER");
    if (folder == NULL)
        return;
    char path[4096];
    snprintf(path, sizeof path, "%s/%d", folder, getpid());
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof *ahead_ns) != 0)
        abort();
    void *mapped = mmap(NULL, sizeof *ahead_ns, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED)
        abort();
    ahead_ns = mapped;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (real_clock_gettime == NULL)
        real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real_clock_gettime(clock, now);
    int is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    if (status != 0 || !is_wall || ahead_ns == NULL || *ahead_ns == 0)
        return status;
    int64_t shifted = now->tv_sec * SECOND + now->tv_nsec + *ahead_ns;
    now->tv_sec = shifted / SECOND;
    now->tv_nsec = shifted % SECOND;
    return 0;
}

int gettimeofday(struct timeval *now, void *zone)
{
    (void)zone;
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result)
{
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (result != NULL)
        *result = exact.tv_sec;
    return exact.tv_sec;
}

/* Connections within the loopback come from 127.128.x.y, where x and y are the process id. */
int connect(int socket, const struct sockaddr *to, socklen_t length)
{
    const struct sockaddr_in *there = (const struct sockaddr_in *)to;
    if (ahead_ns != NULL && length >= sizeof *there && to->sa_family == AF_INET
        && ntohl(there->sin_addr.s_addr) >> 24 == 127) {
        struct sockaddr_in own = {.sin_family = AF_INET};
        own.sin_addr.s_addr = htonl(127u << 24 | 128u << 16 | ((unsigned)getpid() & 0xffff));
        int on = 1;
        setsockopt(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
        /* A socket that is bound already keeps its address. */
        (void)bind(socket, (const struct sockaddr *)&own, sizeof own);
    }
    return real_connect(socket, to, length);
}
