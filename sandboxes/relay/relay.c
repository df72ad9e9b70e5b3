/*
 * The model path of a box: forwards each TCP connection on 127.0.0.1:<port> to the unix socket <path>, byte for byte.
 * Runs alone in a container without network whose network namespace the box shares; the box sees neither this process
 * nor the socket. End of stdin means that the owner is gone.
 *
 *   relay <port> <path>|- [<uid>]    writes "ready\n" to stdout once it listens
 *
 * With - there is no socket: the daemon of this container is on another machine than its owner. Every connection is a line
 * of stdin and stdout then, in frames `u32 length of what follows | u8 type | u32 line | payload` (little endian), whose
 * other end is src/sandbox/docker/lines.ts. Each side sends at most WINDOW bytes of a line that the other has not passed on.
 *
 * With a uid it is the way out of the box too, for programs that know of no proxy. Started as root, it makes every IPv4
 * address local to the namespace (a route of type `local`), so that no packet ever leaves it, and has the kernel hand
 * every TCP connection to an address outside 127.0.0.0/8, on whatever port, to one listener of its own (a BPF program of
 * type SK_LOOKUP, Documentation/bpf/prog_sk_lookup.rst, Linux 5.9 and later). Then it becomes <uid> and has no
 * capability any more. Of each such connection it reads the true destination and asks the socket for it, as a proxy is
 * asked: `CONNECT a.b.c.d:port`. Refused is a reset. Name queries (UDP to port 53 of any address) go the same way, as
 * CONNECT to NAMES with the framing of RFC 1035 §4.2.2. Where the kernel or the daemon does not allow this, it says
 * "ready, asked only: <why>\n", and the box has the model path and its explicit proxy.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/bpf.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <poll.h>
#include <unistd.h>

#define MAX_CONNECTIONS 512
#define MAX_QUESTIONS 64
#define CHUNK (64 << 10)
#define NAMES "198.18.0.1" /* the resolver that the box is told of; src/sandbox/egress/names.ts answers */

#define MAX_LINES (MAX_CONNECTIONS + MAX_QUESTIONS)
#define WINDOW (64 << 10)
#define PIECE (32 << 10)
#define HEAD 9

enum { STDIN, MODEL, OUT, QUERY, FLOW, REPLY, LINE };
enum { OPEN = 65, DATA = 66, END = 67, RESET = 68, PASSED = 69 };

/* One direction of a connection. */
struct flow { uint8_t *data; size_t at, len; int ended, sunk, shut; };

/* fd[0] is the box, fd[1] the host; flow[i] is what was read from fd[i] and goes to the other. */
struct connection { int used, fd[2], watched[2], hung[2], asks; struct flow flow[2]; };

/* A name query on its way: who asked, which server, and what came back so far. */
struct question { int used, fd; struct sockaddr_in from; struct in_addr to; size_t got; uint8_t data[4608]; };

/*
 * A connection to the owner without a socket: `fd` is our end of a pair whose other end stands where the socket's would.
 * `credit` is what may still be sent of it, `data` what came and was not taken yet, `passed` what was and is not told yet.
 */
struct line {
  int used, fd, watched, said_end, heard_end;
  uint32_t id, credit, passed;
  uint8_t *data;
  size_t at, len;
};

static struct line lines[MAX_LINES];
static int by_lines;
static struct connection connections[MAX_CONNECTIONS];
static struct question questions[MAX_QUESTIONS];
static int poller, listener, catcher = -1, queries = -1;
static struct sockaddr_un host;

static void die(const char *what) {
  dprintf(2, "relay: %s: %s\n", what, strerror(errno));
  _exit(70);
}

static void watch(int fd, int kind, uint64_t index, uint32_t events, int how) {
  struct epoll_event e = {.events = events, .data.u64 = (uint64_t)kind << 32 | index};
  if (epoll_ctl(poller, how, fd, &e) < 0) die("epoll");
}

