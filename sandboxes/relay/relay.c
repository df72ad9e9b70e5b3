/*
 * The model path of a box: forwards each TCP connection on 127.0.0.1:<port> to the unix socket <path>, byte for byte.
 * Runs alone in a container without network whose network namespace the box shares; the box sees neither this process
 * nor the socket. End of stdin means that the owner is gone.
 *
 *   relay <port> <path>      writes "ready\n" to stdout once it listens
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_CONNECTIONS 512
#define CHUNK (64 << 10)

/* One direction of a connection. */
struct flow { uint8_t *data; size_t at, len; int ended, sunk, shut; };

/* fd[0] is the box, fd[1] the host; flow[i] is what was read from fd[i] and goes to the other. */
struct connection { int used, fd[2], watched[2], hung[2]; struct flow flow[2]; };

static struct connection connections[MAX_CONNECTIONS];
static int poller, listener;
static struct sockaddr_un host;

static void die(const char *what) {
  dprintf(2, "relay: %s: %s\n", what, strerror(errno));
  _exit(70);
}

static void watch(int fd, uint64_t tag, uint32_t events, int how) {
  struct epoll_event e = {.events = events, .data.u64 = tag};
  if (epoll_ctl(poller, how, fd, &e) < 0) die("epoll");
}

static void finish(struct connection *c) {
  for (int i = 0; i < 2; i++) {
    close(c->fd[i]);
    free(c->flow[i].data);
  }
  c->used = 0;
}

static void accept_one(void) {
  int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return;
  struct connection *c = NULL;
  for (int i = 0; i < MAX_CONNECTIONS && !c; i++) if (!connections[i].used) c = &connections[i];
  int up = c ? socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) : -1;
  if (up < 0 || connect(up, (struct sockaddr *)&host, sizeof host) < 0) {
    /* Nobody there, or too many: a reset, so that the client sees a fault and no empty answer. */
    struct linger now = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    if (up >= 0) close(up);
    close(fd);
    return;
  }
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  memset(c, 0, sizeof *c);
  c->used = 1, c->fd[0] = fd, c->fd[1] = up;
  uint64_t index = (uint64_t)(c - connections);
  for (int i = 0; i < 2; i++) {
    if (!(c->flow[i].data = malloc(CHUNK))) die("memory");
    watch(c->fd[i], 2 + index * 2 + (uint64_t)i, EPOLLIN, EPOLL_CTL_ADD);
    c->watched[i] = 1;
  }
}

/* Moves what can be moved from fd[from]. Returns -1 when the side that is read from is broken. */
static int move(struct connection *c, int from) {
  struct flow *f = &c->flow[from];
  for (int turns = 0; turns < 16; turns++) {
    if (f->len == 0 && !f->ended) {
      ssize_t n = read(c->fd[from], f->data, CHUNK);
      if (n < 0 && errno != EAGAIN && errno != EINTR) return -1;
      if (n < 0) return 0;
      if (n == 0) f->ended = 1;
      else f->at = 0, f->len = (size_t)n;
    }
    if (f->len > 0 && f->sunk) f->len = 0;
    if (f->len > 0) {
      ssize_t n = send(c->fd[!from], f->data + f->at, f->len, MSG_NOSIGNAL);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
      /* The reader left early, perhaps after an answer that is still on its way back: swallow, don't break. */
      if (n < 0) f->sunk = 1, n = (ssize_t)f->len;
      f->at += (size_t)n, f->len -= (size_t)n;
    }
    if (f->len == 0 && f->ended) {
      if (!f->shut) shutdown(c->fd[!from], SHUT_WR);
      f->shut = 1;
      return 0;
    }
  }
  return 0;
}

static void serve(struct connection *c, uint64_t index, int side, uint32_t events) {
  if (events & (EPOLLHUP | EPOLLERR)) c->hung[side] = 1;
  for (int i = 0; i < 2; i++) if (move(c, i) < 0) return finish(c);
  if (c->flow[0].shut && c->flow[1].shut) return finish(c);
  for (int i = 0; i < 2; i++) {
    uint32_t wanted = (c->flow[i].len == 0 && !c->flow[i].ended ? EPOLLIN : 0) | (c->flow[!i].len > 0 ? EPOLLOUT : 0);
    /* A hung-up socket is reported for ever: it is left out while nothing is wanted from it. */
    int stays = wanted || !c->hung[i];
    uint64_t tag = 2 + index * 2 + (uint64_t)i;
    if (stays) watch(c->fd[i], tag, wanted, c->watched[i] ? EPOLL_CTL_MOD : EPOLL_CTL_ADD);
    else if (c->watched[i]) watch(c->fd[i], tag, 0, EPOLL_CTL_DEL);
    c->watched[i] = stays;
  }
}

int main(int argc, char **argv) {
  if (argc != 3 || strlen(argv[2]) >= sizeof host.sun_path) { dprintf(2, "usage: relay <port> <path>\n"); return 64; }
  signal(SIGPIPE, SIG_IGN);
  host.sun_family = AF_UNIX;
  strcpy(host.sun_path, argv[2]);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (struct sockaddr *)&at, sizeof at) < 0 || listen(listener, 256) < 0) die("listen");
  poller = epoll_create1(EPOLL_CLOEXEC);
  watch(0, 0, EPOLLIN, EPOLL_CTL_ADD);
  watch(listener, 1, EPOLLIN, EPOLL_CTL_ADD);
  if (write(1, "ready\n", 6) < 0) die("stdout");
  for (;;) {
    struct epoll_event events[64];
    int n = epoll_wait(poller, events, 64, -1);
    if (n < 0 && errno != EINTR) die("epoll_wait");
    for (int i = 0; i < n; i++) {
      uint64_t tag = events[i].data.u64;
      if (tag == 0) {
        uint8_t ignored[256];
        if (read(0, ignored, sizeof ignored) == 0) return 0;
      } else if (tag == 1) {
        accept_one();
      } else {
        struct connection *c = &connections[(tag - 2) / 2];
        if (c->used) serve(c, (tag - 2) / 2, (int)((tag - 2) % 2), events[i].events);
      }
    }
  }
}
