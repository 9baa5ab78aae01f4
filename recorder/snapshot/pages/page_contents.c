/* SPDX-License-Identifier: MIT */
#include "snapshot/pages/page_contents.h"

#include <stdlib.h>

_Static_assert((int)STORE_PAGE == (int)MEMORY_PAGE, "pages are stored as the system has them");

struct copying {
    const struct contents_job *job;
    struct memory_batch *batch;
    uint64_t done; /* all pages of the part before this address are in the store */
    uint64_t missing;
    bool is_late;
    uint32_t untouched; /* id of the pages that were never touched */
    uint32_t protection;
};

static void contents_add_absent(struct copying *copying, uint64_t end, uint32_t page)
{
    if (end > copying->done)
        page_store_add_absent(copying->job->store, copying->done,
                              (end - copying->done) / MEMORY_PAGE, page, copying->protection);
    copying->done = end;
}

/* Adds the pages of a piece, and before them those that were never touched. */
static void contents_store_piece(struct copying *copying, const struct memory_piece *piece)
{
    contents_add_absent(copying, piece->address, copying->untouched);
    for (uint32_t offset = 0; offset < piece->size; offset += MEMORY_PAGE) {
        uint64_t address = piece->address + offset;
        if (memory_batch_has_hole(copying->batch, piece->at + offset))
            contents_add_absent(copying, address + MEMORY_PAGE, TTD_PAGE_UNREADABLE);
        else
            page_store_add(copying->job->store, address, piece->bytes + offset,
                           copying->protection);
        copying->done = address + MEMORY_PAGE;
    }
}

static void contents_flush(struct copying *copying)
{
    struct memory_batch *batch = copying->batch;
    memory_batch_read(batch, copying->job->memory);
    for (size_t i = 0; i < batch->count; i++)
        contents_store_piece(copying, &batch->pieces[i]);
    memory_batch_clear(batch);
    copying->job->tick(copying->job->context);
    copying->is_late |= memory_is_late(copying->job->memory);
}

static void contents_copy_span(struct copying *copying, struct memory_span span)
{
    while (span.begin < span.end && !copying->is_late) {
        uint64_t added_size =
            memory_batch_add(copying->batch, span.begin, span.end - span.begin, 0);
        span.begin += added_size;
        if (span.begin < span.end)
            contents_flush(copying);
    }
}

/* Adds the rest of a part. */
static void contents_end_part(struct copying *copying, uint64_t end)
{
    if (copying->is_late && copying->done < end)
        copying->missing += end - copying->done;
    contents_add_absent(copying, end,
                        copying->is_late ? TTD_PAGE_NOT_CAPTURED : copying->untouched);
}

/* Copies a part of a region: whole pages. */
static void contents_copy_part(struct copying *copying, uint64_t begin, uint64_t end)
{
    struct memory_span spans[MEMORY_SPANS];
    begin =
        begin > copying->done ? begin : copying->done; /* a page of two regions is copied once */
    copying->done = begin;
    for (uint64_t address = begin; address < end && !copying->is_late;) {
        size_t count = memory_touched(copying->job->memory, &address, end, spans);
        for (size_t i = 0; i < count; i++)
            contents_copy_span(copying, spans[i]);
        contents_flush(copying);
    }
    contents_end_part(copying, end);
}

/* Copies the heap pages of other memory that have held blocks: blocks with mappings of their own.
 */
static void copy_heap_pages(struct copying *copying, const struct region *region)
{
    const struct heap_pages *pages = copying->job->pages;
    uint64_t range_begin = region->begin > pages->low ? region->begin : pages->low;
    uint64_t range_end = region->end < pages->high ? region->end : pages->high;
    for (uint64_t address = range_begin / HEAP_PAGE_SIZE * HEAP_PAGE_SIZE; address < range_end;
         address += HEAP_PAGE_SIZE) {
        uint64_t begin = address > region->begin ? address : region->begin;
        uint64_t end =
            address + HEAP_PAGE_SIZE < region->end ? address + HEAP_PAGE_SIZE : region->end;
        if (heap_pages_has(pages, address))
            contents_copy_part(copying, begin / MEMORY_PAGE * MEMORY_PAGE,
                               (end + MEMORY_PAGE - 1) / MEMORY_PAGE * MEMORY_PAGE);
    }
}

static struct copying contents_begin(const struct contents_job *job, uint32_t untouched)
{
    struct copying copying = {.job = job,
                              .batch = calloc(1, sizeof *copying.batch),
                              .untouched = untouched,
                              .protection = TTD_MEMORY_READ | TTD_MEMORY_WRITE};
    if (!copying.batch)
        copying.is_late = true; /* nothing is captured: all of it counts as missing */
    return copying;
}

/* Returns how many bytes are missing. */
static uint64_t contents_end(struct copying *copying)
{
    uint64_t missing = copying->missing + (copying->batch ? copying->batch->missing : 0);
    free(copying->batch);
    return missing;
}

uint64_t contents_copy(const struct contents_job *job, const struct regions *regions)
{
    struct copying copying =
        contents_begin(job, job->is_stopped ? TTD_PAGE_ZERO : TTD_PAGE_NOT_CAPTURED);
    for (size_t i = 0; i < regions->count; i++) {
        const struct region *region = &regions->items[i];
        uint64_t begin = region->begin / MEMORY_PAGE * MEMORY_PAGE;
        uint64_t end = (region->end + MEMORY_PAGE - 1) / MEMORY_PAGE * MEMORY_PAGE;
        if (region->kind == TTD_REGION_HEAP)
            contents_copy_part(&copying, begin, end);
        else if (region->kind == TTD_REGION_ANONYMOUS &&
                 heap_pages_touch(job->pages, region->begin, region->end))
            copy_heap_pages(&copying, region);
    }
    return contents_end(&copying);
}

uint64_t contents_dump(const struct contents_job *job, const struct contents_part *parts,
                       size_t count)
{
    struct copying copying = contents_begin(job, TTD_PAGE_UNREADABLE);
    for (size_t i = 0; i < count; i++) {
        const struct contents_part *part = &parts[i];
        copying.done = part->begin;
        copying.protection = part->protection;
        contents_copy_span(&copying, (struct memory_span){part->begin, part->end});
        if (!copying.is_late)
            contents_flush(&copying);
        contents_end_part(&copying, part->end);
    }
    return contents_end(&copying);
}
