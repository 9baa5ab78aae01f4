/* SPDX-License-Identifier: MIT */
#include "travel/gaps.h"

#include <stdlib.h>

#include "base/grow.h"
#include "travel/losses.h"

static bool is_gap(const struct ttd_loss *loss)
{
    return loss->reason == TTD_LOSS_NOT_RECORDING && loss->count != 0 &&
           ttd_position_is_valid(loss->first_good);
}

enum ttd_status heap_gaps_add(struct heap_gaps *gaps, const struct ttd_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_loss *loss = &batch->u.losses[i];
        if (!is_gap(loss))
            continue;
        enum ttd_status status = grow_array((void **)&gaps->items, &gaps->capacity, gaps->count + 1,
                                            sizeof *gaps->items);
        if (status != TTD_OK)
            return status;
        gaps->items[gaps->count++] = (struct heap_gap){loss->last_good, loss->first_good};
        gaps->is_sorted = false;
    }
    return TTD_OK;
}

static enum ttd_status gaps_add_batch(void *context, const struct ttd_batch *batch)
{
    return heap_gaps_add(context, batch);
}

enum ttd_status heap_gaps_read(struct heap_gaps *gaps, struct ttd_reader *reader,
                               struct ttd_error *error)
{
    return heap_losses_read(reader, gaps_add_batch, gaps, error);
}

void heap_gaps_free(struct heap_gaps *gaps)
{
    free(gaps->items);
    *gaps = (struct heap_gaps){.items = NULL};
}

static int gaps_compare(const void *a, const void *b)
{
    const struct heap_gap *x = a;
    const struct heap_gap *y = b;
    return ttd_position_compare(x->begin, y->begin);
}

static void gaps_sort(struct heap_gaps *gaps)
{
    if (gaps->count)
        qsort(gaps->items, gaps->count, sizeof *gaps->items, gaps_compare);
    for (size_t i = 1; i < gaps->count; i++) {
        struct heap_gap *gap = &gaps->items[i];
        if (ttd_position_compare(gap->end, gap[-1].end) < 0)
            gap->end = gap[-1].end;
    }
    gaps->is_sorted = true;
}

struct ttd_position heap_gaps_end(struct heap_gaps *gaps, struct ttd_position position)
{
    if (!gaps->is_sorted)
        gaps_sort(gaps);
    size_t first = 0, count = gaps->count;
    while (count) {
        size_t half = count / 2;
        bool is_before = ttd_position_compare(gaps->items[first + half].begin, position) < 0;
        first += is_before ? half + 1 : 0;
        count = is_before ? count - half - 1 : half;
    }
    return first ? gaps->items[first - 1].end : ttd_position_min();
}