static void finish(struct connection *c) {
  for (int i = 0; i < 2; i++) {
    close(c->fd[i]);
    free(c->flow[i].data);
  }
  c->used = 0;
}

/* A reset, so that the client sees a fault and no empty answer. */
static void reset(int fd) {
  struct linger now = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(fd);
}

static void say(uint8_t type, uint32_t id, const uint8_t *payload, uint32_t size) {
  uint8_t head[HEAD];
  uint32_t length = size + 5;
  memcpy(head, &length, 4), head[4] = type, memcpy(head + 5, &id, 4);
  struct { const uint8_t *at; size_t left; } parts[2] = {{head, HEAD}, {payload, size}};
  for (int i = 0; i < 2; i++) {
    while (parts[i].left > 0) {
      ssize_t n = write(1, parts[i].at, parts[i].left);
      if (n >= 0) parts[i].at += n, parts[i].left -= (size_t)n;
      else if (errno == EAGAIN) poll(&(struct pollfd){1, POLLOUT, 0}, 1, -1);
      else if (errno != EINTR) die("stdout");
    }
  }
}

static void hang_up(struct line *l) {
  close(l->fd);
  free(l->data);
  l->used = 0;
}

static void reset_line(struct line *l) {
  say(RESET, l->id, NULL, 0);
  hang_up(l);
}

static int open_line(void) {
  struct line *l = NULL;
  for (int i = 0; i < MAX_LINES && !l; i++) if (!lines[i].used) l = &lines[i];
  int pair[2];
  if (!l || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0) return -1;
  /* Another number each time, so that what is still on its way to the last one is not taken for the next one's. */
  uint32_t index = (uint32_t)(l - lines), next = l->id + MAX_LINES;
  memset(l, 0, sizeof *l);
  l->used = 1, l->fd = pair[0], l->id = next % MAX_LINES == index ? next : index, l->credit = WINDOW;
  if (!(l->data = malloc(WINDOW))) die("memory");
  watch(l->fd, LINE, index, EPOLLIN, EPOLL_CTL_ADD);
  l->watched = 1;
  say(OPEN, l->id, NULL, 0);
  return pair[1];
}

/* Passes on what came from the owner. Returns -1 when nobody takes it any more. */
static int pass_on(struct line *l) {
  while (l->len > 0) {
    ssize_t n = send(l->fd, l->data + l->at, l->len, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return -1;
    if (n < 0) break;
    l->at += (size_t)n, l->len -= (size_t)n, l->passed += (uint32_t)n;
  }
  if (l->passed >= WINDOW / 4 || (l->passed > 0 && l->len == 0)) {
    say(PASSED, l->id, (uint8_t *)&l->passed, 4);
    l->passed = 0;
  }
  if (l->heard_end && l->len == 0) shutdown(l->fd, SHUT_WR);
  return 0;
}

/* Tells the owner what the box says. Returns -1 when the line is broken. */
static int tell(struct line *l) {
  static uint8_t piece[PIECE];
  while (!l->said_end && l->credit > 0) {
    ssize_t n = recv(l->fd, piece, l->credit < PIECE ? l->credit : PIECE, 0);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0) l->said_end = 1;
    say(n == 0 ? END : DATA, l->id, piece, (uint32_t)n);
    l->credit -= (uint32_t)n;
  }
  return 0;
}

static void tend(struct line *l) {
  if (pass_on(l) < 0 || tell(l) < 0) return reset_line(l);
  if (l->said_end && l->heard_end && l->len == 0) return hang_up(l);
  uint32_t wanted = (!l->said_end && l->credit > 0 ? EPOLLIN : 0) | (l->len > 0 ? EPOLLOUT : 0);
  /* Left out while nothing is wanted of it: a hung-up socket is reported for ever. */
  if (wanted || l->watched) watch(l->fd, LINE, (uint64_t)(l - lines), wanted, !wanted ? EPOLL_CTL_DEL : l->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD);
  l->watched = wanted != 0;
}

