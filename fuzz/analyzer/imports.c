/* SPDX-License-Identifier: MIT */
/*
 * A text to be imported may contain anything. Each format either makes a trace of it, which is
 * intact and says that it may lack calls, or refuses it with a reason.
 */
#include "../target.h"

#include <stdlib.h>

#include "import/import.h"

/* Whether the first loss of a trace has no end. */
static void check_loss(const struct ttd_memory_output *trace)
{
    struct ttd_reader *reader = target_open(trace->data, trace->size, 0);
    struct ttd_batch batch;
    bool has_loss = false;
    target_require(reader != NULL, "a trace that can be read");
    while (ttd_reader_next(reader, &batch, NULL) == TTD_OK) {
        for (size_t i = 0; batch.kind == TTD_KIND_LOSSES && i < batch.count; i++) {
            const struct ttd_loss *loss = &batch.u.losses[i];
            has_loss |= !ttd_position_is_valid(loss->first_good) && loss->count == TTD_UNKNOWN;
        }
    }
    target_require(has_loss, "a loss without an end");
    ttd_reader_close(reader);
}

static void check_format(const struct import_format *format, const uint8_t *bytes, size_t size)
{
    struct ttd_input input = target_input(bytes, size);
    struct ttd_memory_output trace;
    struct ttd_output output;
    struct import_result result;
    struct ttd_error error = {.status = TTD_OK};
    target_require(ttd_output_memory(&trace, NULL, &output) == TTD_OK, "an output");
    enum ttd_status status = import_trace(format, &input, &output, &result, &error);
    if (status == TTD_OK) {
        target_require(target_is_intact(trace.data, trace.size), "an intact trace");
        check_loss(&trace);
    } else {
        target_require(status == TTD_ERROR_CORRUPT || status == TTD_ERROR_UNSUPPORTED,
                       "a status for bad text");
        target_require(result.reason[0], "a reason");
    }
    ttd_memory_output_free(&trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = target_copy(data, size);
    for (const struct import_format *format = import_formats; format->name; format++)
        check_format(format, bytes, size);
    free(bytes);
    return 0;
}
