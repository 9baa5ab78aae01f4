/* SPDX-License-Identifier: MIT */
#include "travel/forward.h"

#include <stdlib.h>

#include "base/grow.h"
#include "travel/net_crew.h"

/* The whole trace is replayed call by call as soon as more chunks than this needed it, and more
 * than a quarter of the chunks so far. */
#define REPLAYED_MAX 8

/* Distance of prefetching, in records. */
#define AHEAD 8

/* Addresses that are looked up together. */
#define TOGETHER 64

struct forward_run {
    struct heap_replay *replay;
    const struct heap_trace *trace;
    const struct heap_forward *forward;
    struct net_list list;
    /* By net: a record of its address; HEAP_NO_RECORD if there is none. */
    uint32_t *records;
    size_t record_capacity;
    /* Number of chunks that were replayed call by call, and the event that the reader gives next;
     * TTD_UNKNOWN at first. */
    size_t replayed;
    uint64_t reader_next;
    bool is_done;
    struct ttd_error *error;
};

/* ---- Replaying a chunk ---- */

/* Applies the events of a chunk one by one. */
static enum ttd_status forward_replay_chunk(struct forward_run *run, const struct ttd_chunk *chunk)
{
    struct ttd_reader *reader = run->trace->reader;
    const struct heap_batch_hook *hook = &run->trace->hook;
    uint64_t end = chunk->first_record + chunk->record_count;
    enum ttd_status status = TTD_OK;
    if (run->reader_next != chunk->first_record) {
        status = ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_EVENTS));
        if (status == TTD_OK)
            status = ttd_reader_seek_event(reader, chunk->first_record, run->error);
        run->reader_next = chunk->first_record;
    }
    while (status == TTD_OK && run->reader_next < end) {
        struct ttd_batch batch;
        size_t applied;
        status = ttd_reader_next(reader, &batch, run->error);
        if (status == TTD_OK && hook->batch)
            status = hook->batch(hook->context, &batch);
        if (status == TTD_OK)
            status = heap_replay_apply(run->replay, &batch, ttd_position_max(), &applied);
        if (status == TTD_OK)
            run->reader_next = batch.u.events[batch.count - 1].number + 1;
    }
    return status;
}

/* ---- Whether the sums of a chunk say all ---- */

/* Finds the records of the nets' addresses; where there is none, adds a record for a block that is
 * left. False if one holds something else than a net says. There is room for all. */
static bool forward_find_together(struct forward_run *run, const struct ttd_netted *netted,
                                  size_t first, size_t end)
{
    struct heap_live *live = &run->replay->live;
    uint32_t hashes[TOGETHER];
    size_t slots[TOGETHER];
    for (size_t i = first; i < end; i++) {
        hashes[i - first] = heap_live_hash(live, netted->nets[i].address);
        heap_live_prefetch(live, hashes[i - first]);
    }
    for (size_t i = first; i < end; i++) {
        slots[i - first] = heap_live_find_slot(live, hashes[i - first]);
        heap_live_prefetch_record(live, slots[i - first]);
    }
    for (size_t i = first; i < end; i++) {
        const struct ttd_net *net = &netted->nets[i];
        ttd_id heap = netted->heaps[net->heap];
        uint32_t record =
            net->state == TTD_NET_LIVE
                ? heap_live_record_at(live, net->address, hashes[i - first], slots[i - first])
                : heap_live_known_record(live, net->address, hashes[i - first]);
        const struct heap_block *block = &live->blocks[record];
        bool is_live = record != HEAP_NO_RECORD && heap_live_has(live, block);
        bool is_stale = record != HEAP_NO_RECORD && block->is_held && !is_live;
        if (net->was_live != is_live || (is_live && block->heap != heap) || is_stale ||
            (record != HEAP_NO_RECORD && block->is_shared))
            return false;
        run->records[i] = record;
    }
    return true;
}

static enum ttd_status forward_find_records(struct forward_run *run,
                                            const struct ttd_netted *netted, bool *is_plain)
{
    struct heap_live *live = &run->replay->live;
    enum ttd_status status = grow_array((void **)&run->records, &run->record_capacity,
                                        netted->count, sizeof *run->records);
    for (size_t i = 0; i < netted->count && status == TTD_OK && *is_plain; i += TOGETHER) {
        size_t end = netted->count - i < TOGETHER ? netted->count : i + TOGETHER;
        status = heap_live_reserve(live, live->used_records + (end - i));
        if (status == TTD_OK)
            *is_plain = forward_find_together(run, netted, i, end);
    }
    return status;
}

/* Whether the sums say all, as far as the chunk alone shows it. */
static bool forward_is_summed(const struct forward_run *run, const struct ttd_netted *netted)
{
    return netted->is_plain && netted->sums.is_exact && !netted->pending_count &&
           !netted->actions[TTD_ACTION_DESTROY] &&
           netted->times[0].wall_time >= run->replay->wall_time;
}

/* ---- Applying sums ---- */

/* Prefetches a record that will be needed soon. Always inlined, because gcc removes calls of a
 * function that does nothing but prefetch. */
static inline __attribute__((always_inline)) void forward_prefetch(const struct forward_run *run,
                                                                   uint32_t record)
{
    if (record == HEAP_NO_RECORD)
        return;
    __builtin_prefetch(&run->replay->live.blocks[record], 1);
    run->forward->observer->prefetch(run->forward->observer->context, record);
}

