/*
 * PID 1 of a box. Speaks length-prefixed frames over stdin/stdout (src/sandbox/docker/frames.ts holds the other end):
 *
 *   u32 length of what follows | u8 type | u32 command id | payload          (little endian)
 *
 * Each command runs under a keeper: a fork of this program that is a child subreaper, so that whatever the command
 * starts, however often it forks or changes session, stays below the keeper. PID 1 alone decides about ends: it walks
 * /proc and kills below a keeper, and it kills whatever it adopts itself. End of stdin means that the owner is gone:
 * PID 1 exits and the kernel kills the rest of the namespace.
 *
 * Where the box belongs to a plain user (second argument), PID 1 and the keepers stay root with nothing but the means
 * to drop to that user and to kill: what a command does as that user cannot touch them.
 *
 * Memory is bounded: pipes of commands are read only while there is room towards the host.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXEC = 1, STDIN = 2, KILL = 3, KILL_BACKGROUND = 4, EXTEND = 5, PING = 6, RESIZE = 7 };
enum { HELLO = 65, STDOUT = 66, STDERR = 67, EXIT = 68, STDIN_ACK = 69, PONG = 70, BACKGROUND_DONE = 71 };
enum { EXITED = 0, SIGNALED = 1, TIMED_OUT = 2, KEEPER_LOST = 3, REFUSED = 4 };
enum { FLAG_KEEP = 1, FLAG_SHELL = 2, FLAG_STDIN = 4, FLAG_TERMINAL = 8 };
enum state { FREE, RUN, TERM, SWEEP, DRAIN, LINGER, PART };

#define PROTOCOL 1
#define MAX_COMMANDS 64
#define IN_MAX (2 << 20)
#define OUT_MAX (256 << 10)
#define OUT_RESERVE (32 << 10)
#define STDIN_WINDOW (256 << 10)
#define HEADER 9
#define GIVE_UP_MS 10000

struct command {
  enum state state;
  uint32_t id;
  pid_t keeper;
  int in, out[2], status;
  uint8_t *pending;
  size_t pending_at, pending_len;
  int stdin_ends, keep, silent, timed_out, main_done, main_status, keeper_gone, keeper_clean;
  uint64_t max_output, sent[2], cut[2];
  uint64_t started, deadline, kill_at, next_scan, sweep_since;
  uint32_t grace_ms, killed, survivors, passes;
  uint64_t oom_before;
  char why[244];
};

/* What a keeper tells: how the command ended, whether anything is left, and why it could not even begin. */
struct message { int status; int more; char why[244]; };

static struct command commands[MAX_COMMANDS];
static uint8_t in_buf[IN_MAX];
static size_t in_len;
static uint8_t out_buf[OUT_MAX];
static size_t out_at, out_len;
static uint8_t scratch[64 << 10];
static int child_signal = -1, oom_fd = -1, strays, childless;
static uint64_t stray_scan, stray_pause;
static struct command *killing; /* the one whose processes are counted while they are reaped */
static int background_waits;
static uint32_t background_id;
static const char *box_user = ""; /* uid that everything runs as; empty: whoever PID 1 is */
extern char **environ;

static uint64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static void put32(uint8_t *at, uint32_t v) { memcpy(at, &v, 4); }
static void put64(uint8_t *at, uint64_t v) { memcpy(at, &v, 8); }
static uint32_t get32(const uint8_t *at) { uint32_t v; memcpy(&v, at, 4); return v; }
static uint64_t get64(const uint8_t *at) { uint64_t v; memcpy(&v, at, 8); return v; }

static void die(const char *what) {
  dprintf(2, "supervisor: %s: %s\n", what, strerror(errno));
  _exit(70);
}

/* Towards the host. */

static size_t out_room(void) { return OUT_MAX - out_len; }

static void out_compact(void) {
  if (out_at == 0) return;
  memmove(out_buf, out_buf + out_at, out_len);
  out_at = 0;
}

static uint8_t *frame_begin(uint8_t type, uint32_t id, size_t payload) {
  out_compact();
  if (out_room() < HEADER + payload) { errno = ENOBUFS; die("output queue"); }
  uint8_t *at = out_buf + out_len;
  put32(at, (uint32_t)(payload + 5));
  at[4] = type;
  put32(at + 5, id);
  out_len += HEADER + payload;
  return at + HEADER;
}

static void flush_out(void) {
  while (out_len > 0) {
    ssize_t n = write(1, out_buf + out_at, out_len);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return;
      _exit(0);
    }
    out_at += (size_t)n;
    out_len -= (size_t)n;
  }
  out_at = 0;
}

/* The kernel's own count of processes killed for memory in this box: cgroup v2, else v1. */

