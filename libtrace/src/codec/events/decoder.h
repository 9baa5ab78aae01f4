/* SPDX-License-Identifier: MIT */
/** Internals of the decoder of events, private to its parts. */
#ifndef TTD_CODEC_EVENTS_DECODER_H
#define TTD_CODEC_EVENTS_DECODER_H

#include "codec/events/events.h"

/** Records an error, unless there is one already. */
static inline void ttd_events_decoder_fail(struct ttd_events_decoder *decoder, const char *what)
{
    if (!decoder->error)
        decoder->error = what;
}

/** Moves the first error of a column to the decoder. Returns whether there is an error. */
bool ttd_events_decoder_has_failed(struct ttd_events_decoder *decoder);

/** Checks that nothing is left over after the last event; state.effect is its effect position. */
void ttd_events_decoder_finish(struct ttd_events_decoder *decoder);

/** Reads the change of the wall clock that comes with the next event. */
void ttd_events_change_clock(struct ttd_events_decoder *decoder);

/** The general case of a symbol: see TTD_SHAPE_ONE_BYTE. */
static inline uint32_t ttd_events_read_symbol(struct ttd_cursor *cursor, uint32_t first)
{
    size_t size = first == TTD_SHAPE_ESCAPE ? 2 : 1;
    if (ttd_cursor_left(cursor) < size) {
        ttd_cursor_fail(cursor, "payload too short");
        return 0;
    }
    uint32_t low = *cursor->next++;
    if (size == 2)
        return TTD_SHAPE_TWO_BYTES + low + ((uint32_t)*cursor->next++ << 8);
    return TTD_SHAPE_ONE_BYTE + ((first - TTD_SHAPE_ONE_BYTE) << 8) + low;
}

/**
 * Returns the shape of the next event; 0 or a number that no shape has if it is wrong.
 *
 * @param symbol  of the event, from the column SHAPES_FIRST
 * @param more    the column SHAPES_MORE
 * @param next    ttd_event_state.next_shapes of the shape before
 */
static inline uint32_t ttd_events_read_shape(uint32_t symbol, struct ttd_cursor *more,
                                             uint32_t next)
{
    if (symbol >= TTD_SHAPE_ONE_BYTE)
        symbol = ttd_events_read_symbol(more, symbol);
    /* Without a branch: nobody can predict whether the prediction was right. */
    return symbol | (next & (0 - (uint32_t)(symbol == 0)));
}

/** Returns how many of the next `count` events have times as predicted, and the wall time of the
 * first of them. */
static inline uint32_t ttd_events_run_length(const struct ttd_events_decoder *decoder,
                                             uint32_t count)
{
    uint64_t exception = decoder->exception - decoder->number;
    uint64_t clock_change = decoder->clock_change - decoder->number;
    count = count < exception ? count : (uint32_t)exception;
    return count < clock_change ? count : (uint32_t)clock_change;
}

/** Reads the table of classes. Errors are left in the columns. */
enum ttd_status ttd_events_read_classes(struct ttd_events_decoder *decoder, uint32_t count);

/** Reads the table of shapes; classes come first. */
enum ttd_status ttd_events_read_shapes(struct ttd_events_decoder *decoder, uint32_t count);

/** No event has this number. */
#define TTD_NO_EVENT UINT64_MAX

/**
 * Reads the gap before the next entry of a list: for the event `number` or a later one. Returns the
 * number of that event, or TTD_NO_EVENT at the end of the list.
 */
uint64_t ttd_events_next_gap(struct ttd_events_decoder *decoder, enum ttd_column column,
                             uint64_t number);

/**
 * Decodes mispredicted times of event `number`. state.effect is the effect position of the event
 * before; state.thread and the thread's end are updated.
 *
 * @return false on failure
 */
bool ttd_events_decode_exception(struct ttd_events_decoder *decoder,
                                 const struct ttd_event_class *class, uint64_t number,
                                 struct ttd_position *start, struct ttd_position *end);

/** Offset of the members of an event that are copied from the prototype of its class. Those that
 * the class does not determine are 0 in the prototype, and are decoded afterwards. */
#define TTD_EVENT_CLASS_PART offsetof(struct ttd_event, address)

/* The members before that offset, number, times, thread, stack and ordinals, are set before. */
_Static_assert(TTD_EVENT_CLASS_PART == 64, "members of ttd_event before the class's part");

static inline void ttd_event_copy_class(struct ttd_event *event, const struct ttd_event *prototype)
{
    memcpy((char *)event + TTD_EVENT_CLASS_PART, (const char *)prototype + TTD_EVENT_CLASS_PART,
           sizeof *event - TTD_EVENT_CLASS_PART);
}

/** Decodes the sizes, addresses and parameters of `count` events, whose other members are set. */
void ttd_events_decode_values(struct ttd_events_decoder *decoder, uint32_t count);

/** Decodes the optional values of an event, whose size and addresses are set: see enum
 * ttd_event_general. */
void ttd_events_decode_general(struct ttd_events_decoder *decoder, size_t index);

/** Decodes `count` events. Errors are left in the decoder and its columns. */
void ttd_events_decode_batch(struct ttd_events_decoder *decoder, uint32_t count);

#endif
