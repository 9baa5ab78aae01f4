/* SPDX-License-Identifier: MIT */
/* Counts, in a trace, the pages that `restless` has filled, those that are not as it wrote them,
 * and the snapshots that were taken without stopping its threads. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <ttdtrace/ttdtrace.h>

enum { PAGE = 4096, WORDS = PAGE / 8 };

static const uint64_t mark = UINT64_C(0x7265737453654c46);

static int is_right(const uint64_t *page)
{
    uint64_t sum = 0;
    for (int i = 0; i < WORDS - 1; i++)
        sum += page[i];
    return page[WORDS - 1] == sum;
}

int main(int argc, char **argv)
{
    uint64_t filled = 0, wrong = 0, unstopped = 0, snapshots = 0, maps = 0;
    struct ttd_input input;
    struct ttd_reader *reader;
    struct ttd_batch batch;
    struct ttd_error error;
    enum ttd_status status;
    if (argc != 2 || ttd_input_file(argv[1], NULL, &input, &error) != TTD_OK ||
        ttd_reader_open(&input, NULL, NULL, &reader, &error) != TTD_OK)
        return 1;
    while ((status = ttd_reader_next(reader, &batch, &error)) == TTD_OK) {
        for (size_t i = 0; batch.kind == TTD_KIND_SNAPSHOTS && i < batch.count; i++, snapshots++)
            unstopped += !(batch.u.snapshots[i].flags & TTD_SNAPSHOT_STOPPED);
        maps += batch.kind == TTD_KIND_MEMORY_MAP && batch.u.memory_map->last;
        for (uint32_t i = 0; batch.kind == TTD_KIND_PAGES && i < batch.u.pages->count; i++) {
            uint64_t page[WORDS];
            memcpy(page, batch.u.pages->data + (size_t)i * PAGE, sizeof page);
            filled += page[0] == mark;
            wrong += page[0] == mark && !is_right(page);
        }
    }
    printf("{\"snapshots\": %" PRIu64 ", \"maps\": %" PRIu64 ", \"unstopped\": %" PRIu64
           ", \"filled\": %" PRIu64 ", \"wrong\": %" PRIu64 "}\n",
           snapshots, maps, unstopped, filled, wrong);
    return status != TTD_END;
}
