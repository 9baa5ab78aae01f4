/* SPDX-License-Identifier: MIT */
/* The file of a trace: opens, renames, removes and releases it. */
#include "collect/trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/trace/child_file.h"
#include "common/output_path.h"

/* Replaces an existing file, not its content: a program that has the old one open keeps it. */
static enum ttd_status open_output(struct trace *trace, struct ttd_output *output,
                                   struct ttd_error *error)
{
    struct output_path destination;
    int reason = output_path_resolve(trace->path, &destination);
    if (reason == 0 && destination.path != NULL && destination.exists &&
        unlink(destination.path) != 0) {
        reason = errno;
        output_path_free(&destination);
    }
    if (reason != 0) {
        *error = (struct ttd_error){TTD_ERROR_IO, reason, TTD_NOWHERE, TTD_NOWHERE,
                                    "cannot write to it"};
        return TTD_ERROR_IO;
    }
    if (destination.path == NULL)
        return ttd_output_descriptor(destination.descriptor, 1, NULL, output);
    enum ttd_status result = ttd_output_file(destination.path, NULL, output, error);
    trace->created = result == TTD_OK ? destination.path : NULL;
    if (result != TTD_OK)
        output_path_free(&destination);
    return result;
}

static enum ttd_status open_child_output(struct trace *trace, struct ttd_output *output,
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

static struct trace *open_with(output_function *function, const char *path,
                               const struct ttd_trace *info, struct ttd_error *error)
{
    struct ttd_output output;
    struct trace *trace = calloc(1, sizeof *trace);
    *error = (struct ttd_error){TTD_ERROR_NO_MEMORY, 0, TTD_NOWHERE, TTD_NOWHERE, "no memory"};
    if (trace == NULL)
        return NULL;
    trace->info = *info;
    trace->path = strdup(path);
    if (trace->path == NULL || !stacks_init(&trace->stacks) || !modules_init(&trace->modules) ||
        function(trace, &output, error) != TTD_OK)
        goto failed;
    trace->gathered = gathered_put_before(&output);
    if (trace->gathered == NULL) {
        output.close(output.context);
        goto failed;
    }
    if (ttd_writer_open(&output, info, NULL, NULL, &trace->writer, error) != TTD_OK)
        goto failed;
    /* If the recorder is killed, there is a trace, and not an empty file. */
    trace_flush(trace);
    *error = trace->error;
    if (trace->writer != NULL)
        return trace;
failed:
    trace_discard(trace);
    return NULL;
}

struct trace *trace_open(const char *path, const struct ttd_trace *info, struct ttd_error *error)
{
    return open_with(open_output, path, info, error);
}

struct trace *trace_open_child(const char *path, const struct ttd_trace *info,
                               struct ttd_error *error)
{
    return open_with(open_child_output, path, info, error);
}

void trace_rename(struct trace *trace, const char *path)
{
    char *renamed = strdup(path), *created = strdup(path);
    if (renamed == NULL || created == NULL || trace->created == NULL ||
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

struct trace *trace_none(const char *path, const struct ttd_trace *info,
                         const struct ttd_error *error)
{
    struct trace *trace = calloc(1, sizeof *trace);
    if (trace == NULL)
        return NULL;
    trace->info = *info;
    trace->error = *error;
    trace->path = strdup(path);
    if (trace->path != NULL && stacks_init(&trace->stacks) && modules_init(&trace->modules))
        return trace;
    trace_free(trace);
    return NULL;
}

void trace_discard(struct trace *trace)
{
    ttd_writer_close(trace->writer, NULL, NULL);
    if (trace->created != NULL)
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
    free(trace->created);
    free(trace->path);
    free(trace);
}

void trace_abandon(struct trace *trace)
{
    ttd_writer_close(trace->writer, NULL, NULL);
    trace_free(trace);
}
