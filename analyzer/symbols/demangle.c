/* SPDX-License-Identifier: MIT */
/* Demangling: here, or in a process that can be ended if a name takes too long. */
#include "symbols/demangle.h"

#include <errno.h>
#include <libiberty/demangle.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/grow.h"

/* Demangling without limits on stack and time, for a process that may be killed. */

/** Stack that a name may need, for each of its bytes. */
#define DEMANGLE_STACK_RATIO 2048

#define DEMANGLE_OPTIONS (DMGL_PARAMS | DMGL_ANSI)

/* Template arguments beside each other; further ones are left out of a shortened name. */
#define ARGUMENTS_MAX 64

struct demangle_sink {
    char *text;
    size_t size;
    size_t limit;
    jmp_buf full;
};

/* Collects the demangler's output. A crafted name of some hundred bytes can stand for gigabytes of
 * text, and the demangler has no limit of its own: longjmp() leaves it at the limit. This is
 * safe because the demangler keeps its state on the stack, or in a tree that is then dropped. */
static void demangle_collect(const char *data, size_t size, void *context)
{
    struct demangle_sink *sink = context;
    if (size > sink->limit - sink->size)
        longjmp(sink->full, 1);
    if (size) /* `data` may be NULL for size 0 */
        memcpy(sink->text + sink->size, data, size);
    sink->size += size;
}

static bool demangle_any(const char *name, int options, struct demangle_sink *sink)
{
    if (rust_demangle_callback(name, DEMANGLE_OPTIONS | options, demangle_collect, sink))
        return true;
    sink->size = 0;
    return cplus_demangle_v3_callback(name, DEMANGLE_OPTIONS | options, demangle_collect, sink);
}

/** Demangles a NUL-terminated name by `options` of libiberty beside the usual ones; 0 if it is not
 * mangled, `limit` + 1 if the text would be longer. Sets `text` as demangle_long() does. */
static size_t demangle_plain(const char *name, int options, char *text, size_t limit)
{
    struct demangle_sink sink = {.text = text, .limit = limit};
    if (setjmp(sink.full))
        return limit + 1;
    return demangle_any(name, options, &sink) ? sink.size : 0;
}

/* The components of a name that are gone through, each once, those of few levels of template
 * arguments first. */
struct demangle_walk {
    struct demangle_component **nodes;
    size_t count;
    size_t capacity;
    bool has_failed;
};

/* Adds a component that was not there. The demangler's own mark serves; it must be 0 when it
 * prints. */
static void demangle_walk_add(struct demangle_walk *walk, struct demangle_component *node)
{
    if (!node || node->d_counting || walk->has_failed)
        return;
    if (grow_array((void **)&walk->nodes, &walk->capacity, walk->count + 1, sizeof *walk->nodes) !=
        TTD_OK) {
        walk->has_failed = true;
        return;
    }
    node->d_counting = 1;
    walk->nodes[walk->count++] = node;
}

/* Whether a component has two others. Those that are not known here remain as they are. */
static bool demangle_has_parts(const struct demangle_component *node)
{
    switch (node->type) {
    case DEMANGLE_COMPONENT_QUAL_NAME:
    case DEMANGLE_COMPONENT_LOCAL_NAME:
    case DEMANGLE_COMPONENT_TYPED_NAME:
    case DEMANGLE_COMPONENT_TEMPLATE:
    case DEMANGLE_COMPONENT_TYPEINFO_NAME:
    case DEMANGLE_COMPONENT_RESTRICT:
    case DEMANGLE_COMPONENT_VOLATILE:
    case DEMANGLE_COMPONENT_CONST:
    case DEMANGLE_COMPONENT_RESTRICT_THIS:
    case DEMANGLE_COMPONENT_VOLATILE_THIS:
    case DEMANGLE_COMPONENT_CONST_THIS:
    case DEMANGLE_COMPONENT_REFERENCE_THIS:
    case DEMANGLE_COMPONENT_RVALUE_REFERENCE_THIS:
    case DEMANGLE_COMPONENT_POINTER:
    case DEMANGLE_COMPONENT_REFERENCE:
    case DEMANGLE_COMPONENT_RVALUE_REFERENCE:
    case DEMANGLE_COMPONENT_FUNCTION_TYPE:
    case DEMANGLE_COMPONENT_ARRAY_TYPE:
    case DEMANGLE_COMPONENT_PTRMEM_TYPE:
    case DEMANGLE_COMPONENT_ARGLIST:
    case DEMANGLE_COMPONENT_TEMPLATE_ARGLIST:
    case DEMANGLE_COMPONENT_PACK_EXPANSION:
    case DEMANGLE_COMPONENT_TAGGED_NAME:
    case DEMANGLE_COMPONENT_CLONE:
        return true;
    default:
        return false;
    }
}

