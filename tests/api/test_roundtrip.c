/* SPDX-License-Identifier: MIT */
/* A reader finds what a writer was given: random streams, and every action by hand. */
#include "api/fixture.h"

#include <ttdtrace/advanced.h>

static const enum ttd_codec codecs[] = {TTD_CODEC_RAW, TTD_CODEC_LZ4, TTD_CODEC_LZ4};
static const int levels[] = {0, 0, 9};

static void check_seed(uint64_t seed, enum model_style style, size_t steps,
                       uint32_t events_per_chunk)
{
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        struct ttd_writer_options options = fixture_options(codecs[i], levels[i], events_per_chunk);
        struct model m;
        struct ttd_memory_output memory;
        struct entropy from = {.state = seed};
        fixture_write_model(&m, from, style, &options, steps, &memory);
        fixture_check_model(&m, &memory);
        ttd_memory_output_free(&memory);
        model_free(&m);
    }
}

Test(roundtrip, anything_in_small_chunks)
{
    for (uint64_t seed = 0; seed < 60; seed++)
        check_seed(seed, MODEL_ANYTHING, 300, 1 + (uint32_t)(seed % 7));
}

Test(roundtrip, anything_in_large_chunks)
{
    for (uint64_t seed = 100; seed < 104; seed++)
        check_seed(seed, MODEL_ANYTHING, 20000, 65536);
}

Test(roundtrip, program_in_small_chunks)
{
    for (uint64_t seed = 200; seed < 230; seed++)
        check_seed(seed, MODEL_REALISTIC, 500, 1 + (uint32_t)(seed % 64));
}

Test(roundtrip, program_in_large_chunks)
{
    for (uint64_t seed = 300; seed < 302; seed++)
        check_seed(seed, MODEL_REALISTIC, 80000, 65536);
}

Test(roundtrip, loop_in_small_chunks)
{
    for (uint64_t seed = 400; seed < 430; seed++)
        check_seed(seed, MODEL_LOOP, 500, 1 + (uint32_t)(seed % 64));
}

Test(roundtrip, loop_in_large_chunks)
{
    for (uint64_t seed = 500; seed < 502; seed++)
        check_seed(seed, MODEL_LOOP, 80000, 65536);
}
