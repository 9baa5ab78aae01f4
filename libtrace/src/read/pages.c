/* SPDX-License-Identifier: MIT */
#include <ttdtrace/advanced.h>

#include "base/status.h"
#include "read/internal.h"

enum ttd_status ttd_reader_pages(struct ttd_reader *reader, const struct ttd_chunk *chunk,
                                 struct ttd_pages *pages, struct ttd_error *error)
{
    struct ttd_header header;
    struct ttd_batch batch;
    if (chunk->kind != TTD_KIND_PAGES)
        return ttd_fail(error, TTD_ERROR_ARGUMENT, "kind of a chunk", chunk->offset, chunk->number);
    enum ttd_status status = ttd_reader_rewind(reader, reader->options.kinds);
    if (status == TTD_OK)
        status = ttd_source_header(&reader->source, chunk->offset, &header, error);
    if (status != TTD_OK)
        return status == TTD_END ? ttd_fail(error, TTD_ERROR_TRUNCATED, "a chunk is gone",
                                            chunk->offset, chunk->number)
                                 : status;
    /* The file may have been replaced since the chunk was found. */
    if (header.number != chunk->number || header.kind != TTD_KIND_PAGES)
        return ttd_fail(error, TTD_ERROR_CORRUPT, "a chunk has changed", chunk->offset,
                        chunk->number);
    status = ttd_reader_begin(reader, &header, error);
    if (status == TTD_OK)
        status = ttd_reader_decode(reader, &batch, error);
    /* Nothing of the chunk is left: the reader is at the begin again. */
    reader->records_left = 0;
    if (status == TTD_OK)
        *pages = *batch.u.pages;
    return status;
}