/* Leaves out the arguments of a list: those behind the first ones, or all of an inner list. Those
 * of the outermost level keep their places, since parameters refer to them by number. */
static void demangle_cut_arguments(struct demangle_component *list, bool is_inner,
                                   struct demangle_component *ellipsis)
{
    size_t count = 1;
    for (; !is_inner && list && count < ARGUMENTS_MAX; count++)
        list = list->u.s_binary.right;
    if (!list || !list->u.s_binary.left || (!is_inner && !list->u.s_binary.right))
        return;
    list->u.s_binary.left = ellipsis;
    list->u.s_binary.right = NULL;
}

/* Leaves out template arguments more than `levels` deep. */
static bool demangle_cut_tree(struct demangle_component *tree, size_t levels,
                              struct demangle_component *ellipsis)
{
    struct demangle_walk walk = {0}, inner = {0};
    demangle_walk_add(&walk, tree);
    size_t done_count = 0;
    for (size_t level = 0; done_count < walk.count; level++) {
        for (; done_count < walk.count; done_count++) {
            struct demangle_component *node = walk.nodes[done_count];
            if (!demangle_has_parts(node))
                continue;
            struct demangle_component *right = node->u.s_binary.right;
            demangle_walk_add(&walk, node->u.s_binary.left);
            if (node->type != DEMANGLE_COMPONENT_TEMPLATE || !right ||
                right->type != DEMANGLE_COMPONENT_TEMPLATE_ARGLIST) {
                demangle_walk_add(&walk, right);
                continue;
            }
            demangle_cut_arguments(right, level > levels, ellipsis);
            demangle_walk_add(&inner, right);
        }
        for (size_t i = 0; i < inner.count; i++) {
            inner.nodes[i]->d_counting = 0;
            demangle_walk_add(&walk, inner.nodes[i]);
        }
        inner.count = 0;
    }
    for (size_t i = 0; i < walk.count; i++)
        walk.nodes[i]->d_counting = 0;
    bool has_failed = walk.has_failed || inner.has_failed;
    free(walk.nodes);
    free(inner.nodes);
    return !has_failed;
}

static size_t demangle_print_cut(struct demangle_component *tree, size_t levels, char *text,
                                 size_t limit)
{
    struct demangle_component ellipsis = {.type = DEMANGLE_COMPONENT_NAME};
    struct demangle_sink sink = {.text = text, .limit = limit};
    cplus_demangle_fill_name(&ellipsis, "…", (int)strlen("…"));
    if (!demangle_cut_tree(tree, levels, &ellipsis) || setjmp(sink.full))
        return 0;
    return cplus_demangle_print_callback(DEMANGLE_OPTIONS | DMGL_NO_RECURSE_LIMIT, tree,
                                         demangle_collect, &sink)
               ? sink.size
               : 0;
}

/**
 * Demangles a NUL-terminated name. If the text is longer than `limit`, or the demangler gives up on
 * it, inner template arguments are left out, as few levels as necessary.
 *
 * @param text  set to the result; not NUL-terminated
 * @return its length; 0 if the name is not mangled
 */
static size_t demangle_long(const char *name, char *text, size_t limit)
{
    static const size_t levels[] = {24, 8, 4, 2, 1, 0};
    size_t size = demangle_plain(name, DMGL_NO_RECURSE_LIMIT, text, limit);
    if (size && size <= limit)
        return size;
    size = 0;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0] && !size; i++) {
        void *memory = NULL;
        /* Printing that was left leaves marks in the tree: each time a new one. */
        struct demangle_component *tree =
            cplus_demangle_v3_components(name, DEMANGLE_OPTIONS | DMGL_NO_RECURSE_LIMIT, &memory);
        if (!tree)
            return 0;
        size = demangle_print_cut(tree, levels[i], text, limit);
        free(memory);
    }
    return size;
}

/* The process is a copy of this one. It closes all files but its socket, and only answers. A
 * request is the size of the name and the limit, then the name; an answer is the size of the text
 * and the processor time in microseconds, then the text. */

