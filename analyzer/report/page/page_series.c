/* SPDX-License-Identifier: MIT */
/* Numbers of a page by tick: all ticks, and the series of call sites. */
#include <assert.h>
#include <stdlib.h>

#include "report/page/page_model.h"

/* Ticks and series of a page: arrays of numbers, one for each property. */

/** Properties of ticks that are numbers, and their names. */
enum column { EVENT, TIME, BYTES, BLOCKS, PEAK, ALLOCATIONS, ALLOCATED, RELEASES, COLUMNS };

static const char *const columns[COLUMNS] = {
    [EVENT] = "event",         [TIME] = "time",        [BYTES] = "bytes",
    [BLOCKS] = "blocks",       [PEAK] = "peak",        [ALLOCATIONS] = "allocations",
    [ALLOCATED] = "allocated", [RELEASES] = "releases"};

static uint64_t page_tick_value(const struct heap_tick *tick, enum column column)
{
    const uint64_t values[COLUMNS] = {[EVENT] = tick->event,
                                      [TIME] = tick->wall_time,
                                      [BYTES] = heap_sum_value(tick->live.bytes),
                                      [BLOCKS] = tick->live.blocks,
                                      [PEAK] = heap_sum_value(tick->peak),
                                      [ALLOCATIONS] = tick->allocations,
                                      [ALLOCATED] = heap_sum_value(tick->allocated),
                                      [RELEASES] = tick->releases};
    return values[column];
}

/* Writes a number; of those that go on from tick to tick, the difference to the one before; and how
 * far the peak is above the end of the tick. */
static void series_column_json(struct row *row, const struct heap_ticks *ticks, size_t i,
                               enum column column)
{
    const struct heap_tick *tick = &ticks->ticks[i];
    uint64_t value = page_tick_value(tick, column);
    if (column == PEAK)
        row_difference(row, NULL, page_tick_value(tick, BYTES), value);
    else if (column < PEAK)
        row_difference(row, NULL, i ? page_tick_value(tick - 1, column) : 0, value);
    else
        row_unsigned(row, NULL, value);
}

/** Properties of spans, and their names. */
enum span_column { SPAN_BEGIN, SPAN_BLOCKS, SPAN_BYTES, SPAN_COLUMNS };

static const char *const span_columns[SPAN_COLUMNS] = {
    [SPAN_BEGIN] = "begin", [SPAN_BLOCKS] = "blocks", [SPAN_BYTES] = "bytes"};

/* Writes a property of the spans that end in a tick; of ticks, the difference to the one before. */
static void series_spans_of_tick_json(struct row *row, const struct heap_ticks *ticks, size_t end,
                                      enum span_column column, size_t *last)
{
    const struct heap_tick_span *spans = heap_spans_of(&ticks->spans, end);
    for (size_t begin = 0; begin < end; begin++) {
        if (!spans[begin].blocks)
            continue;
        if (column == SPAN_BEGIN)
            row_difference(row, NULL, *last, begin);
        else
            row_unsigned(row, NULL,
                         column == SPAN_BLOCKS ? spans[begin].blocks : spans[begin].bytes);
        *last = begin;
    }
}

/* Writes the blocks that outlive their tick: how many ticks are one, how many spans end in each
 * that is left, and the properties of these. */
static void series_spans_json(struct row *row, const struct heap_ticks *ticks)
{
    row_begin_object(row, "spans");
    row_unsigned(row, "width", ticks->spans.width);
    row_begin_array(row, "counts");
    for (size_t end = 0; end < ticks->span_count; end++)
        row_unsigned(row, NULL, heap_spans_count(&ticks->spans, end));
    row_end_array(row);
    for (int column = 0; column < SPAN_COLUMNS; column++) {
        size_t last = 0;
        row_begin_array(row, span_columns[column]);
        for (size_t end = 0; end < ticks->span_count; end++)
            series_spans_of_tick_json(row, ticks, end, (enum span_column)column, &last);
        row_end_array(row);
    }
    row_end_object(row);
}

