/* SPDX-License-Identifier: MIT */
#include "travel/net_crew.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/task.h"

/* Chunks are taken one at a time, in a quarter of the time that netting takes: more threads would
 * wait for each other. */
#define THREADS_MAX 8

void net_list_free(struct net_list *list)
{
    free(list->chunks);
}

/* Adds a chunk of events. Most of them must lie at the position or before: a replay of the others
 * would check them on its way. */
static enum ttd_status net_list_add(struct net_list *list, const struct heap_trace *trace,
                                    const struct ttd_chunk *chunk, struct ttd_position to,
                                    bool *is_plain)
{
    enum ttd_status status =
        grow_array((void **)&list->chunks, &list->capacity, list->count + 1, sizeof *list->chunks);
    if (status != TTD_OK)
        return status;
    bool is_before =
        list->before == list->count && ttd_position_compare(chunk->last_position, to) <= 0;
    list->chunks[list->count++] = (struct net_chunk){*chunk, ttd_reader_defined(trace->reader)};
    list->before += is_before;
    *is_plain = list->count <= 2 * list->before;
    return TTD_OK;
}

enum ttd_status net_list_read(struct net_list *list, const struct heap_trace *trace,
                              struct ttd_position to, bool *is_plain, struct ttd_error *error)
{
    struct ttd_reader *reader = trace->reader;
    struct ttd_batch batch;
    enum ttd_status status = ttd_reader_rewind_unread(
        reader, TTD_KIND_BIT(TTD_KIND_EVENTS) | TTD_KIND_BIT(TTD_KIND_LOSSES) |
                    TTD_KIND_BIT(TTD_KIND_HEAP_PARENTS));
    while (status == TTD_OK && (status = ttd_reader_next(reader, &batch, error)) == TTD_OK) {
        *is_plain = batch.kind == TTD_KIND_EVENTS;
        if (*is_plain)
            status = net_list_add(list, trace, &batch.chunk, to, is_plain);
        if (!*is_plain)
            return status;
    }
    *is_plain = ttd_reader_is_intact(reader);
    return heap_is_over(status) ? TTD_OK : status;
}

struct heap_block net_block(const struct ttd_netter *netter, const struct ttd_net *net)
{
    struct ttd_net_block found;
    ttd_netter_block(netter, net, &found);
    return (struct heap_block){.address = found.block.address,
                               .size = found.block.size,
                               .event = found.block.event,
                               .allocated = found.block.allocated,
                               .thread = found.block.thread,
                               .stack = found.block.stack,
                               .heap = found.block.heap,
                               .action = found.action,
                               .api = found.block.api};
}

void net_count(struct heap_replay *replay, const struct ttd_netted *netted)
{
    for (int action = 0; action <= TTD_ACTION_DESTROY; action++) {
        replay->counts.actions[action] += netted->actions[action];
        replay->counts.events += netted->actions[action];
    }
    replay->counts.failed += netted->failed;
    replay->counts.unfinished += netted->unfinished;
    if (ttd_position_compare(netted->last_effect, replay->position) > 0)
        replay->position = netted->last_effect;
}

/* ---- The crew ---- */

/* Threads get the chunks in order, net them at the same time, and hand them in in the same order:
 * the result is the one of a single thread. */
struct crew_run {
    const struct net_crew *crew;
    const struct heap_trace *trace;
    /* Number of chunks that some thread has got. */
    _Atomic size_t begun;
    /* Guards the members below, the reader, and the taking of chunks. */
    pthread_mutex_t mutex;
    pthread_cond_t taken;
    size_t taken_count;
    bool is_over;
    enum ttd_status status;
};

/* Gets the next chunk, the one at `turn` in the order; false if there is none. */
static bool crew_begin(struct crew_run *run, size_t *turn)
{
    size_t begun = atomic_load(&run->begun);
    while (begun < run->crew->list->count &&
           !atomic_compare_exchange_weak(&run->begun, &begun, begun + 1)) {
    }
    *turn = begun;
    return begun < run->crew->list->count;
}

/* Hands a chunk in when those before it were. Returns whether there is more to do. */
static bool crew_hand_in(struct crew_run *run, size_t turn, const struct net_result *result)
{
    pthread_mutex_lock(&run->mutex);
    while (!run->is_over && run->taken_count != turn)
        pthread_cond_wait(&run->taken, &run->mutex);
    if (!run->is_over) {
        bool is_over = false;
        run->status = run->crew->take(run->crew->context, result, &is_over);
        run->taken_count++;
        run->is_over = is_over || run->status != TTD_OK;
        pthread_cond_broadcast(&run->taken);
    }
    bool goes_on = !run->is_over;
    pthread_mutex_unlock(&run->mutex);
    return goes_on;
}

/* Fails only before it gets a chunk: other threads then do without this one. */
static enum ttd_status crew_work(void *context)
{
    struct crew_run *run = context;
    const struct net_crew *crew = run->crew;
    struct ttd_netter *netter;
    size_t turn;
    bool goes_on = true;
    /* Another thread may use the reader while it takes a chunk. */
    pthread_mutex_lock(&run->mutex);
    enum ttd_status status = ttd_netter_open(run->trace->reader, &netter);
    pthread_mutex_unlock(&run->mutex);
    if (status != TTD_OK)
        return status;
    if (crew->prepare)
        crew->prepare(crew->context, netter);
    while (goes_on && crew_begin(run, &turn)) {
        size_t number = crew->is_backward ? crew->list->count - 1 - turn : turn;
        const struct net_chunk *chunk = &crew->list->chunks[number];
        struct net_result result = {.number = number, .netter = netter};
        result.status =
            ttd_netter_net(netter, &chunk->chunk, &chunk->defined, &result.netted, &result.error);
        goes_on = crew_hand_in(run, turn, &result);
    }
    ttd_netter_close(netter);
    return TTD_OK;
}

static enum ttd_status crew_run_threads(struct crew_run *run, size_t threads)
{
    struct task others[THREADS_MAX];
    for (size_t i = 1; i < threads; i++)
        task_start(&others[i], crew_work, run);
    enum ttd_status status = crew_work(run);
    for (size_t i = 1; i < threads; i++)
        (void)task_wait(&others[i]);
    if (!run->is_over && run->taken_count != run->crew->list->count)
        return status;
    return run->status;
}

enum ttd_status net_crew_run(const struct net_crew *crew, const struct heap_trace *trace)
{
    struct crew_run run = {.crew = crew, .trace = trace};
    uint64_t allowed = trace->threads;
    size_t threads = allowed < THREADS_MAX ? (size_t)allowed : THREADS_MAX;
    pthread_mutex_init(&run.mutex, NULL);
    pthread_cond_init(&run.taken, NULL);
    enum ttd_status status =
        crew_run_threads(&run, threads < crew->list->count ? threads : crew->list->count);
    pthread_cond_destroy(&run.taken);
    pthread_mutex_destroy(&run.mutex);
    return status;
}
