/* SPDX-License-Identifier: MIT */
#include "cli/sidecar.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/exit.h"
#include "cli/message.h"

/* A trace of fewer events is replayed in the time that looking for an index is worth. */
#define PAYS_EVENTS 4000000

char *sidecar_path(const char *trace)
{
    size_t size = strlen(trace) + sizeof ".idx";
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s.idx", trace);
    return path;
}

/* ---- Making ---- */

static int fail(source *trace, bool silent, ttd_status status, const ttd_error *error)
{
    progress_end(&trace->progress);
    if (silent)
        return exit_for(status);
    if (status == TTD_ERROR_CORRUPT || status == TTD_ERROR_TRUNCATED)
        message("%s: a damaged trace has no index; 'ttdanalyze recover' saves what is intact",
                trace->path);
    return source_fail(trace, status, error);
}

static int fail_file(const char *path, bool silent)
{
    if (!silent)
        message("%s: %s", path, strerror(errno));
    return STATUS_INTERNAL;
}

/* Writes the whole index; the descriptor is closed. */
static ttd_status write_index(source *trace, int descriptor, heap_index_facts *facts,
                              ttd_error *error)
{
    ttd_output file;
    ttd_writer *writer;
    ttd_trace derived = *ttd_reader_trace(trace->reader);
    derived.flags |= TTD_TRACE_DERIVED;
    if (getrandom(&derived.trace_id, sizeof derived.trace_id, 0) < 0 || !derived.trace_id)
        derived.trace_id = ~ttd_reader_trace(trace->reader)->trace_id | 1;
    ttd_status status = ttd_reader_tie(trace->reader, &derived);
    if (status == TTD_OK)
        status = ttd_output_descriptor(descriptor, 1, NULL, &file);
    if (status != TTD_OK) {
        close(descriptor);
        return status;
    }
    status = ttd_writer_open(&file, &derived, NULL, NULL, &writer, error);
    if (status != TTD_OK)
        return status;
    heap_batch_hook hook = source_hook(trace);
    status = heap_index_write(trace->reader, HEAP_INDEX_SPACING, &hook, writer, facts, error);
    ttd_end end = {.reason = TTD_END_NOT_RECORDED};
    ttd_status closed = ttd_writer_close(writer, status == TTD_OK ? &end : NULL, error);
    return status == TTD_OK ? closed : status;
}

int sidecar_make(source *trace, const char *path, bool silent, heap_index_facts *facts)
{
    ttd_error error = {.what = NULL};
    if (!trace->is_closed)
        return fail(trace, silent, TTD_ERROR_TRUNCATED, &error);
    size_t length = strlen(path) + sizeof ".XXXXXX";
    char *temporary = malloc(length);
    if (!temporary)
        return fail_file(path, silent);
    snprintf(temporary, length, "%s.XXXXXX", path);
    int descriptor = mkstemp(temporary);
    int status = STATUS_OK;
    if (descriptor < 0) {
        status = fail_file(path, silent);
    } else {
        ttd_status written = write_index(trace, descriptor, facts, &error);
        if (written != TTD_OK)
            status = fail(trace, silent, written, &error);
        else if (rename(temporary, path) != 0)
            status = fail_file(path, silent);
        if (status != STATUS_OK)
            unlink(temporary);
    }
    free(temporary);
    return status;
}

/* ---- Using ---- */

/* Whether nobody else put it there than could have changed the trace as well. */
static bool is_ours(const char *path, const char *trace)
{
    struct stat index;
    struct stat owner;
    return stat(path, &index) == 0 && stat(trace, &owner) == 0 &&
           (index.st_uid == owner.st_uid || index.st_uid == geteuid());
}

static bool open_index(source *trace, const char *path)
{
    ttd_input input;
    ttd_reader *sidecar;
    ttd_error error;
    if (!is_ours(path, trace->path) || ttd_input_file(path, NULL, &input, &error) != TTD_OK ||
        ttd_reader_open(&input, NULL, NULL, &sidecar, &error) != TTD_OK)
        return false;
    trace->has_keyframes = heap_keyframes_open(sidecar, trace->reader, &trace->keyframes) == TTD_OK;
    return trace->has_keyframes;
}

const heap_keyframes *sidecar_use(session *work, ttd_position at)
{
    source *trace = &work->trace;
    bool is_end = ttd_position_compare(at, ttd_position_max()) == 0;
    if (!work->options.has_index || !trace->is_closed || is_end)
        return NULL;
    char *path = trace->has_keyframes ? NULL : sidecar_path(trace->path);
    heap_index_facts facts;
    if (path && !open_index(trace, path) && trace->end.events >= PAYS_EVENTS &&
        sidecar_make(trace, path, true, &facts) == STATUS_OK)
        open_index(trace, path);
    free(path);
    return trace->has_keyframes ? &trace->keyframes : NULL;
}