static void oom_open(void) {
  oom_fd = open("/sys/fs/cgroup/memory.events", O_RDONLY | O_CLOEXEC);
  if (oom_fd < 0) oom_fd = open("/sys/fs/cgroup/memory/memory.oom_control", O_RDONLY | O_CLOEXEC);
}

static uint64_t oom_count(void) {
  char text[512];
  if (oom_fd < 0) return 0;
  ssize_t n = pread(oom_fd, text, sizeof text - 1, 0);
  if (n <= 0) return 0;
  text[n] = 0;
  char *at = strstr(text, "oom_kill ");
  return at ? strtoull(at + 9, NULL, 10) : 0;
}

/* Users by name, without the name service that a static program lacks. */

struct account { uid_t uid; gid_t gid; char name[64], home[256]; };

static int account_find(const char *wanted, struct account *a) {
  memset(a, 0, sizeof *a);
  strcpy(a->home, "/");
  int numeric = *wanted != 0;
  for (const char *c = wanted; *c; c++) if (!isdigit((unsigned char)*c)) numeric = 0;
  if (numeric) { a->uid = (uid_t)strtoul(wanted, NULL, 10); a->gid = a->uid; }
  FILE *f = fopen("/etc/passwd", "re");
  int found = 0;
  char line[1024];
  while (f && !found && fgets(line, sizeof line, f)) {
    char *rest = line, *field[7] = {0};
    for (int i = 0; i < 7 && rest; i++) field[i] = strsep(&rest, ":\n");
    if (!field[5]) continue;
    uid_t uid = (uid_t)strtoul(field[2], NULL, 10);
    if (numeric ? uid == a->uid : strcmp(field[0], wanted) == 0) {
      a->uid = uid;
      a->gid = (gid_t)strtoul(field[3], NULL, 10);
      snprintf(a->name, sizeof a->name, "%s", field[0]);
      snprintf(a->home, sizeof a->home, "%s", field[5]);
      found = 1;
    }
  }
  if (f) fclose(f);
  return found || numeric;
}

static int account_groups(const struct account *a, gid_t *groups, int max) {
  int n = 0;
  groups[n++] = a->gid;
  FILE *f = a->name[0] ? fopen("/etc/group", "re") : NULL;
  char line[4096];
  while (f && n < max && fgets(line, sizeof line, f)) {
    char *rest = line, *field[4] = {0};
    for (int i = 0; i < 4 && rest; i++) field[i] = strsep(&rest, ":\n");
    for (char *member; field[3] && (member = strsep(&field[3], ","));)
      if (strcmp(member, a->name) == 0 && n < max) groups[n++] = (gid_t)strtoul(field[2], NULL, 10);
  }
  if (f) fclose(f);
  return n;
}

/* Below a keeper. */