void page_ticks_json(struct row *row, const struct heap_ticks *ticks)
{
    row_begin_object(row, "ticks");
    row_begin_array(row, "position");
    for (size_t i = 0; i < ticks->count; i++)
        row_position(row, NULL, ticks->ticks[i].position);
    row_end_array(row);
    for (int column = 0; column < COLUMNS; column++) {
        row_begin_array(row, columns[column]);
        for (size_t i = 0; i < ticks->count; i++)
            series_column_json(row, ticks, i, (enum column)column);
        row_end_array(row);
    }
    row_end_object(row);
    row_begin_object(row, "peak");
    row_position(row, "position", ticks->peak.position);
    row_unsigned(row, "bytes", heap_sum_value(ticks->peak.bytes));
    row_unsigned(row, "blocks", ticks->peak.blocks);
    row_end_object(row);
    series_spans_json(row, ticks);
}

enum sample_column { SAMPLE_TIME, SAMPLE_RESIDENT, SAMPLE_MAPPED, SAMPLE_COLUMNS };

static const char *const sample_columns[] = {"time", "resident", "mapped"};

/* Writes an array of one column of the samples; from each `width` of them, the sample with the most
 * resident memory. */
static void series_sample_column_json(struct row *row, const struct heap_memory_samples *samples,
                                      size_t width, enum sample_column column)
{
    row_begin_array(row, sample_columns[column]);
    for (size_t begin = 0; begin < samples->count; begin += width) {
        const struct heap_memory_sample *most = &samples->items[begin];
        for (size_t i = begin; i < begin + width && i < samples->count; i++)
            if (samples->items[i].resident > most->resident)
                most = &samples->items[i];
        const uint64_t values[] = {most->wall_time, most->resident, most->mapped};
        row_unsigned(row, NULL, values[column]);
    }
    row_end_array(row);
}

void page_memory_json(struct row *row, const struct heap_memory_samples *samples)
{
    size_t width = samples->count / PAGE_SAMPLES_MAX + 1;
    row_begin_object(row, "memory");
    for (int column = 0; column < SAMPLE_COLUMNS; column++)
        series_sample_column_json(row, samples, width, (enum sample_column)column);
    row_end_object(row);
}

static void series_signed_json(struct row *row, int64_t value)
{
    uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
    row_difference(row, NULL, value < 0 ? size : 0, value < 0 ? 0 : size);
}

void page_changes_json(struct row *row, const char *key, const struct heap_tick_change *changes,
                       size_t count)
{
    row_begin_array(row, key);
    for (size_t i = 0; i < count; i++)
        row_difference(row, NULL, i ? changes[i - 1].record : 0, changes[i].record);
    row_end_array(row);
    row_begin_array(row, "bytes");
    for (size_t i = 0; i < count; i++)
        series_signed_json(row, changes[i].bytes);
    row_end_array(row);
    row_begin_array(row, "blocks");
    for (size_t i = 0; i < count; i++)
        series_signed_json(row, changes[i].blocks);
    row_end_array(row);
}

/* Writes the changes: how many each tick has; their records, as differences from one to the next;
 * and their bytes and blocks. */
static void series_changes_json(struct row *row, const struct heap_tick_series *series)
{
    row_begin_array(row, "counts");
    for (size_t i = 0; i < series->tick_count; i++)
        row_unsigned(row, NULL, series->ends[i] - (i ? series->ends[i - 1] : 0));
    row_end_array(row);
    page_changes_json(row, "record", series->changes, series->change_count);
}

/* Writes a series. With `sites` its keys are stacks, and numbers of their call sites are written.
 */