/* One frame of the owner. */
static void hear(uint8_t type, uint32_t id, const uint8_t *payload, size_t size) {
  struct line *l = &lines[id % MAX_LINES];
  if (!l->used || l->id != id) return;
  uint32_t passed = 0;
  switch (type) {
  case RESET: return hang_up(l);
  case END: l->heard_end = 1; break;
  case PASSED:
    memcpy(&passed, payload, size < 4 ? size : 4);
    l->credit += passed;
    break;
  case DATA:
    if (l->len + size > WINDOW) { errno = EPROTO; die("more than the window"); }
    memmove(l->data, l->data + l->at, l->len);
    memcpy(l->data + l->len, payload, size);
    l->at = 0, l->len += size;
  }
  tend(l);
}

/* What stands on stdin. Returns 0 at its end. */
static int listen_to_owner(void) {
  static uint8_t got[2 * (WINDOW + HEAD)];
  static size_t length;
  ssize_t n = read(0, got + length, sizeof got - length);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
  if (n <= 0) return 0;
  if (!by_lines) return 1;
  length += (size_t)n;
  size_t at = 0;
  while (length - at >= HEAD) {
    uint32_t size, id;
    memcpy(&size, got + at, 4), memcpy(&id, got + at + 5, 4);
    if (size < 5 || size > WINDOW + 5) { errno = EPROTO; die("frame"); }
    if (length - at < size + 4) break;
    hear(got[at + 4], id, got + at + HEAD, size - 5);
    at += size + 4;
  }
  memmove(got, got + at, length - at);
  length -= at;
  return 1;
}

static int connect_host(void) {
  if (by_lines) return open_line();
  int up = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (up >= 0 && connect(up, (struct sockaddr *)&host, sizeof host) == 0) return up;
  if (up >= 0) close(up);
  return -1;
}

/* What asks the host for an address. */
static size_t ask(uint8_t *at, size_t room, const char *address, int port) {
  return (size_t)snprintf((char *)at, room, "CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n", address, port, address, port);
}

static void serve(struct connection *c, uint64_t index, int side, uint32_t events);