/* All are as PID 1 set them at its start, and blocked by the keeper. */
static void signals_default(void) {
  sigset_t none;
  sigemptyset(&none);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_fd(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

static const char *env_name_end(const char *pair) {
  const char *end = strchr(pair, '=');
  return end ? end : pair + strlen(pair);
}

static void env_set(char **list, int *count, int max, char *pair) {
  size_t length = (size_t)(env_name_end(pair) - pair);
  for (int i = 0; i < *count; i++)
    if (strncmp(list[i], pair, length) == 0 && list[i][length] == '=') { list[i] = pair; return; }
  if (*count < max) list[(*count)++] = pair;
}

struct request {
  uint32_t timeout_ms, grace_ms;
  uint64_t max_output;
  uint8_t flags;
  struct winsize size;
  char *user, *cwd, **argv, **env;
  int argc, envc;
};

/* Why a program that is there cannot be found: what it asks to be loaded by (ELF, or a first line #!) is not there. */
static void missing_loader(const char *path, char *loader, size_t room) {
  static char start[65536];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, start, sizeof start - 1);
  *loader = 0;
  if (n < 4) return;
  start[n] = 0;
  if (start[0] == '#' && start[1] == '!') {
    char *name = start + 2 + strspn(start + 2, " \t");
    name[strcspn(name, " \t\n")] = 0;
    snprintf(loader, room, "%s", name);
    return;
  }
  const Elf64_Ehdr *head = (const Elf64_Ehdr *)start;
  if (n < (ssize_t)sizeof *head || memcmp(start, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64) return;
  for (unsigned i = 0; i < head->e_phnum; i++) {
    size_t at = head->e_phoff + i * sizeof(Elf64_Phdr);
    if (at + sizeof(Elf64_Phdr) > (size_t)n) return;
    const Elf64_Phdr *part = (const Elf64_Phdr *)(start + at);
    if (part->p_type != PT_INTERP || part->p_offset >= (size_t)n) continue;
    snprintf(loader, room, "%s", start + part->p_offset);
    return;
  }
}

/* Tells the keeper and the reader of stderr why the command does not begin; nothing of it has run. */
static _Noreturn void cannot_run(const char *program, int failed) {
  char why[244], loader[128] = "";
  int error = errno;
  if (error == ENOENT && strchr(program, '/') && access(program, F_OK) == 0) missing_loader(program, loader, sizeof loader);
  if (*loader) snprintf(why, sizeof why, "%.100s needs %.100s, which is not there", program, loader);
  else snprintf(why, sizeof why, "cannot run %.150s: %s", program, strerror(error));
  dprintf(2, "paddock: %s\n", why);
  if (write(failed, why, strlen(why) + 1) < 0) _exit(126);
  _exit(error == ENOENT ? 127 : 126);
}

static _Noreturn void run_command(const struct request *r, const struct account *as, int in, int out, int err, int failed) {
  signals_default();
  setpriority(PRIO_PROCESS, 0, 0);
  setsid();
  if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(126);
  if (r->flags & FLAG_TERMINAL) ioctl(0, TIOCSCTTY, 0);
  int max = 1024 + r->envc, count = 0;
  char **env = calloc((size_t)max + 1, sizeof *env), home[300];
  if (!env) _exit(126);
  for (char **e = environ; *e; e++) env_set(env, &count, max, *e);
  if (as) {
    gid_t groups[64];
    int n = account_groups(as, groups, 64);
    /* Works only where PID 1 may (a box of a plain user); elsewhere no-new-privileges makes the rest unreachable. */
    for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; capability++) {}
    if (setgroups((size_t)n, groups) < 0 || setgid(as->gid) < 0 || setuid(as->uid) < 0) {
      dprintf(2, "paddock: cannot become user %s: %s\n", r->user, strerror(errno));
      _exit(126);
    }
    snprintf(home, sizeof home, "HOME=%s", as->home);
    env_set(env, &count, max, home);
  }
  for (int i = 0; i < r->envc; i++) env_set(env, &count, max, r->env[i]);
  environ = env;
  umask(022);
  if (chdir(r->cwd) < 0) {
    dprintf(2, "paddock: cannot enter %s: %s\n", r->cwd, strerror(errno));
    _exit(126);
  }
  if (r->flags & FLAG_SHELL) {
    char *line[] = {"bash", "-c", r->argv[0], NULL};
    execv("/bin/bash", line);
    execv("/usr/bin/bash", line);
    line[0] = "sh";
    execv("/bin/sh", line);
    cannot_run(access("/bin/sh", F_OK) == 0 ? "/bin/sh" : "a shell", failed);
  }
  execvp(r->argv[0], r->argv);
  cannot_run(r->argv[0], failed);
}

static void keep(const struct request *r, const struct account *as, int in, int out, int err, int report) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  setsid();
  sigset_t all;
  sigfillset(&all), sigprocmask(SIG_BLOCK, &all, NULL);
  close_fd(&child_signal);
  close_fd(&oom_fd);
  for (int i = 0; i < MAX_COMMANDS; i++) {
    struct command *c = &commands[i];
    if (c->state == FREE) continue;
    close_fd(&c->in), close_fd(&c->out[0]), close_fd(&c->out[1]), close_fd(&c->status);
  }
  int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; fd++) dup2(null, fd);
  if (null > 2) close(null);
  /* Closed by a program that begins, so that nothing of the command can write here. */
  int failed[2] = {-1, -1};
  if (pipe2(failed, O_CLOEXEC | O_NONBLOCK) < 0) _exit(1);
  /* What it changes in our memory before its program begins is not looked at again. */
  pid_t main_pid = vfork();
  if (main_pid == 0) run_command(r, as, in, out, err, failed[1]);
  close_fd(&failed[1]);
  if (main_pid < 0) {
    dprintf(err, "paddock: cannot start a process: %s\n", strerror(errno));
    struct message m = {126 << 8, 0, "no process left"};
    if (write(report, &m, sizeof m) < 0) _exit(1);
    _exit(0);
  }
  close_fd(&in), close_fd(&out), close_fd(&err);
  for (;;) {
    int status;
    pid_t pid = waitpid(-1, &status, 0);
    if (pid < 0 && errno == ECHILD) _exit(0);
    if (pid != main_pid) continue;
    struct message m = {status, 1, ""};
    ssize_t said = read(failed[0], m.why, sizeof m.why - 1);
    m.why[said > 0 ? said : 0] = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {}
    if (pid < 0 && errno == ECHILD) m.more = 0;
    if (write(report, &m, sizeof m) < 0) _exit(1);
    if (!m.more) _exit(0);
  }
}

/* Commands. */

