/* SPDX-License-Identifier: MIT */
#include "base/table.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/task.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

void pages_hint(void *memory, size_t size)
{
#ifdef MADV_HUGEPAGE
    if (!memory || size < LARGE_PAGE)
        return;
    /* All pages must have the same hint: the system cannot move a mapping together whose pages
     * differ. */
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t before = (uintptr_t)memory % page;
    uintptr_t after = (page - (before + size) % page) % page;
    madvise((char *)memory - before, before + size + after, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)size;
#endif
}

#ifdef MADV_POPULATE_WRITE

/* One half of the large pages of some memory. A failure changes nothing but speed. */
static enum ttd_status table_map_half(void *memory, size_t begin, size_t end)
{
    (void)madvise((char *)memory + begin, end - begin, MADV_POPULATE_WRITE);
    return TTD_OK;
}

void pages_map(void *memory, size_t size)
{
    (void)halves_do(table_map_half, memory, memory, size / (2 * LARGE_PAGE) * (2 * LARGE_PAGE));
}

#else

void pages_map(void *memory, size_t size)
{
    (void)memory;
    (void)size;
}

#endif

#ifdef M_ARENA_MAX

/* Memory that malloc() asks the system for at a time, and free memory that it keeps. */
#define HEAP_STEP (8 * LARGE_PAGE)
#define HEAP_KEPT (32 * LARGE_PAGE)

static bool table_is_unlimited(int resource)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}

void pages_prepare(void)
{
    if (!table_is_unlimited(RLIMIT_AS) || !table_is_unlimited(RLIMIT_DATA))
        return;
    /* Larger arrays have mappings of their own: mremap() moves them without copying. */
    mallopt(M_MMAP_THRESHOLD, 2 * LARGE_PAGE);
    mallopt(M_TOP_PAD, HEAP_STEP);
    mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
    /* One malloc arena serves all threads, since only one of them allocates much at a time. */
    mallopt(M_ARENA_MAX, 1);
    /* This allocation is larger than the free memory, so that the heap grows by a step. Another
     * malloc() has no such step. */
    char *first = malloc(LARGE_PAGE / 8);
    uintptr_t end = (uintptr_t)sbrk(0);
    uintptr_t size = end - (uintptr_t)first;
    if (first && size <= HEAP_STEP + LARGE_PAGE)
        pages_hint(first, size);
    free(first);
}

#else

void pages_prepare(void)
{
}

#endif

/* Tables from this size on are large pages of their own. Mapping one large page is faster than
 * faulting in the same memory in small pages. */
#define LARGE ((size_t)128 << 10)

