/* SPDX-License-Identifier: MIT */
#include "snapshot/search/scan.h"

#include <emmintrin.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORD = 8,
    LINE = 64,                 /* bytes that are looked at together */
    REFERENCES_AT_ONCE = 1024, /* so few that they stay in the nearest cache */
    ABSENT_MAX = 4 << 20,      /* bytes of shared memory */
    RESIDENT_PAGES = 1 << 14,  /* that are asked about at once; see BORROWED_STACK_SIZE */
};

struct scan {
    struct scan_job job;
    struct scan_result result;
    bool is_over;    /* a limit was met */
    uint64_t absent; /* bytes that were not there, and are read all the same */
    /* The pages that were asked about last, and those in memory: bit 0 of each. */
    struct memory_span asked;
    unsigned char resident[RESIDENT_PAGES];
    struct ttd_reference references[REFERENCES_AT_ONCE];
    size_t count;
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
    if (!scan)
        return NULL;
    scan->job = *job;
    scan->result = (struct scan_result){.is_written = true};
    scan->is_over = false;
    scan->absent = 0;
    scan->asked = (struct memory_span){0, 0};
    scan->count = 0;
    scan->tag = 0;
    scan->batch.missing = 0;
    scan->batch.is_gone = false;
    scan->batch.may_borrow = true;
    memory_batch_clear(&scan->batch);
    scan->job.shared.begin = shared_pages_now();
    return scan;
}

/* Gives the references away. If they cannot be written, the next ones are left out. */
static void scan_flush(struct scan *scan)
{
    const struct snapshot_calls *calls = scan->job.calls;
    scan->result.is_written =
        scan->result.is_written && calls->references(calls->context, scan->references, scan->count);
    scan->result.references += scan->count;
    scan->count = 0;
    scan->is_over |=
        !scan->result.is_written || scan->result.references >= scan->job.references_max;
}

static inline void scan_add(struct scan *scan, uint32_t region, uint64_t offset, uint64_t value)
{
    scan->references[scan->count++] = (struct ttd_reference){region, offset, value};
    if (scan->count == REFERENCES_AT_ONCE)
        scan_flush(scan);
}

void scan_registers(struct scan *scan, const struct scan_registers *registers)
{
    for (uint32_t i = 0; i < registers->count; i++)
        if ((registers->valid >> i & 1) != 0 && registers->values[i] != 0 &&
            heap_pages_has(scan->job.pages, registers->values[i]))
            scan_add(scan, registers->region, i * UINT64_C(8), registers->values[i]);
}

void scan_words(struct scan *scan, uint32_t region, const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (heap_pages_has(scan->job.pages, words[i]))
            scan_add(scan, region, i * UINT64_C(8), words[i]);
}

/* Finds the words of a line whose values lie in the HEAP_ADDRESS_BITS from `low` on: a bit for
 * each. Zeros, small numbers, text and random bytes (most words) do not. */
static inline unsigned scan_find_candidates(const unsigned char *line, uint64_t low)
{
    __m128i lows = _mm_set1_epi64x((int64_t)low), ones = _mm_set1_epi64x(-1);
    __m128i pairs[LINE / 16];
    for (unsigned i = 0; i < LINE / 16; i++) {
        __m128i pair = _mm_loadu_si128((const __m128i *)(const void *)(line + i * 16));
        pair = _mm_srli_epi64(_mm_sub_epi64(pair, lows), HEAP_ADDRESS_BITS);
        pairs[i] = _mm_add_epi64(pair, ones); /* negative where no bit is left */
    }
    __m128i any = _mm_or_si128(_mm_or_si128(pairs[0], pairs[1]), _mm_or_si128(pairs[2], pairs[3]));
    if (_mm_movemask_pd(_mm_castsi128_pd(any)) == 0)
        return 0;
    unsigned candidates = 0;
    for (unsigned i = 0; i < LINE / 16; i++)
        candidates |= (unsigned)_mm_movemask_pd(_mm_castsi128_pd(pairs[i])) << 2 * i;
    return candidates;
}

/* The words of a piece, found one after the other. */
struct words {
    const unsigned char *bytes;
    uint32_t size;
    uint64_t low;  /* the least value that is looked for */
    uint32_t line; /* where the next line begins */
    unsigned left; /* words of the line before that are not reported yet: a bit for each */
};

/* The least value that is looked at: 0 points at nothing, even if a program says that it has a
 * block there. */
