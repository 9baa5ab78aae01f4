/* SPDX-License-Identifier: MIT */
#include "scan.h"

#include <stdlib.h>
#include <string.h>

enum { REFERENCES = 65536 /* of a chunk */ };

struct scan {
    struct scan_job job;
    struct scan_result result;
    bool is_over; /* a limit was met */
    size_t count;
    struct ttd_reference references[REFERENCES];
    /* The regions in the batch and their numbers, by tag modulo the number of pieces of a batch. */
    struct {
        uint32_t number;
        const struct region *region;
    } regions[MEMORY_SPANS];
    uint32_t tag;
    struct memory_batch batch;
};

struct scan *scan_open(const struct scan_job *job)
{
    struct scan *scan = malloc(sizeof *scan);
    if (scan == NULL)
        return NULL;
    scan->job = *job;
    scan->result = (struct scan_result){.is_written = true};
    scan->is_over = false;
    scan->count = 0;
    scan->tag = 0;
    scan->batch.missing = 0;
    scan->batch.is_gone = false;
    memory_batch_clear(&scan->batch);
    return scan;
}

static void flush(struct scan *scan)
{
    struct ttd_references references = {scan->job.snapshot, scan->references, scan->count};
    const struct snapshot_calls *calls = scan->job.calls;
    scan->result.is_written =
        scan->result.is_written && calls->references(calls->context, &references);
    scan->result.references += scan->count;
    scan->count = 0;
    scan->is_over |=
        !scan->result.is_written || scan->result.references >= scan->job.references_max;
}

static inline void add(struct scan *scan, uint32_t region, uint64_t offset, uint64_t value)
{
    scan->references[scan->count++] = (struct ttd_reference){region, offset, value};
    if (scan->count == REFERENCES)
        flush(scan);
}

/* The least value that is looked at: 0 points at nothing, even if a program says that it has a
 * block there. */
static uint64_t not_null(uint64_t low)
{
    return low != 0 ? low : 1;
}

void scan_registers(struct scan *scan, const struct scan_registers *registers)
{
    for (uint32_t i = 0; i < registers->count; i++)
        if ((registers->valid >> i & 1) != 0 && registers->values[i] != 0 &&
            heap_pages_has(scan->job.pages, registers->values[i]))
            add(scan, registers->region, i * UINT64_C(8), registers->values[i]);
}

/* Looks at the words of a piece of the heap, or of a mapping that may be a block. */
static void search_heap(struct scan *scan, const struct memory_piece *piece)
{
    const struct heap_pages *pages = scan->job.pages;
    const struct heap_pages *tables = &scan->job.tables->pages;
    const unsigned char *bytes = scan->batch.bytes + piece->at;
    uint32_t region = scan->regions[piece->tag].number;
    uint64_t offset = piece->address - scan->regions[piece->tag].region->begin;
    uint64_t high = pages->high > tables->high ? pages->high : tables->high;
    uint64_t low =
        not_null(tables->high != 0 && tables->low < pages->low ? tables->low : pages->low);
    uint64_t size = high > low ? high - low : 0;
    for (uint32_t i = 0; i + 8 <= piece->size; i += 8) {
        uint64_t value;
        memcpy(&value, bytes + i, sizeof value);
        if (value - low < size &&
            (heap_pages_has(pages, value) ||
             (heap_pages_has(tables, value) && classes_has(&scan->job.tables->classes, value))))
            add(scan, region, offset + i, value);
    }
}

/* Looks at the words of a piece. A word below the lowest block or above the highest one, as nearly
 * all are, costs one comparison. */
