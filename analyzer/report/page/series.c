/* SPDX-License-Identifier: MIT */
/* Ticks and series of a page: arrays of numbers, one for each property. */
#include "report/page/page_model.h"

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
static void column_json(struct row *row, const struct heap_ticks *ticks, size_t i,
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
static void spans_of_tick_json(struct row *row, const struct heap_ticks *ticks, size_t end,
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
static void spans_json(struct row *row, const struct heap_ticks *ticks)
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
            spans_of_tick_json(row, ticks, end, (enum span_column)column, &last);
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
            column_json(row, ticks, i, (enum column)column);
        row_end_array(row);
    }
    row_end_object(row);
    row_begin_object(row, "peak");
    row_position(row, "position", ticks->peak.position);
    row_unsigned(row, "bytes", heap_sum_value(ticks->peak.bytes));
    row_unsigned(row, "blocks", ticks->peak.blocks);
    row_end_object(row);
    spans_json(row, ticks);
}

static void signed_json(struct row *row, int64_t value)
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
        signed_json(row, changes[i].bytes);
    row_end_array(row);
    row_begin_array(row, "blocks");
    for (size_t i = 0; i < count; i++)
        signed_json(row, changes[i].blocks);
    row_end_array(row);
}

/* Writes the changes: how many each tick has; their records, as differences from one to the next;
 * and their bytes and blocks. */
static void changes_json(struct row *row, const struct heap_tick_series *series)
{
    row_begin_array(row, "counts");
    for (size_t i = 0; i < series->tick_count; i++)
        row_unsigned(row, NULL, series->ends[i] - (i ? series->ends[i - 1] : 0));
    row_end_array(row);
    page_changes_json(row, "record", series->changes, series->change_count);
}

/* Writes a series. The keys of one by stack are numbers of call sites. */
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
    changes_json(row, series);
    row_end_object(row);
    return status;
}

/* Writes the series by stack, in which the stacks that are one call site are one record. */
static enum ttd_status stacks_json(struct row *row, const char *name,
                                   const struct heap_tick_series *series, struct page_sites *sites)
{
    struct heap_tick_series folded;
    if (!sites->other_count)
        return series_json(row, name, series, sites);
    enum ttd_status status = page_sites_fold(sites, series, &folded);
    if (status == TTD_OK)
        status = series_json(row, name, &folded, sites);
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
                     ? stacks_json(row, names[key], &ticks->series[key], sites)
                     : series_json(row, names[key], &ticks->series[key], NULL);
    row_end_object(row);
    return status;
}
