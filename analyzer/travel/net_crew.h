/* SPDX-License-Identifier: MIT */
/** Listing the chunks of a trace, netting them in several threads, and taking them in order. */
#ifndef ANALYZER_TRAVEL_NET_CREW_H
#define ANALYZER_TRAVEL_NET_CREW_H

#include "heap/replay.h"
#include "travel/heap_trace.h"

/** A chunk of events that the reader has left unread. */
struct net_chunk {
    struct ttd_chunk chunk;
    struct ttd_defined defined;
};

/** The chunks of events of a trace, in its order. All zero when empty. */
struct net_list {
    struct net_chunk *chunks;
    size_t count;
    size_t capacity;
    /** The number of those whose events are all at the position or before. */
    size_t before;
};

/**
 * Reads all but the events, and lists their chunks.
 *
 * @param to        the position
 * @param is_plain  set to false as soon as a replay is necessary: there are losses, damage, or
 *                  nested heaps, or less than half of the chunks lie before the position
 * @return TTD_OK, or the reader's status.
 */
enum ttd_status net_list_read(struct net_list *list, const struct heap_trace *trace,
                              struct ttd_position to, bool *is_plain, struct ttd_error *error);
void net_list_free(struct net_list *list);

/** The block that a net leaves. */
struct heap_block net_block(const struct ttd_netter *netter, const struct ttd_net *net);

/** Adds the counts of a netted chunk to a replay, and moves its position. */
void net_count(struct heap_replay *replay, const struct ttd_netted *netted);

/** A chunk that was netted. */
struct net_result {
    /** Its place in the list of chunks. */
    size_t number;
    const struct ttd_netter *netter;
    /** TTD_OK, or why the chunk cannot be netted: then `netted` is undefined. */
    enum ttd_status status;
    struct ttd_netted netted;
    struct ttd_error error;
};

struct net_crew {
    const struct net_list *list;
    /** From the last chunk to the first. */
    bool is_backward;
    void *context;
    /** Prepares a netter; any thread may call it. NULL if there is nothing to prepare. */
    void (*prepare)(void *context, struct ttd_netter *netter);
    /** Takes a chunk when those before it in the order were taken. Another thread may call it while
     * the caller of net_crew_run() waits, but never two at once. `is_over` is set if no more chunks
     * are wanted. */
    enum ttd_status (*take)(void *context, const struct net_result *result, bool *is_over);
};

/**
 * Nets all chunks.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, or the first status of `take` that is not TTD_OK.
 */
enum ttd_status net_crew_run(const struct net_crew *crew, const struct heap_trace *trace);

#endif
