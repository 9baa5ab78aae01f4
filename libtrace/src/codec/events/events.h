/* SPDX-License-Identifier: MIT */
/** Chunks of events (spec, "Events"). */
#ifndef TTD_CODEC_EVENTS_EVENTS_H
#define TTD_CODEC_EVENTS_EVENTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ttdtrace/advanced.h>
#include <ttdtrace/model.h>
#include <ttdtrace/status.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/map.h"
#include "codec/chunk/header.h"
#include "layout.h"

/*
 * Lists of addresses in order of use, the newest last (spec, "Addresses"). An address is removed by
 * its place, counted from the newest. The encoder's list holds addresses; the decoder's holds
 * ordinals: they stand for the addresses that a chunk spells out.
 */

struct ttd_address_list {
    uint64_t *items;
    size_t count;
    size_t capacity;
};

/** Number of addresses that are moved at once. With single moves the end of the loop would be hard
 * to predict. */
#define TTD_ADDRESS_BLOCK 4

/** Removes and returns the address at `place`, counted from 1 for the newest. */
static inline uint64_t ttd_address_take(struct ttd_address_list *list, size_t place)
{
    uint64_t *taken = list->items + list->count - place;
    uint64_t *end = list->items + list->count;
    uint64_t address = *taken;
    list->count--;
    /* May write behind the end, harmlessly: there is room for a block. */
    do {
        uint64_t a = taken[1], b = taken[2], c = taken[3], d = taken[4];
        taken[0] = a;
        taken[1] = b;
        taken[2] = c;
        taken[3] = d;
        taken += TTD_ADDRESS_BLOCK;
    } while (taken < end);
    return address;
}

static inline void ttd_address_push(struct ttd_address_list *list, uint64_t address)
{
    list->items[list->count++] = address;
}

/** Number of ordinals that are moved at once, for the same reason. */
#define TTD_ORDINAL_BLOCK 16

/** A list of ordinals in order of use, the newest last. */
struct ttd_ordinal_list {
    uint32_t *items;
    size_t count;
    size_t capacity;
};

/** Four ordinals: they fit a vector register. The compiler would copy a larger array by way of
 * memory. */
struct ttd_ordinal_four {
    uint32_t items[4];
};

/** Removes and returns the ordinal at `place`, counted from 1 for the newest. */
static inline uint32_t ttd_ordinal_take(struct ttd_ordinal_list *list, size_t place)
{
    uint32_t *taken = list->items + list->count - place;
    const uint32_t *end = list->items + list->count;
    uint32_t ordinal = *taken;
    list->count--;
    /* May write behind the end, harmlessly: there is room for a block. */
    do {
        struct ttd_ordinal_four a, b, c, d;
        memcpy(&a, taken + 1, sizeof a);
        memcpy(&b, taken + 5, sizeof b);
        memcpy(&c, taken + 9, sizeof c);
        memcpy(&d, taken + 13, sizeof d);
        memcpy(taken, &a, sizeof a);
        memcpy(taken + 4, &b, sizeof b);
        memcpy(taken + 8, &c, sizeof c);
        memcpy(taken + 12, &d, sizeof d);
        taken += TTD_ORDINAL_BLOCK;
    } while (taken < end);
    return ordinal;
}

static inline void ttd_ordinal_push(struct ttd_ordinal_list *list, uint32_t ordinal)
{
    list->items[list->count++] = ordinal;
}

/** Properties that many shapes share: action, API, heap, flags, and the set of stored values. */
struct ttd_event_class {
    uint8_t action;
    uint8_t api;
    uint8_t form;
    uint8_t parameter_count;
    ttd_id heap;
    uint64_t flags;
    /** Encoder: all members above, except flags and the bits about parameters, as one number. */
    uint64_t key;
    /* The members below are derived from those above. */
    /** The event releases the block at its base_address. */
    bool releases;
    /** Number of parameters in the extra column. */
    uint8_t stored;
    /** An enum ttd_event_general. */
    uint8_t general;
    /** An enum ttd_event_fast. */
    uint8_t fast;
    /** Decoder: the amount that an event of the class adds to the tally of a batch. */
    uint32_t tally;
    /** The API's template, if the parameters follow it; else NULL. */
    const char *items;
};

