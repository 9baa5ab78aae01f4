/* SPDX-License-Identifier: MIT */
#include "travel/index.h"

#include "base/task.h"
#include "travel/heap_cursor.h"

/* Bytes of a block in a keyframe, before any was written. */
#define BLOCK_SIZE_GUESS 8

/* Keyframes are rarer by this factor while summaries are made: those serve most reports. */
#define SPARSER 6

struct index_maker {
    struct heap_block_lister lister;
    const struct heap_index_spacing *spacing;
    struct heap_replay replay;
    struct heap_summary summary;
    /** The thread that writes the last summary. While it runs, the lister belongs to it. */
    struct task writing;
    struct heap_index_facts facts;
    /** Number of the current chunk of events; stored bytes of events since the last keyframe; and
     * the number of events before it. */
    uint64_t chunk;
    uint64_t bytes;
    uint64_t last_event;
    /** Effect position of the last event, whether it had an effect or not. */
    struct ttd_position reached;
    /** Size of the last keyframe, for estimating the next one. */
    uint64_t keyframe_bytes;
    uint64_t keyframe_blocks;
};

static uint64_t index_bytes_written(const struct index_maker *maker)
{
    return maker->lister.writer ? ttd_writer_bytes(maker->lister.writer) : 0;
}

static enum ttd_status index_write_keyframe(struct index_maker *maker)
{
    struct heap_keyframe keyframe = {.position = maker->replay.position,
                                     .counts = maker->replay.counts,
                                     .next = maker->replay.next,
                                     .blocks = maker->replay.live.count};
    struct ttd_state state = heap_state_of_keyframe(&keyframe);
    uint64_t before = index_bytes_written(maker);
    enum ttd_status status = heap_list_state(&maker->lister, &state);
    if (status == TTD_OK)
        status = heap_list_live(&maker->lister, keyframe.position, &maker->replay.live);
    if (status != TTD_OK)
        return status;
    maker->facts.keyframes++;
    maker->keyframe_bytes = index_bytes_written(maker) - before;
    maker->keyframe_blocks = keyframe.blocks;
    maker->last_event = keyframe.counts.events;
    maker->bytes = 0;
    return TTD_OK;
}

static enum ttd_status index_write_peak(struct index_maker *maker)
{
    struct heap_peak peak = heap_replay_peak(&maker->replay);
    struct ttd_state state = heap_state_of_peak(&peak);
    return heap_list_state(&maker->lister, &state);
}

static uint64_t index_guess_size(const struct index_maker *maker)
{
    double each = maker->keyframe_blocks
                      ? (double)maker->keyframe_bytes / (double)maker->keyframe_blocks
                      : BLOCK_SIZE_GUESS;
    return (uint64_t)((double)maker->replay.live.count * each);
}

/* Whether it is time for a keyframe: the distance in events is reached, and the events since the
 * last keyframe take at least as many bytes in the trace as the keyframe would in the index. */
static bool index_is_keyframe_due(const struct index_maker *maker)
{
    uint64_t events = maker->replay.counts.events - maker->last_event;
    uint64_t times = maker->summary.is_open ? SPARSER : 1;
    if (!maker->spacing->keyframes)
        return events;
    return events >= maker->spacing->keyframes && maker->bytes >= times * index_guess_size(maker);
}

/* Whether it is time for a summary to end. */
static bool index_is_summary_due(const struct index_maker *maker)
{
    if (!maker->summary.is_open)
        return false;
    uint64_t events = maker->replay.counts.events - maker->summary.begin.counts.events;
    return events >= maker->spacing->summaries;
}

/*
 * Whether a keyframe can describe the state: no call is in flight, and no event without an effect,
 * such as a failed call, comes after the last effect. Such an event is counted already, though its
 * position is behind the state's.
 */
static bool index_is_clean(const struct heap_replay *replay, struct ttd_position reached)
{
    return !replay->queue.count && ttd_position_compare(reached, replay->position) <= 0;
}

static enum ttd_status index_write_summary(void *context)
{
    struct index_maker *maker = context;
    return heap_summary_write(&maker->summary, &maker->lister);
}

