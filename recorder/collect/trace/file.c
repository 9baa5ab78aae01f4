/* SPDX-License-Identifier: MIT */
/* The file of a trace: opens, renames, removes and releases it; and the names of the files of a
 * group. */
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
#include <unistd.h>

#include <ttdtrace/model.h>
#include <ttdtrace/ttdtrace.h>

#include "arrays.h"
#include "collect/trace/live_sizes.h"
#include "collect/trace/ring.h"
#include "collect/trace/trace_modules.h"
#include "common/output_path.h"
#include "messages.h"

/* The file of a child's trace; open only while it is written to if descriptors are scarce. */

struct child_file {
    char *const *place;
    dev_t device;
    ino_t inode;
    int descriptor;           /* -1 if it is closed */
    struct ttd_output output; /* of the descriptor */
};

/* Takes the descriptor of the open file over. */
static int child_file_use(struct child_file *file, int descriptor)
{
    if (ttd_output_descriptor(descriptor, 1, NULL, &file->output) != TTD_OK) {
        close(descriptor);
        return ENOMEM;
    }
    file->descriptor = descriptor;
    return 0;
}

static int child_file_release(struct child_file *file)
{
    file->descriptor = -1;
    return file->output.close(file->output.context);
}

/* Opens the file again, and nothing that somebody has put in its place. */
static int child_file_reopen(struct child_file *file)
{
    struct stat status;
    int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int descriptor = open(*file->place, flags);
    if (descriptor < 0)
        return errno;
    if (fstat(descriptor, &status) == 0 && status.st_dev == file->device &&
        status.st_ino == file->inode)
        return child_file_use(file, descriptor);
    close(descriptor);
    return ESTALE;
}

static int child_file_write(void *context, const void *data, size_t size)
{
    struct child_file *file = context;
    int reason = file->descriptor < 0 ? child_file_reopen(file) : 0;
    if (reason != 0)
        return reason;
    reason = file->output.write(file->output.context, data, size);
    if (trace_descriptor_may_stay(file->descriptor, DESCRIPTORS_OF_FILES))
        return reason;
    int closing = child_file_release(file);
    return reason != 0 ? reason : closing;
}

static int child_file_close(void *context)
{
    struct child_file *file = context;
    int reason = file->descriptor >= 0 ? child_file_release(file) : 0;
    free(file);
    return reason;
}

static int child_file_make(const char *path, struct child_file *file)
{
    struct stat status;
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int descriptor = open(path, flags, S_IRUSR | S_IWUSR);
    if (descriptor < 0)
        return errno;
    int reason = fstat(descriptor, &status) != 0 ? errno : child_file_use(file, descriptor);
    file->device = status.st_dev;
    file->inode = status.st_ino;
    if (reason != 0)
        unlink(path);
    return reason;
}

/*
 * Creates a file as ttd_output_file() does. `*place` is its path whenever the output is written to:
 * it may be renamed.
 */
static enum ttd_status child_file_create(const char *path, char *const *place,
                                         struct ttd_output *output, struct ttd_error *error)
{
    struct child_file *file = calloc(1, sizeof *file);
    int reason = file ? child_file_make(path, file) : ENOMEM;
    if (reason != 0) {
        free(file);
        *error = (struct ttd_error){TTD_ERROR_IO, reason, TTD_NOWHERE, TTD_NOWHERE, "create"};
        return TTD_ERROR_IO;
    }
    file->place = place;
    *output = (struct ttd_output){file, child_file_write, child_file_close};
    return TTD_OK;
}

/* Replaces an existing file, not its content: a program that has the old one open keeps it. */
static enum ttd_status file_open_output(struct trace *trace, struct ttd_output *output,
                                        struct ttd_error *error)
{
    struct output_path destination;
    int reason = output_path_resolve(trace->path, &destination);
    if (reason == 0 && destination.path && destination.exists && unlink(destination.path) != 0) {
        reason = errno;
        output_path_free(&destination);
    }
    if (reason != 0) {
        *error = (struct ttd_error){TTD_ERROR_IO, reason, TTD_NOWHERE, TTD_NOWHERE,
                                    "cannot write to it"};
        return TTD_ERROR_IO;
    }
    if (!destination.path)
        return ttd_output_descriptor(destination.descriptor, 1, NULL, output);
    enum ttd_status result = ttd_output_file(destination.path, NULL, output, error);
    trace->created = result == TTD_OK ? destination.path : NULL;
    if (result != TTD_OK)
        output_path_free(&destination);
    return result;
}