/* Sends all bytes; false if the other process is gone. */
static bool demangle_send_all(int socket, const void *data, size_t size)
{
    for (size_t sent = 0; sent < size;) {
        ssize_t n = send(socket, (const char *)data + sent, size - sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return false;
        sent += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool demangle_receive_all(int socket, void *data, size_t size)
{
    for (size_t received = 0; received < size;) {
        ssize_t n = recv(socket, (char *)data + received, size - received, 0);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        received += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* A name in the process, demangled by a thread whose stack is large enough for it. */
struct demangle_task {
    char *name;
    char *text;
    size_t limit;
    size_t size;
};

static void *demangle_run(void *context)
{
    struct demangle_task *task = context;
    task->size = demangle_long(task->name, task->text, task->limit);
    return NULL;
}

static void demangle_run_with_stack(struct demangle_task *task, size_t name_size)
{
    size_t stack_size = (UINT64_C(1) << 20) + name_size * DEMANGLE_STACK_RATIO;
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, stack_size) != 0 ||
        pthread_create(&thread, &attributes, demangle_run, task) != 0 ||
        pthread_join(thread, NULL) != 0)
        _exit(EXIT_FAILURE);
}

static uint64_t demangle_processor_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

/* Answers one request; false at the end of them. */
static bool demangle_serve_one(int socket)
{
    const struct itimerval limit = {.it_value = {.tv_usec = (suseconds_t)DEMANGLE_TIME}};
    uint32_t sizes[2];
    if (!demangle_receive_all(socket, sizes, sizeof sizes))
        return false;
    struct demangle_task task = {.limit = sizes[1]};
    uint64_t begin = demangle_processor_time();
    task.name = malloc((size_t)sizes[0] + 1);
    task.text = malloc((size_t)sizes[1] + 1);
    if (!task.name || !task.text || !demangle_receive_all(socket, task.name, sizes[0]))
        return false;
    task.name[sizes[0]] = '\0';
    setitimer(ITIMER_PROF, &limit, NULL);
    demangle_run_with_stack(&task, sizes[0]);
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value = {0}}, NULL);
    sizes[0] = (uint32_t)task.size;
    sizes[1] = (uint32_t)(demangle_processor_time() - begin);
    bool is_sent = demangle_send_all(socket, sizes, sizeof sizes) &&
                   demangle_send_all(socket, task.text, task.size);
    free(task.name);
    free(task.text);
    return is_sent;
}

static void demangle_lift_limit(int resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(resource, &limit);
    }
}

static _Noreturn void demangle_serve(int socket)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigprocmask(SIG_SETMASK, &signals, NULL);
    signal(SIGPROF, SIG_DFL);
    signal(SIGSEGV, SIG_DFL);
    /* A pager waits until nobody has the other end of its pipe. */
    if (socket > 0)
        syscall(SYS_close_range, 0, socket - 1, 0);
    syscall(SYS_close_range, socket + 1, ~0U, 0);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    demangle_lift_limit(RLIMIT_DATA);
    demangle_lift_limit(RLIMIT_AS);
    while (demangle_serve_one(socket))
        continue;
    _exit(EXIT_SUCCESS);
}