static enum ttd_status series_json(struct row *row, const char *name,
                                   const struct heap_tick_series *series, struct page_sites *sites)
{
    enum ttd_status status = TTD_OK;
    row_begin_object(row, name);
    row_begin_array(row, "keys");
    for (size_t i = 0, last = 0; i < series->count && status == TTD_OK; i++) {
        uint32_t number = series->records[i].key;
        if (sites)
            status = page_sites_add(sites, series->records[i].key, &number);
        row_difference(row, NULL, last, number);
        last = number;
    }
    row_end_array(row);
    series_changes_json(row, series);
    row_end_object(row);
    return status;
}

/* Writes the series by stack; stacks that share a call site are one record. */
static enum ttd_status series_stacks_json(struct row *row, const char *name,
                                          const struct heap_tick_series *series,
                                          struct page_sites *sites)
{
    struct heap_tick_series folded;
    if (!sites->other_count)
        return series_json(row, name, series, sites);
    enum ttd_status status = page_sites_fold(sites, series, &folded);
    if (status == TTD_OK)
        status = series_json(row, name, &folded, NULL);
    heap_series_free(&folded);
    return status;
}

enum ttd_status page_series_json(struct row *row, const struct heap_ticks *ticks,
                                 struct page_sites *sites)
{
    static const char *const names[HEAP_TICK_KEYS] = {"stack", "thread", "heap", "size"};
    enum ttd_status status = TTD_OK;
    row_begin_object(row, "series");
    for (int key = 0; key < HEAP_TICK_KEYS && status == TTD_OK; key++)
        status = key == HEAP_TICK_BY_STACK
                     ? series_stacks_json(row, names[key], &ticks->series[key], sites)
                     : series_json(row, names[key], &ticks->series[key], NULL);
    row_end_object(row);
    return status;
}

/* Amounts of call sites beside those at ticks: in the whole trace, at the peak, and lost. */

/* Adds the amounts of a call site to the amounts of the one that stands for it. */
static void series_add_to_others(struct heap_site *others, const struct heap_site *site)
{
    others->allocations += site->allocations;
    others->temporary += site->temporary;
    others->soon += site->soon;
    heap_sum_add_sum(&others->bytes, site->bytes);
    heap_sum_add_sum(&others->temporary_bytes, site->temporary_bytes);
    heap_sum_add_sum(&others->soon_bytes, site->soon_bytes);
}

/* Lists the written members of the usage, by number of the call site: those that are not among the
 * others, then the sites that stand for these. NULL without memory. */
static struct heap_site *series_list_usage(const struct heap_usage *usage, struct page_sites *sites,
                                           size_t *count)
{
    size_t kept = 0;
    struct heap_site *list = calloc(usage->count + sites->other_sites + 1, sizeof *list);
    for (size_t i = 0; i < usage->count && list; i++) {
        /* Each was added when the sites were chosen. */
        uint32_t number = map_get(&sites->index, usage->sites[i].key.stack, 0);
        if (page_sites_is_other(sites, number))
            series_add_to_others(&list[number], &usage->sites[i]);
        else
            list[kept++] = usage->sites[i];
    }
    *count = kept + sites->other_sites;
    return list;
}

/* Writes the amounts that call sites have in the whole trace: the sums of heap_site, and by how
 * much the blocks that are released soon exceed the temporary ones. */
enum ttd_status page_usage_json(struct row *row, const struct heap_usage *usage,
                                struct page_sites *sites)
{
    static const char *const names[] = {"allocations",     "bytes", "temporary",
                                        "temporary_bytes", "later", "later_bytes"};
    size_t count;
    struct heap_site *list = series_list_usage(usage, sites, &count);
    if (!list)
        return TTD_ERROR_NO_MEMORY;
    row_begin_object(row, "usage");
    for (size_t column = 0; column < sizeof names / sizeof names[0]; column++) {
        row_begin_array(row, names[column]);
        for (size_t i = 0; i < count; i++) {
            const struct heap_site *site = &list[i];
            uint64_t temporary_bytes = heap_sum_value(site->temporary_bytes);
            const uint64_t values[] = {site->allocations,
                                       heap_sum_value(site->bytes),
                                       site->temporary,
                                       temporary_bytes,
                                       site->soon - site->temporary,
                                       heap_sum_value(site->soon_bytes) - temporary_bytes};
            row_unsigned(row, NULL, values[column]);
        }
        row_end_array(row);
    }
    row_end_object(row);
    free(list);
    return TTD_OK;
}

