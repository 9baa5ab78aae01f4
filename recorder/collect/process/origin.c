/* SPDX-License-Identifier: MIT */
#include "collect/process/origin.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

void origin_describe(struct trace *trace)
{
    struct utsname system;
    char description[sizeof system];
    if (uname(&system) == 0) {
        trace_metadata(trace, "host", system.nodename);
        snprintf(description, sizeof description, "%s %s %s", system.sysname, system.release,
                 system.machine);
        trace_metadata(trace, "system", description);
    }
    trace_metadata(trace, "writer", "ttdrecord " TTD_VERSION_STRING);
}

void origin_stacks(struct trace *trace, uint32_t stackless, uint32_t depth)
{
    static const struct {
        uint32_t calls;
        const char *name;
    } kinds[] = {{CALLS_ACQUIRE, "allocations"},
                 {CALLS_REALLOCATE, "reallocations"},
                 {CALLS_RELEASE, "releases"}};
    char text[128] = "not recorded";
    size_t size = strlen(text);
    const char *separator = " of ";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && stackless != CALLS_ALL; i++)
        if ((stackless & kinds[i].calls) != 0) {
            size +=
                (size_t)snprintf(text + size, sizeof text - size, "%s%s", separator, kinds[i].name);
            separator = ", ";
        }
    if (stackless == 0)
        size = 0;
    if (depth != 0 && stackless != CALLS_ALL)
        snprintf(text + size, sizeof text - size, "%sthe innermost %" PRIu32 " frames",
                 size != 0 ? "; else " : "", depth);
    else if (stackless == 0)
        strcpy(text, "recorded");
    trace_metadata(trace, "stacks", text);
}

/* A copy of a process's own statements: it may change them meanwhile. */
static size_t origin_copy_text(char *text, const volatile char *shared, size_t size, size_t limit)
{
    size = size < limit ? size : limit;
    for (size_t i = 0; i < size; i++)
        text[i] = shared[i];
    text[size] = '\0';
    return size;
}

void origin_image(struct trace *trace, const struct process_slot *slot, const char *command)
{
    char text[COMMAND_SIZE + DIRECTORY_SIZE];
    size_t size = origin_copy_text(text, slot->command, slot->command_size, COMMAND_SIZE);
    while (size > 0 && text[size - 1] == '\0')
        size--;
    /* Arguments are separated by NULs there; by spaces for people. */
    for (size_t i = 0; i < size; i++)
        if (text[i] == '\0')
            text[i] = ' ';
    if (size == COMMAND_SIZE)
        strcpy(text + size, "…");
    if (command || size > 0)
        trace_metadata(trace, "command", command ? command : text);
    if (origin_copy_text(text, slot->directory, slot->directory_size, DIRECTORY_SIZE) > 0)
        trace_metadata(trace, "directory", text);
}

bool origin_has_variable(uint32_t pid, const char *text)
{
    char path[64], *variable = NULL;
    size_t size = 0;
    bool is_found = false;
    snprintf(path, sizeof path, "/proc/%u/environ", pid);
    FILE *file = fopen(path, "re");
    while (file && !is_found && getdelim(&variable, &size, '\0', file) > 0)
        is_found = strncmp(variable, text, strlen(text)) == 0;
    free(variable);
    if (file)
        fclose(file);
    return is_found;
}

/* Whether a file is a module, by its name: a beginning, and a version behind it, which is less than
 * `end` if that is not 0. */
static bool origin_is_module(const char *name, const char *begin, unsigned long end)
{
    size_t size = strlen(begin);
    return strncmp(name, begin, size) == 0 && isdigit((unsigned char)name[size]) &&
           (end == 0 || strtoul(name + size, NULL, 10) < end);
}

/* Modules that may keep objects in pools. */
static const struct pool {
    const char *files[2];
    unsigned long end;
    const char *objects;
    const char *off; /* the variable that turns the pools off */
} pools[] = {
    {{"python3.", "libpython3."}, 0, "Python's small objects", "PYTHONMALLOC=malloc"},
    {{"php", "libphp"}, 0, "PHP's objects", "USE_ZEND_ALLOC=0"},
    {{"libglib-2.0.so.0.", NULL}, 7600 /* 2.76 */, "GLib's slices", "G_SLICE=always-malloc"},
};

