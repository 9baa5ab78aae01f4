/* SPDX-License-Identifier: MIT */
/* Compares an index that exists with its trace. */
#include <stdlib.h>

#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/session/sidecar.h"

/* Readers of one index: see heap_index_check_init(). */
#define READERS 3

static void close_readers(struct ttd_reader *readers[READERS])
{
    for (size_t i = 0; i < READERS; i++)
        ttd_reader_close(readers[i]);
}

static enum ttd_status open_readers(const char *path, struct ttd_reader *readers[READERS],
                                    struct ttd_error *error)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < READERS && status == TTD_OK; i++) {
        struct ttd_input input;
        status = ttd_input_file(path, NULL, &input, error);
        if (status == TTD_OK)
            status = ttd_reader_open(&input, NULL, NULL, &readers[i], error);
    }
    return status;
}

static int sidecar_compare(struct source *source, struct ttd_reader *const readers[READERS],
                           enum sidecar_verdict *verdict, struct ttd_error *difference)
{
    struct heap_index_check check;
    struct heap_trace trace = source_trace(source);
    struct ttd_error error = {.what = NULL};
    enum ttd_status status = heap_index_check_init(&check, readers);
    if (status == TTD_OK)
        status = heap_index_compare(&trace, &check, &error);
    bool differs = check.difference.status != TTD_OK;
    if (status == TTD_ERROR_IO || status == TTD_ERROR_NO_MEMORY || (status != TTD_OK && !differs))
        return source_fail(source, status, &error);
    *verdict = differs ? SIDECAR_DIFFERS : SIDECAR_AGREES;
    *difference = check.difference;
    return STATUS_OK;
}

int sidecar_check(const char *trace, const char *path, enum sidecar_verdict *verdict,
                  struct ttd_error *difference)
{
    struct source source;
    struct ttd_reader *readers[READERS] = {NULL};
    *verdict = SIDECAR_NONE;
    int status = source_open(&source, trace, false);
    if (status != STATUS_OK)
        return status;
    enum ttd_status opened = open_readers(path, readers, difference);
    if (opened == TTD_OK && heap_index_belongs_to(readers[0], source.reader))
        status = sidecar_compare(&source, readers, verdict, difference);
    else
        message("warning: %s: is not used: it is not an index of this trace", path);
    close_readers(readers);
    source_close(&source);
    return status;
}