enum ttd_status page_copied_json(struct row *row, const struct heap_move_table *moves,
                                 struct page_sites *sites)
{
    uint64_t *copied = calloc(sites->count + 1, sizeof *copied);
    if (!copied)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < moves->count; i++) {
        /* Filters may have dropped its site. */
        uint32_t number = map_get(&sites->index, moves->groups[i].key.stack, 0);
        if (number < sites->count)
            copied[number] = heap_add(copied[number], moves->groups[i].counts.copies.bytes_at_most);
    }
    row_begin_array(row, "copied");
    for (size_t i = 0; i < sites->count; i++)
        row_unsigned(row, NULL, copied[i]);
    row_end_array(row);
    free(copied);
    return TTD_OK;
}

/* Appends the changes of the sites that stand for others to a list with room for them, and frees
 * them. */
static void series_append_others(struct page_changes others, struct heap_tick_change *list,
                                 size_t *count)
{
    for (size_t i = 0; i < others.count && others.items; i++)
        if (others.items[i].bytes || others.items[i].blocks)
            list[(*count)++] = others.items[i];
    free(others.items);
}

/* Adds up groups by call site; the sites that stand for others are last. */
static enum ttd_status series_fold_groups(const struct heap_groups *groups,
                                          struct page_sites *sites, struct heap_tick_change *sums,
                                          size_t *count)
{
    struct page_changes others = {calloc(sites->other_sites + 1, sizeof *others.items),
                                  sites->other_sites};
    enum ttd_status status = others.items ? TTD_OK : TTD_ERROR_NO_MEMORY;
    *count = 0;
    for (size_t i = 0; i < groups->count && status == TTD_OK; i++) {
        const struct heap_group *group = &groups->items[i];
        struct heap_tick_change sum = {.bytes = (int64_t)group->bytes,
                                       .blocks = (int64_t)group->blocks};
        status = page_sites_add(sites, group->key.stack, &sum.record);
        if (status == TTD_OK && page_sites_is_other(sites, sum.record))
            page_change_add(&others.items[sum.record - sites->others], &sum);
        else
            sums[(*count)++] = sum;
    }
    series_append_others(others, sums, count);
    return status;
}

/* Writes the blocks of groups by call site. */
static enum ttd_status series_groups_json(struct row *row, const char *key,
                                          const struct heap_groups *groups,
                                          struct page_sites *sites)
{
    size_t count = 0;
    struct heap_tick_change *sums = malloc((groups->count + sites->other_sites + 1) * sizeof *sums);
    enum ttd_status status =
        sums ? series_fold_groups(groups, sites, sums, &count) : TTD_ERROR_NO_MEMORY;
    row_begin_object(row, key);
    row_begin_array(row, "site");
    for (size_t i = 0; i < count; i++)
        row_difference(row, NULL, i ? sums[i - 1].record : 0, sums[i].record);
    row_end_array(row);
    row_begin_array(row, "bytes");
    for (size_t i = 0; i < count; i++)
        row_unsigned(row, NULL, (uint64_t)sums[i].bytes);
    row_end_array(row);
    row_begin_array(row, "blocks");
    for (size_t i = 0; i < count; i++)
        row_unsigned(row, NULL, (uint64_t)sums[i].blocks);
    row_end_array(row);
    row_end_object(row);
    free(sums);
    return status;
}

/* The sums of call sites at a tick, by record of the series. NULL without memory. */
static struct heap_tick_change *series_sums_at(const struct heap_tick_series *series, size_t tick)
{
    struct heap_tick_change *sums = calloc(series->count + 1, sizeof *sums);
    size_t end = tick < series->tick_count ? series->ends[tick] : series->change_count;
    for (size_t i = 0; sums && i < end; i++) {
        const struct heap_tick_change *change = &series->changes[i];
        struct heap_tick_change *sum = &sums[change->record];
        sum->bytes = (int64_t)((uint64_t)sum->bytes + (uint64_t)change->bytes);
        sum->blocks += change->blocks;
    }
    return sums;
}