enum { POOLS = sizeof pools / sizeof *pools };

/* Returns a bit for each of the pools that the file at a path has, by the name of the file. */
static uint32_t origin_pools_at(const char *path)
{
    char *file = realpath(path, NULL); /* python3 and libglib-2.0.so.0 are links */
    const char *slash = strrchr(file ? file : path, '/');
    const char *name = slash ? slash + 1 : path;
    uint32_t bits = 0;
    for (size_t i = 0; i < POOLS; i++)
        for (size_t j = 0; j < sizeof pools[i].files / sizeof *pools[i].files; j++)
            if (pools[i].files[j] && origin_is_module(name, pools[i].files[j], pools[i].end))
                bits |= UINT32_C(1) << i;
    free(file);
    return bits;
}

/* Files whose names were looked up. To resolve the links in a path takes a call for each directory,
 * and each child of a server has the same modules. */
struct pooled_file {
    char *path; /* NULL if the entry is free */
    struct symbolize_file file;
    uint32_t bits;
};

static bool origin_is_pooled(const struct pooled_file *pooled, const char *path,
                             const struct symbolize_file *file)
{
    const struct symbolize_file *known = &pooled->file;
    return pooled->path && known->inode == file->inode && known->device == file->device &&
           known->size == file->size && known->modified == file->modified &&
           known->changed == file->changed && strcmp(pooled->path, path) == 0;
}

/* Likewise, from the files that are known, if this one can be known again. */
static uint32_t origin_pools_of(const char *path, const struct symbolize_file *file)
{
    enum { FILES = 1024 };
    static struct pooled_file files[FILES];
    if (file->inode == 0)
        return origin_pools_at(path);
    struct pooled_file *pooled = &files[file->inode % FILES];
    if (!origin_is_pooled(pooled, path, file)) {
        free(pooled->path);
        *pooled = (struct pooled_file){strdup(path), *file, origin_pools_at(path)};
    }
    return pooled->bits;
}

void origin_pools(struct trace *trace, uint32_t pid, const char *path,
                  const struct symbolize_file *file, uint32_t *stated)
{
    uint32_t bits = origin_pools_of(path, file) & ~*stated;
    *stated |= bits;
    for (size_t i = 0; i < POOLS; i++) {
        if ((bits & UINT32_C(1) << i) == 0 || origin_has_variable(pid, pools[i].off))
            continue;
        /* A process that has ended, or has overwritten its environment, may have had the variable.
         */
        char fact[64];
        snprintf(fact, sizeof fact, "%s, unless %s", pools[i].objects, pools[i].off);
        trace_metadata(trace, "pooled", fact);
    }
}

/* The value of Linux 6.15; older headers lack it. */
struct exit_info {
    uint64_t mask;
    uint64_t cgroup;
    uint32_t ids[11];
    int32_t exit_code;
};

#define EXIT_INFO     _IOWR(0xff, 11, struct exit_info)
#define EXIT_INFO_BIT (UINT64_C(1) << 3)

static bool origin_status_of_reaped(int pidfd, int *status)
{
    struct exit_info info = {.mask = EXIT_INFO_BIT};
    if (pidfd < 0 || ioctl(pidfd, EXIT_INFO, &info) != 0 || !(info.mask & EXIT_INFO_BIT))
        return false;
    *status = info.exit_code;
    return true;
}

/* The fields of /proc/PID/stat from the state on, in `line`; NULL if there are none. */
static const char *origin_read_state(uint32_t pid, char line[2048])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    size_t size = fread(line, 1, 2047, file);
    fclose(file);
    line[size] = '\0';
    /* The name may contain anything, also parentheses. */
    const char *state = strrchr(line, ')');
    return state && strlen(state) >= 4 ? state + 2 : NULL;
}

/* A field of the line, counted from the state (0). */
static uint64_t origin_field(const char *state, int index)
{
    for (int i = 0; i < index && state; i++) {
        state = strchr(state, ' ');
        state += state != NULL;
    }
    return state ? strtoull(state, NULL, 10) : 0;
}

enum { FIELD_PARENT = 1, FIELD_START = 19, FIELD_ENVIRONMENT_END = 48 };

