/* SPDX-License-Identifier: MIT */
#include "collect/trace/process_trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <ttdtrace/model.h>
#include <ttdtrace/ttdtrace.h>
#include <unistd.h>

#include "arrays.h"
#include "messages.h"

/* Removes children's traces that an earlier recording left beside the trace being replaced. */

/* Returns whether the file is a trace of a group, and sets `old` to its description. Called before
 * it is replaced. */
static bool group_stale_look(const char *path, struct ttd_trace *old)
{
    static const struct ttd_group no_group;
    struct stat status;
    struct ttd_input input;
    struct ttd_reader *reader;
    struct ttd_error error;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) ||
        ttd_input_file(path, NULL, &input, &error) != TTD_OK ||
        ttd_reader_open(&input, NULL, NULL, &reader, &error) != TTD_OK)
        return false;
    *old = *ttd_reader_trace(reader);
    ttd_reader_close(reader);
    return memcmp(&old->group, &no_group, sizeof no_group) != 0;
}

/* Returns the process id in a file name, after the name of the launched program's trace; 0 if there
 * is none. */
static uint64_t group_named_process(const char *name, const char *base)
{
    size_t size = strlen(base);
    char *end;
    if (strncmp(name, base, size) != 0 || name[size] != '.' || name[size + 1] < '1' ||
        name[size + 1] > '9')
        return 0;
    unsigned long long process = strtoull(name + size + 1, &end, 10);
    return *end == '\0' || *end == '.' || *end == '-' ? process : 0;
}

static bool group_is_stale(const char *path, uint64_t process, const struct ttd_trace *old)
{
    struct stat status;
    struct ttd_trace trace;
    return process != 0 && lstat(path, &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_uid == geteuid() && group_stale_look(path, &trace) &&
           memcmp(&trace.group, &old->group, sizeof trace.group) == 0 &&
           trace.process_id == process && trace.trace_id != old->trace_id;
}

/*
 * Removes the traces, and their indexes, of the child processes of that recording. A file is
 * removed only if it is a regular file of this user beside `path`, its name is `path` followed by a
 * process id, and it is a trace of that process and of the same group.
 */
static void group_stale_remove(const char *path, const struct ttd_trace *old)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    int size = (int)(base - path);
    char sibling[2 * PATH_MAX];
    snprintf(sibling, sizeof sibling, "%.*s", size, path);
    DIR *directory = opendir(size > 0 ? sibling : ".");
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        uint64_t process = group_named_process(entry->d_name, base);
        int length = snprintf(sibling, sizeof sibling, "%.*s%s", size, path, entry->d_name);
        if (length > 0 && (size_t)length < sizeof sibling && group_is_stale(sibling, process, old))
            unlink(sibling);
    }
    if (directory)
        closedir(directory);
}

static void group_fill_random(void *bytes, size_t size)
{
    if (getrandom(bytes, size, 0) != (ssize_t)size)
        message("no random numbers: ids of traces may not be unique");
}

void group_init(struct group *group, const char *output, const struct ttd_group *id)
{
    static const struct ttd_group none;
    *group = (struct group){.output = output, .id = *id};
    if (memcmp(id, &none, sizeof none) == 0)
        group_fill_random(&group->id, sizeof group->id);
}

void group_free(struct group *group)
{
    free(group->pids);
}

static struct ttd_trace group_new_info(const struct group *group, const struct host *host)
{
    struct timespec now;
    struct ttd_trace info = {
        .group = group->id,
        .time_unit = CLOCK_UNIT_NS,
        .architecture = TTD_ARCH_X86_64,
        .pointer_size = 8,
    };
    clock_gettime(CLOCK_REALTIME, &now);
    info.start_time = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - (int64_t)host_now(host);
    while (info.trace_id == 0)
        group_fill_random(&info.trace_id, sizeof info.trace_id);
    return info;
}

struct trace *group_open(struct group *group, const struct host *host, pid_t launched,
                         struct ttd_error *error)
{
    struct ttd_trace info = group_new_info(group, host);
    info.process_id = (uint64_t)launched;
    info.parent_process_id = group->parent;
    info.flags = group->had_run ? TTD_TRACE_ATTACHED : 0;
    struct ttd_trace old;
    bool is_replaced = group_stale_look(group->output, &old);
    struct trace *trace = trace_open(group->output, &info, error);
    group->is_file = trace && trace->created;
    if (group->is_file && is_replaced)
        group_stale_remove(group->output, &old);
    return trace;
}

