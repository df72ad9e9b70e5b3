/*
 * An environment's tools as programs in the box: one call of the MCP server on the model path, its text on stdout.
 *
 *   tool <port>                          lists the tools, one "name<TAB>description" per line
 *   tool <port> <name> [--json TEXT]     calls one; TEXT is the arguments, a JSON object; "-" takes them from stdin
 *
 * Exit: 0 the tool is done, 1 the tool says that it failed, 2 wrong use, 3 the tools could not be reached.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct text { char *data; size_t size, room; };

static void die(int code, const char *what) {
    fprintf(stderr, "paddock-tool: %s\n", what);
    exit(code);
}

static void add(struct text *to, const char *from, size_t size) {
    if (to->size + size + 1 > to->room) {
        to->room = (to->size + size + 1) * 2;
        if (!(to->data = realloc(to->data, to->room))) die(3, "out of memory");
    }
    memcpy(to->data + to->size, from, size);
    to->size += size;
    to->data[to->size] = 0;
}

static void add_text(struct text *to, const char *from) { add(to, from, strlen(from)); }

static void read_all(int from, struct text *to) {
    char part[1 << 16];
    ssize_t got;
    while ((got = read(from, part, sizeof part)) != 0) {
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) die(3, strerror(errno));
        add(to, part, got);
    }
}

/* Sends one message and returns the body of the answer. HTTP/1.0: the answer ends where the connection does. */
static char *ask(int port, const struct text *message) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0 || connect(socket_, (struct sockaddr *)&at, sizeof at) != 0) die(3, strerror(errno));
    struct text request = {0}, answer = {0};
    char head[200];
    snprintf(head, sizeof head,
             "POST /mcp HTTP/1.0\r\nhost: 127.0.0.1:%d\r\ncontent-type: application/json\r\n"
             "accept: application/json\r\ncontent-length: %zu\r\n\r\n", port, message->size);
    add_text(&request, head);
    add(&request, message->data, message->size);
    for (size_t sent = 0; sent < request.size;) {
        ssize_t done = send(socket_, request.data + sent, request.size - sent, MSG_NOSIGNAL);
        if (done < 0 && errno != EINTR) die(3, strerror(errno));
        if (done > 0) sent += done;
    }
    read_all(socket_, &answer);
    close(socket_);
    char *body = answer.size == 0 ? NULL : strstr(answer.data, "\r\n\r\n");
    if (!body) die(3, "the tools gave no answer");
    return body + 4;
}

static const char *blank(const char *at) {
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r') at++;
    return at;
}

/* Behind the JSON value that begins at `at`. Our own server wrote it: it is well formed. */
static const char *skip(const char *at) {
    at = blank(at);
    if (*at == '"') {
        for (at++; *at && *at != '"'; at++) if (*at == '\\' && at[1]) at++;
        return *at ? at + 1 : at;
    }
    if (*at != '{' && *at != '[') {
        const char *from = at;
        while (*at && !strchr(",}] \t\r\n", *at)) at++;
        return at == from && *at ? at + 1 : at;
    }
    char end = *at == '{' ? '}' : ']';
    for (at = blank(at + 1); *at && *at != end; at = blank(at)) {
        if (*at == ',' || *at == ':') at++;
        else at = skip(at);
    }
    return *at ? at + 1 : at;
}

/* The value of a member of the object at `at`; NULL when it has none. */
static const char *member(const char *at, const char *name) {
    at = at ? blank(at) : "";
    if (*at != '{') return NULL;
    for (at = blank(at + 1); *at == '"';) {
        const char *key = at + 1, *after = skip(at);
        int same = (size_t)(after - key - 1) == strlen(name) && strncmp(key, name, strlen(name)) == 0;
        at = blank(after);
        if (*at == ':') at = blank(at + 1);
        if (same) return at;
        at = blank(skip(at));
        if (*at == ',') at = blank(at + 1);
    }
    return NULL;
}

static unsigned hex4(const char *at) {
    char digits[5] = {0};
    memcpy(digits, at, 4);
    return strtoul(digits, NULL, 16);
}