uint64_t origin_start_time(uint32_t pid)
{
    char line[2048];
    const char *state = origin_read_state(pid, line);
    return state ? origin_field(state, FIELD_START) : 0;
}

uint32_t origin_parent(uint32_t pid)
{
    char line[2048];
    const char *state = origin_read_state(pid, line);
    return state ? (uint32_t)origin_field(state, FIELD_PARENT) : 0;
}

bool origin_has_environment(uint32_t pid)
{
    char path[64], line[2048];
    snprintf(path, sizeof path, "/proc/%u/environ", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return true;
    bool is_empty = fgetc(file) == EOF;
    fclose(file);
    const char *state = is_empty ? origin_read_state(pid, line) : NULL;
    return !state || origin_field(state, FIELD_ENVIRONMENT_END) != 0;
}

bool origin_is_impossible(uint32_t pid, uint64_t start)
{
    char line[2048];
    if (pid == 0 || pid > INT32_MAX || pid == (uint32_t)getpid())
        return true;
    const char *state = origin_read_state(pid, line);
    return state && (origin_field(state, FIELD_START) < start ||
                     origin_field(state, FIELD_PARENT) == (uint64_t)getpid());
}

bool origin_is_running(uint32_t pid)
{
    char line[2048];
    const char *state = origin_read_state(pid, line);
    return state && !strchr("TtZX", *state);
}

bool origin_is_over(uint32_t pid, uint64_t start)
{
    char line[2048];
    const char *state = start != 0 ? origin_read_state(pid, line) : NULL;
    if (!state) /* it is gone, or the system does not say */
        return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
    return *state == 'Z' || *state == 'X' || origin_field(state, FIELD_START) != start;
}

static bool origin_status_of_zombie(uint32_t pid, int *status)
{
    enum { FIELDS_BEFORE_EXIT_CODE = 48 }; /* after the state; that follows the name */
    char line[2048];
    const char *field = origin_read_state(pid, line);
    if (!field || (*field != 'Z' && *field != 'X'))
        return false;
    field++;
    for (int i = 0; i < FIELDS_BEFORE_EXIT_CODE && field; i++)
        field = strchr(field + 1, ' ');
    return field && sscanf(field, "%d", status) == 1;
}

bool origin_exit_status(uint32_t pid, int pidfd, int *status)
{
    return origin_status_of_zombie(pid, status) || origin_status_of_reaped(pidfd, status);
}

/* Whether the process or thread of a directory in /proc has an id in its own namespace: the last of
 * its list of ids. */
static bool namespace_has_id(const char *directory, uint32_t inner)
{
    char path[128], line[256];
    bool has_id = false;
    snprintf(path, sizeof path, "%s/status", directory);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "NSpid:", 6) != 0)
            continue;
        const char *last = strrchr(line, '\t');
        has_id = last && strtoul(last, NULL, 10) == inner;
        break;
    }
    if (file)
        fclose(file);
    return has_id;
}

static bool namespace_has_value(uint32_t pid, uint64_t address, uint64_t value)
{
    uint64_t word;
    struct iovec local = {&word, sizeof word}, remote = {(void *)(uintptr_t)address, sizeof word};
    return process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0) == sizeof word && word == value;
}

/* Finds an entry of a directory of processes or threads. Without an address any value will do. */
static uint32_t namespace_find(const char *directory, uint32_t inner, uint64_t address,
                               uint64_t value)
{
    char path[96];
    uint32_t found = 0;
    DIR *entries = opendir(directory);
    const struct dirent *entry;
    while (found == 0 && entries && (entry = readdir(entries))) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        uint32_t id = (uint32_t)strtoul(entry->d_name, NULL, 10);
        snprintf(path, sizeof path, "%.64s/%u", directory, id);
        if ((address == 0 || namespace_has_value(id, address, value)) &&
            namespace_has_id(path, inner))
            found = id;
    }
    if (entries)
        closedir(entries);
    return found;
}

uint32_t namespace_process(uint32_t inner, uint64_t address, uint64_t value)
{
    return address != 0 ? namespace_find("/proc", inner, address, value) : 0;
}

uint32_t namespace_thread(uint32_t pid, uint32_t inner)
{
    char directory[64];
    snprintf(directory, sizeof directory, "/proc/%u/task", pid);
    return namespace_find(directory, inner, 0, 0);
}