static enum ttd_status file_open_child_output(struct trace *trace, struct ttd_output *output,
                                              struct ttd_error *error)
{
    struct stat existing;
    if (lstat(trace->path, &existing) == 0 &&
        (S_ISREG(existing.st_mode) || S_ISLNK(existing.st_mode)))
        unlink(trace->path);
    enum ttd_status result = child_file_create(trace->path, &trace->path, output, error);
    trace->created = result == TTD_OK ? strdup(trace->path) : NULL;
    return result;
}

typedef enum ttd_status output_function(struct trace *trace, struct ttd_output *output,
                                        struct ttd_error *error);

static struct trace *file_open_with(output_function *function, const char *path,
                                    const struct ttd_trace *info, struct ttd_error *error)
{
    struct ttd_output output;
    struct trace *trace = calloc(1, sizeof *trace);
    *error = (struct ttd_error){TTD_ERROR_NO_MEMORY, 0, TTD_NOWHERE, TTD_NOWHERE, "no memory"};
    if (!trace)
        return NULL;
    trace->info = *info;
    trace->path = strdup(path);
    if (!trace->path || !stacks_init(&trace->stacks) || !modules_init(&trace->modules) ||
        function(trace, &output, error) != TTD_OK)
        goto failed;
    trace->gathered = gathered_put_before(&output);
    if (!trace->gathered) {
        output.close(output.context);
        goto failed;
    }
    if (ttd_writer_open(&output, info, NULL, NULL, &trace->writer, error) != TTD_OK)
        goto failed;
    /* If the recorder is killed, there is a trace, and not an empty file. */
    trace_flush(trace);
    *error = trace->error;
    if (trace->writer)
        return trace;
failed:
    trace_discard(trace);
    return NULL;
}

struct trace *trace_open(const char *path, const struct ttd_trace *info, struct ttd_error *error)
{
    return file_open_with(file_open_output, path, info, error);
}

struct trace *trace_open_child(const char *path, const struct ttd_trace *info,
                               struct ttd_error *error)
{
    return file_open_with(file_open_child_output, path, info, error);
}

void trace_rename(struct trace *trace, const char *path)
{
    char *renamed = strdup(path), *created = strdup(path);
    if (!renamed || !created || !trace->created ||
        renameat2(AT_FDCWD, trace->created, AT_FDCWD, path, RENAME_NOREPLACE) != 0) {
        free(renamed);
        free(created);
        return;
    }
    free(trace->path);
    free(trace->created);
    trace->path = renamed;
    trace->created = created;
}

/* Writes the name of the file that is to take the place of the trace's. False if it is too long. */
static bool file_name_shorter(const struct trace *trace, char path[PATH_MAX])
{
    int length = snprintf(path, PATH_MAX, "%s.keep", trace->created);
    return length >= 0 && length < PATH_MAX;
}

void trace_remove_left(const struct trace *trace)
{
    char path[PATH_MAX];
    struct stat existing;
    if (file_name_shorter(trace, path) && lstat(path, &existing) == 0 && S_ISREG(existing.st_mode))
        unlink(path);
}

/* Opens the file written so far, and a new file beside it. */
static bool file_open_shorter(struct trace *trace, const char *path, struct ttd_input *input,
                              struct ttd_output *output, struct ttd_error *error)
{
    trace_remove_left(trace);
    if (ttd_input_file(trace->created, NULL, input, error) != TTD_OK)
        return false;
    if (child_file_create(path, &trace->created, output, error) == TTD_OK)
        return true;
    input->close(input->context);
    return false;
}