static void accept_one(int from) {
  int fd = accept4(from, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return;
  struct connection *c = NULL;
  for (int i = 0; i < MAX_CONNECTIONS && !c; i++) if (!connections[i].used) c = &connections[i];
  int up = c ? connect_host() : -1;
  /* Nobody there, or too many. */
  if (up < 0) return reset(fd);
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  memset(c, 0, sizeof *c);
  c->used = 1, c->fd[0] = fd, c->fd[1] = up;
  uint64_t index = (uint64_t)(c - connections);
  for (int i = 0; i < 2; i++) {
    if (!(c->flow[i].data = malloc(CHUNK))) die("memory");
    watch(c->fd[i], FLOW, index * 2 + (uint64_t)i, EPOLLIN, EPOLL_CTL_ADD);
    c->watched[i] = 1;
  }
  if (from != catcher) return;
  struct sockaddr_in to;
  socklen_t size = sizeof to;
  char text[INET_ADDRSTRLEN];
  if (getsockname(fd, (struct sockaddr *)&to, &size) < 0) die("getsockname");
  inet_ntop(AF_INET, &to.sin_addr, text, sizeof text);
  c->flow[0].len = ask(c->flow[0].data, CHUNK, text, ntohs(to.sin_port));
  c->asks = 1;
  /* At once: the client may be waiting for the server's first word. */
  serve(c, index, 0, 0);
}

/* Takes the host's answer to our CONNECT off the stream. 1: open; 0: not all of it is there; -1: refused. */
static int answered(struct connection *c) {
  char head[1024];
  ssize_t n = recv(c->fd[1], head, sizeof head - 1, MSG_PEEK);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (n <= 0) return -1;
  head[n] = 0;
  char *end = strstr(head, "\r\n\r\n");
  if (!end) return n < (ssize_t)sizeof head - 1 ? 0 : -1;
  if (recv(c->fd[1], head, (size_t)(end + 4 - head), 0) < 0) return -1;
  return strncmp(head, "HTTP/1.1 200 ", 13) == 0 ? 1 : -1;
}

/* Moves what can be moved from fd[from]. Returns -1 when the side that is read from is broken. */
static int move(struct connection *c, int from) {
  struct flow *f = &c->flow[from];
  if (from == 1 && c->asks) {
    int open = answered(c);
    if (open <= 0) return open;
    c->asks = 0;
  }
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
  for (int i = 0; i < 2; i++) {
    if (move(c, i) == 0) continue;
    struct linger now = {1, 0};
    if (c->asks) setsockopt(c->fd[0], SOL_SOCKET, SO_LINGER, &now, sizeof now);
    return finish(c);
  }
  if (c->flow[0].shut && c->flow[1].shut) return finish(c);
  for (int i = 0; i < 2; i++) {
    uint32_t wanted = (c->flow[i].len == 0 && !c->flow[i].ended ? EPOLLIN : 0) | (c->flow[!i].len > 0 ? EPOLLOUT : 0);
    /* A hung-up socket is reported for ever: it is left out while nothing is wanted from it. */
    int stays = wanted || !c->hung[i];
    uint64_t at = index * 2 + (uint64_t)i;
    if (stays) watch(c->fd[i], FLOW, at, wanted, c->watched[i] ? EPOLL_CTL_MOD : EPOLL_CTL_ADD);
    else if (c->watched[i]) watch(c->fd[i], FLOW, at, 0, EPOLL_CTL_DEL);
    c->watched[i] = stays;
  }
}

/* Name queries. */

static void query(void) {
  uint8_t message[2048], control[256];
  struct sockaddr_in from;
  struct iovec part = {message, sizeof message};
  struct msghdr m = {&from, sizeof from, &part, 1, control, sizeof control, 0};
  ssize_t n = recvmsg(queries, &m, MSG_DONTWAIT);
  if (n <= 0 || m.msg_flags & MSG_TRUNC) return;
  struct question *q = NULL;
  for (int i = 0; i < MAX_QUESTIONS && !q; i++) if (!questions[i].used) q = &questions[i];
  int up = q ? connect_host() : -1;
  if (up < 0) return; /* The client asks again. */
  memset(q, 0, sizeof *q);
  q->from = from, q->fd = up;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) q->to = ((struct in_pktinfo *)CMSG_DATA(c))->ipi_addr;
  uint8_t request[2304];
  size_t length = ask(request, 256, NAMES, 53);
  request[length++] = (uint8_t)(n >> 8), request[length++] = (uint8_t)n;
  memcpy(request + length, message, (size_t)n);
  length += (size_t)n;
  if (send(up, request, length, MSG_NOSIGNAL) != (ssize_t)length) { close(up); return; }
  q->used = 1;
  watch(up, REPLY, (uint64_t)(q - questions), EPOLLIN, EPOLL_CTL_ADD);
}

static void reply(struct question *q) {
  ssize_t n = recv(q->fd, q->data + q->got, sizeof q->data - q->got, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n > 0) q->got += (size_t)n;
  uint8_t *end = memmem(q->data, q->got, "\r\n\r\n", 4);
  size_t left = end ? q->got - (size_t)(end + 4 - q->data) : 0;
  size_t length = left >= 2 ? (size_t)end[4] << 8 | end[5] : 0;
  if (length > 0 && left >= length + 2) {
    /* From the address that was asked, else no client takes it. */
    union { struct cmsghdr header; uint8_t room[CMSG_SPACE(sizeof(struct in_pktinfo))]; } control = {0};
    struct iovec part = {end + 6, length};
    struct msghdr m = {&q->from, sizeof q->from, &part, 1, &control, sizeof control, 0};
    control.header.cmsg_level = IPPROTO_IP, control.header.cmsg_type = IP_PKTINFO;
    control.header.cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo));
    ((struct in_pktinfo *)CMSG_DATA(&control.header))->ipi_spec_dst = q->to;
    sendmsg(queries, &m, MSG_DONTWAIT);
  } else if (n > 0 && q->got < sizeof q->data) {
    return;
  }
  close(q->fd);
  q->used = 0;
}

