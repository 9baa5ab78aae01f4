/* SPDX-License-Identifier: MIT */
/* A trace that verify calls intact can be read to its end, and the verdict's counts are correct. */
#include "../target.h"

#include <stdlib.h>

static bool count(void *context, const struct ttd_problem *problem)
{
    uint64_t *problems = context;
    ++*problems;
    target_require(problem->error.status != TTD_OK && problem->error.what, "detail of a problem");
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = target_copy(data, size);
    struct ttd_input input = target_input(bytes, size);
    struct ttd_verdict verdict;
    uint64_t problems = 0;
    enum ttd_status status =
        ttd_verify(&input, &target_allocator, &(struct ttd_problem_observer){count, &problems},
                   &verdict, NULL);
    if (status == TTD_OK) {
        target_require(verdict.problems == problems, "number of problems");
        target_require(verdict.ok == (problems == 0 && verdict.closed), "verdict");
        target_require(verdict.file_bytes == size, "size of the file");
        target_require(verdict.intact_bytes <= size, "size of the intact chunks");
    }
    if (status == TTD_OK && verdict.ok) {
        target_require(verdict.intact_bytes == size, "an intact file is so as a whole");
        struct target_digest digest = {0};
        struct ttd_reader *reader = target_open(bytes, size, 0);
        target_require(reader && target_read(reader, &digest) == TTD_END,
                       "what is intact can be read");
        target_require(digest.events == verdict.events, "number of events");
        ttd_reader_close(reader);
    }
    free(bytes);
    return 0;
}
