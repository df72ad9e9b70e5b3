/*
 * Takes files into a box and out of it, as a command of its root; the daemon starts a copy of itself for each.
 *
 *   files put <directory>     unpacks the tar on stdin there
 *   files get <path> <most>   writes the path as a tar, at most so many bytes
 *
 * Exit 0: all of it is done. Anything else: this is not for us, and the daemon is to be asked; nothing else is promised
 * of what was done by then. What both tars are is what the daemon reads and writes (moby, pkg/archive).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { BLOCK = 512, PATHS = 4096, LINKS = 1024 };

/* POSIX.1-1988 ustar. */
struct header {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100], magic[6], version[2];
  char user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};

static void daemons(const char *what) {
  fprintf(stderr, "files: %s: %s\n", what, strerror(errno));
  exit(3);
}

static uint64_t number(const char *field, size_t size) {
  char text[16] = {0};
  /* Base 256, for what does not fit: too large for here. */
  if (field[0] & 0x80) daemons("a large number");
  memcpy(text, field, size);
  return strtoull(text, NULL, 8);
}

static void read_whole(void *to, size_t size) {
  for (char *at = to; size > 0;) {
    ssize_t got = read(0, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) daemons("the archive is cut");
    at += got, size -= (size_t)got;
  }
}

static size_t padding(uint64_t size) { return (size_t)((BLOCK - size % BLOCK) % BLOCK); }

/* The record `key` of a pax header: "<length> <key>=<value>\n". */
static void pax(const char *text, size_t size, const char *key, char *value) {
  for (const char *at = text; at < text + size;) {
    char *after;
    unsigned long length = strtoul(at, &after, 10);
    if (length == 0 || at + length > text + size || *after != ' ') daemons("a pax header");
    after++;
    size_t name = strlen(key), all = (size_t)(at + length - after);
    if (all > name + 1 && strncmp(after, key, name) == 0 && after[name] == '=') {
      size_t bytes = all - name - 2;
      if (bytes >= PATHS) daemons("a long name");
      memcpy(value, after + name + 1, bytes);
      value[bytes] = 0;
    }
    at += length;
  }
}

static void finish(const char *path, const struct header *h, mode_t mode, int link) {
  struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = (time_t)number(h->mtime, 12)}};
  if (lchown(path, (uid_t)number(h->uid, 8), (gid_t)number(h->gid, 8)) < 0) daemons("chown");
  if (!link && chmod(path, mode) < 0) daemons("chmod");
  if (utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) < 0) daemons("utimensat");
}

static void take_file(const char *path, uint64_t size) {
  static char part[1 << 16];
  int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (to < 0) daemons("open");
  while (size > 0) {
    size_t want = size < sizeof part ? (size_t)size : sizeof part;
    read_whole(part, want);
    for (size_t at = 0; at < want;) {
      ssize_t put = write(to, part + at, want - at);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) daemons("write");
      at += (size_t)put;
    }
    size -= want;
  }
  if (close(to) < 0) daemons("close");
}

static void put(void) {
  static char name[PATHS], link[PATHS], size_text[PATHS], skipped[BLOCK], records[1 << 16];
  struct header h;
  umask(0);
  name[0] = link[0] = size_text[0] = 0;
  for (;;) {
    read_whole(&h, sizeof h);
    if (h.name[0] == 0) return;
    uint64_t size = *size_text ? strtoull(size_text, NULL, 10) : number(h.size, 12);
    if (h.type == 'x') {
      if (size > sizeof records) daemons("a pax header");
      read_whole(records, (size_t)size);
      read_whole(skipped, padding(size));
      pax(records, (size_t)size, "path", name);
      pax(records, (size_t)size, "linkpath", link);
      pax(records, (size_t)size, "size", size_text);
      continue;
    }
    if (!*name) snprintf(name, sizeof name, h.prefix[0] ? "%2$.155s/%1$.100s" : "%1$.100s", h.name, h.prefix);
    if (!*link) snprintf(link, sizeof link, "%.100s", h.link);
    size_t length = strlen(name);
    while (length > 1 && name[length - 1] == '/') name[--length] = 0;
    mode_t mode = (mode_t)number(h.mode, 8) & 07777;
    struct stat there;
    int exists = lstat(name, &there) == 0;
    if (h.type == '5') {
      if (exists && !S_ISDIR(there.st_mode)) daemons("something else is there");
      if (!exists && mkdir(name, 0700) < 0) daemons("mkdir");
      finish(name, &h, mode, 0);
    } else {
      /* A directory in the way, and whatever else is in a tar, are left to the daemon. */
      if (exists && (S_ISDIR(there.st_mode) || unlink(name) < 0)) daemons("something else is there");
      if (h.type == '0' || h.type == 0) take_file(name, size), read_whole(skipped, padding(size));
      else if (h.type != '2' || symlink(link, name) < 0) daemons("an entry");
      finish(name, &h, mode, h.type == '2');
    }
    name[0] = link[0] = size_text[0] = 0;
  }
}

static uint64_t left;
static dev_t whole;
static struct { dev_t device; ino_t inode; char name[PATHS]; } *links;
static int link_count;

static void out(const void *bytes, size_t size) {
  if (size > left) daemons("more than was asked for");
  left -= size;
  if (fwrite(bytes, 1, size, stdout) != size) daemons("write");
}

static void field(char *to, size_t size, uint64_t value) {
  char text[32];
  if (snprintf(text, sizeof text, "%0*llo", (int)size - 1, (unsigned long long)value) >= (int)size) daemons("a large number");
  memcpy(to, text, size);
}

