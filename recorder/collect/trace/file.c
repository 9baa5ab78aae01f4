/* SPDX-License-Identifier: MIT */
/* The file of a trace: opens, renames, removes and releases it. */
#include "collect/trace/process_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <ttdtrace/ttdtrace.h>
#include <unistd.h>

#include "collect/trace/live_sizes.h"
#include "collect/trace/ring.h"
#include "collect/trace/trace_modules.h"
#include "common/output_path.h"

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
