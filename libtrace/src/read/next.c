/* SPDX-License-Identifier: MIT */
/* Going from chunk to chunk. */
#include "read/internal.h"

/** Finds the next chunk, and says what was passed over on the way. */
static enum ttd_status next_find_chunk(struct ttd_reader *reader, struct ttd_header *header,
                                       struct ttd_error *error)
{
    uint64_t offset = reader->offset;
    uint64_t number = reader->next_number;
    enum ttd_status status = ttd_reader_find(reader, reader->options.kinds, header, error);
    bool is_found = status == TTD_OK;
    if (is_found)
        reader->next_number = header->number;
    if (reader->checks && reader->passed.what) {
        uint64_t end = is_found ? header->offset : reader->source.size;
        uint64_t missing = reader->has_ended ? 0 : TTD_UNKNOWN;
        ttd_check_damage(reader, &reader->passed, end > offset ? end - offset : 0,
                         is_found ? header->number - number : missing);
    }
    return status;
}

/** No further chunk was found. */
static enum ttd_status next_at_end(struct ttd_reader *reader, enum ttd_status status,
                                   const struct ttd_error *detail, struct ttd_batch *batch,
                                   struct ttd_error *error)
{
    bool is_over = status == TTD_END || status == TTD_ERROR_TRUNCATED || status == TTD_ERROR_LIMIT;
    if (status == TTD_ERROR_UNSUPPORTED)
        return ttd_reader_end_unsupported(reader, detail, batch, error);
    if (is_over && reader->gap.pending) {
        ttd_reader_synthesize_loss(reader, NULL,
                                   reader->has_ended ? reader->next_event : TTD_UNKNOWN, batch);
        return TTD_OK;
    }
    if (is_over && reader->checks)
        ttd_check_end(reader, status, detail);
    if (status != TTD_END && error)
        *error = *detail;
    return status;
}

enum ttd_status ttd_reader_next(struct ttd_reader *reader, struct ttd_batch *batch,
                                struct ttd_error *error)
{
    if (reader->failed) {
        if (reader->checks)
            ttd_check_end(reader, reader->error.status, &reader->error);
        return ttd_reader_stop(reader, &reader->error, error);
    }
    batch->synthetic = false;
    for (;;) {
        struct ttd_header header;
        struct ttd_error detail = {.what = ""};
        enum ttd_status status;
        if (reader->records_left != 0)
            status = ttd_reader_go_on(reader, batch, error);
        else if ((status = next_find_chunk(reader, &header, &detail)) != TTD_OK)
            return next_at_end(reader, status, &detail, batch, error);
        else
            status = ttd_reader_enter(reader, &header, batch, error);
        if (reader->checks && reader->check.status != TTD_OK)
            return reader->check.status;
        if (status != TTD_END)
            return status;
    }
}

enum ttd_status ttd_reader_next_chunk(struct ttd_reader *reader, struct ttd_chunk *chunk,
                                      struct ttd_error *error)
{
    if (reader->failed)
        return ttd_reader_stop(reader, &reader->error, error);
    reader->checks = false; /* not without payloads */
    if (reader->records_left != 0 && reader->header.kind == TTD_KIND_EVENTS)
        ttd_reader_pass(reader, &reader->header, true);
    reader->records_left = 0;
    struct ttd_header header;
    struct ttd_error detail = {.what = ""};
    enum ttd_status status = ttd_reader_find(reader, 0, &header, &detail);
    if (status == TTD_ERROR_UNSUPPORTED)
        return ttd_reader_stop(reader, &detail, error);
    if (status != TTD_OK) {
        if (status != TTD_END && error)
            *error = detail;
        return status;
    }
    if (header.kind == TTD_KIND_EVENTS)
        reader->gap.pending = false;
    ttd_reader_pass(reader, &header, true);
    *chunk = ttd_chunk_of(&header);
    return TTD_OK;
}