static bool demangle_process_start(struct demangle_process *process)
{
    int ends[2];
    if (process->failures >= DEMANGLE_FAILURES_MAX ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    pid_t id = fork();
    if (id == 0) {
        close(ends[0]);
        demangle_serve(ends[1]);
    }
    close(ends[1]);
    if (id < 0) {
        close(ends[0]);
        process->failures++;
        return false;
    }
    process->id = id;
    process->socket = ends[0];
    return true;
}

void demangle_process_end(struct demangle_process *process)
{
    if (!process->id)
        return;
    close(process->socket);
    kill(process->id, SIGKILL);
    while (waitpid(process->id, NULL, 0) < 0 && errno == EINTR)
        continue;
    process->id = 0;
}

static bool demangle_process_ask(struct demangle_process *process, struct ttd_string name,
                                 char *text, size_t limit, size_t *size)
{
    uint32_t sizes[2] = {(uint32_t)name.size, (uint32_t)limit};
    if (!demangle_send_all(process->socket, sizes, sizeof sizes) ||
        !demangle_send_all(process->socket, name.data, name.size) ||
        !demangle_receive_all(process->socket, sizes, sizeof sizes) || sizes[0] > limit ||
        !demangle_receive_all(process->socket, text, sizes[0]))
        return false;
    process->time += sizes[1];
    *size = sizes[0];
    return true;
}

size_t demangle_process_find(struct demangle_process *process, struct ttd_string name, char *text,
                             size_t limit)
{
    size_t size = 0;
    if (process->time >= DEMANGLE_TOTAL_TIME || (!process->id && !demangle_process_start(process)))
        return 0;
    if (!demangle_process_ask(process, name, text, limit, &size)) {
        demangle_process_end(process);
        process->failures++;
        return 0;
    }
    return size;
}

/* Names that are demangled at once: the demangler's use of stack grows with their length. */
#define SHORT_NAME_MAX 1024
#define SHORT_TEXT_MAX 4096

#define PARAMETERS_TRIED_MAX 8

/* Bytes of a name that stands for one that cannot be demangled, without its end. */
#define LEADING_MAX 1024

void demangler_free(struct demangler *demangler)
{
    demangle_process_end(&demangler->process);
    free(demangler->text);
    *demangler = (struct demangler){.long_bytes = 0};
}

static void demangle_leading_add(char *text, size_t *size, const char *part, size_t part_size)
{
    if (part_size > LEADING_MAX - *size)
        part_size = LEADING_MAX - *size;
    memcpy(text + *size, part, part_size);
    *size += part_size;
}

/* Copies an identifier preceded by its length; NULL if there is none. */
static const char *demangle_leading_identifier(const char *next, const char *end, char *text,
                                               size_t *size)
{
    size_t length = 0;
    while (next < end && *next >= '0' && *next <= '9' && length < (size_t)(end - next))
        length = length * 10 + (size_t)(*next++ - '0');
    if (!length || length > (size_t)(end - next))
        return NULL;
    if (*size)
        demangle_leading_add(text, size, "::", 2);
    demangle_leading_add(text, size, next, length);
    return next + length;
}

/* Writes the part of a mangled name before its first template arguments, and the hash of the
 * whole: other names may begin alike. */
static size_t demangle_leading_name(struct ttd_string name, char *text)
{
    const char *next = name.data + 2, *end = name.data + name.size;
    size_t size = 0;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < name.size; i++)
        hash = (hash ^ (unsigned char)name.data[i]) * UINT64_C(0x100000001b3);
    bool is_nested = next < end && *next == 'N';
    next += is_nested;
    while (next < end && memchr("rVKROL", *next, 6))
        next++;
    if (end - next > 2 && memcmp(next, "St", 2) == 0) {
        demangle_leading_add(text, &size, "std", 3);
        next += 2;
    }
    for (const char *after = next; after; next = after ? after : next)
        after = demangle_leading_identifier(next, end, text, &size);
    if (!size)
        demangle_leading_add(text, &size, name.data, name.size);
    else if (next < end && *next == 'I')
        demangle_leading_add(text, &size, "<…>", strlen("<…>"));
    return size + (size_t)sprintf(text + size, "%s… [%08x]", is_nested ? "::" : "",
                                  (unsigned)(hash ^ hash >> 32));
}

/* Whether a name may take the demangler exponential time: it tries twice what may be the template
 * arguments of a parameter in the type of a conversion. */
static bool demangle_is_slow(struct ttd_string name)
{
    size_t count = 0;
    const char *end = name.data + name.size;
    if (!memmem(name.data, name.size, "cv", 2))
        return false;
    for (const char *next = name.data; (next = memchr(next, 'T', (size_t)(end - next)));) {
        next++;
        next += strspn(next, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        count += next[0] == '_' && next[1] == 'I';
    }
    return count > PARAMETERS_TRIED_MAX;
}

static size_t demangle_in_process(struct demangler *demangler, struct ttd_string name)
{
    size_t limit = demangler->long_bytes < DEMANGLE_MANY_BYTES ? DEMANGLE_MAX : DEMANGLE_MANY_MAX;
    size_t size = demangle_process_find(&demangler->process, name, demangler->text, limit);
    if (!size)
        size = demangle_leading_name(name, demangler->text);
    demangler->long_bytes += size;
    return size;
}

struct ttd_string demangler_find(struct demangler *demangler, struct ttd_string name)
{
    const struct ttd_string none = {"", 0};
    /* The demangler takes C strings: a name with a NUL stays as it is. */
    if (name.size < 3 || name.data[0] != '_' || (name.data[1] != 'Z' && name.data[1] != 'R') ||
        memchr(name.data, 0, name.size))
        return none;
    if (!demangler->text)
        demangler->text = malloc(DEMANGLE_MAX + 1);
    if (!demangler->text)
        return none;
    size_t size = SHORT_TEXT_MAX + 1;
    if (name.size <= SHORT_NAME_MAX && !demangle_is_slow(name))
        size = demangle_plain(name.data, 0, demangler->text, SHORT_TEXT_MAX);
    if (size > SHORT_TEXT_MAX)
        size = demangle_in_process(demangler, name);
    return (struct ttd_string){demangler->text, size};
}
