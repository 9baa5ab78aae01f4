/* SPDX-License-Identifier: MIT */
#include "heap/peak.h"

#include <string.h>

#include "heap/totals.h"

typedef struct peak_finder {
    heap_totals totals;
    ttd_position position;
    ttd_position best_position;
    heap_total best;
} peak_finder;

/* The state at a position includes all that happens at it: only then does it count. */
static void consider(peak_finder *finder)
{
    if (!heap_sum_is_less(finder->best.bytes, finder->totals.all.bytes))
        return;
    finder->best = finder->totals.all;
    finder->best_position = finder->position;
}

static ttd_status see_effect(void *context, const heap_effect *effect)
{
    peak_finder *finder = context;
    if (effect->kind == HEAP_DISCARDED)
        return TTD_OK;
    if (ttd_position_compare(effect->position, finder->position) != 0) {
        consider(finder);
        finder->position = effect->position;
    }
    return heap_totals_add(&finder->totals, effect);
}

ttd_status heap_peak_find(ttd_reader *reader, const heap_batch_hook *hook, heap_peak *peak,
                          ttd_error *error)
{
    peak_finder finder;
    memset(&finder, 0, sizeof finder);
    heap_totals_init(&finder.totals);
    heap_observer observer = {.context = &finder, .effect = see_effect};
    heap_pass pass;
    ttd_status status =
        heap_pass_run(&pass, reader, NULL, ttd_position_max(), &observer, hook, error);
    heap_pass_end(&pass, &peak->outcome);
    consider(&finder);
    peak->position = finder.best_position;
    peak->bytes = heap_sum_value(finder.best.bytes);
    peak->blocks = finder.best.blocks;
    heap_totals_free(&finder.totals);
    return status;
}