static void search_roots(struct scan *scan, const struct memory_piece *piece)
{
    const struct heap_pages *pages = scan->job.pages;
    const unsigned char *bytes = scan->batch.bytes + piece->at;
    const struct region *region = scan->regions[piece->tag].region;
    uint32_t number = scan->regions[piece->tag].number;
    uint64_t offset = piece->address - region->begin;
    uint64_t low = not_null(pages->low), size = pages->high > low ? pages->high - low : 0;
    for (uint32_t i = 0; i + 8 <= piece->size; i += 8) {
        uint64_t value;
        memcpy(&value, bytes + i, sizeof value);
        if (value - low >= size || !heap_pages_has(pages, value))
            continue;
        add(scan, number, offset + i, value);
        if (region->module != TTD_NONE)
            scan->job.calls->variable(scan->job.calls->context, region, offset + i);
    }
}

static void search_piece(struct scan *scan, const struct memory_piece *piece)
{
    unsigned kind = scan->regions[piece->tag].region->kind;
    if (kind == TTD_REGION_HEAP || kind == TTD_REGION_ANONYMOUS)
        search_heap(scan, piece);
    else
        search_roots(scan, piece);
}

/* A thread points behind the two words that its vector of thread-local storage begins with. */
static void correct_vector(struct scan *scan, const struct memory_piece *piece)
{
    uint64_t at = scan->regions[piece->tag].region->vector, value;
    if (at < piece->address || at - piece->address >= piece->size)
        return;
    unsigned char *word = scan->batch.bytes + piece->at + (at - piece->address);
    memcpy(&value, word, sizeof value);
    value -= 16;
    memcpy(word, &value, sizeof value);
}

static void search_batch(struct scan *scan)
{
    struct memory_batch *batch = &scan->batch;
    memory_batch_read(batch, scan->job.memory);
    for (size_t i = 0; i < batch->count; i++) {
        correct_vector(scan, &batch->pieces[i]);
        search_piece(scan, &batch->pieces[i]);
    }
    scan->result.searched += batch->used;
    memory_batch_clear(batch);
    scan->tag = 0;
    scan->job.tick(scan->job.context);
    scan->is_over |= memory_is_late(scan->job.memory);
}

/* Adds a span of a region to the batch, which is searched whenever it is full. */
static void add_span(struct scan *scan, const struct region *region, uint32_t number,
                     struct memory_span span)
{
    while (span.begin < span.end) {
        if (scan->is_over) {
            scan->result.missing += span.end - span.begin;
            return;
        }
        scan->regions[scan->tag].number = number;
        scan->regions[scan->tag].region = region;
        uint64_t added =
            memory_batch_add(&scan->batch, span.begin, span.end - span.begin, scan->tag);
        span.begin += added;
        scan->tag++;
        if (added == 0 || scan->batch.count == MEMORY_SPANS)
            search_batch(scan);
    }
}

void scan_region(struct scan *scan, const struct region *region, uint32_t number)
{
    struct memory_span spans[MEMORY_SPANS];
    uint64_t at = region->begin / MEMORY_PAGE * MEMORY_PAGE;
    uint64_t end = (region->end + MEMORY_PAGE - 1) / MEMORY_PAGE * MEMORY_PAGE;
    while (at < end) {
        /* If the system does not help, looking for touched pages takes time as well. */
        scan->is_over |= memory_is_late(scan->job.memory);
        if (scan->is_over) {
            scan->result.missing += end - at;
            return;
        }
        size_t count = memory_touched(scan->job.memory, &at, end, spans);
        for (size_t i = 0; i < count; i++) {
            struct memory_span span = spans[i];
            span.begin = span.begin > region->begin ? span.begin : region->begin;
            span.end = span.end < region->end ? span.end : region->end;
            add_span(scan, region, number, span);
        }
    }
}

void scan_settle(struct scan *scan)
{
    if (scan->batch.count != 0)
        search_batch(scan);
}

struct scan_result scan_close(struct scan *scan)
{
    scan_settle(scan);
    flush(scan);
    struct scan_result result = scan->result;
    result.missing += scan->batch.missing;
    result.is_complete = result.missing == 0 && !scan->batch.is_gone && result.is_written;
    free(scan);
    return result;
}