/* Makes this namespace's every connection ours. Each step returns what failed, or NULL. */

static const char *make_all_local(void) {
  struct { struct nlmsghdr head; struct rtmsg route; struct rtattr out; uint32_t device; } request = {
      .head = {sizeof request, RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK, 1, 0},
      .route = {.rtm_family = AF_INET, .rtm_table = RT_TABLE_LOCAL, .rtm_protocol = RTPROT_STATIC,
                .rtm_scope = RT_SCOPE_HOST, .rtm_type = RTN_LOCAL},
      .out = {8, RTA_OIF}, .device = if_nametoindex("lo")};
  struct { struct nlmsghdr head; struct nlmsgerr error; uint8_t rest[512]; } answer;
  int kernel = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (kernel < 0 || send(kernel, &request, sizeof request, 0) < 0 || recv(kernel, &answer, sizeof answer, 0) < 0)
    return "netlink";
  close(kernel);
  errno = -answer.error.error;
  return answer.error.error ? "route" : NULL;
}

static int listen_on(const char *address, int type, int port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  inet_pton(AF_INET, address, &at.sin_addr);
  int one = 1, fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (type == SOCK_DGRAM) setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof one);
  if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || (type == SOCK_STREAM && listen(fd, 256) < 0)) return -1;
  return fd;
}

