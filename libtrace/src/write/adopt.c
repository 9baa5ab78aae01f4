/* SPDX-License-Identifier: MIT */
#include "write/adopt.h"

#include "base/memory.h"
#include "write/write_internal.h"

enum ttd_status ttd_writer_begin_names(const struct ttd_written *written,
                                       const struct ttd_allocator *allocator,
                                       struct ttd_writer **writer)
{
    struct ttd_writer *result = ttd_allocate_zeroed(allocator, sizeof *result);
    if (!result)
        return TTD_ERROR_NO_MEMORY;
    result->allocator = *allocator;
    result->options = ttd_writer_options_default();
    result->adds_names = true;
    ttd_writer_init_buffers(result, 1);
    result->emitter = *written->emitter;
    result->position = result->emitter.position;
    result->strings = written->strings;
    result->modules = written->modules;
    result->records[TTD_KIND_STRINGS].next_record = (uint64_t)written->strings + 1;
    result->records[TTD_KIND_SYMBOLS].next_record = written->symbols;
    result->records[TTD_KIND_VARIABLES].next_record = written->variables;
    *writer = result;
    return TTD_OK;
}

enum ttd_status ttd_writer_end_names(struct ttd_writer *writer, const struct ttd_written *written)
{
    enum ttd_status status = ttd_writer_flush(writer);
    struct ttd_error error = writer->error;
    /* A writer that has failed before says so; its first failure is the reason. */
    if (status == TTD_ERROR_MISUSE)
        status = error.status;
    *written->emitter = writer->emitter;
    written->emitter->error = error;
    writer->emitter = (struct ttd_emitter){.allocator = NULL};
    ttd_writer_release(writer);
    return status;
}