/** A tally: three counts in one number. They count the events of a batch that have a base address,
 * those that have an address, and those whose call never returned. */
#define TTD_TALLY_BASE         (UINT32_C(1) << 0)
#define TTD_TALLY_ADDRESS      (UINT32_C(1) << 10)
#define TTD_TALLY_NEVER        (UINT32_C(1) << 20)
#define TTD_TALLY_BASES(n)     ((n)&0x3FF)
#define TTD_TALLY_ADDRESSES(n) ((n) >> 10 & 0x3FF)
#define TTD_TALLY_NEVERS(n)    ((n) >> 20)

/** The optional values of an event besides its size and its addresses: parameters, flags, result,
 * reserve and commit size. The frequent cases have numbers of their own. */
enum ttd_event_general {
    TTD_GENERAL_NONE = 0,
    /** Parameters by template, and nothing else: S, B, BS. */
    TTD_GENERAL_SIZE = 1,
    TTD_GENERAL_BASE = 2,
    TTD_GENERAL_BASE_SIZE = 3,
    TTD_GENERAL_OTHER = 4
};

/** The forms that most events have. The encoder has a fast path for each, the decoder one for each
 * of the first two. */
enum ttd_event_fast {
    TTD_FAST_NONE = 0,
    /** An Alloc with result 1: size, address, and the size as its only parameter. */
    TTD_FAST_ALLOC = 1,
    /** A Free with result 1: base address, its only parameter. */
    TTD_FAST_FREE = 2,
    /** Likewise, with a size, and both as its parameters. */
    TTD_FAST_FREE_SIZED = 3
};

/** Exchanges 0 and the predicted value, so that a correct prediction is coded as 0. The function is
 * its own inverse. */
static inline uint64_t ttd_swap_predicted(uint64_t value, uint64_t predicted)
{
    if (value == predicted)
        return 0;
    return value == 0 ? predicted : value;
}

/** A shape: the properties of the events of one call site, and the size of the last of them: the
 * prediction for the next. */
struct ttd_event_shape {
    uint64_t size;
    uint32_t class_index;
    ttd_id stack;
};

/** A thread that occurs in the chunk, and the position where its last call ended. */
struct ttd_event_thread {
    ttd_id id;
    struct ttd_position end;
};

/** The state for predicting values. Encoder and decoder keep the same one while they go through a
 * chunk. */
struct ttd_event_state {
    const struct ttd_allocator *allocator;
    uint64_t time_unit;
    struct ttd_event_class *classes;
    size_t class_count;
    size_t class_capacity;
    /** Numbered from 1; number 0 stands before the first event. */
    struct ttd_event_shape *shapes;
    /** Successor of each shape at its last occurrence, by shape; 0 for none. A separate array: it
     * stays in the cache: one shape leads to the next, and nothing else can be done before.
     */
    uint32_t *next_shapes;
    /** Index in `stored` of the last parameters of each shape, by shape. */
    uint32_t *stored_at;
    size_t shape_count;
    size_t shape_capacity;
    uint64_t *stored;
    size_t stored_count;
    size_t stored_capacity;
    uint32_t shape;
    struct ttd_address_list freed;
    struct ttd_address_list allocated;
    uint64_t released;
    uint64_t acquired;
    struct ttd_event_thread *threads;
    size_t thread_count;
    size_t thread_capacity;
    uint32_t thread;
    /** Effect position of the event before. */
    struct ttd_position effect;
    /** In time units, and in nanoseconds. */
    uint64_t clock;
    uint64_t wall_time;
};

