/* SPDX-License-Identifier: MIT */
/** Internals of netting, private to its parts. */
#ifndef TTD_CODEC_EVENTS_NETTING_PARTS_H
#define TTD_CODEC_EVENTS_NETTING_PARTS_H

#include "base/memory.h"
#include "codec/events/decoder.h"
#include "codec/events/netting.h"

/** States of an address besides those of enum ttd_net_state, while events are decoded. */
enum netting_state {
    /** Acquired by a call of ttd_netting.lates, whose end may be ahead. */
    NET_LATE = 2,
    /** No event has changed it. */
    NET_UNTOUCHED = 3,
    /** Its block ended with its heap, unless another net of the address has released it before; the
     * size is the index of the destruction. */
    NET_DESTROYED = 4
};

/** Makes room for `count` elements of an array of the netting. False without memory. */
#define NETTING_GROW(netting, array, capacity, count)                                              \
    (!ttd_grow_array((netting)->decoder.state.allocator, (void **)&(netting)->array,               \
                     &(netting)->capacity, (count), sizeof *(netting)->array))

static inline const struct ttd_event_class *netting_class(const struct ttd_netting *netting,
                                                          uint32_t shape)
{
    const struct ttd_event_state *state = &netting->decoder.state;
    return &state->classes[state->shapes[shape].class_index];
}

/** Whether events of the class take effect when they end. */
static inline bool netting_acquires(const struct ttd_event_class *class)
{
    return class->action == TTD_ACTION_ALLOC || class->action == TTD_ACTION_CREATE;
}

/** Whether a call acquires a block after its effect position. */
static inline bool netting_is_reallocation(const struct ttd_event_class *class)
{
    return class->action == TTD_ACTION_REALLOC && (class->form & TTD_FORM_ADDRESS);
}

static inline bool netting_is_live(const struct ttd_net *net)
{
    return net->state == TTD_NET_LIVE || net->state == NET_LATE;
}

/** Returns the end of an event's call, given the last mark at or before the event. */
static inline struct ttd_position netting_end(const struct ttd_net_mark *mark, uint32_t index)
{
    return (struct ttd_position){mark->end.sequence,
                                 mark->end.steps + 2 * (uint64_t)(index - mark->index)};
}

/* Sums. */

/** Bits of a shape's flags. */
enum netting_shape_flag {
    /** A Free: it may end the life of a temporary block. */
    NET_SHAPE_FREES = 1,
    /** It acquires a new block, not one that was reallocated. */
    NET_SHAPE_IS_NEW = 2
};

/** Size of blocks from which on there are no sums: so none of them overflows. */
#define NET_SUMMED_MAX (UINT64_C(1) << 38)

void ttd_netting_free_sums(struct ttd_netting *netting);

/** Prepares the sums of a chunk whose tables are decoded. False without memory. */
bool ttd_netting_begin_sums(struct ttd_netting *netting);

/** Sets sums.change when marks and times of a batch were added. */
void ttd_netting_set_change(struct ttd_netting *netting);

/** Moves to an event with a mark or a time. */
void ttd_netting_change(struct ttd_netting *netting, uint32_t index);

/** Completes a mark that is about to be added. False without memory. */
bool ttd_netting_sum_mark(struct ttd_netting *netting, struct ttd_net_mark *mark);

/** Counts the calls from the last mark up to an event, which is left out. */
void ttd_netting_end_mark(struct ttd_netting *netting, uint32_t index);

/** Looks at a time that is about to be added. */
void ttd_netting_sum_time(struct ttd_netting *netting, const struct ttd_net_time *time);

/** Counts a block that was acquired, and is released by the event at `index`, to which sums.mark
 * and sums.time belong. */
void ttd_netting_sum_pair(struct ttd_netting *netting, const struct ttd_net *birth, uint32_t index,
                          bool is_free);

/** Counts a block that a later net of its address begins by releasing. */
void ttd_netting_sum_joined(struct ttd_netting *netting, const struct ttd_net *birth,
                            const struct ttd_net *later);

/** Sets netted.sums. */
void ttd_netting_finish_sums(struct ttd_netting *netting);

/** Decodes the times of a batch. False if they are wrong. */
bool ttd_netting_read_times(struct ttd_netting *netting, uint32_t count);

/** Returns the last mark at or before an event of a batch whose times are decoded. There is at most
 * one for each event. */
static inline const struct ttd_net_mark *netting_find_mark(const struct ttd_netting *netting,
                                                           uint32_t index)
{
    const struct ttd_net_mark *mark =
        &netting->marks[netting->places[index / TTD_NET_PLACE_EVENTS].mark];
    const struct ttd_net_mark *last = &netting->marks[netting->mark_count - 1];
    while (mark < last && mark[1].index <= index)
        mark++;
    return mark;
}

/** Returns the last time at or before such an event. */
static inline const struct ttd_net_time *netting_find_time(const struct ttd_netting *netting,
                                                           uint32_t index)
{
    const struct ttd_net_time *time =
        &netting->times[netting->places[index / TTD_NET_PLACE_EVENTS].time];
    const struct ttd_net_time *last = &netting->times[netting->time_count - 1];
    while (time < last && time[1].index <= index)
        time++;
    return time;
}

/** Returns the start of an event's call. */
struct ttd_position ttd_netting_start(const struct ttd_netting *netting, uint32_t index);

/** Whether the ReAlloc with the index `late` has ended when the event with the index `index`
 * begins. */
bool ttd_netting_has_ended(const struct ttd_netting *netting, uint32_t late, uint32_t index);

/** Joins the nets of each address, and completes the result. False without memory. */
bool ttd_netting_finish(struct ttd_netting *netting);

#endif
