/* SPDX-License-Identifier: MIT */
/*
 * Threads that net chunks, and the thread that reads ahead, share nothing unguarded: this program
 * and all that it runs are compiled with ThreadSanitizer, which ends it with a status at a race.
 */
#include <stdio.h>

#include "support/heap/random_calls.h"
#include "travel/end_blocks.h"
#include "travel/forward.h"
#include "travel/heap_cursor.h"

#define ADDRESSES 60

/* The sums of a hook, without a lock: only one thread at a time may call it. */
struct noted {
    uint64_t events;
    uint64_t last_number;
};

static enum ttd_status note_net(void *context, const struct ttd_chunk *chunk,
                                const struct ttd_netted *netted)
{
    struct noted *noted = context;
    noted->events += netted->is_plain ? chunk->record_count : 0;
    noted->last_number = chunk->number;
    return TTD_OK;
}

static struct ttd_reader *open_trace(const struct random_calls *calls)
{
    struct ttd_input input;
    struct ttd_reader *reader;
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = true;
    options.event_batches = HEAP_PREFETCH_BATCHES;
    if (ttd_input_memory(calls->file.data, calls->file.size, NULL, &input) != TTD_OK ||
        ttd_reader_open(&input, &options, NULL, &reader, NULL) != TTD_OK)
        return NULL;
    return reader;
}

/* Returns whether the nets of so many threads are what the replay found; of a trace without errors
 * they are the whole of it. */
static bool nets_agree(struct ttd_reader *reader, const struct heap_replay *expected, bool is_tame,
                       unsigned threads)
{
    struct noted noted = {.events = 0};
    struct heap_trace trace = {
        .reader = reader, .hook = {.context = &noted, .net = note_net}, .threads = threads};
    struct heap_replay replay;
    struct ttd_error error;
    struct end_blocks found = {.is_done = false};
    bool agrees =
        heap_replay_init(&replay, NULL) == TTD_OK &&
        heap_end_blocks_find(&replay, &trace, ttd_position_max(), &found, &error) == TTD_OK;
    if (found.is_done)
        agrees &=
            !random_calls_difference(&replay, expected) && noted.events == expected->counts.events;
    else
        agrees &= !is_tame;
    heap_replay_free(&replay);
    return agrees;
}

static void prefetch_nothing(void *context, uint32_t record)
{
    (void)context;
    (void)record;
}

static enum ttd_status note_block(void *context, const struct heap_net_chunk *chunk,
                                  const struct ttd_net *net, const struct heap_block *block,
                                  uint32_t record)
{
    struct noted *noted = context;
    (void)net;
    (void)record;
    noted->last_number = chunk->first_event + block->size;
    return TTD_OK;
}

static enum ttd_status note_sums(void *context, const struct heap_net_chunk *chunk)
{
    struct noted *noted = context;
    for (size_t i = 0; i < chunk->sums->thread_count; i++)
        noted->events += chunk->sums->threads[i].calls;
    return TTD_OK;
}

/* Returns whether the sums of so many threads lead to the state that the replay found. */
static bool sums_agree(struct ttd_reader *reader, const struct heap_replay *expected,
                       unsigned threads)
{
    struct noted noted = {.events = 0};
    const struct heap_net_observer observer = {.context = &noted,
                                               .prefetch = prefetch_nothing,
                                               .released = note_block,
                                               .acquired = note_block,
                                               .summed = note_sums};
    const struct heap_forward forward = {.sums = {.soon = 3}, .observer = &observer};
    struct heap_trace trace = {
        .reader = reader, .hook = {.context = &noted, .net = note_net}, .threads = threads};
    struct heap_replay replay;
    struct ttd_error error;
    bool is_done = false;
    bool agrees = heap_replay_init(&replay, NULL) == TTD_OK &&
                  heap_forward_replay(&replay, &trace, &forward, &is_done, &error) == TTD_OK &&
                  heap_replay_settle(&replay, ttd_position_max()) == TTD_OK;
    agrees &= !is_done || !random_calls_difference(&replay, expected);
    heap_replay_free(&replay);
    return agrees;
}

static bool check_trace(uint64_t seed, const struct random_faults *faults, unsigned count,
                        uint32_t events_per_chunk)
{
    static struct random_calls calls;
    struct entropy entropy = entropy_of_seed(seed);
    bool is_good = random_calls_open(&calls, entropy, faults, ADDRESSES, events_per_chunk);
    for (unsigned i = 0; i < count && is_good; i++)
        is_good = random_calls_step(&calls);
    is_good &= random_calls_close(&calls);
    struct ttd_reader *reader = is_good ? open_trace(&calls) : NULL;
    if (!reader)
        return false;
    struct heap_trace trace = {.reader = reader};
    struct heap_cursor cursor;
    struct ttd_error error;
    is_good = heap_cursor_init(&cursor, &trace, HEAP_CURSOR_KINDS, NULL) == TTD_OK &&
              heap_cursor_seek(&cursor, ttd_position_max(), &error) == TTD_OK &&
              nets_agree(reader, &cursor.replay, !faults->error, 4) &&
              nets_agree(reader, &cursor.replay, !faults->error, 16) &&
              sums_agree(reader, &cursor.replay, 4) && sums_agree(reader, &cursor.replay, 16);
    heap_cursor_free(&cursor);
    ttd_reader_close(reader);
    ttd_memory_output_free(&calls.file);
    return is_good;
}

int main(void)
{
    static const struct random_faults faults[] = {
        {.overlap = 30, .has_halves = true},
        {.destruction = 5, .has_halves = true},
        {.overlap = 30, .error = 1, .never = 5, .oddity = 20},
    };
    bool is_good = true;
    for (uint64_t seed = 1; seed <= 36; seed++)
        is_good &= check_trace(seed, &faults[seed % 3], 1000, 40);
    /* Long enough for the thread that reads ahead. */
    is_good &= check_trace(1, &faults[0], 40000, 4000);
    if (!is_good)
        fprintf(stderr, "the nets differ from a replay\n");
    return !is_good;
}