static void head(const char *name, char type, const struct stat *of, uint64_t size, const char *link) {
  struct header h = {.magic = "ustar", .version = {'0', '0'}, .type = type};
  for (const char *c = name; *c; c++) if (*c & 0x80) daemons("a name that is not ASCII");
  if (strlen(name) > sizeof h.name || strlen(link) > sizeof h.link) daemons("a long name");
  memcpy(h.name, name, strlen(name));
  memcpy(h.link, link, strlen(link));
  field(h.mode, 8, of->st_mode & 07777), field(h.uid, 8, of->st_uid), field(h.gid, 8, of->st_gid);
  field(h.size, 12, size), field(h.mtime, 12, of->st_mtime < 0 ? 0 : (uint64_t)of->st_mtime);
  memset(h.sum, ' ', sizeof h.sum);
  unsigned sum = 0;
  for (size_t i = 0; i < sizeof h; i++) sum += ((unsigned char *)&h)[i];
  field(h.sum, 7, sum);
  out(&h, sizeof h);
}

static void give_file(int at, const char *entry, const char *name, const struct stat *of) {
  static char part[1 << 16];
  static const char zeros[BLOCK];
  /* Before it is opened: it may be larger than anybody reads. */
  if ((uint64_t)of->st_size > left) daemons("more than was asked for");
  int from = openat(at, entry, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (from < 0) daemons("open");
  head(name, '0', of, (uint64_t)of->st_size, "");
  for (uint64_t size = (uint64_t)of->st_size; size > 0;) {
    ssize_t got = read(from, part, size < sizeof part ? (size_t)size : sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) daemons("a file that changes");
    out(part, (size_t)got);
    size -= (uint64_t)got;
  }
  close(from);
  out(zeros, padding((uint64_t)of->st_size));
}

/* The first name of what has several, or NULL. */
static const char *before(const struct stat *of, const char *name) {
  if (of->st_nlink < 2) return NULL;
  for (int i = 0; i < link_count; i++)
    if (links[i].device == of->st_dev && links[i].inode == of->st_ino) return links[i].name;
  if (link_count == LINKS) daemons("many links");
  if (!links && !(links = calloc(LINKS, sizeof *links))) daemons("memory");
  links[link_count].device = of->st_dev, links[link_count].inode = of->st_ino;
  snprintf(links[link_count++].name, PATHS, "%s", name);
  return NULL;
}

static void give(int at, const char *entry, const char *name) {
  struct stat of;
  char text[PATHS];
  if (fstatat(at, entry, &of, AT_SYMLINK_NOFOLLOW) < 0) daemons("stat");
  if (S_ISLNK(of.st_mode)) {
    ssize_t length = readlinkat(at, entry, text, sizeof text - 1);
    if (length < 0) daemons("readlink");
    text[length] = 0;
    return head(name, '2', &of, 0, text);
  }
  if (S_ISDIR(of.st_mode)) {
    /* The daemon does not see what is mounted in the box alone, as /proc and /dev/shm are. */
    if (of.st_dev != whole) daemons("another file system");
    if (snprintf(text, sizeof text, "%s/", name) >= (int)sizeof text) daemons("a long name");
    head(text, '5', &of, 0, "");
    int below = openat(at, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct dirent **list;
    int count = below < 0 ? -1 : scandirat(below, ".", &list, NULL, alphasort);
    if (count < 0) daemons("a directory");
    for (int i = 0; i < count; i++) {
      const char *one = list[i]->d_name;
      if (strcmp(one, ".") == 0 || strcmp(one, "..") == 0) continue;
      if (snprintf(text, sizeof text, "%s/%s", name, one) >= (int)sizeof text) daemons("a long name");
      give(below, one, text);
    }
    close(below);
    return;
  }
  if (S_ISSOCK(of.st_mode)) return;
  const char *first = before(&of, name);
  if (first) return head(name, '1', &of, 0, first);
  if (S_ISREG(of.st_mode)) return give_file(at, entry, name, &of);
  head(name, S_ISFIFO(of.st_mode) ? '6' : S_ISCHR(of.st_mode) ? '3' : '4', &of, 0, "");
}

static void get(const char *path) {
  static const char end[2 * BLOCK];
  char above[PATHS];
  struct stat root, parent, of;
  if (*path != '/' || strlen(path) >= sizeof above) daemons("a path");
  strcpy(above, path);
  char *name = strrchr(above, '/');
  *name++ = 0;
  if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) daemons("a path");
  int at = open(*above ? above : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (at < 0 || fstat(at, &parent) < 0 || stat("/", &root) < 0) daemons("open");
  if (parent.st_dev != root.st_dev) daemons("another file system");
  /* A link to itself is an answer of its own. */
  if (fstatat(at, name, &of, AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK(of.st_mode)) daemons("no file");
  whole = root.st_dev;
  give(at, name, name);
  out(end, sizeof end);
  if (fflush(stdout) != 0) daemons("write");
}

int main(int count, char **given) {
  if (count == 3 && strcmp(given[1], "put") == 0) {
    if (chdir(given[2]) < 0) daemons("chdir");
    put();
  } else if (count == 4 && strcmp(given[1], "get") == 0) {
    left = strtoull(given[3], NULL, 10);
    get(given[2]);
  } else daemons("usage: files put <directory> | files get <path> <most bytes>");
  return 0;
}
