/* SPDX-License-Identifier: MIT */
#include "snapshot/pages/page_store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <xxhash.h>

enum { PENDING_PAGES = 64, RUNS = 4096, FIRST_CAPACITY = 1024 };

/* A page that the trace has. */
struct stored_page {
    XXH128_hash_t hash;
    uint64_t id; /* 0 in an empty entry */
};

struct page_store {
    struct ttd_writer *writer;
    XXH64_hash_t seed;
    /* All pages written, by hash. Half of the entries at most are in use. */
    struct stored_page *table;
    size_t capacity, count;
    uint64_t next_id;
    /* Pages that have an id, and are not written yet. */
    unsigned char pending[PENDING_PAGES][STORE_PAGE];
    uint32_t pending_count;
    /* The snapshot. */
    uint32_t snapshot;
    struct ttd_position position;
    enum ttd_status status;
    struct ttd_memory_run runs[RUNS];
    size_t run_count;
};

struct page_store *page_store_new(struct ttd_writer *writer)
{
    struct page_store *store = calloc(1, sizeof *store);
    if (!store)
        return NULL;
    store->writer = writer;
    store->next_id = TTD_PAGE_FIRST;
    store->capacity = FIRST_CAPACITY;
    store->table = calloc(store->capacity, sizeof *store->table);
    if (!store->table || getrandom(&store->seed, sizeof store->seed, 0) != sizeof store->seed) {
        page_store_free(store);
        return NULL;
    }
    return store;
}

void page_store_free(struct page_store *store)
{
    if (store)
        free(store->table);
    free(store);
}

/* Returns the entry of a hash, or the empty one where it belongs. */
static struct stored_page *page_store_find(struct stored_page *table, size_t capacity,
                                           XXH128_hash_t hash)
{
    size_t i = hash.low64 & (capacity - 1);
    while (table[i].id != 0 && !XXH128_isEqual(table[i].hash, hash))
        i = (i + 1) & (capacity - 1);
    return &table[i];
}

static bool page_store_grow(struct page_store *store)
{
    size_t capacity = 2 * store->capacity;
    struct stored_page *table = calloc(capacity, sizeof *table);
    if (!table)
        return false;
    for (size_t i = 0; i < store->capacity; i++)
        if (store->table[i].id != 0)
            *page_store_find(table, capacity, store->table[i].hash) = store->table[i];
    free(store->table);
    store->table = table;
    store->capacity = capacity;
    return true;
}

static void page_store_fail(struct page_store *store, enum ttd_status status)
{
    if (store->status == TTD_OK)
        store->status = status;
}

static void store_write_pending(struct page_store *store)
{
    struct ttd_pages pages = {
        .page_size = STORE_PAGE, .count = store->pending_count, .data = store->pending[0]};
    uint64_t first = 0;
    if (store->pending_count == 0)
        return;
    enum ttd_status status = ttd_writer_pages(store->writer, &pages, &first);
    if (status == TTD_OK && first + store->pending_count != store->next_id)
        status = TTD_ERROR_MISUSE;
    if (status != TTD_OK)
        page_store_fail(store, status);
    store->pending_count = 0;
}

/* Writes runs; the pages that they name come before them. */
static void store_write_runs(struct page_store *store, bool is_last)
{
    struct ttd_memory_map map = {.snapshot = store->snapshot,
                                 .last = is_last,
                                 .position = store->position,
                                 .page_size = STORE_PAGE,
                                 .runs = store->runs,
                                 .count = store->run_count};
    store_write_pending(store);
    if (store->status == TTD_OK)
        page_store_fail(store, ttd_writer_memory_map(store->writer, &map));
    store->run_count = 0;
}

/* Adds pages to the last run if they continue it, else as a run of their own. */
static void store_add_run(struct page_store *store, const struct ttd_memory_run *run)
{
    struct ttd_memory_run *last = store->run_count != 0 ? &store->runs[store->run_count - 1] : NULL;
    if (last && last->address + last->page_count * STORE_PAGE == run->address &&
        last->protection == run->protection &&
        run->page == (last->page < TTD_PAGE_FIRST ? last->page : last->page + last->page_count)) {
        last->page_count += run->page_count;
        return;
    }
    if (store->run_count == RUNS)
        store_write_runs(store, false);
    store->runs[store->run_count++] = *run;
}

static bool store_is_zero(const unsigned char *bytes)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, STORE_PAGE - 1) == 0;
}

/* Returns the id of a page, and keeps its content if it is new; 0 if memory ran out. */
static uint64_t page_id(struct page_store *store, const unsigned char *bytes)
{
    if (store->count >= store->capacity / 2 && !page_store_grow(store)) {
        page_store_fail(store, TTD_ERROR_NO_MEMORY);
        return 0;
    }
    XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, STORE_PAGE, store->seed);
    struct stored_page *entry = page_store_find(store->table, store->capacity, hash);
    if (entry->id != 0)
        return entry->id;
    if (store->pending_count == PENDING_PAGES)
        store_write_pending(store);
    memcpy(store->pending[store->pending_count++], bytes, STORE_PAGE);
    *entry = (struct stored_page){hash, store->next_id++};
    store->count++;
    return entry->id;
}

void page_store_begin(struct page_store *store, uint32_t snapshot, struct ttd_position position)
{
    store->snapshot = snapshot;
    store->position = position;
    store->run_count = 0;
}

void page_store_add(struct page_store *store, uint64_t address, const void *bytes,
                    uint32_t protection)
{
    if (store->status != TTD_OK)
        return;
    uint64_t id = store_is_zero(bytes) ? TTD_PAGE_ZERO : page_id(store, bytes);
    if (store->status != TTD_OK)
        return;
    struct ttd_memory_run run = {
        .address = address, .page_count = 1, .protection = protection, .page = id};
    store_add_run(store, &run);
}

void page_store_add_absent(struct page_store *store, uint64_t address, uint64_t count,
                           uint32_t page, uint32_t protection)
{
    struct ttd_memory_run run = {
        .address = address, .page_count = count, .protection = protection, .page = page};
    if (store->status == TTD_OK && count != 0)
        store_add_run(store, &run);
}

enum ttd_status page_store_end(struct page_store *store)
{
    store_write_runs(store, true);
    return store->status;
}