static void report_exit(struct command *c) {
  uint8_t kind = EXITED;
  int32_t value = 0;
  if (c->timed_out) kind = TIMED_OUT;
  else if (!c->main_done) kind = KEEPER_LOST, value = SIGKILL;
  else if (WIFSIGNALED(c->main_status)) kind = SIGNALED, value = WTERMSIG(c->main_status);
  else value = WEXITSTATUS(c->main_status);
  uint64_t killed_for_memory = oom_count() - c->oom_before;
  size_t length = strlen(c->why);
  uint8_t *at = frame_begin(EXIT, c->id, 41 + length);
  memcpy(at + 41, c->why, length);
  at[0] = kind;
  put32(at + 1, (uint32_t)value);
  put64(at + 5, c->cut[0]);
  put64(at + 13, c->cut[1]);
  put32(at + 21, c->killed);
  put32(at + 25, (uint32_t)killed_for_memory);
  put32(at + 29, c->survivors);
  put64(at + 33, now_us() - c->started);
}

static void refuse(uint32_t id, const char *why) {
  size_t length = strlen(why);
  uint8_t *at = frame_begin(EXIT, id, 41 + length);
  memset(at, 0, 41);
  at[0] = REFUSED;
  memcpy(at + 41, why, length);
}

static void release(struct command *c) {
  if (killing == c) killing = NULL;
  close_fd(&c->in), close_fd(&c->out[0]), close_fd(&c->out[1]), close_fd(&c->status);
  free(c->pending);
  c->pending = NULL;
  c->state = FREE;
}

static char *take_string(uint8_t **at, uint8_t *end) {
  uint8_t *zero = memchr(*at, 0, (size_t)(end - *at));
  if (!zero) return NULL;
  char *text = (char *)*at;
  *at = zero + 1;
  return text;
}

static char **take_list(uint8_t **at, uint8_t *end, int *count) {
  if (end - *at < 4) return NULL;
  uint32_t n = get32(*at);
  *at += 4;
  if (n > 65536) return NULL;
  char **list = calloc(n + 1, sizeof *list);
  for (uint32_t i = 0; list && i < n; i++)
    if (!(list[i] = take_string(at, end))) { free(list); return NULL; }
  *count = (int)n;
  return list;
}

/* A terminal that belongs to the user of the command. Both ends, or -1. */
static int open_terminal(const struct account *as, const struct winsize *size, int *master, int *slave) {
  char name[32];
  int number, unlock = 0;
  if (as) setfsuid(as->uid);
  *master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (as) setfsuid(getuid());
  if (*master < 0) return -1;
  if (ioctl(*master, TIOCSPTLCK, &unlock) < 0 || ioctl(*master, TIOCGPTN, &number) < 0) return -1;
  ioctl(*master, TIOCSWINSZ, size);
  snprintf(name, sizeof name, "/dev/pts/%d", number);
  if (as) setfsuid(as->uid);
  *slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (as) setfsuid(getuid());
  return *slave < 0 ? -1 : 0;
}

static void start(uint32_t id, uint8_t *at, size_t length) {
  uint8_t *end = at + length;
  struct request r = {0};
  struct command *c = NULL;
  for (int i = 0; i < MAX_COMMANDS && !c; i++) if (commands[i].state == FREE) c = &commands[i];
  if (!c) return refuse(id, "too many commands at once");
  if (length < 17) return refuse(id, "malformed request");
  r.timeout_ms = get32(at), r.grace_ms = get32(at + 4), r.max_output = get64(at + 8), r.flags = at[16];
  at += 17;
  r.user = take_string(&at, end);
  r.cwd = r.user ? take_string(&at, end) : NULL;
  r.argv = r.cwd ? take_list(&at, end, &r.argc) : NULL;
  r.env = r.argv ? take_list(&at, end, &r.envc) : NULL;
  if (r.env && r.flags & FLAG_TERMINAL) {
    if (end - at < 4) { free(r.argv), free(r.env); return refuse(id, "malformed request"); }
    r.size.ws_col = (unsigned short)(at[0] | at[1] << 8), r.size.ws_row = (unsigned short)(at[2] | at[3] << 8);
  }
  struct account account, *as = NULL;
  const char *user = r.user && *r.user ? r.user : box_user;
  int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, status[2] = {-1, -1};
  const char *why = NULL;
  if (!r.env || r.argc < 1) why = "malformed request";
  else if (*user) {
    if (!account_find(user, &account)) why = "no such user";
    else if (*box_user ? account.uid != (uid_t)strtoul(box_user, NULL, 10) : account.uid != getuid() && getuid() != 0)
      why = "this box runs everything as one user";
    else if (account.uid != getuid()) as = &account;
  }
  if (!why && r.flags & FLAG_TERMINAL) {
    /* One master for both directions, one slave for all three streams. */
    if (open_terminal(as, &r.size, &out[0], &out[1]) < 0 || (in[1] = fcntl(out[0], F_DUPFD_CLOEXEC, 3)) < 0 ||
        (in[0] = fcntl(out[1], F_DUPFD_CLOEXEC, 3)) < 0 || (err[1] = fcntl(out[1], F_DUPFD_CLOEXEC, 3)) < 0 ||
        pipe2(status, O_CLOEXEC))
      why = "no terminal left";
  } else if (!why && ((r.flags & FLAG_STDIN ? pipe2(in, O_CLOEXEC) : (in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) ||
               pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC) || pipe2(status, O_CLOEXEC)))
    why = "no pipes left";
  pid_t keeper = -1;
  uint64_t oom_before = oom_count();
  if (!why) {
    keeper = fork();
    if (keeper == 0) {
      close_fd(&in[1]), close_fd(&out[0]), close_fd(&err[0]), close_fd(&status[0]);
      keep(&r, as, in[0], out[1], err[1], status[1]);
    }
    if (keeper < 0) why = "no process left";
  }
  close_fd(&in[0]), close_fd(&out[1]), close_fd(&err[1]), close_fd(&status[1]);
  free(r.argv), free(r.env);
  if (why) {
    close_fd(&in[1]), close_fd(&out[0]), close_fd(&err[0]), close_fd(&status[0]);
    return refuse(id, why);
  }
  memset(c, 0, sizeof *c);
  c->state = RUN, c->id = id, c->keeper = keeper;
  c->in = in[1], c->out[0] = out[0], c->out[1] = err[0], c->status = status[0];
  for (int i = 0; i < 2; i++) if (c->out[i] >= 0) fcntl(c->out[i], F_SETFL, O_NONBLOCK);
  fcntl(c->status, F_SETFL, O_NONBLOCK);
  if (c->in >= 0) fcntl(c->in, F_SETFL, O_NONBLOCK);
  c->keep = r.flags & FLAG_KEEP, c->max_output = r.max_output, c->grace_ms = r.grace_ms;
  c->oom_before = oom_before, c->started = now_us(), c->deadline = c->started + (uint64_t)r.timeout_ms * 1000u;
}

