/* SPDX-License-Identifier: MIT */
/* make_trace SEED FILE: writes a trace of random records. */
#include <stdio.h>
#include <stdlib.h>

#include "support/records/model.h"

#define STEPS 700

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    uint64_t seed = strtoull(argv[1], NULL, 0);
    struct ttd_writer_options options = ttd_writer_options_default();
    options.codec = seed % 3 ? TTD_CODEC_LZ4 : TTD_CODEC_RAW;
    options.events_per_chunk = 1 + (uint32_t)seed * 37 % 200;
    struct model m;
    struct ttd_trace trace =
        model_begin(&m, entropy_of_seed(seed), seed % 2 ? MODEL_ANYTHING : MODEL_REALISTIC);
    struct ttd_output output;
    struct ttd_writer *writer = NULL;
    enum ttd_status status = ttd_output_file(argv[2], NULL, &output, NULL);
    if (status == TTD_OK)
        status = ttd_writer_open(&output, &trace, &options, NULL, &writer, NULL);
    for (int i = 0; i < STEPS && status == TTD_OK; i++)
        status = model_step(&m, writer);
    if (status == TTD_OK)
        status =
            ttd_writer_close(writer, &(struct ttd_end){.reason = TTD_END_REASON_DETACHED}, NULL);
    model_free(&m);
    return status == TTD_OK ? 0 : 1;
}