/* Ends the open summary, if any. Writes it, unless `is_left`: then the caller starts a thread that
 * does. Sets `is_left` to false if there is nothing to write. */
static enum ttd_status index_end_summary(struct index_maker *maker, struct ttd_position end,
                                         bool *is_left)
{
    bool has_ended = false;
    enum ttd_status status = task_wait(&maker->writing);
    if (status == TTD_OK)
        status = heap_summary_end(&maker->summary, &maker->replay, end, &has_ended);
    maker->facts.summaries += has_ended;
    *is_left = *is_left && has_ended;
    return status == TTD_OK && has_ended && !*is_left ? index_write_summary(maker) : status;
}

/* Writes the states that are due between two events. Records of an index stand in the order of
 * events, so a summary ends wherever a keyframe is written. A summary begins where the last one
 * ended or, if there was none, at a keyframe: summaries are discarded where heaps are destroyed,
 * and to begin each again would cost a pass over all live blocks, so there keyframes must do. */
static enum ttd_status index_write_due(struct index_maker *maker, bool keyframe,
                                       struct ttd_position next)
{
    bool are_many = maker->replay.live.count >= maker->spacing->summary_blocks;
    bool is_left = are_many && !keyframe;
    enum ttd_status status = index_end_summary(maker, next, &is_left);
    if (status == TTD_OK && keyframe)
        status = index_write_keyframe(maker);
    if (!are_many || !(keyframe || maker->summary.is_open))
        heap_summary_close(&maker->summary, &maker->replay);
    else if (status == TTD_OK)
        status = heap_summary_begin(&maker->summary, &maker->replay);
    if (status == TTD_OK && is_left)
        task_start(&maker->writing, index_write_summary, maker);
    return status;
}

/* ---- Comparing with an existing index ---- */

/* Whether a state of the compared index is to be looked at before the event `next`: an open summary
 * ends here or, if none is open, the next state of the index begins here. */
static bool index_is_planned(const struct index_maker *maker, const struct ttd_event *next)
{
    const struct ttd_state *state = heap_index_check_next(maker->lister.check);
    if (!state)
        return false;
    if (maker->summary.is_open)
        return ttd_position_compare(state->end, ttd_event_position(next)) <= 0;
    return state->next_event <= next->number;
}

static bool index_begins_here(const struct index_maker *maker, enum ttd_state_form form)
{
    const struct ttd_state *state = heap_index_check_next(maker->lister.check);
    return state && state->form == form && state->next_event == maker->replay.next;
}

/* Compares the states that the index has at this event. A summary is compared when it ends: its
 * list of blocks is known only then. */
static enum ttd_status index_compare_due(struct index_maker *maker, struct ttd_position next)
{
    bool is_left = false;
    enum ttd_status status = index_end_summary(maker, next, &is_left);
    if (status == TTD_OK && index_begins_here(maker, TTD_STATE_KEYFRAME))
        status = index_write_keyframe(maker);
    if (status != TTD_OK)
        return status;
    if (index_begins_here(maker, TTD_STATE_SUMMARY))
        return heap_summary_begin(&maker->summary, &maker->replay);
    heap_summary_close(&maker->summary, &maker->replay);
    const struct ttd_state *state = heap_index_check_next(maker->lister.check);
    return state && state->next_event <= maker->replay.next
               ? heap_index_check_misplaced(maker->lister.check)
               : TTD_OK;
}

/* ---- Replaying ---- */

/* Writes or compares the states between two chunks of events. There are none within a chunk, since
 * a reader cannot start to read in the middle of one. */
static enum ttd_status index_pass_boundary(struct index_maker *maker, const struct ttd_batch *batch)
{
    struct ttd_position next = ttd_event_position(&batch->u.events[0]);
    bool compares = maker->lister.check;
    bool keyframe = !compares && index_is_keyframe_due(maker);
    bool is_due = compares ? index_is_planned(maker, &batch->u.events[0])
                           : keyframe || index_is_summary_due(maker);
    enum ttd_status status = is_due ? heap_replay_settle(&maker->replay, next) : TTD_OK;
    /* Numbers are not consecutive where events were lost. */
    maker->replay.next = batch->u.events[0].number;
    if (status == TTD_OK && is_due && index_is_clean(&maker->replay, maker->reached))
        status = compares ? index_compare_due(maker, next) : index_write_due(maker, keyframe, next);
    maker->chunk = batch->chunk.number;
    maker->bytes += batch->chunk.stored_size;
    return status;
}