/* Ends the block of an earlier chunk that a net has released. */
static enum ttd_status forward_release(struct forward_run *run, const struct heap_net_chunk *chunk,
                                       const struct ttd_net *net, uint32_t record)
{
    struct heap_live *live = &run->replay->live;
    const struct heap_net_observer *observer = run->forward->observer;
    enum ttd_status status =
        observer->released(observer->context, chunk, net, &live->blocks[record], record);
    (void)heap_live_release(live, record);
    return status;
}

/* Makes the block live that a net leaves. */
static enum ttd_status forward_acquire(struct forward_run *run, const struct heap_net_chunk *chunk,
                                       const struct ttd_net *net, uint32_t record)
{
    struct heap_live *live = &run->replay->live;
    const struct heap_net_observer *observer = run->forward->observer;
    struct heap_block block = net_block(chunk->netter, net);
    struct heap_block replaced;
    enum ttd_status status = heap_live_acquire(live, &record, &block, &replaced);
    if (status == TTD_OK)
        status = observer->acquired(observer->context, chunk, net, &live->blocks[record], record);
    return status;
}

/* Applies the effects of the nets. A net releases its block before it acquires another. */
static enum ttd_status forward_apply_nets(struct forward_run *run,
                                          const struct heap_net_chunk *chunk,
                                          const struct net_result *result)
{
    const struct ttd_netted *netted = &result->netted;
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < netted->count && status == TTD_OK; i++) {
        const struct ttd_net *net = &netted->nets[i];
        forward_prefetch(run, i + AHEAD < netted->count ? run->records[i + AHEAD] : 0);
        if (net->was_live)
            status = forward_release(run, chunk, net, run->records[i]);
        if (net->state == TTD_NET_LIVE && status == TTD_OK)
            status = forward_acquire(run, chunk, net, run->records[i]);
    }
    return status;
}

static enum ttd_status forward_apply(struct forward_run *run, const struct net_result *result)
{
    struct heap_replay *replay = run->replay;
    const struct heap_batch_hook *hook = &run->trace->hook;
    const struct heap_net_observer *observer = run->forward->observer;
    const struct ttd_netted *netted = &result->netted;
    const struct ttd_chunk *chunk = &run->list.chunks[result->number].chunk;
    const struct heap_net_chunk applied = {result->netter, &netted->sums, chunk->first_record};
    enum ttd_status status = forward_apply_nets(run, &applied, result);
    net_count(replay, netted);
    replay->next = chunk->first_record + chunk->record_count;
    replay->wall_time = netted->times[netted->time_count - 1].wall_time;
    if (status == TTD_OK)
        status = observer->summed(observer->context, &applied);
    if (status == TTD_OK && hook->net)
        status = hook->net(hook->context, chunk, netted);
    return status;
}

/* ---- Chunks ---- */

static void forward_prepare(void *context, struct ttd_netter *netter)
{
    const struct forward_run *run = context;
    ttd_netter_sum(netter, &run->forward->sums);
}

/* Has the observer get the effects that come before a chunk: of ReAllocs that have ended, and of
 * blocks of destroyed heaps. */
static enum ttd_status forward_begin_chunk(struct forward_run *run, const struct ttd_chunk *chunk)
{
    struct heap_replay *replay = run->replay;
    enum ttd_status status = heap_replay_settle(replay, chunk->first_position);
    heap_ordinal_map_begin(&replay->records, &replay->live, chunk->offset);
    if (status == TTD_OK)
        status = replay->observer_status;
    return status == TTD_OK && replay->observer.applied
               ? replay->observer.applied(replay->observer.context)
               : status;
}

static enum ttd_status forward_take_netted(struct forward_run *run, const struct net_result *result)
{
    const struct ttd_chunk *chunk = &run->list.chunks[result->number].chunk;
    bool is_plain = forward_is_summed(run, &result->netted);
    enum ttd_status status = TTD_OK;
    if (is_plain) {
        status = forward_begin_chunk(run, chunk);
        is_plain = !run->replay->queue.count;
    }
    if (status == TTD_OK && is_plain)
        status = forward_find_records(run, &result->netted, &is_plain);
    if (status != TTD_OK)
        return status;
    if (is_plain)
        return forward_apply(run, result);
    run->replayed++;
    run->is_done = run->replayed <= REPLAYED_MAX || run->replayed <= (result->number + 1) / 4;
    return run->is_done ? forward_replay_chunk(run, chunk) : TTD_OK;
}

static enum ttd_status forward_take_chunk(void *context, const struct net_result *result,
                                          bool *is_over)
{
    struct forward_run *run = context;
    enum ttd_status status = TTD_OK;
    if (result->status == TTD_OK)
        status = forward_take_netted(run, result);
    else
        run->is_done = false;
    if (result->status == TTD_ERROR_NO_MEMORY || result->status == TTD_ERROR_IO) {
        status = result->status;
        *run->error = result->error;
    }
    *is_over = !run->is_done;
    return status;
}

enum ttd_status heap_forward_replay(struct heap_replay *replay, const struct heap_trace *trace,
                                    const struct heap_forward *forward, bool *is_done,
                                    struct ttd_error *error)
{
    struct forward_run run = {.replay = replay,
                              .trace = trace,
                              .forward = forward,
                              .reader_next = TTD_UNKNOWN,
                              .error = error};
    struct net_crew crew = {
        .list = &run.list, .context = &run, .prepare = forward_prepare, .take = forward_take_chunk};
    enum ttd_status status =
        net_list_read(&run.list, trace, ttd_position_max(), &run.is_done, error);
    if (status == TTD_OK && run.is_done)
        status = net_crew_run(&crew, trace);
    *is_done = run.is_done;
    net_list_free(&run.list);
    free(run.records);
    return status;
}
