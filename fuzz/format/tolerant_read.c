/* SPDX-License-Identifier: MIT */
/* A tolerant reader finds at least the records that a strict reader finds, and in an intact file
 * the same. Stacks looked up by id are the same as in sequential reading. */
#include "../target.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = target_copy(data, size);
    struct target_digest strict = {0};
    struct target_digest tolerant = {0};
    struct ttd_reader *reader = target_open(bytes, size, 0);
    enum ttd_status status = reader ? target_read(reader, &strict) : TTD_ERROR_CORRUPT;
    ttd_reader_close(reader);
    reader = target_open(bytes, size, 1);
    target_require(reader || status != TTD_END, "tolerant opens what strict reads");
    if (reader) {
        enum ttd_status end = target_read(reader, &tolerant);
        target_require(end != TTD_ERROR_CORRUPT, "tolerant reading passes over damage");
        target_require(tolerant.records >= strict.records, "tolerant reading finds no less");
        if (status == TTD_END)
            target_require(end == TTD_END && tolerant.hash == strict.hash,
                           "tolerant reading of a good file is like strict reading");
        ttd_reader_close(reader);
    }
    target_check_stacks(bytes, size);
    free(bytes);
    return 0;
}