static struct command *by_id(uint32_t id) {
  for (int i = 0; i < MAX_COMMANDS; i++)
    if (commands[i].state != FREE && commands[i].id == id) return &commands[i];
  return NULL;
}

/* Killing: everything below a keeper that is to end, and everything that belongs to no keeper. */

struct process { pid_t pid, parent; char state; };

static int read_process(const char *name, struct process *p) {
  char path[300], text[512];
  snprintf(path, sizeof path, "/proc/%s/stat", name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  if (got <= 0) return 0;
  text[got] = 0;
  char *after = strrchr(text, ')'); /* the name may hold anything, also parentheses */
  p->pid = (pid_t)atoi(name);
  return after && sscanf(after + 1, " %c %d", &p->state, &p->parent) == 2;
}

static int list_processes(struct process *list, int max) {
  DIR *d = opendir("/proc");
  int n = 0;
  if (!d) return 0;
  for (struct dirent *e; n < max && (e = readdir(d));)
    if (isdigit((unsigned char)e->d_name[0]) && read_process(e->d_name, &list[n])) n++;
  closedir(d);
  return n;
}

/* The child of PID 1 that `p` descends from; -1 when `p` has ended meanwhile. */
static pid_t top_ancestor(const struct process *list, int n, struct process p) {
  struct process first = p;
  for (int hops = 0; p.parent > 1 && hops < 10000; hops++) {
    int i = 0;
    while (i < n && list[i].pid != p.parent) i++;
    if (i < n) { p = list[i]; continue; }
    /* The parent ended after the list was made: ask again from the start. */
    char name[16];
    snprintf(name, sizeof name, "%d", first.pid);
    if (!read_process(name, &p)) return -1;
    first = p;
    while (p.parent > 1) {
      snprintf(name, sizeof name, "%d", p.parent);
      if (!read_process(name, &p)) break;
    }
  }
  return p.parent == 1 ? p.pid : -1;
}

static struct command *by_keeper(pid_t pid) {
  for (int i = 0; i < MAX_COMMANDS; i++)
    if (commands[i].state != FREE && !commands[i].keeper_gone && commands[i].keeper == pid) return &commands[i];
  return NULL;
}

/* Sends a signal below one keeper. Returns how many living processes got it. With NULL to strays, of which also those
 * count that are dead and not reaped: they come to us and are counted then. */
static int signal_tree(const struct command *below, int sig) {
  static struct process list[32768];
  int n = list_processes(list, 32768), sent = 0;
  for (int i = 0; i < n; i++) {
    int dead = list[i].state == 'Z' || list[i].state == 'X';
    if (list[i].pid <= 1 || (dead && below)) continue;
    pid_t top = top_ancestor(list, n, list[i]);
    if (top < 0 || (list[i].pid == top && by_keeper(top))) continue;
    if (by_keeper(top) != below) continue;
    if (dead || kill(list[i].pid, sig) == 0) sent++;
  }
  return sent;
}

static int alone(const struct command *c) {
  for (int i = 0; i < MAX_COMMANDS; i++)
    if (&commands[i] != c && commands[i].state != FREE && commands[i].state != PART) return 0;
  return 1;
}

static void sweep_begin(struct command *c) {
  if (c->state == SWEEP || c->state == DRAIN) return;
  c->state = SWEEP;
  c->sweep_since = c->next_scan = now_us();
}

/* Something may live that belongs to no keeper. */
static void expect_strays(void) {
  strays = 1, stray_pause = 1000u, stray_scan = now_us();
}

static void sweep_pass(struct command *c) {
  if (c->keeper_gone) return;
  /* Nobody else lives here: one atomic kill of the whole namespace, which no fork escapes. What is left is to wait, in
   * which looking around would take the time that the dying need. */
  if (alone(c)) {
    kill(-1, SIGKILL);
    killing = c;
    expect_strays();
    c->next_scan = now_us() + (1000u << (c->passes < 5 ? c->passes : 5));
    c->passes++;
    return;
  }
  /* A bomb that forks faster than it can be found is stopped first: stopped, it fills its own process limit. */
  int sig = c->passes % 8 >= 3 && c->passes % 8 < 7 ? SIGSTOP : SIGKILL;
  int found = signal_tree(c, sig);
  if (c->passes == 0) c->killed = (uint32_t)found;
  /* Nothing alive below it and yet there: held up by its own command. Its zombies come to us. */
  if (found == 0 && c->passes > 2) kill(c->keeper, SIGKILL);
  c->passes++;
  c->next_scan = now_us() + (c->passes < 10 ? 1000u : 20000u);
}

static void terminate(struct command *c) {
  if (c->state != RUN) return;
  c->state = TERM;
  c->kill_at = now_us() + (uint64_t)c->grace_ms * 1000u;
  if (c->grace_ms == 0) sweep_begin(c);
  else if (alone(c)) kill(-1, SIGTERM); /* keepers do not take it */
  else signal_tree(c, SIGTERM);
}

static void reap(void) {
  struct signalfd_siginfo info;
  while (read(child_signal, &info, sizeof info) > 0) {}
  for (;;) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
    childless = pid < 0 && errno == ECHILD;
    if (pid <= 0) return;
    if (WIFSTOPPED(status)) { /* a keeper, stopped by what it keeps; strays are about to be killed anyway */
      kill(pid, SIGCONT);
      continue;
    }
    struct command *c = by_keeper(pid);
    if (!c && killing) killing->killed++;
    if (!c) continue;
    c->keeper_gone = 1;
    c->keeper_clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!c->keeper_clean) expect_strays();
  }
}