/* The tick of the peak. */
static size_t series_tick_of_peak(const struct heap_ticks *ticks)
{
    size_t tick = 0;
    while (tick + 1 < ticks->count &&
           ttd_position_compare(ticks->ticks[tick].position, ticks->peak.position) < 0)
        tick++;
    return tick;
}

/* Subtracts the tick's sums from the peak's; most become zero. Drops the others, and sets `record`
 * of those that are left to the call site. */
static enum ttd_status series_take_peak(const struct heap_ticks *ticks,
                                        struct heap_tick_change *sums, struct page_sites *sites,
                                        size_t *count)
{
    const struct heap_tick_series *series = &ticks->series[HEAP_TICK_BY_STACK];
    enum ttd_status status = TTD_OK;
    struct page_changes others = {calloc(sites->other_sites + 1, sizeof *others.items),
                                  sites->other_sites};
    *count = 0;
    if (!others.items)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < series->count; i++) {
        sums[i].bytes = (int64_t) - (uint64_t)sums[i].bytes;
        sums[i].blocks = -sums[i].blocks;
    }
    for (size_t i = 0; i < ticks->at_peak.count; i++) {
        const struct heap_group *group = &ticks->at_peak.items[i];
        uint32_t record = map_get(&series->by_key, group->key.stack, 0);
        assert(record != MAP_NONE);
        sums[record].bytes = (int64_t)((uint64_t)sums[record].bytes + group->bytes);
        sums[record].blocks += (int64_t)group->blocks;
    }
    for (size_t i = 0; i < series->count && status == TTD_OK; i++) {
        struct heap_tick_change change = sums[i];
        if (!change.bytes && !change.blocks)
            continue;
        status = page_sites_add(sites, series->records[i].key, &change.record);
        if (status == TTD_OK && page_sites_is_other(sites, change.record))
            page_change_add(&others.items[change.record - sites->others], &change);
        else
            sums[(*count)++] = change;
    }
    series_append_others(others, sums, count);
    return status;
}

/* Writes a series' live sums at the peak, as differences from the end of its tick. */
static enum ttd_status peak_series_json(struct row *row, const char *name,
                                        const struct heap_ticks *ticks, enum heap_tick_key key,
                                        size_t tick)
{
    const struct heap_tick_series *series = &ticks->series[key];
    struct heap_tick_change *sums = series_sums_at(series, tick);
    size_t count = 0;
    if (!sums)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < series->count; i++) {
        struct heap_tick_change change = ticks->peak_sums[key][i];
        change.record = (uint32_t)i;
        change.bytes = (int64_t)((uint64_t)change.bytes - (uint64_t)sums[i].bytes);
        change.blocks -= sums[i].blocks;
        if (change.bytes || change.blocks)
            sums[count++] = change;
    }
    row_begin_object(row, name);
    page_changes_json(row, "record", sums, count);
    row_end_object(row);
    free(sums);
    return TTD_OK;
}

/* Writes the tick that the peak would end. */
static enum ttd_status series_peak_tick_json(struct row *row, const struct heap_ticks *ticks,
                                             size_t tick)
{
    const struct heap_tick *peak = &ticks->peak_tick;
    row_unsigned(row, "event", peak->event);
    row_unsigned(row, "time", peak->wall_time);
    row_unsigned(row, "allocations", peak->allocations);
    row_unsigned(row, "allocated", heap_sum_value(peak->allocated));
    row_unsigned(row, "releases", peak->releases);
    row_begin_object(row, "series");
    enum ttd_status status = peak_series_json(row, "thread", ticks, HEAP_TICK_BY_THREAD, tick);
    if (status == TTD_OK)
        status = peak_series_json(row, "heap", ticks, HEAP_TICK_BY_HEAP, tick);
    if (status == TTD_OK)
        status = peak_series_json(row, "size", ticks, HEAP_TICK_BY_SIZE, tick);
    row_end_object(row);
    return status;
}

