/* SPDX-License-Identifier: MIT */
#include "travel/end_blocks.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/task.h"
#include "travel/end_search.h"

/* Chunks are added one at a time, in a quarter of the time that netting takes: more threads would
 * wait for each other. */
#define THREADS_MAX 8

/* Adds a chunk of events. Most of them must lie at the position or before: a replay of the others
 * would check them on its way. */
static enum ttd_status end_list_chunk(struct end_search *search, const struct ttd_chunk *chunk)
{
    enum ttd_status status = grow_array((void **)&search->chunks, &search->capacity,
                                        search->count + 1, sizeof *search->chunks);
    if (status != TTD_OK)
        return status;
    bool is_before = search->before == search->count &&
                     ttd_position_compare(chunk->last_position, search->to) <= 0;
    search->chunks[search->count++] =
        (struct end_chunk){*chunk, ttd_reader_defined(search->trace->reader)};
    search->before += is_before;
    search->is_plain = search->count <= 2 * search->before;
    return TTD_OK;
}

/* Reads all but the events, and lists their chunks. */
static enum ttd_status end_list_chunks(struct end_search *search, struct ttd_error *error)
{
    struct ttd_reader *reader = search->trace->reader;
    struct ttd_batch batch;
    enum ttd_status status = ttd_reader_rewind_unread(
        reader, TTD_KIND_BIT(TTD_KIND_EVENTS) | TTD_KIND_BIT(TTD_KIND_LOSSES) |
                    TTD_KIND_BIT(TTD_KIND_HEAP_PARENTS));
    while (status == TTD_OK && (status = ttd_reader_next(reader, &batch, error)) == TTD_OK) {
        search->is_plain = batch.kind == TTD_KIND_EVENTS;
        if (search->is_plain)
            status = end_list_chunk(search, &batch.chunk);
        if (!search->is_plain)
            return status;
    }
    search->is_plain = ttd_reader_is_intact(reader);
    return heap_is_over(status) ? TTD_OK : status;
}

/* ---- The threads ---- */

/* Threads take chunks from the last to the first, net them at the same time, and add them in the
 * same order, one at a time: the result is the one of a single thread. */
struct end_crew {
    struct end_search *search;
    /* Number of chunks that no thread has taken: the first ones. */
    _Atomic size_t left;
    /* Guards the search and the members below. */
    pthread_mutex_t mutex;
    pthread_cond_t added;
    /* Number of chunks that were not added. */
    size_t unadded;
    bool is_over;
    enum ttd_status status;
    struct ttd_error *error;
};

/* Takes the next chunk; false if there is none. */
static bool end_take(struct end_crew *crew, size_t *number)
{
    size_t left = atomic_load(&crew->left);
    while (left && !atomic_compare_exchange_weak(&crew->left, &left, left - 1)) {
    }
    *number = left - 1;
    return left != 0;
}

static void end_fail(struct end_crew *crew, enum ttd_status status, const struct ttd_error *error)
{
    /* A replay finds the damage, and reports it. */
    crew->search->is_plain = false;
    if (status != TTD_ERROR_NO_MEMORY && status != TTD_ERROR_IO)
        return;
    crew->status = status;
    *crew->error = *error;
}

/* The result of netting a chunk. */
struct end_result {
    enum ttd_status status;
    struct ttd_netted netted;
    struct ttd_error error;
};

/* Adds a chunk when those behind it were added. Returns whether there is more to do. */
static bool end_add_in_turn(struct end_crew *crew, const struct ttd_netter *netter, size_t number,
                            const struct end_result *result)
{
    pthread_mutex_lock(&crew->mutex);
    while (!crew->is_over && crew->unadded != number + 1)
        pthread_cond_wait(&crew->added, &crew->mutex);
    if (!crew->is_over) {
        if (result->status == TTD_OK)
            crew->status = end_search_add(crew->search, netter, number, &result->netted);
        else
            end_fail(crew, result->status, &result->error);
        crew->unadded = number;
        crew->is_over = crew->status != TTD_OK || !crew->search->is_plain;
        pthread_cond_broadcast(&crew->added);
    }
    bool goes_on = !crew->is_over;
    pthread_mutex_unlock(&crew->mutex);
    return goes_on;
}

/* Fails only before it takes a chunk: other threads then do without this one. */
static enum ttd_status end_work(void *context)
{
    struct end_crew *crew = context;
    struct ttd_netter *netter;
    struct end_result result = {.error.what = NULL};
    size_t number;
    enum ttd_status status = ttd_netter_open(crew->search->trace->reader, &netter);
    bool goes_on = status == TTD_OK;
    while (goes_on && end_take(crew, &number)) {
        const struct end_chunk *chunk = &crew->search->chunks[number];
        result.status =
            ttd_netter_net(netter, &chunk->chunk, &chunk->defined, &result.netted, &result.error);
        goes_on = end_add_in_turn(crew, netter, number, &result);
    }
    if (status == TTD_OK)
        ttd_netter_close(netter);
    return status;
}

static enum ttd_status end_run_crew(struct end_crew *crew, size_t threads)
{
    struct task others[THREADS_MAX];
    for (size_t i = 1; i < threads; i++)
        task_start(&others[i], end_work, crew);
    enum ttd_status status = end_work(crew);
    for (size_t i = 1; i < threads; i++)
        (void)task_wait(&others[i]);
    if (!crew->is_over && crew->unadded)
        return status;
    return crew->status;
}

static enum ttd_status end_add_chunks(struct end_search *search, struct ttd_error *error)
{
    struct end_crew crew = {
        .search = search, .left = search->count, .unadded = search->count, .error = error};
    end_search_begin(search);
    uint64_t allowed = search->trace->threads;
    size_t threads = allowed < THREADS_MAX ? (size_t)allowed : THREADS_MAX;
    pthread_mutex_init(&crew.mutex, NULL);
    pthread_cond_init(&crew.added, NULL);
    enum ttd_status status = end_run_crew(&crew, threads < search->count ? threads : search->count);
    pthread_cond_destroy(&crew.added);
    pthread_mutex_destroy(&crew.mutex);
    if (status == TTD_OK && search->is_plain)
        status = end_search_finish(search);
    return status;
}

enum ttd_status heap_end_blocks_find(struct heap_replay *replay, const struct heap_trace *trace,
                                     struct ttd_position to, struct end_blocks *found,
                                     struct ttd_error *error)
{
    struct end_search search = {.replay = replay, .trace = trace, .to = to};
    enum ttd_status status = end_list_chunks(&search, error);
    if (status == TTD_OK && search.is_plain)
        status = end_add_chunks(&search, error);
    *found = (struct end_blocks){search.is_plain, search.before == search.count};
    end_search_free(&search);
    free(search.chunks);
    return status;
}
