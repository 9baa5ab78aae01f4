/* SPDX-License-Identifier: MIT */
#include "read/walk.h"

#include "base/status.h"

/** Reads to the end, whatever that is. */
static ttd_status walk_all(ttd_reader *reader, ttd_error *error)
{
    ttd_status status = TTD_OK;
    while (status == TTD_OK && reader->check.status == TTD_OK) {
        ttd_batch batch;
        status = ttd_reader_next(reader, &batch, error);
    }
    if (reader->check.status != TTD_OK)
        return reader->check.status;
    bool is_over = status == TTD_END || status == TTD_ERROR_TRUNCATED ||
                   status == TTD_ERROR_LIMIT || status == TTD_ERROR_UNSUPPORTED;
    return is_over ? TTD_OK : status;
}

ttd_status ttd_walk_run(const ttd_check *check, const ttd_input *input,
                        const ttd_allocator *allocator, ttd_verdict *verdict, ttd_error *error)
{
    ttd_reader *reader;
    ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = true;
    ttd_status status = ttd_reader_open(input, &options, allocator, &reader, error);
    if (status != TTD_OK)
        return status;
    reader->check = *check;
    status = ttd_reader_rewind_checked(reader, TTD_KINDS_ALL);
    if (status == TTD_OK)
        status = walk_all(reader, error);
    if (status == TTD_OK)
        *verdict = reader->check.verdict;
    ttd_reader_close(reader);
    return status;
}
