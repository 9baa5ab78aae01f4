/* SPDX-License-Identifier: MIT */
#include "read/walk.h"

#include "base/status.h"

/** Reads to the end, whatever that is. */
static enum ttd_status walk_all(struct ttd_reader *reader, struct ttd_error *error)
{
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && reader->check.status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(reader, &batch, error);
    }
    if (reader->check.status != TTD_OK)
        return reader->check.status;
    /* Damage has been told as a problem on the way; only failures of the reading itself remain. */
    bool is_over = status == TTD_END || status == TTD_ERROR_TRUNCATED ||
                   status == TTD_ERROR_LIMIT || status == TTD_ERROR_UNSUPPORTED;
    return is_over ? TTD_OK : status;
}

enum ttd_status ttd_walk_run(const struct ttd_check *check, const struct ttd_input *input,
                             const struct ttd_allocator *allocator, struct ttd_verdict *verdict,
                             struct ttd_error *error)
{
    struct ttd_reader *reader;
    struct ttd_reader_options options = ttd_reader_options_default();
    /* Damage must not end the walk: what is behind it is checked as well. */
    options.tolerant = true;
    enum ttd_status status = ttd_reader_open(input, &options, allocator, &reader, error);
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