static size_t table_round_up(size_t size)
{
    return (size + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
}

/* Maps memory aligned to a large page; the system does not do so by itself. */
static void *base_table_map_pages(size_t size)
{
    if (size > SIZE_MAX - LARGE_PAGE)
        return NULL;
    char *pages = mmap(NULL, size + LARGE_PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    size_t before = (LARGE_PAGE - (uintptr_t)pages % LARGE_PAGE) % LARGE_PAGE;
    if (before)
        munmap(pages, before);
    munmap(pages + before + size, LARGE_PAGE - before);
    pages_hint(pages + before, size);
    return pages + before;
}

/* ---- Pages of tables that were freed ----
 *
 * They are kept for other tables: to clear them takes a tenth of the time that the system takes to
 * map others. */

/* Ranges that are kept, and bytes in them. */
#define KEPT_RANGES 32
#define KEPT_BYTES  ((size_t)1 << 30)

struct range {
    char *begin;
    size_t size;
};

static struct {
    pthread_mutex_t mutex;
    struct range ranges[KEPT_RANGES];
    size_t count;
    size_t bytes;
} kept = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Forgets a range that is kept. */
static struct range table_remove_range(size_t i)
{
    struct range range = kept.ranges[i];
    kept.bytes -= range.size;
    kept.ranges[i] = kept.ranges[--kept.count];
    return range;
}

/* Joins a range with its neighbours; those are no longer kept by themselves. */
static struct range table_join_ranges(struct range range)
{
    for (size_t i = 0; i < kept.count;) {
        bool is_before = kept.ranges[i].begin + kept.ranges[i].size == range.begin;
        if (!is_before && range.begin + range.size != kept.ranges[i].begin) {
            i++;
            continue;
        }
        struct range neighbour = table_remove_range(i);
        range =
            (struct range){is_before ? neighbour.begin : range.begin, range.size + neighbour.size};
        i = 0;
    }
    return range;
}

/* Keeps the pages of a table, or the first of them, if there is room. */
static void table_keep_pages(struct range range)
{
    pthread_mutex_lock(&kept.mutex);
    range = table_join_ranges(range);
    size_t room = kept.count < KEPT_RANGES ? KEPT_BYTES - kept.bytes : 0;
    size_t size = range.size < room ? range.size : room;
    if (size) {
        kept.ranges[kept.count++] = (struct range){range.begin, size};
        kept.bytes += size;
    }
    pthread_mutex_unlock(&kept.mutex);
    if (size < range.size)
        munmap(range.begin + size, range.size - size);
}

/* Takes pages, with any contents, from the smallest range that is large enough; NULL if there is
 * none. The first pages are taken: the last ones of a table were often never used. */
static void *table_take_pages(size_t size)
{
    size_t best = KEPT_RANGES;
    char *pages = NULL;
    pthread_mutex_lock(&kept.mutex);
    for (size_t i = 0; i < kept.count; i++) {
        if (kept.ranges[i].size >= size &&
            (best == KEPT_RANGES || kept.ranges[i].size < kept.ranges[best].size))
            best = i;
    }
    if (best < KEPT_RANGES) {
        struct range range = table_remove_range(best);
        pages = range.begin;
        if (range.size > size) {
            kept.ranges[kept.count++] = (struct range){range.begin + size, range.size - size};
            kept.bytes += range.size - size;
        }
    }
    pthread_mutex_unlock(&kept.mutex);
    return pages;
}

/* Gives pages back to the system, the smallest ranges first, until `size` bytes are given back or
 * none is kept. */
static void base_table_give_back(size_t size)
{
    pthread_mutex_lock(&kept.mutex);
    for (size_t given_back = 0; kept.count && given_back < size;) {
        size_t smallest = 0;
        for (size_t i = 1; i < kept.count; i++)
            smallest = kept.ranges[i].size < kept.ranges[smallest].size ? i : smallest;
        struct range range = table_remove_range(smallest);
        given_back += range.size;
        munmap(range.begin, range.size);
    }
    pthread_mutex_unlock(&kept.mutex);
}

/* Whether the system can move pages together: it cannot if they are of several mappings. Then it
 * refuses to make them longer as well; that is undone. To try the move itself will not do: older
 * kernels take the target away before they refuse. */
static bool table_is_one_mapping(void *pages, size_t size)
{
    if (mremap(pages, size, size + LARGE_PAGE, 0) == MAP_FAILED)
        return errno != EFAULT;
    munmap((char *)pages + size, LARGE_PAGE);
    return true;
}

/* Moves pages that are kept to the begin of a new mapping, in the place of those there. Returns
 * bytes that were moved; SIZE_MAX if the system has no memory for that. */
static size_t table_move_kept(char *pages, size_t size)
{
    size_t moved = 0;
    pthread_mutex_lock(&kept.mutex);
    while (kept.count && moved < size) {
        struct range range = table_remove_range(kept.count - 1);
        size_t part = range.size < size - moved ? range.size : size - moved;
        if (!table_is_one_mapping(range.begin, range.size)) {
            munmap(range.begin, range.size);
            continue;
        }
        if (part < range.size) {
            kept.ranges[kept.count++] = (struct range){range.begin + part, range.size - part};
            kept.bytes += range.size - part;
        }
        bool is_moved = mremap(range.begin, part, part, MREMAP_MAYMOVE | MREMAP_FIXED,
                               pages + moved) != MAP_FAILED;
        moved = is_moved ? moved + part : SIZE_MAX;
    }
    pthread_mutex_unlock(&kept.mutex);
    return moved;
}

/* ---- Tables ---- */

static void *table_resize_small(void *old, size_t old_size, size_t size)
{
    char *table = realloc(old, size);
    if (table)
        memset(table + old_size, 0, size - old_size);
    return table;
}

static enum ttd_status table_clear_half(void *memory, size_t begin, size_t end)
{
    memset((char *)memory + begin, 0, end - begin);
    return TTD_OK;
}

static void table_clear_pages(char *memory, size_t size)
{
    (void)halves_do(table_clear_half, memory, memory, size);
}

/* Maps pages. If the system refuses, it gets back those that are kept. */
static void *table_map_pages(size_t size)
{
    void *pages = base_table_map_pages(size);
    if (pages)
        return pages;
    base_table_give_back(SIZE_MAX);
    return base_table_map_pages(size);
}

/* Makes a large table with the contents of another, and zeros behind them. NULL if nothing is kept
 * that is large enough. */
static void *table_make_of_kept(const void *old, size_t old_size, size_t size)
{
    char *table = table_take_pages(size);
    if (!table)
        return NULL;
    if (old)
        memcpy(table, old, old_size);
    table_clear_pages(table + old_size, size - old_size);
    return table;
}

/* Makes a large table of pages that are kept and of new ones. NULL without memory. If the system
 * had none to move pages, all of them are lost: another thread may have mapped others where the
 * moved ones belong, so that these cannot be given back. */
static void *table_make_of_parts(size_t size)
{
    char *table = table_map_pages(size);
    size_t moved = table ? table_move_kept(table, size) : SIZE_MAX;
    if (moved == SIZE_MAX)
        return NULL;
    table_clear_pages(table, moved);
    return table;
}

static void *table_make_large(void *old, size_t old_size, size_t size)
{
    void *table = table_make_of_kept(old, old_size, table_round_up(size));
    if (!table && (table = table_make_of_parts(table_round_up(size))) && old)
        memcpy(table, old, old_size);
    if (table)
        free(old);
    return table;
}

/* Grows a mapping. The system moves its pages to a free range instead of copying them, but for
 * tables that consist of several mappings. As many pages that are kept are given back as are added,
 * so that keeping them never takes more memory. */
static void *table_resize_large(void *old, size_t old_size, size_t size)
{
    if (old_size == size)
        return old;
    void *table = table_make_of_kept(old, old_size, size);
    if (!table) {
        base_table_give_back(size - old_size);
        void *address = table_map_pages(size);
        if (!address)
            return NULL;
        if (table_is_one_mapping(old, old_size)) {
            table = mremap(old, old_size, size, MREMAP_MAYMOVE | MREMAP_FIXED, address);
            return table == MAP_FAILED ? NULL : table;
        }
        table = memcpy(address, old, old_size);
    }
    table_keep_pages((struct range){old, old_size});
    return table;
}

void *table_resize(void *old, size_t old_size, size_t size)
{
    if (size < LARGE)
        return table_resize_small(old, old_size, size);
    if (size > SIZE_MAX / 2)
        return NULL;
    if (old_size < LARGE)
        return table_make_large(old, old_size, size);
    return table_resize_large(old, table_round_up(old_size), table_round_up(size));
}

size_t table_next(size_t capacity, size_t size)
{
    capacity *= 2;
    while (capacity * size >= LARGE && capacity * size <= LARGE_PAGE / 2)
        capacity *= 2;
    return capacity;
}

void table_free(void *table, size_t size)
{
    table_free_used(table, size, size);
}

void table_free_used(void *table, size_t size, size_t used)
{
    if (!table || size < LARGE) {
        free(table);
        return;
    }
    char *end = (char *)table + table_round_up(used);
    if (table_round_up(used) < table_round_up(size))
        munmap(end, table_round_up(size) - table_round_up(used));
    if (used)
        table_keep_pages((struct range){table, table_round_up(used)});
}

void table_give_back(void *table, size_t size)
{
    if (size < LARGE)
        free(table);
    else
        munmap(table, table_round_up(size));
}

void table_give_back_kept(void)
{
    base_table_give_back(SIZE_MAX);
}