/* Reads what a command wrote. Returns 0 when the pipe is empty or closed. */
static int pump(struct command *c, int which) {
  int fd = c->out[which];
  if (fd < 0) return 0;
  uint64_t left = c->max_output > c->sent[which] ? c->max_output - c->sent[which] : 0;
  if (c->state == LINGER) left = 0;
  ssize_t n;
  if (left == 0) {
    n = read(fd, scratch, sizeof scratch);
    if (n > 0 && c->state != LINGER) c->cut[which] += (uint64_t)n;
  } else {
    size_t room = out_room();
    if (room < OUT_RESERVE + HEADER + 1) return 0;
    room -= OUT_RESERVE + HEADER;
    if (room > sizeof scratch) room = sizeof scratch;
    if (room > left) room = (size_t)left;
    n = read(fd, scratch, room);
    if (n > 0) {
      memcpy(frame_begin(which ? STDERR : STDOUT, c->id, (size_t)n), scratch, (size_t)n);
      c->sent[which] += (uint64_t)n;
    }
  }
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) close_fd(&c->out[which]);
  return n > 0;
}

static int blocked(const struct command *c, int which) {
  return c->out[which] >= 0 && c->max_output > c->sent[which] && out_room() < OUT_RESERVE + HEADER + 1;
}

/* A command whose offspring stays is reported at once, so what its pipes hold must fit; others are drained first. */
static int may_report(const struct command *c) {
  return !c->keep || c->keeper_gone || out_room() > OUT_RESERVE + 2 * (64u << 10) + 4 * HEADER;
}

