/* SPDX-License-Identifier: MIT */
/* A recovered trace is intact and has the events that a tolerant reader finds. */
#include "../target.h"

#include <stdio.h>
#include <stdlib.h>

static bool report(void *context, const struct ttd_problem *problem)
{
    (void)context;
    fprintf(stderr, "problem: %s\n", problem->error.what);
    return true;
}

static void check(const uint8_t *bytes, size_t size, const struct ttd_memory_output *recovered,
                  uint64_t events)
{
    struct target_digest before = {0};
    struct target_digest after = {0};
    struct ttd_reader *reader = target_open(recovered->data, recovered->size, 0);
    target_require(reader && target_read(reader, &after) == TTD_END, "recovered can be read");
    ttd_reader_close(reader);
    target_require(after.events == events, "recovered events are those that were intact");
    reader = target_open(bytes, size, 1);
    target_require(reader != NULL, "what was recovered can be opened");
    enum ttd_status status = target_read(reader, &before);
    ttd_reader_close(reader);
    if (status == TTD_END || status == TTD_ERROR_TRUNCATED)
        target_require(after.events < before.events || (before.events == after.events &&
                                                        before.events_hash == after.events_hash),
                       "recovered events are those that can be read");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = target_copy(data, size);
    struct ttd_input input = target_input(bytes, size);
    struct ttd_memory_output recovered;
    struct ttd_output output;
    struct ttd_verdict verdict;
    target_require(ttd_output_memory(&recovered, NULL, &output) == TTD_OK, "output of memory");
    if (ttd_recover(&input, &output, &target_allocator, NULL, &verdict, NULL) == TTD_OK) {
        uint64_t events = verdict.events;
        input = target_input(recovered.data, recovered.size);
        enum ttd_status status =
            ttd_verify(&input, NULL, &(struct ttd_problem_observer){report, NULL}, &verdict, NULL);
        target_require(status == TTD_OK && verdict.ok, "recovered is intact");
        check(bytes, size, &recovered, events);
    }
    ttd_memory_output_free(&recovered);
    free(bytes);
    return 0;
}
