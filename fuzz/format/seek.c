/* SPDX-License-Identifier: MIT */
/* Seeking in an intact file finds what a search from the start finds; in any other file it ends
 * with a documented status. The last bytes of an input choose the target. */
#include "../target.h"

#include <stdlib.h>
#include <string.h>

#define TARGET_SIZE 24

static bool next_events(struct ttd_reader *reader, struct ttd_batch *batch)
{
    enum ttd_status status;
    do
        status = ttd_reader_next(reader, batch, NULL);
    while (status == TTD_OK && batch->kind != TTD_KIND_EVENTS);
    return status == TTD_OK;
}

/** Returns the number of the first event not before `position`, or UINT64_MAX. */
static uint64_t first_from(struct ttd_reader *reader, struct ttd_position position)
{
    struct ttd_batch batch;
    while (next_events(reader, &batch))
        for (size_t i = 0; i < batch.count; i++)
            if (ttd_position_compare(ttd_event_position(&batch.u.events[i]), position) >= 0)
                return batch.u.events[i].number;
    return UINT64_MAX;
}

static void check_position(struct ttd_reader *reader, struct ttd_position position, bool intact)
{
    uint64_t found = UINT64_MAX;
    if (ttd_reader_seek(reader, position, NULL) == TTD_OK)
        found = first_from(reader, position);
    else
        target_require(!intact, "seeking in an intact file");
    ttd_reader_rewind(reader, TTD_KINDS_ALL);
    if (intact)
        target_require(found == first_from(reader, position), "seeking finds what is there");
}

static void check_event(struct ttd_reader *reader, uint64_t number, uint64_t events, bool intact)
{
    struct ttd_batch batch;
    enum ttd_status status = ttd_reader_seek_event(reader, number, NULL);
    bool found = status == TTD_OK && next_events(reader, &batch);
    if (!intact)
        return;
    target_require(status == TTD_OK, "seeking an event in an intact file");
    target_require(found == (number < events), "seeking finds events that are there");
    if (found)
        target_require(batch.u.events[0].number <= number, "seeking does not go too far");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < TARGET_SIZE)
        return 0;
    uint64_t goal[3];
    memcpy(goal, data + size - TARGET_SIZE, TARGET_SIZE);
    size -= TARGET_SIZE;
    uint8_t *bytes = target_copy(data, size);
    bool intact = target_is_intact(bytes, size);
    for (int tolerant = 0; tolerant < 2; tolerant++) {
        struct ttd_reader *reader = target_open(bytes, size, tolerant);
        if (!reader)
            continue;
        const struct ttd_trace *trace = ttd_reader_trace(reader);
        bool exact = intact && !(trace->flags & TTD_TRACE_RECOVERED);
        struct ttd_end end = {0};
        target_require(ttd_reader_end(reader, &end) == TTD_OK || !intact, "End of an intact file");
        check_position(reader, (struct ttd_position){goal[0] % 64, goal[1] % 64}, intact);
        check_position(reader, (struct ttd_position){goal[0], goal[1]}, intact);
        check_event(reader, goal[2] % (end.events + 2 ? end.events + 2 : 1), end.events, exact);
        check_event(reader, goal[2], end.events, exact);
        ttd_reader_close(reader);
    }
    free(bytes);
    return 0;
}