bool trace_shorten(struct trace *trace, struct ttd_cut *cut, uint64_t *left_out,
                   struct ttd_error *error)
{
    char path[PATH_MAX];
    struct ttd_input input;
    struct ttd_output output;
    *error = (struct ttd_error){TTD_ERROR_IO, ENAMETOOLONG, TTD_NOWHERE, TTD_NOWHERE, "create"};
    if (!file_name_shorter(trace, path) ||
        !file_open_shorter(trace, path, &input, &output, error)) {
        ttd_cut_close(cut);
        return false;
    }
    struct gathered *gathered = gathered_put_before(&output);
    enum ttd_status status = TTD_ERROR_NO_MEMORY;
    if (gathered) {
        status = ttd_cut_apply(cut, &input, &output, TTD_LOSS_LIMIT, left_out, error);
    } else {
        output.close(output.context);
        ttd_cut_close(cut);
    }
    input.close(input.context);
    if (status == TTD_OK) {
        trace->gathered = gathered;
        int reason = gathered_flush(gathered);
        if (reason == 0 && rename(path, trace->created) == 0)
            return true;
        *error = (struct ttd_error){TTD_ERROR_IO, reason != 0 ? reason : errno, TTD_NOWHERE,
                                    TTD_NOWHERE, "write"};
        trace_fail(trace, error);
    }
    unlink(path);
    return false;
}

struct trace *trace_none(const char *path, const struct ttd_trace *info,
                         const struct ttd_error *error)
{
    struct trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return NULL;
    trace->info = *info;
    trace->error = *error;
    trace->path = strdup(path);
    if (trace->path && stacks_init(&trace->stacks) && modules_init(&trace->modules))
        return trace;
    trace_free(trace);
    return NULL;
}

void trace_discard(struct trace *trace)
{
    ttd_writer_close(trace->writer, NULL, NULL);
    if (trace->created)
        unlink(trace->created);
    trace_free(trace);
}

void trace_free(struct trace *trace)
{
    heap_pages_free(&trace->pages);
    page_store_free(trace->store);
    stacks_free(&trace->stacks);
    modules_free(&trace->modules);
    variables_free(&trace->variables);
    ttd_names_close(trace->names);
    ring_free(trace->ring);
    kept_free(trace->kept);
    live_sizes_free(trace->sizes);
    free(trace->created);
    free(trace->path);
    free(trace);
}

void trace_abandon(struct trace *trace)
{
    ttd_writer_close(trace->writer, NULL, NULL);
    trace_free(trace);
}

/* Removes children's traces that an earlier recording left beside the trace being replaced. */

/* Returns whether the file is a trace of a group, and sets `old` to its description. Called before
 * it is replaced. */
static bool trace_group_stale_look(const char *path, struct ttd_trace *old)
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
static uint64_t trace_group_named_process(const char *name, const char *base)
{
    size_t size = strlen(base);
    char *end;
    if (strncmp(name, base, size) != 0 || name[size] != '.' || name[size + 1] < '1' ||
        name[size + 1] > '9')
        return 0;
    unsigned long long process = strtoull(name + size + 1, &end, 10);
    return *end == '\0' || *end == '.' || *end == '-' ? process : 0;
}

static bool trace_group_is_stale(const char *path, uint64_t process, const struct ttd_trace *old)
{
    struct stat status;
    struct ttd_trace trace;
    return process != 0 && lstat(path, &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_uid == geteuid() && trace_group_stale_look(path, &trace) &&
           memcmp(&trace.group, &old->group, sizeof trace.group) == 0 &&
           trace.process_id == process && trace.trace_id != old->trace_id;
}

/*
 * Removes the traces, and their indexes, of the child processes of that recording. A file is
 * removed only if it is a regular file of this user beside `path`, its name is `path` followed by a
 * process id, and it is a trace of that process and of the same group.
 */
static void trace_group_stale_remove(const char *path, const struct ttd_trace *old)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    int size = (int)(base - path);
    char sibling[2 * PATH_MAX];
    snprintf(sibling, sizeof sibling, "%.*s", size, path);
    DIR *directory = opendir(size > 0 ? sibling : ".");
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        uint64_t process = trace_group_named_process(entry->d_name, base);
        int length = snprintf(sibling, sizeof sibling, "%.*s%s", size, path, entry->d_name);
        if (length > 0 && (size_t)length < sizeof sibling &&
            trace_group_is_stale(sibling, process, old))
            unlink(sibling);
    }
    if (directory)
        closedir(directory);
}

static void trace_group_fill_random(void *bytes, size_t size)
{
    if (getrandom(bytes, size, 0) != (ssize_t)size)
        message("no random numbers: ids of traces may not be unique");
}

void group_init(struct group *group, const char *output, const struct ttd_group *id)
{
    static const struct ttd_group none;
    *group = (struct group){.output = output, .id = *id};
    if (memcmp(id, &none, sizeof none) == 0)
        trace_group_fill_random(&group->id, sizeof group->id);
}