static void advance(struct command *c) {
  uint64_t now = now_us();
  if (c->status >= 0 && !c->main_done && may_report(c)) {
    struct message m;
    if (read(c->status, &m, sizeof m) == sizeof m) {
      c->main_done = 1, c->main_status = m.status;
      memcpy(c->why, m.why, sizeof c->why);
      c->why[sizeof c->why - 1] = 0;
      if (c->state == RUN && c->keep && m.more) {
        /* What the command wrote itself is in the pipe; a service that goes on writing must not hold the result up. */
        for (int times = 0; times < 4 && (pump(c, 0) | pump(c, 1)); times++) {}
        report_exit(c);
        c->state = LINGER;
      } else if (m.more && c->state == RUN) sweep_begin(c);
      /* Nothing is below the keeper any more, and all that it still does is to end. */
      else if (!m.more && (c->state == RUN || c->state == TERM)) c->state = DRAIN;
    }
  }
  if ((c->state == RUN || c->state == TERM) && c->keeper_gone) sweep_begin(c);
  if (c->state == RUN && now >= c->deadline) {
    if (c->main_done) sweep_begin(c);
    else c->timed_out = 1, terminate(c);
  }
  if (c->state == TERM && now >= c->kill_at) sweep_begin(c);
  if ((c->state == LINGER || c->state == PART) && c->keeper_gone) return release(c);
  if (c->state == SWEEP) {
    if (!c->keeper_gone && now >= c->next_scan) sweep_pass(c);
    if (c->keeper_gone && !strays) {
      /* A keeper that we had to kill had something below it, which it may have reaped itself while it died. */
      if (c->killed == 0 && c->passes > 0 && !c->keeper_clean) c->killed = 1;
      c->state = DRAIN;
    }
    else if (now > c->sweep_since + GIVE_UP_MS * 1000u) c->survivors = 1, c->state = DRAIN;
  }
  if (c->state == DRAIN) {
    for (int which = 0; which < 2; which++) {
      for (int times = 0; times < 64 && pump(c, which); times++) {}
      if (blocked(c, which)) return;
    }
    if (!c->silent) report_exit(c);
    if (c->keeper_gone) return release(c);
    close_fd(&c->in), close_fd(&c->out[0]), close_fd(&c->out[1]), close_fd(&c->status);
    c->state = PART;
  }
}

static void hunt_strays(void) {
  if (!strays) return;
  /* Whoever has no child at all has no grandchildren either. */
  if (childless) strays = 0;
  if (!strays || now_us() < stray_scan) return;
  strays = signal_tree(NULL, SIGKILL) > 0;
  stray_scan = now_us() + stray_pause;
  if (stray_pause < 16000u) stray_pause *= 2;
}

static void feed(struct command *c) {
  while (c->in >= 0 && c->pending_len > 0 && out_room() > OUT_RESERVE / 4) {
    ssize_t n = write(c->in, c->pending + c->pending_at, c->pending_len);
    if (n < 0) {
      if (errno == EAGAIN || errno == EINTR) return;
      close_fd(&c->in);
      n = (ssize_t)c->pending_len;
    }
    c->pending_at += (size_t)n, c->pending_len -= (size_t)n;
    put32(frame_begin(STDIN_ACK, c->id, 4), (uint32_t)n);
  }
  if (c->pending_len == 0) c->pending_at = 0;
  if (c->stdin_ends && c->pending_len == 0) close_fd(&c->in);
}

static void take_stdin(struct command *c, const uint8_t *data, size_t length) {
  if (length == 0) {
    c->stdin_ends = 1;
  } else if (c->in < 0 || c->state == LINGER || c->pending_len + length > STDIN_WINDOW) {
    put32(frame_begin(STDIN_ACK, c->id, 4), (uint32_t)length);
    return;
  } else {
    if (!c->pending && !(c->pending = malloc(STDIN_WINDOW))) die("stdin buffer");
    memmove(c->pending, c->pending + c->pending_at, c->pending_len);
    c->pending_at = 0;
    memcpy(c->pending + c->pending_len, data, length);
    c->pending_len += length;
  }
  feed(c);
}

static void handle(uint8_t type, uint32_t id, uint8_t *payload, size_t length) {
  struct command *c = by_id(id);
  switch (type) {
  case EXEC: start(id, payload, length); break;
  case STDIN: if (c) take_stdin(c, payload, length); break;
  case KILL: if (c) terminate(c); break;
  case KILL_BACKGROUND:
    for (int i = 0; i < MAX_COMMANDS; i++)
      if (commands[i].state == LINGER) commands[i].silent = 1, sweep_begin(&commands[i]);
    background_waits = 1, background_id = id;
    break;
  case EXTEND:
    for (int i = 0; i < MAX_COMMANDS && length >= 4; i++) {
      commands[i].deadline += (uint64_t)get32(payload) * 1000u;
      commands[i].kill_at += (uint64_t)get32(payload) * 1000u;
      commands[i].sweep_since += (uint64_t)get32(payload) * 1000u;
    }
    break;
  case RESIZE:
    if (c && length >= 4 && c->out[0] >= 0) {
      struct winsize size = {.ws_col = (unsigned short)(payload[0] | payload[1] << 8),
                             .ws_row = (unsigned short)(payload[2] | payload[3] << 8)};
      ioctl(c->out[0], TIOCSWINSZ, &size);
    }
    break;
  case PING: frame_begin(PONG, id, 0); break;
  default: break;
  }
}

