/* SPDX-License-Identifier: MIT */
#include "cli/page/page_exact.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ttdtrace/redact.h>
#include <ttdtrace/verify.h>

#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/traces/input.h"

/* The bytes of a trace. */
struct bytes {
    uint8_t *data;
    size_t size;
};

bool page_has_engine(void)
{
    return page_engine.size;
}

/* Reads as much of the file as there was when it was opened: a recording may go on. */
static enum ttd_status read_input(const struct session *session, struct bytes *trace,
                                  struct ttd_error *error)
{
    struct ttd_input input;
    enum ttd_status status = input_open(session->source.path, &input, error);
    if (status != TTD_OK)
        return status;
    trace->size = (size_t)session->source.size;
    trace->data = malloc(trace->size + 1);
    size_t read_size = 0;
    int reason = ENOMEM;
    if (trace->data)
        reason = input.read_at(input.context, 0, trace->data, trace->size, &read_size);
    if (input.close)
        input.close(input.context);
    if (!reason && read_size == trace->size)
        return TTD_OK;
    *error =
        (struct ttd_error){TTD_ERROR_IO, reason ? reason : EIO, TTD_NOWHERE, TTD_NOWHERE, "read"};
    return TTD_ERROR_IO;
}

/* Copies a trace from memory to memory: its intact parts, or all but contents. */
typedef enum ttd_status copy_function(const struct ttd_input *input,
                                      const struct ttd_output *output, bool *is_changed,
                                      struct ttd_error *error);

static enum ttd_status recover(const struct ttd_input *input, const struct ttd_output *output,
                               bool *is_changed, struct ttd_error *error)
{
    struct ttd_verdict verdict;
    *is_changed = true;
    return ttd_recover(input, output, NULL, NULL, &verdict, error);
}

static enum ttd_status redact(const struct ttd_input *input, const struct ttd_output *output,
                              bool *is_changed, struct ttd_error *error)
{
    static const struct ttd_redaction nothing;
    struct ttd_redaction removed = nothing;
    enum ttd_status status = ttd_redact(input, output, NULL, 0, &removed, error);
    *is_changed = memcmp(&removed, &nothing, sizeof removed) != 0;
    return status;
}

/* Replaces a trace by a copy, if that differs. */
static enum ttd_status replace(struct bytes *trace, copy_function *copy, struct ttd_error *error)
{
    struct ttd_memory_output memory;
    struct ttd_output output;
    struct ttd_input input;
    bool is_changed = false;
    enum ttd_status status = ttd_output_memory(&memory, NULL, &output);
    if (status == TTD_OK)
        status = ttd_input_memory(trace->data, trace->size, NULL, &input);
    if (status == TTD_OK)
        status = copy(&input, &output, &is_changed, error);
    if (status == TTD_OK && is_changed) {
        uint8_t *data = malloc(memory.size + 1);
        status = data ? TTD_OK : TTD_ERROR_NO_MEMORY;
        if (data) {
            memcpy(data, memory.data, memory.size);
            free(trace->data);
            *trace = (struct bytes){data, memory.size};
        }
    }
    ttd_memory_output_free(&memory);
    return status;
}

static enum ttd_status remove_contents(struct bytes *trace, struct ttd_error *error)
{
    enum ttd_status status = replace(trace, redact, error);
    if (exit_for(status) != STATUS_DAMAGED)
        return status;
    status = replace(trace, recover, error);
    return status == TTD_OK ? replace(trace, redact, error) : status;
}

static int page_exact_fail(const struct session *session, enum ttd_status status,
                           const struct ttd_error *error)
{
    return input_fail(session->source.path, status, error);
}

int page_trace_read(struct session *session, bool has_contents, struct page_packed *trace)
{
    struct ttd_error error = {.offset = TTD_NOWHERE, .chunk = TTD_NOWHERE, .what = ""};
    struct bytes bytes = {NULL, 0};
    if (session->source.size > SIZE_MAX / 2 || !page_fits((size_t)session->source.size)) {
        message("the trace is too large for an exact page: leave out --exact");
        return STATUS_USAGE;
    }
    enum ttd_status status = read_input(session, &bytes, &error);
    if (status == TTD_OK && !has_contents)
        status = remove_contents(&bytes, &error);
    if (status == TTD_OK && !page_pack(bytes.data, bytes.size, 0, trace))
        status = TTD_ERROR_NO_MEMORY;
    free(bytes.data);
    return status == TTD_OK ? STATUS_OK : page_exact_fail(session, status, &error);
}

bool page_pack_engine(struct page_packed *engine)
{
    return page_pack(page_engine.data, page_engine.size, 0, engine);
}