void group_free(struct group *group)
{
    free(group->pids);
}

static struct ttd_trace trace_group_new_info(const struct group *group, const struct host *host)
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
        trace_group_fill_random(&info.trace_id, sizeof info.trace_id);
    return info;
}

struct trace *group_open(struct group *group, const struct host *host, pid_t launched,
                         struct ttd_error *error)
{
    struct ttd_trace info = trace_group_new_info(group, host);
    info.process_id = (uint64_t)launched;
    info.parent_process_id = group->parent;
    info.flags = group->had_run ? TTD_TRACE_ATTACHED : 0;
    struct ttd_trace old;
    bool is_replaced = trace_group_stale_look(group->output, &old);
    struct trace *trace = trace_open(group->output, &info, error);
    group->is_file = trace && trace->created;
    if (group->is_file && is_replaced)
        trace_group_stale_remove(group->output, &old);
    return trace;
}

/* Returns how many children had this process id before: the system uses ids again. */
static unsigned trace_group_count_namesakes(struct group *group, uint32_t pid)
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
static void trace_group_name_child_file(struct group *group, uint32_t pid, char *path, size_t size)
{
    unsigned namesakes = trace_group_count_namesakes(group, pid);
    int length = snprintf(path, size, "%s.%u", group->output, pid);
    if (namesakes > 0 && length > 0 && (size_t)length < size)
        snprintf(path + length, size - (size_t)length, "-%u", namesakes + 1);
}

enum { PROGRAM_MAX = 32 };

/*
 * Derives a file name from the program in a slot: the part of its first argument after the last
 * slash, with unusual characters replaced, since the program may have set it to anything.
 */
static void trace_group_find_program(const struct process_slot *slot, char name[PROGRAM_MAX + 1])
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
static bool trace_group_add_program(const char *path, size_t stem, const struct process_slot *slot,
                                    char named[2 * PATH_MAX])
{
    char program[PROGRAM_MAX + 1];
    trace_group_find_program(slot, program);
    int length = snprintf(named, 2 * PATH_MAX, "%.*s.%s", (int)stem, path, program);
    return program[0] != '\0' && length > 0 && length < PATH_MAX;
}

void group_name_child(const struct process_slot *slot, struct trace *trace)
{
    char named[2 * PATH_MAX];
    if (trace->stem != 0 && trace_group_add_program(trace->path, trace->stem, slot, named) &&
        strcmp(named, trace->path) != 0)
        trace_rename(trace, named);
}

/* Makes a position of numbers from the program. Invalid numbers make an unknown position. */
static struct ttd_position trace_group_told_position(uint64_t sequence, uint64_t steps)
{
    struct ttd_position position = {sequence, steps};
    return ttd_position_is_valid(position) ? position : ttd_position_invalid();
}

struct trace *group_open_child(struct group *group, const struct host *host,
                               const struct process_slot *slot, const struct trace *parent)
{
    char path[2 * PATH_MAX];
    struct ttd_error error;
    struct ttd_trace info = trace_group_new_info(group, host);
    info.process_id = slot->pid;
    info.parent_process_id = slot->parent_pid;
    uint64_t elapsed = host_now(host);
    info.start_time += (int64_t)(slot->clock < elapsed ? slot->clock : elapsed);
    info.parent_position = trace_group_told_position(slot->sequence, 0);
    if (parent)
        info.parent_trace_id = parent->info.trace_id;
    if (slot->flags & PROCESS_FORKED) {
        info.flags |= TTD_TRACE_INHERITS;
        info.parent_position = trace_group_told_position(slot->parent_sequence, slot->parent_steps);
    }
    trace_group_name_child_file(group, slot->pid, path, sizeof path);
    if (!group->is_file) {
        error = (struct ttd_error){TTD_ERROR_IO, ENOTDIR, TTD_NOWHERE, TTD_NOWHERE,
                                   "no place for the trace of a child process"};
        return trace_none(path, &info, &error);
    }
    char named[2 * PATH_MAX];
    size_t stem = strlen(path);
    bool has_name = trace_group_add_program(path, stem, slot, named);
    struct trace *trace = trace_open_child(has_name ? named : path, &info, &error);
    if (!trace)
        return trace_none(path, &info, &error);
    trace->stem = stem;
    return trace;
}