/* Writes the live sums at the peak, as its tick and the differences from the tick's end. */
enum ttd_status page_peak_json(struct row *row, const struct heap_ticks *ticks,
                               struct page_sites *sites)
{
    size_t tick = series_tick_of_peak(ticks), count;
    struct heap_tick_change *sums = series_sums_at(&ticks->series[HEAP_TICK_BY_STACK], tick);
    enum ttd_status status =
        sums ? series_take_peak(ticks, sums, sites, &count) : TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK) {
        row_begin_object(row, "at_peak");
        row_unsigned(row, "tick", tick);
        page_changes_json(row, "site", sums, count);
        if (ticks->has_peak_tick)
            status = series_peak_tick_json(row, ticks, tick);
        row_end_object(row);
    }
    free(sums);
    return status;
}

void page_doubtful_json(struct row *row, const struct heap_leaks *leaks)
{
    static const char *const names[] = {[HEAP_DEFINITELY_LOST] = "definitely_lost",
                                        [HEAP_POSSIBLY_LOST] = "possibly_lost",
                                        [HEAP_INDIRECTLY_LOST] = "indirectly_lost",
                                        [HEAP_HELD_BY_STALE] = "held_by_stale",
                                        [HEAP_HELD_WEAKLY] = "held_by_stack"};
    row_begin_object(row, "doubtful");
    for (size_t kind = 0; kind < sizeof names / sizeof names[0]; kind++) {
        uint64_t before = 0;
        row_begin_array(row, names[kind]);
        for (size_t i = 0; i < leaks->doubtful_count; i++) {
            if (leaks->doubtful[i].kind != kind)
                continue;
            row_difference(row, NULL, before, leaks->doubtful[i].event);
            before = leaks->doubtful[i].event;
        }
        row_end_array(row);
    }
    row_end_object(row);
}

/* Writes a value of the first blocks of a kind, each as the difference from the one before. Returns
 * the number of all blocks of the kind. */
static size_t series_lost_values(struct row *row, const char *key, const struct heap_leaks *leaks,
                                 size_t kind, uint64_t (*value)(const struct heap_doubtful_block *))
{
    uint64_t before = 0;
    size_t count = 0;
    row_begin_array(row, key);
    for (size_t i = 0; i < leaks->doubtful_count; i++) {
        if (leaks->doubtful[i].kind != kind || count++ >= PAGE_LOST_BLOCKS_MAX)
            continue;
        row_difference(row, NULL, before, value(&leaks->doubtful[i]));
        before = value(&leaks->doubtful[i]);
    }
    row_end_array(row);
    return count;
}

static uint64_t series_lost_address(const struct heap_doubtful_block *block)
{
    return block->address;
}

static uint64_t series_lost_size(const struct heap_doubtful_block *block)
{
    return block->size;
}

static uint64_t series_lost_stack(const struct heap_doubtful_block *block)
{
    return block->stack;
}

void page_lost_blocks_json(struct row *row, const struct heap_leaks *leaks)
{
    static const char *const names[] = {[HEAP_DEFINITELY_LOST] = "definitely_lost",
                                        [HEAP_POSSIBLY_LOST] = "possibly_lost",
                                        [HEAP_INDIRECTLY_LOST] = "indirectly_lost"};
    row_begin_object(row, "lost_blocks");
    for (size_t kind = 0; kind < sizeof names / sizeof names[0]; kind++) {
        row_begin_object(row, names[kind]);
        size_t count = series_lost_values(row, "address", leaks, kind, series_lost_address);
        series_lost_values(row, "size", leaks, kind, series_lost_size);
        series_lost_values(row, "stack_id", leaks, kind, series_lost_stack);
        row_unsigned(row, "total", count);
        row_end_object(row);
    }
    row_end_object(row);
}