static uint64_t scan_not_null(uint64_t low)
{
    return low != 0 ? low : 1;
}

static struct words scan_words_of(const struct memory_piece *piece, uint64_t low)
{
    return (struct words){piece->bytes, piece->size, scan_not_null(low), 0, 0};
}

/* The words of the last, perhaps shorter, line of a piece. */
static unsigned scan_find_last(const struct words *words)
{
    unsigned char line[LINE] = {0};
    memcpy(line, words->bytes + words->line, (words->size - words->line) / WORD * WORD);
    return scan_find_candidates(line, words->low);
}

/* Finds the next word whose value may be one that is looked for. Returns false if there is none. */
static inline bool scan_next_word(struct words *words, uint32_t *position, uint64_t *value)
{
    while (words->left == 0) {
        if (words->line + WORD > words->size)
            return false;
        words->left = words->size - words->line >= LINE
                          ? scan_find_candidates(words->bytes + words->line, words->low)
                          : scan_find_last(words);
        words->line += LINE;
    }
    *position = words->line - LINE + (uint32_t)__builtin_ctz(words->left) * WORD;
    words->left &= words->left - 1;
    memcpy(value, words->bytes + *position, sizeof *value);
    return true;
}

/* Looks at the words of a piece of the heap, or of a mapping that may be a block. */
static void search_heap(struct scan *scan, const struct memory_piece *piece)
{
    const struct heap_pages *pages = scan->job.pages;
    const struct heap_pages *tables = &scan->job.tables->pages;
    uint32_t region = scan->regions[piece->tag].number;
    uint64_t offset = piece->address - scan->regions[piece->tag].region->begin;
    uint64_t low = tables->high != 0 && tables->low < pages->low ? tables->low : pages->low;
    struct words words = scan_words_of(piece, low);
    uint32_t position;
    uint64_t value;
    while (scan_next_word(&words, &position, &value)) {
        if (heap_pages_has(pages, value) ||
            (heap_pages_has(tables, value) && classes_has(&scan->job.tables->classes, value)))
            scan_add(scan, region, offset + position, value);
    }
}

/* Whether a region is of shared memory in which only words that point to blocks are searched for.
 */
static bool scan_is_shared(const struct region *region)
{
    return region->shared_inode != 0 && region->kind == TTD_REGION_FILE && region->vector == 0;
}

/* Notes a piece of shared memory, for other processes. */
static void scan_note(struct scan *scan, const struct memory_piece *piece)
{
    const struct region *region = scan->regions[piece->tag].region;
    struct shared_chunk *chunk =
        scan_is_shared(region)
            ? shared_pages_note(&scan->job.shared, region, piece->address, scan->job.pages->low)
            : NULL;
    struct words words = scan_words_of(piece, scan->job.pages->low);
    uint32_t position, last = 0;
    uint64_t value;
    if (!chunk)
        return;
    while (scan_next_word(&words, &position, &value))
        shared_chunk_add(chunk, value, &last);
    uint32_t first = (uint32_t)(-piece->address % MEMORY_PAGE); /* only whole pages are known */
    for (uint32_t at = first; at + MEMORY_PAGE <= piece->size; at += MEMORY_PAGE)
        if (!memory_batch_has_hole(&scan->batch, piece->at + at))
            chunk->searched |= UINT64_C(1) << shared_pages_number(region, piece->address + at);
}

