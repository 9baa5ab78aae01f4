/* SPDX-License-Identifier: MIT */
/* Records read back equal the records written. The input chooses the records. */
#include "../target.h"

#include <stdlib.h>

#include "support/records/model.h"

#define STEPS_MAX 512

static void check(const struct model *m, const struct ttd_memory_output *memory)
{
    struct text_table actual = {0};
    struct ttd_reader *reader = target_open(memory->data, memory->size, 0);
    target_require(reader && model_read(reader, &actual) == TTD_END,
                   "what was written can be read");
    ttd_reader_close(reader);
    target_require(text_table_difference(&m->expected, &actual) == SIZE_MAX,
                   "what was read is what was written");
    target_require(target_is_intact(memory->data, memory->size), "what was written is intact");
    text_table_free(&actual);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct ttd_writer_options options = ttd_writer_options_default();
    options.codec = data[0] % 2 ? TTD_CODEC_LZ4 : TTD_CODEC_RAW;
    options.level = data[0] / 2 % 4 * 3;
    options.events_per_chunk = data[1] % 8 ? data[1] : 65536;
    uint8_t *bytes = target_copy(data + 2, size - 2);
    struct model m;
    struct entropy from = {.data = bytes, .size = size - 2};
    enum model_style program = data[0] & 0x40 ? MODEL_LOOP : MODEL_REALISTIC;
    struct ttd_trace trace = model_begin(&m, from, data[0] & 0x80 ? program : MODEL_ANYTHING);
    struct ttd_memory_output memory;
    struct ttd_output output;
    struct ttd_writer *writer;
    target_require(ttd_output_memory(&memory, NULL, &output) == TTD_OK &&
                       ttd_writer_open(&output, &trace, &options, NULL, &writer, NULL) == TTD_OK,
                   "open");
    for (int i = 0; i < STEPS_MAX && m.entropy.size > 0; i++)
        target_require(model_step(&m, writer) == TTD_OK, "a valid record can be written");
    struct ttd_end end = {.reason = TTD_END_REASON_EXITED};
    target_require(ttd_writer_close(writer, &end, NULL) == TTD_OK, "close");
    check(&m, &memory);
    ttd_memory_output_free(&memory);
    model_free(&m);
    free(bytes);
    return 0;
}
