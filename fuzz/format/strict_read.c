/* SPDX-License-Identifier: MIT */
/* Reading any bytes ends with a documented status; reading them again ends in the same way. */
#include "../target.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = target_copy(data, size);
    struct ttd_reader *reader = target_open(bytes, size, 0);
    if (reader) {
        struct target_digest first;
        struct target_digest second;
        enum ttd_status status = target_read(reader, &first);
        struct ttd_end end;
        ttd_reader_end(reader, &end);
        ttd_reader_rewind(reader, TTD_KINDS_ALL);
        target_require(target_read(reader, &second) == status && first.hash == second.hash &&
                           first.records == second.records,
                       "a second reading is like the first");
        ttd_reader_rewind(reader, 0);
        struct ttd_chunk chunk;
        while (ttd_reader_next_chunk(reader, &chunk, NULL) == TTD_OK)
            target_require(chunk.offset < size, "chunks are in the file");
        ttd_reader_close(reader);
    }
    free(bytes);
    return 0;
}