void ttd_event_state_init(struct ttd_event_state *state, const struct ttd_allocator *allocator);
void ttd_event_state_free(struct ttd_event_state *state);
/** Resets the state for a new chunk. */
void ttd_event_state_clear(struct ttd_event_state *state);
/** Makes room for `count` addresses in both lists. False without memory. */
bool ttd_event_state_reserve_addresses(struct ttd_event_state *state, size_t count);
/** Makes room for shapes up to number `count`. False without memory. */
bool ttd_event_state_reserve_shapes(struct ttd_event_state *state, size_t count);
/** Adds a thread; its last end is 0 steps into the current sequence. False without memory. */
bool ttd_event_state_add_thread(struct ttd_event_state *state, ttd_id id);

/** Sets a shape; there is room for it. Its last parameters will be in `stored`, from stored_count
 * on. */
static inline void ttd_event_state_set_shape(struct ttd_event_state *state, size_t number,
                                             uint32_t class_index, ttd_id stack)
{
    state->shapes[number] = (struct ttd_event_shape){0, class_index, stack};
    state->next_shapes[number] = 0;
    state->stored_at[number] = (uint32_t)state->stored_count;
}

/** Sets the derived members of a class. */
void ttd_event_class_complete(struct ttd_event_class *class);

/** Number of hashes of addresses: so many that few of the 255 addresses that a place can name share
 * one. */
#define TTD_ADDRESS_HASH_BITS 11
#define TTD_ADDRESS_HASHES    (1u << TTD_ADDRESS_HASH_BITS)

/** Encoder of one chunk at a time; it encodes event by event. */
struct ttd_events_encoder {
    struct ttd_event_state state;
    struct ttd_buffer columns[TTD_COLUMN_COUNT];
    struct ttd_map class_map;
    /** By API: the class that was used last; it is tried first. */
    uint32_t last_class[UINT8_MAX + 1];
    struct ttd_map shape_map;
    struct ttd_map thread_map;
    /** By hash of an address: the length of the list when an address with that hash was added last;
     * 0 for never. The search for an address begins there. */
    uint32_t freed_at[TTD_ADDRESS_HASHES];
    uint32_t allocated_at[TTD_ADDRESS_HASHES];
    uint32_t count;
    /** Number of events that every column has room for. */
    uint32_t room;
    uint32_t since_exception;
    uint32_t since_clock;
    struct ttd_position first;
};

void ttd_events_encoder_init(struct ttd_events_encoder *encoder,
                             const struct ttd_allocator *allocator, uint64_t time_unit);
void ttd_events_encoder_free(struct ttd_events_encoder *encoder);
void ttd_events_encoder_clear(struct ttd_events_encoder *encoder);

/**
 * Adds calls, from number `first` on, as long as they are of a shape that the chunk has, and follow
 * each other and the event before, in the same thread and at the same wall time, as most do. They
 * need not be known to be valid: the event before was, and another one has the heap and the stack.
 *
 * @return how many were added. The next one was not, and changed nothing
 */
size_t ttd_events_encoder_add_calls(struct ttd_events_encoder *encoder,
                                    const struct ttd_calls *calls, size_t first);

/**
 * Adds an event if it is of a usual call of ttd_events_encoder_add_calls().
 *
 * @return false if it is not so: nothing has changed then
 */
bool ttd_events_encoder_add_usual(struct ttd_events_encoder *encoder,
                                  const struct ttd_event *event);

/**
 * Adds a valid event, whose effect position is not before the previous event's.
 *
 * @return false if memory is exhausted; the encoder must not be used any more
 */
bool ttd_events_encoder_add(struct ttd_events_encoder *encoder, const struct ttd_event *event);

/** Appends the payload to `buffer`; that keeps a failure. */
void ttd_events_encoder_finish(struct ttd_events_encoder *encoder, struct ttd_buffer *buffer);

/** Largest number of events in a batch; small enough that a batch stays in the cache. */
#define TTD_EVENT_BATCH 192