static int bpf(int command, union bpf_attr *attributes) {
  return (int)syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

/* IPv4 beyond 127.0.0.0/8: TCP to socket 0 of the map, UDP to port 53 to socket 1. Everything else as always. */
static int load_program(int sockets) {
  enum { FAMILY = 8, PROTOCOL = 12, LOCAL_IP4 = 40, LOCAL_PORT = 60 }; /* struct bpf_sk_lookup, linux/bpf.h */
  struct bpf_insn program[] = {
      {BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0},
      {BPF_LDX | BPF_MEM | BPF_W, 2, 6, FAMILY, 0},
      {BPF_JMP | BPF_JNE | BPF_K, 2, 0, 22, AF_INET},
      {BPF_LDX | BPF_MEM | BPF_B, 2, 6, LOCAL_IP4, 0}, /* the first octet, whatever the byte order of the machine */
      {BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 20, 127},
      {BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 0},
      {BPF_LDX | BPF_MEM | BPF_W, 2, 6, PROTOCOL, 0},
      {BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 4, IPPROTO_TCP},
      {BPF_JMP | BPF_JNE | BPF_K, 2, 0, 16, IPPROTO_UDP},
      {BPF_LDX | BPF_MEM | BPF_W, 2, 6, LOCAL_PORT, 0},
      {BPF_JMP | BPF_JNE | BPF_K, 2, 0, 14, 53},
      {BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 1},
      {BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0},
      {BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -4},
      {BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, sockets},
      {0},
      {BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 7, 0},
      {BPF_ALU64 | BPF_MOV | BPF_X, 7, 0, 0, 0},
      {BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0},
      {BPF_ALU64 | BPF_MOV | BPF_X, 2, 7, 0, 0},
      {BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, 0},
      {BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_sk_assign},
      {BPF_ALU64 | BPF_MOV | BPF_X, 1, 7, 0, 0},
      {BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_sk_release},
      {BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, SK_PASS},
      {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};
  union bpf_attr load = {.prog_type = BPF_PROG_TYPE_SK_LOOKUP, .expected_attach_type = BPF_SK_LOOKUP,
                         .insns = (uint64_t)program, .insn_cnt = sizeof program / sizeof *program,
                         .license = (uint64_t)"GPL"};
  return bpf(BPF_PROG_LOAD, &load);
}

static const char *catch_all(void) {
  catcher = listen_on("127.0.0.1", SOCK_STREAM, 0), queries = listen_on(NAMES, SOCK_DGRAM, 53);
  if (catcher < 0 || queries < 0) return "listen";
  union bpf_attr map = {.map_type = BPF_MAP_TYPE_SOCKMAP, .key_size = 4, .value_size = 8, .max_entries = 2};
  int sockets = bpf(BPF_MAP_CREATE, &map);
  if (sockets < 0) return "bpf map";
  for (uint32_t key = 0; key < 2; key++) {
    uint64_t socket = (uint64_t)(key == 0 ? catcher : queries);
    union bpf_attr update = {.map_fd = (uint32_t)sockets, .key = (uint64_t)&key, .value = (uint64_t)&socket};
    if (bpf(BPF_MAP_UPDATE_ELEM, &update) < 0) return "bpf socket";
  }
  int program = load_program(sockets), here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  if (program < 0) return "bpf program";
  union bpf_attr link = {.link_create = {.prog_fd = (uint32_t)program, .target_fd = (uint32_t)here,
                                         .attach_type = BPF_SK_LOOKUP}};
  /* Holds while this descriptor is open, which is as long as we live. */
  return bpf(BPF_LINK_CREATE, &link) < 0 ? "bpf link" : NULL;
}

static const char *make_way_out(void) {
  const char *failed = make_all_local();
  return failed ? failed : catch_all();
}

static void become(uid_t user) {
  if (setgroups(0, NULL) < 0 || setgid(user) < 0 || setuid(user) < 0) die("cannot become the user of relays");
}

int main(int argc, char **argv) {
  if (argc < 3 || argc > 4 || strlen(argv[2]) >= sizeof host.sun_path) {
    dprintf(2, "usage: relay <port> <path>|- [<uid>]\n");
    return 64;
  }
  signal(SIGPIPE, SIG_IGN);
  host.sun_family = AF_UNIX;
  strcpy(host.sun_path, argv[2]);
  by_lines = strcmp(argv[2], "-") == 0;
  if ((listener = listen_on("127.0.0.1", SOCK_STREAM, atoi(argv[1]))) < 0) die("listen");
  char ready[128] = "ready\n";
  if (argc == 4) {
    const char *failed = make_way_out();
    if (failed) snprintf(ready, sizeof ready, "ready, asked only: %s: %s\n", failed, strerror(errno));
    become((uid_t)atoi(argv[3]));
  }
  poller = epoll_create1(EPOLL_CLOEXEC);
  watch(0, STDIN, 0, EPOLLIN, EPOLL_CTL_ADD);
  watch(listener, MODEL, 0, EPOLLIN, EPOLL_CTL_ADD);
  if (catcher >= 0) watch(catcher, OUT, 0, EPOLLIN, EPOLL_CTL_ADD);
  if (queries >= 0) watch(queries, QUERY, 0, EPOLLIN, EPOLL_CTL_ADD);
  if (write(1, ready, strlen(ready)) < 0) die("stdout");
  for (;;) {
    struct epoll_event events[64];
    int n = epoll_wait(poller, events, 64, -1);
    if (n < 0 && errno != EINTR) die("epoll_wait");
    for (int i = 0; i < n; i++) {
      uint64_t index = (uint32_t)events[i].data.u64;
      struct connection *c = &connections[index / 2 % MAX_CONNECTIONS];
      switch (events[i].data.u64 >> 32) {
      case STDIN: if (!listen_to_owner()) return 0; break;
      case MODEL: accept_one(listener); break;
      case OUT: accept_one(catcher); break;
      case QUERY: query(); break;
      case FLOW: if (c->used) serve(c, index / 2, (int)(index % 2), events[i].events); break;
      case REPLY: if (questions[index].used) reply(&questions[index]); break;
      case LINE: if (lines[index].used) tend(&lines[index]); break;
      }
    }
  }
}