/* Looks at the words of a piece that is no heap. */
static void search_roots(struct scan *scan, const struct memory_piece *piece)
{
    const struct heap_pages *pages = scan->job.pages;
    const struct region *region = scan->regions[piece->tag].region;
    uint32_t number = scan->regions[piece->tag].number;
    uint64_t offset = piece->address - region->begin;
    struct words words = scan_words_of(piece, pages->low);
    uint32_t position;
    uint64_t value;
    while (scan_next_word(&words, &position, &value)) {
        if (!heap_pages_has(pages, value))
            continue;
        scan_add(scan, number, offset + position, value);
        if (region->module != TTD_NONE)
            scan->job.calls->variable(scan->job.calls->context, region, offset + position);
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
static void scan_correct_vector(struct scan *scan, struct memory_piece *piece)
{
    uint64_t address = scan->regions[piece->tag].region->vector, value;
    if (address < piece->address || address - piece->address >= piece->size)
        return;
    unsigned char *copy = scan->batch.bytes + piece->at, *word = copy + (address - piece->address);
    if (piece->bytes != copy)
        memcpy(copy, piece->bytes, piece->size);
    piece->bytes = copy;
    memcpy(&value, word, sizeof value);
    value -= 16;
    memcpy(word, &value, sizeof value);
}

static void search_batch(struct scan *scan)
{
    struct memory_batch *batch = &scan->batch;
    memory_batch_read(batch, scan->job.memory);
    for (size_t i = 0; i < batch->count; i++) {
        scan_correct_vector(scan, &batch->pieces[i]);
        search_piece(scan, &batch->pieces[i]);
        scan_note(scan, &batch->pieces[i]);
    }
    scan->result.searched += batch->used;
    memory_batch_clear(batch);
    scan->tag = 0;
    scan->job.tick(scan->job.context);
    scan->is_over |= memory_is_late(scan->job.memory);
}

/* Returns the end of the chunk of shared memory that an address lies in. */
static uint64_t scan_chunk_end(const struct region *region, uint64_t address)
{
    uint64_t left = SHARED_CHUNK_PAGES - shared_pages_number(region, address);
    return address / MEMORY_PAGE * MEMORY_PAGE + left * MEMORY_PAGE;
}

static void scan_set_piece(struct memory_piece *piece, const struct region *region, bool may_lack)
{
    piece->may_lack = may_lack;
    piece->is_device = region->is_device;
    piece->is_shared = region->shared_inode != 0;
}

/* Adds a span of a region to the batch; a full batch is searched. */
static void scan_add_span(struct scan *scan, const struct region *region, uint32_t number,
                          struct memory_span span, bool may_lack)
{
    while (span.begin < span.end) {
        if (scan->is_over) {
            scan->result.missing += span.end - span.begin;
            return;
        }
        scan->regions[scan->tag].number = number;
        scan->regions[scan->tag].region = region;
        uint64_t chunk_end = scan_is_shared(region) ? scan_chunk_end(region, span.begin) : span.end;
        uint64_t end = chunk_end < span.end ? chunk_end : span.end;
        uint64_t added_size =
            memory_batch_add(&scan->batch, span.begin, end - span.begin, scan->tag);
        if (added_size != 0)
            scan_set_piece(&scan->batch.pieces[scan->batch.count - 1], region, may_lack);
        span.begin += added_size;
        scan->tag++;
        if (added_size == 0 || scan->batch.count == MEMORY_SPANS)
            search_batch(scan);
    }
}

/* Adds the part of a span that lies in the region. */
static void scan_add_within(struct scan *scan, const struct region *region, uint32_t number,
                            struct memory_span span, bool may_lack)
{
    span.begin = span.begin > region->begin ? span.begin : region->begin;
    span.end = span.end < region->end ? span.end : region->end;
    scan_add_span(scan, region, number, span, may_lack);
}

/* Asks for the pages of a region in memory, from a page on, unless they are known. */
static bool scan_ask_resident(struct scan *scan, const struct region *region, uint64_t begin)
{
    if (begin >= scan->asked.begin && begin < scan->asked.end)
        return true;
    uint64_t end = (region->end + MEMORY_PAGE - 1) / MEMORY_PAGE * MEMORY_PAGE;
    uint64_t most = begin + (uint64_t)RESIDENT_PAGES * MEMORY_PAGE;
    struct memory_span span = {begin, end < most ? end : most};
    bool is_known = scan->job.resident(scan->job.context, span, scan->resident);
    scan->asked = is_known ? span : (struct memory_span){0, 0};
    return is_known;
}

/* Notes pages that nobody has written. */
static void scan_note_empty(const struct scan *scan, const struct region *region,
                            struct memory_span span)
{
    for (; span.begin < span.end && scan_is_shared(region); span.begin += MEMORY_PAGE) {
        struct shared_chunk *chunk =
            shared_pages_note(&scan->job.shared, region, span.begin, scan->job.pages->low);
        if (!chunk)
            return;
        chunk->empty |= UINT64_C(1) << shared_pages_number(region, span.begin);
    }
}

/* Adds the pages that are in memory, written by others. Returns where the system's knowledge
 * ends. */
static uint64_t scan_add_resident(struct scan *scan, const struct region *region, uint32_t number,
                                  struct memory_span span)
{
    uint64_t page = span.begin;
    while (page < span.end && !scan->is_over && scan_ask_resident(scan, region, page)) {
        const unsigned char *resident = scan->resident;
        uint64_t first = scan->asked.begin, begin = page;
        uint64_t end = span.end < scan->asked.end ? span.end : scan->asked.end;
        bool is_there = resident[(page - first) / MEMORY_PAGE] & 1;
        while (page < end && (resident[(page - first) / MEMORY_PAGE] & 1) == is_there)
            page += MEMORY_PAGE;
        if (is_there)
            scan_add_within(scan, region, number, (struct memory_span){begin, page}, true);
        else
            scan_note_empty(scan, region, (struct memory_span){begin, page});
    }
    return page;
}

/* Adds pages that the process has not touched itself, or not lately, although others may have
 * written them. The first reader of a page that nobody has written makes the system provide it, so
 * there is a limit; beyond it the system must know the pages. Behind the end of a file there is
 * nothing. */
static void scan_add_absent(struct scan *scan, const struct region *region, uint32_t number,
                            struct memory_span span)
{
    unsigned untouched = region->untouched;
    if (untouched == UNTOUCHED_EMPTY || span.begin >= span.end)
        return;
    bool may_search = untouched != UNTOUCHED_MISSING && !scan->job.leaves_absent;
    uint64_t room = may_search ? ABSENT_MAX - scan->absent : 0;
    if (may_search && untouched == UNTOUCHED_RESIDENT && scan->job.resident &&
        region->end - region->begin > room)
        span.begin = scan_add_resident(scan, region, number, span);
    uint64_t size = span.end - span.begin;
    if (size > room) {
        scan->result.missing += size;
        return;
    }
    scan->absent += size;
    scan_add_within(scan, region, number, span, true);
}

/* Searches whole pages of a region. */
static void scan_pages(struct scan *scan, const struct region *region, uint32_t number,
                       uint64_t address, uint64_t end)
{
    struct memory_span spans[MEMORY_SPANS];
    while (address < end) {
        /* If the system does not help, looking for touched pages takes time as well. */
        scan->is_over |= memory_is_late(scan->job.memory);
        if (scan->is_over) {
            scan->result.missing += end - address;
            return;
        }
        uint64_t before = address;
        size_t count = memory_touched(scan->job.memory, &address, end, spans);
        for (size_t i = 0; i < count; i++) {
            scan_add_absent(scan, region, number, (struct memory_span){before, spans[i].begin});
            scan_add_within(scan, region, number, spans[i], false);
            before = spans[i].end;
        }
        scan_add_absent(scan, region, number, (struct memory_span){before, address});
    }
}

/* Searches shared memory, but for the pages that need none. */
static void scan_shared(struct scan *scan, const struct region *region, uint32_t number,
                        uint64_t address, uint64_t end)
{
    uint64_t begin = address; /* of the pages that nothing is known of, up to `address` */
    while (address < end) {
        struct shared_known known =
            shared_pages_known(&scan->job.shared, region, address, scan->job.pages);
        uint64_t chunk_end = scan_chunk_end(region, address);
        for (; address < end && address < chunk_end; address += MEMORY_PAGE) {
            uint64_t bit = UINT64_C(1) << shared_pages_number(region, address);
            struct memory_span page = {address, address + MEMORY_PAGE};
            if (((known.needless | known.there) & bit) == 0)
                continue;
            scan_pages(scan, region, number, begin, address);
            begin = page.end;
            if ((known.there & bit) != 0)
                scan_add_within(scan, region, number, page, true);
        }
    }
    scan_pages(scan, region, number, begin, end);
}

void scan_region(struct scan *scan, const struct region *region, uint32_t number)
{
    uint64_t address = region->begin / MEMORY_PAGE * MEMORY_PAGE;
    uint64_t end = (region->end + MEMORY_PAGE - 1) / MEMORY_PAGE * MEMORY_PAGE;
    if (scan_is_shared(region))
        scan_shared(scan, region, number, address, end);
    else
        scan_pages(scan, region, number, address, end);
}

void scan_settle(struct scan *scan)
{
    if (scan->batch.count != 0)
        search_batch(scan);
}

struct scan_result scan_close(struct scan *scan)
{
    scan_settle(scan);
    scan_flush(scan);
    struct scan_result result = scan->result;
    result.missing += scan->batch.missing;
    result.is_complete = result.missing == 0 && !scan->batch.is_gone && result.is_written;
    free(scan);
    return result;
}