static void print_point(unsigned point) {
    char out[4];
    int size;
    if (point < 0x80) { out[0] = point; size = 1; }
    else if (point < 0x800) { out[0] = 0xc0 | point >> 6; out[1] = 0x80 | (point & 63); size = 2; }
    else if (point < 0x10000) {
        out[0] = 0xe0 | point >> 12; out[1] = 0x80 | (point >> 6 & 63); out[2] = 0x80 | (point & 63); size = 3;
    } else {
        out[0] = 0xf0 | point >> 18; out[1] = 0x80 | (point >> 12 & 63); out[2] = 0x80 | (point >> 6 & 63);
        out[3] = 0x80 | (point & 63); size = 4;
    }
    fwrite(out, 1, size, stdout);
}

/* Prints a JSON string as what it means. */
static void print_string(const char *at) {
    if (!at || *at != '"') return;
    for (at++; *at && *at != '"'; at++) {
        if (*at != '\\') { putchar(*at); continue; }
        at++;
        const char *plain = strchr("nrtbf", *at);
        if (plain && *at) putchar("\n\r\t\b\f"[plain - "nrtbf"]);
        else if (*at == 'u' && strlen(at) > 4) {
            unsigned point = hex4(at + 1);
            at += 4;
            if (point >= 0xd800 && point < 0xdc00 && at[1] == '\\' && at[2] == 'u' && strlen(at) > 6) {
                point = 0x10000 + ((point - 0xd800) << 10) + (hex4(at + 3) - 0xdc00);
                at += 6;
            }
            print_point(point);
        } else if (*at) putchar(*at);
    }
}

static const char *result_of(const char *body) {
    const char *error = member(member(body, "error"), "message");
    if (error) {
        fflush(stdout);
        dup2(2, 1);
        printf("paddock-tool: ");
        print_string(error);
        putchar('\n');
        fflush(stdout);
        exit(3);
    }
    const char *result = member(body, "result");
    if (!result) die(3, "the tools gave no answer");
    return result;
}

static void list(int port) {
    struct text message = {0};
    add_text(&message, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    const char *tools = member(result_of(ask(port, &message)), "tools");
    for (const char *at = tools ? blank(tools + 1) : ""; *at == '{';) {
        print_string(member(at, "name"));
        putchar('\t');
        print_string(member(at, "description"));
        putchar('\n');
        at = blank(skip(at));
        if (*at == ',') at = blank(at + 1);
    }
}

static int call(int port, const char *name, const char *arguments) {
    if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(name)) die(2, "that is no name of a tool");
    struct text given = {0}, message = {0};
    if (strcmp(arguments, "-") == 0) read_all(0, &given);
    else add_text(&given, arguments);
    const char *object = given.size == 0 ? "{}" : blank(given.data);
    /* Text behind the object would become a part of the message. */
    if (*object != '{' || *blank(skip(object))) die(2, "the arguments are not one JSON object");
    add_text(&message, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"");
    add_text(&message, name);
    add_text(&message, "\",\"arguments\":");
    add_text(&message, object);
    add_text(&message, "}}");
    const char *result = result_of(ask(port, &message));
    const char *content = member(result, "content"), *failed = member(result, "isError");
    for (const char *at = content ? blank(content + 1) : ""; *at == '{';) {
        const char *shown = member(at, "text");
        if (shown) print_string(shown);
        else fputs("[not a text]", stdout);
        putchar('\n');
        at = blank(skip(at));
        if (*at == ',') at = blank(at + 1);
    }
    return failed && strncmp(failed, "true", 4) == 0;
}

int main(int count, char **given) {
    int port = count > 1 ? atoi(given[1]) : 0;
    if (port <= 0 || port > 65535) die(2, "usage: tool <port> [<name> [--json TEXT]]");
    if (count == 2) list(port);
    else if (count == 3) return call(port, given[2], "{}");
    else if (count == 5 && strcmp(given[3], "--json") == 0) return call(port, given[2], given[4]);
    else die(2, "usage: paddock-tool [<name> [--json TEXT]]");
    return 0;
}