static void read_host(void) {
  ssize_t n = read(0, in_buf + in_len, IN_MAX - in_len);
  if (n == 0) _exit(0);
  if (n < 0) {
    if (errno == EAGAIN || errno == EINTR) return;
    _exit(0);
  }
  in_len += (size_t)n;
}

/* Handles whole frames while answers still fit. */
static void take_frames(void) {
  size_t at = 0;
  while (in_len - at >= HEADER && out_room() > OUT_RESERVE / 2) {
    size_t length = get32(in_buf + at);
    if (length < 5 || length + 4 > IN_MAX) { errno = EPROTO; die("frame"); }
    if (in_len - at < length + 4) break;
    handle(in_buf[at + 4], get32(in_buf + at + 5), in_buf + at + HEADER, length - 5);
    at += length + 4;
  }
  memmove(in_buf, in_buf + at, in_len - at);
  in_len -= at;
}

static int next_timeout(void) {
  uint64_t now = now_us(), first = UINT64_MAX;
  for (int i = 0; i < MAX_COMMANDS; i++) {
    struct command *c = &commands[i];
    uint64_t at = UINT64_MAX;
    if (c->state == RUN) at = c->deadline;
    if (c->state == TERM) at = c->kill_at;
    if (c->state == SWEEP) at = c->keeper_gone ? now + 1000u : c->next_scan;
    if (at < first) first = at;
  }
  if (strays && stray_scan < first) first = stray_scan;
  if (first == UINT64_MAX) return -1;
  return first <= now ? 0 : (int)((first - now) / 1000u > 3600000u ? 3600000 : (first - now + 999u) / 1000u);
}

/* Asks for short turns, which come sooner (sched_setattr(2), since Linux 6.12 for ordinary tasks). Not for children. */
static void be_prompt(void) {
  struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t runtime, deadline, period; }
    wish = {.size = 48, .flags = 1 /* SCHED_FLAG_RESET_ON_FORK */, .runtime = 100000};
  syscall(SYS_sched_setattr, 0, &wish, 0);
}

int main(int argc, char **argv) {
  if (getpid() != 1) { dprintf(2, "supervisor: only as PID 1 of a box\n"); return 64; }
  prctl(PR_SET_DUMPABLE, 0);
  if (argc > 2) box_user = argv[2];
  /* Where it may: ahead of what it has to kill, however many that are. */
  setpriority(PRIO_PROCESS, 0, -15);
  be_prompt();
  for (int s = 1; s < NSIG; s++) signal(s, s == SIGPIPE ? SIG_IGN : SIG_DFL);
  sigset_t child;
  sigemptyset(&child), sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, NULL);
  child_signal = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
  if (child_signal < 0) die("signalfd");
  fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
  fcntl(1, F_SETFL, fcntl(1, F_GETFL) | O_NONBLOCK);
  oom_open();
  struct stat workdir;
  uint8_t *hello = frame_begin(HELLO, 0, 2);
  hello[0] = PROTOCOL;
  hello[1] = argc > 1 && stat(argv[1], &workdir) < 0;
  for (;;) {
    struct pollfd polls[3 + MAX_COMMANDS * 4];
    int n = 0, room = out_room() >= OUT_RESERVE + HEADER + 1;
    polls[n++] = (struct pollfd){0, in_len < IN_MAX && room ? POLLIN : 0, 0};
    polls[n++] = (struct pollfd){child_signal, POLLIN, 0};
    polls[n++] = (struct pollfd){1, out_len > 0 ? POLLOUT : 0, 0};
    for (int i = 0; i < MAX_COMMANDS; i++) {
      struct command *c = &commands[i];
      if (c->state == FREE) continue;
      if (c->status >= 0 && !c->main_done && may_report(c)) polls[n++] = (struct pollfd){c->status, POLLIN, 0};
      if (c->in >= 0 && c->pending_len > 0) polls[n++] = (struct pollfd){c->in, POLLOUT, 0};
      for (int w = 0; w < 2; w++)
        if (c->out[w] >= 0 && !blocked(c, w)) polls[n++] = (struct pollfd){c->out[w], POLLIN, 0};
    }
    if (poll(polls, (nfds_t)n, next_timeout()) < 0 && errno != EINTR) die("poll");
    if (polls[0].revents & (POLLIN | POLLHUP | POLLERR)) read_host();
    take_frames();
    reap();
    hunt_strays();
    for (int i = 0; i < MAX_COMMANDS; i++) {
      struct command *c = &commands[i];
      if (c->state == FREE) continue;
      feed(c);
      pump(c, 0), pump(c, 1);
      advance(c);
    }
    if (background_waits) {
      int left = 0;
      for (int i = 0; i < MAX_COMMANDS; i++) left |= commands[i].state != FREE && commands[i].silent;
      if (!left) background_waits = 0, frame_begin(BACKGROUND_DONE, background_id, 0);
    }
    flush_out();
  }
}