/* Returns how many children had this process id before: the system uses ids again. */
static unsigned group_count_namesakes(struct group *group, uint32_t pid)
{
    unsigned count = 0;
    for (size_t i = 0; i < group->pid_count; i++)
        count += group->pids[i] == pid;
    void *pids =
        array_grow(group->pids, group->pid_count, &group->pid_capacity, sizeof *group->pids);
    if (!pids)
        return count;
    group->pids = pids;
    group->pids[group->pid_count++] = pid;
    return count;
}

/* Makes a path beside the file of the launched program. */
static void group_name_child_file(struct group *group, uint32_t pid, char *path, size_t size)
{
    unsigned namesakes = group_count_namesakes(group, pid);
    int length = snprintf(path, size, "%s.%u", group->output, pid);
    if (namesakes > 0 && length > 0 && (size_t)length < size)
        snprintf(path + length, size - (size_t)length, "-%u", namesakes + 1);
}

enum { PROGRAM_MAX = 32 };

/*
 * Derives a file name from the program in a slot: the part of its first argument after the last
 * slash, with unusual characters replaced, since the program may have set it to anything.
 */
static void group_find_program(const struct process_slot *slot, char name[PROGRAM_MAX + 1])
{
    static const char others[] = "+_-.";
    const volatile char *command = slot->command;
    size_t length = 0, size = slot->command_size < COMMAND_SIZE ? slot->command_size : COMMAND_SIZE;
    for (size_t i = 0; i < size && command[i] != '\0'; i++) {
        char c = command[i];
        if (c == '/')
            length = 0;
        else if (length < PROGRAM_MAX &&
                 (length > 0 || c != '-')) /* a login shell's begins with - */
            name[length++] = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                     (c >= '0' && c <= '9') || strchr(others, c)
                                 ? c
                                 : '_';
    }
    name[length] = '\0';
    if (length >= 4 && strcmp(name + length - 4, ".idx") == 0)
        name[length - 4] = '_'; /* the suffix of index files */
}

/* Appends the program's name to the path. Returns false if there is no name, or no room. */
static bool group_add_program(const char *path, size_t stem, const struct process_slot *slot,
                              char named[2 * PATH_MAX])
{
    char program[PROGRAM_MAX + 1];
    group_find_program(slot, program);
    int length = snprintf(named, 2 * PATH_MAX, "%.*s.%s", (int)stem, path, program);
    return program[0] != '\0' && length > 0 && length < PATH_MAX;
}

void group_name_child(const struct process_slot *slot, struct trace *trace)
{
    char named[2 * PATH_MAX];
    if (trace->stem != 0 && group_add_program(trace->path, trace->stem, slot, named) &&
        strcmp(named, trace->path) != 0)
        trace_rename(trace, named);
}

/* Makes a position of numbers from the program. Invalid numbers make an unknown position. */
static struct ttd_position group_told_position(uint64_t sequence, uint64_t steps)
{
    struct ttd_position position = {sequence, steps};
    return ttd_position_is_valid(position) ? position : ttd_position_invalid();
}

struct trace *group_open_child(struct group *group, const struct host *host,
                               const struct process_slot *slot, const struct trace *parent)
{
    char path[2 * PATH_MAX];
    struct ttd_error error;
    struct ttd_trace info = group_new_info(group, host);
    info.process_id = slot->pid;
    info.parent_process_id = slot->parent_pid;
    uint64_t elapsed = host_now(host);
    info.start_time += (int64_t)(slot->clock < elapsed ? slot->clock : elapsed);
    info.parent_position = group_told_position(slot->sequence, 0);
    if (parent)
        info.parent_trace_id = parent->info.trace_id;
    if (slot->flags & PROCESS_FORKED) {
        info.flags |= TTD_TRACE_INHERITS;
        info.parent_position = group_told_position(slot->parent_sequence, slot->parent_steps);
    }
    group_name_child_file(group, slot->pid, path, sizeof path);
    if (!group->is_file) {
        error = (struct ttd_error){TTD_ERROR_IO, ENOTDIR, TTD_NOWHERE, TTD_NOWHERE,
                                   "no place for the trace of a child process"};
        return trace_none(path, &info, &error);
    }
    char named[2 * PATH_MAX];
    size_t stem = strlen(path);
    bool has_name = group_add_program(path, stem, slot, named);
    struct trace *trace = trace_open_child(has_name ? named : path, &info, &error);
    if (!trace)
        return trace_none(path, &info, &error);
    trace->stem = stem;
    return trace;
}