static enum ttd_status index_add_batch(struct index_maker *maker, const struct ttd_batch *batch)
{
    enum ttd_status status = TTD_OK;
    size_t applied;
    if (batch->chunk.number != maker->chunk)
        status = index_pass_boundary(maker, batch);
    maker->reached = ttd_event_position(&batch->u.events[batch->count - 1]);
    return status == TTD_OK ? heap_replay_apply(&maker->replay, batch, ttd_position_max(), &applied)
                            : status;
}

static enum ttd_status index_replay(struct index_maker *maker, const struct heap_trace *trace,
                                    struct ttd_error *error)
{
    struct heap_prefetcher prefetcher;
    heap_prefetcher_init(&prefetcher, trace->reader);
    enum ttd_status status = ttd_reader_rewind_checked(trace->reader, HEAP_CURSOR_KINDS);
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = heap_prefetcher_next(&prefetcher, &batch, error);
        if (status == TTD_OK && trace->hook.batch)
            status = trace->hook.batch(trace->hook.context, &batch);
        if (status == TTD_OK && batch.kind == TTD_KIND_LOSSES && batch.synthetic) {
            *error = batch.error;
            status = TTD_ERROR_CORRUPT;
        }
        if (status == TTD_OK)
            status = heap_parents_add(&maker->replay.live.parents, &batch);
        if (status == TTD_OK && batch.kind == TTD_KIND_EVENTS)
            status = index_add_batch(maker, &batch);
    }
    heap_prefetcher_free(&prefetcher);
    if (status == TTD_END && !ttd_reader_is_intact(trace->reader)) {
        *error = (struct ttd_error){.status = TTD_ERROR_CORRUPT,
                                    .offset = TTD_NOWHERE,
                                    .chunk = TTD_NOWHERE,
                                    .what = "chunks that do not agree with each other"};
        status = TTD_ERROR_CORRUPT;
    }
    if (status == TTD_END)
        status = heap_replay_settle(&maker->replay, ttd_position_max());
    bool is_left = false;
    if (status == TTD_OK)
        status = index_end_summary(maker, ttd_position_invalid(), &is_left);
    if (status == TTD_OK)
        status = index_write_peak(maker);
    return status == TTD_OK && maker->lister.check ? heap_index_check_end(maker->lister.check)
                                                   : status;
}

static enum ttd_status index_make_all(struct index_maker *maker, const struct heap_trace *trace,
                                      struct ttd_error *error)
{
    enum ttd_status status = heap_replay_init(&maker->replay, NULL);
    if (status == TTD_OK)
        status = index_replay(maker, trace, error);
    maker->facts.events = maker->replay.counts.events;
    task_wait(&maker->writing);
    heap_summary_close(&maker->summary, &maker->replay);
    heap_replay_free(&maker->replay);
    return status;
}

enum ttd_status heap_index_write(const struct heap_trace *trace,
                                 const struct heap_index_spacing *spacing,
                                 struct ttd_writer *writer, struct heap_index_facts *facts,
                                 struct ttd_error *error)
{
    struct index_maker maker = {.lister.writer = writer, .spacing = spacing, .chunk = UINT64_MAX};
    enum ttd_status status = index_make_all(&maker, trace, error);
    if (status == TTD_OK)
        *facts = maker.facts;
    return status;
}

enum ttd_status heap_index_compare(const struct heap_trace *trace, struct heap_index_check *check,
                                   struct ttd_error *error)
{
    struct heap_index_spacing no_spacing = {.keyframes = 0};
    struct index_maker maker = {.lister.check = check, .spacing = &no_spacing, .chunk = UINT64_MAX};
    return index_make_all(&maker, trace, error);
}