/* Each count of a tally has 10 bits. */
_Static_assert(TTD_EVENT_BATCH < TTD_TALLY_ADDRESS, "events of a batch");

/** Largest number of addresses that the events of a batch spell out. */
#define TTD_EVENT_ADDRESSES ((size_t)2 * TTD_EVENT_BATCH)

/** The addresses that a chunk spells out, by their ordinals, and the lists that repeat them. */
struct ttd_event_addresses {
    uint64_t *spelled;
    size_t count;
    size_t capacity;
    struct ttd_ordinal_list freed;
    struct ttd_ordinal_list allocated;
};

/** Memory for a decoded batch of events. */
struct ttd_event_buffer {
    struct ttd_event events[TTD_EVENT_BATCH];
    /** Parameters of events that have two or more: one parameter alone is a member of the event. */
    uint64_t parameters[TTD_EVENT_BATCH][2];
    uint64_t more_parameters[TTD_EVENT_BATCH][TTD_PARAMETERS_MAX];
    /** Addresses that the events spell out; the first one has first_ordinal. */
    uint64_t addresses[TTD_EVENT_ADDRESSES];
    size_t address_count;
    uint32_t first_ordinal;
};

/** Decoder of one chunk at a time. */
struct ttd_events_decoder {
    struct ttd_event_state state;
    /** Maps a thread to its place in the chunk's list; the list must have it only once. */
    struct ttd_map threads;
    /** By class: an event whose members are those that the class determines. */
    struct ttd_event *prototypes;
    size_t prototype_capacity;
    struct ttd_event_addresses addresses;
    struct ttd_cursor columns[TTD_COLUMN_COUNT];
    uint64_t number;
    uint32_t left;
    bool first_batch;
    bool no_memory;
    /** Effect positions of the first and the last event, as the chunk's header states them. */
    struct ttd_position first;
    struct ttd_position last;
    /** Numbers of the next event whose times are an exception, and of the next change of the
     * clock. */
    uint64_t exception;
    uint64_t clock_change;
    /** Description of the first error, static. */
    const char *error;
    /** Allocated when the first chunk begins; the first `buffers_kept` are used in turn. */
    struct ttd_event_buffer *buffers;
    size_t buffer_count;
    size_t buffers_kept;
    size_t buffer_next;
    /** Number of buffers, from the first on, that have been used or cleared. */
    size_t buffers_cleared;
    /** The batch that is being decoded, or was decoded last. */
    struct ttd_event_buffer *batch;
    /** By event of that batch: its shape and class. And the sum of their tallies. */
    struct ttd_event_shape *shapes[TTD_EVENT_BATCH];
    const struct ttd_event_class *classes[TTD_EVENT_BATCH];
    uint32_t tally;
};

/** @param batches  number of batches, 1 or more, that stay valid, including the last one. While the
 *                  next is decoded, all but the oldest stay valid */
void ttd_events_decoder_init(struct ttd_events_decoder *decoder,
                             const struct ttd_allocator *allocator, size_t batches);
void ttd_events_decoder_free(struct ttd_events_decoder *decoder);

/**
 * Begins the chunk of `header`; it has at least one event. `payload` must stay valid.
 *
 * @return TTD_OK, TTD_ERROR_CORRUPT (decoder->error says why), TTD_ERROR_NO_MEMORY.
 */
enum ttd_status ttd_events_decoder_begin(struct ttd_events_decoder *decoder,
                                         const struct ttd_header *header, struct ttd_cursor payload,
                                         uint64_t time_unit);

/**
 * Decodes the next up to TTD_EVENT_BATCH events into decoder->batch.
 *
 * @param count  set on TTD_OK
 * @return TTD_OK, TTD_END after the last event, TTD_ERROR_CORRUPT, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status ttd_events_decoder_next(struct ttd_events_decoder *decoder, size_t *count);

#endif