/* Writes the blocks that are lost, by kind; null if no snapshot has it. */
enum ttd_status page_lost_json(struct row *row, const struct heap_leaks *leaks,
                               struct page_sites *sites)
{
    static const char *const names[] = {[HEAP_DEFINITELY_LOST] = "definitely",
                                        [HEAP_POSSIBLY_LOST] = "possibly",
                                        [HEAP_INDIRECTLY_LOST] = "indirectly"};
    enum ttd_status status = TTD_OK;
    if (!leaks->snapshot.number) {
        row_null(row, "lost");
        return TTD_OK;
    }
    row_begin_object(row, "lost");
    for (size_t kind = 0; kind < sizeof names / sizeof names[0] && status == TTD_OK; kind++)
        status = series_groups_json(row, names[kind], &leaks->kinds[kind], sites);
    row_end_object(row);
    return status;
}

/* Whether the runtimes keep all blocks of a stack. */
static bool series_keeps_stack(const struct heap_stack_judge *judge, ttd_id stack)
{
    return judge->keeps && judge->keeps(judge->context, stack);
}

/* The number of a kept block's record in a series; of the series by stack, its call site. */
static enum ttd_status series_kept_number(const struct page_heap *heap, struct page_sites *sites,
                                          const struct heap_block *block, enum heap_tick_key key,
                                          uint32_t *number)
{
    const ttd_id keys[HEAP_TICK_KEYS] = {block->stack, block->thread, block->heap,
                                         heap_class_of(block->size)};
    if (key == HEAP_TICK_BY_STACK)
        return page_sites_add(sites, block->stack, number);
    *number = map_get(&heap->ticks->series[key].by_key, keys[key], 0);
    assert(*number != MAP_NONE);
    return TTD_OK;
}

/* Writes the kept blocks that the filters let pass: arrays, one for each property. */
static enum ttd_status series_kept_blocks_json(struct row *row, const struct page_heap *heap,
                                               struct page_sites *sites)
{
    static const char *const names[HEAP_TICK_KEYS] = {"stack", "thread", "heap", "size"};
    const struct heap_leaks *leaks = heap->leaks;
    const struct hash_map *seen = &heap->ticks->series[HEAP_TICK_BY_STACK].by_key;
    enum ttd_status status = TTD_OK;
    for (int column = 0; column < HEAP_TICK_KEYS + 2; column++) {
        row_begin_array(row, column < HEAP_TICK_KEYS    ? names[column]
                             : column == HEAP_TICK_KEYS ? "bytes"
                                                        : "position");
        for (size_t i = 0; i < leaks->runtime_block_count && status == TTD_OK; i++) {
            const struct heap_block *block = &leaks->runtime_blocks[i];
            uint32_t number = 0;
            if (map_get(seen, block->stack, 0) == MAP_NONE)
                continue;
            if (column < HEAP_TICK_KEYS)
                status =
                    series_kept_number(heap, sites, block, (enum heap_tick_key)column, &number);
            if (column > HEAP_TICK_KEYS)
                row_position(row, NULL, block->allocated);
            else
                row_unsigned(row, NULL, column < HEAP_TICK_KEYS ? number : block->size);
        }
        row_end_array(row);
    }
    return status;
}

enum ttd_status page_kept_json(struct row *row, const struct page_heap *heap,
                               struct page_sites *sites)
{
    row_begin_object(row, "kept");
    row_begin_array(row, "sites");
    for (size_t i = 0; i < sites->count; i++)
        if (!page_sites_is_other(sites, (uint32_t)i) &&
            series_keeps_stack(heap->judge, sites->stacks[i]))
            row_unsigned(row, NULL, i);
    row_end_array(row);
    enum ttd_status status = series_kept_blocks_json(row, heap, sites);
    row_end_object(row);
    return status;
}
