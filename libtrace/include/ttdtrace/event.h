/* SPDX-License-Identifier: MIT */
/**
 * Heap events: one call of an allocation function each (spec, "Model", "Events").
 *
 * An event has the function, its arguments and its result, the thread, the stack, and the positions
 * of its begin and its end in the order of all events.
 *
 *     struct ttd_input input;
 *     struct ttd_reader *reader;
 *     struct ttd_batch batch;
 *     if (ttd_input_file("trace.bin", NULL, &input, NULL) != TTD_OK ||
 *         ttd_reader_open(&input, NULL, NULL, &reader, NULL) != TTD_OK)
 *         return 1;
 *     while (ttd_reader_next(reader, &batch, NULL) == TTD_OK)
 *         for (size_t i = 0; batch.kind == TTD_KIND_EVENTS && i < batch.count; i++) {
 *             const struct ttd_event *event = &batch.u.events[i];
 *             printf("%s of %llu bytes\n", ttd_api_name(event->api),
 *                    (unsigned long long)event->size);
 *         }
 *     ttd_reader_close(reader);
 *
 * Threads: any thread may call these functions at any time; they have no state.
 */
#ifndef TTDTRACE_EVENT_H
#define TTDTRACE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/apis.h>
#include <ttdtrace/ids.h>
#include <ttdtrace/position.h>

TTD_BEGIN_DECLS

/** Effect of a heap call. Values as in the format. */
enum ttd_action {
    TTD_ACTION_ALLOC = 1,
    TTD_ACTION_REALLOC = 2,
    TTD_ACTION_FREE = 3,
    TTD_ACTION_CREATE = 4,
    TTD_ACTION_PROTECT = 5,
    TTD_ACTION_LOCK = 6,
    TTD_ACTION_UNLOCK = 7,
    TTD_ACTION_DESTROY = 8
};

#define TTD_API_VALUE(name, value, ...) TTD_API_##name = (value),

/** The function that was called: a TTD_API_... for each row of TTD_APIS. Values as in the format
 * (spec, "APIs"). */
enum ttd_api {
    TTD_APIS(TTD_API_VALUE)
    /** One more than the largest known value. Unknown values are valid and are preserved. */
    TTD_API_COUNT
};

/** Returns the name of an action as the reference spells it, such as "ReAlloc"; "?" if unknown.
 * Static. */
TTD_EXPORT const char *ttd_action_name(enum ttd_action action);

/** Returns the name of a function as C or C++ spells it, such as "operator new[]"; "?" if unknown.
 * Static. */
TTD_EXPORT const char *ttd_api_name(unsigned api);

/**
 * Flags of a call of realloc() or reallocarray(); those have none themselves: how it moved a block.
 * 0 if the block was not moved or that is unknown. Pages that move keep the offsets in them, so a
 * block whose address changed by no multiple of 4096 was copied, whatever its flags.
 */
enum ttd_realloc_flags {
    /** Its bytes were copied. */
    TTD_REALLOC_COPIED = 1,
    /** Its pages were mapped to the other address, and nothing was copied. */
    TTD_REALLOC_REMAPPED = 2
};

/** Raw arguments that an event can have at most. */
#define TTD_PARAMETERS_MAX 8

/**
 * One heap call. Events are ordered by *effect position*: time_end for Alloc and Create, time_start
 * for every other action; effect positions never decrease. A ReAlloc releases its old block at
 * time_start and acquires the new one at time_end.
 */
struct ttd_event {
    /** Ordinal in the trace, from 0, in order of effect position. Set by the reader. */
    uint64_t number;
    struct ttd_position time_start;
    /** Invalid when the call never returned. */
    struct ttd_position time_end;
    /** Nanoseconds since the trace's start_time, as far as its time_unit resolves; 0 if that is 0.
     */
    uint64_t wall_time;
    ttd_id thread;
    ttd_id stack;
    /**
     * Set by the reader: ordinals of address and base_address among the addresses that the event's
     * chunk spells out, from 0; undefined where the address is 0. Within a chunk, equal ordinals
     * mean equal addresses: this spares most lookups when blocks are followed: see
     * ttd_batch.addresses. One address may have several ordinals.
     */
    uint32_t address_ordinal;
    uint32_t base_ordinal;
    /** Alloc, ReAlloc: the address returned; 0 if none. Otherwise 0. */
    uint64_t address;
    /** ReAlloc: the address before; equal to base_address. Otherwise 0. */
    uint64_t previous_address;
    /** Free, ReAlloc: the address given to the call. Otherwise 0. */
    uint64_t base_address;
    /** Alloc, ReAlloc: bytes requested. Sized Free: the size given. Otherwise 0. */
    uint64_t size;
    /**
     * Raw arguments as the program passed them, `parameter_count` of them; NULL with a count of 0
     * if they are not recorded. A reader returns them as they were written. They need not be
     * recorded for an API whose template computes them from other properties (spec, "APIs"):
     * ttd_event_parameters() returns them nevertheless, and they take no space. Parameters of an
     * event from a reader, and of copies of that event, are valid as long as its batch.
     */
    const uint64_t *parameters;
    /** Flags as the API defines them; of realloc() and reallocarray() enum ttd_realloc_flags. */
    uint64_t flags;
    /** Non-zero for success; zero for failure, and for a call that never returned. */
    uint64_t result;
    /** Create: bytes to reserve, and bytes to commit at once. Otherwise 0. */
    uint64_t reserve_size;
    uint64_t commit_size;
    /** Protect: non-zero makes the heap read-only, zero read-write. */
    uint64_t make_read_only;
    uint32_t parameter_count;
    ttd_id heap;
    /** A ttd_action. */
    uint8_t action;
    /** An enum ttd_api, or a value unknown to this library. */
    uint8_t api;
};

/** Returns whether the call returned: whether `time_end` is valid. */
static inline bool ttd_event_returned(const struct ttd_event *event)
{
    return ttd_position_is_valid(event->time_end);
}

/** Returns the effect position of an event; a trace is ordered by it: see ttd_event. */
static inline struct ttd_position ttd_event_position(const struct ttd_event *event)
{
    bool acquires = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_CREATE;
    return acquires && ttd_event_returned(event) ? event->time_end : event->time_start;
}

/**
 * Copies the raw arguments of an event in order, as recorded or as its API's template gives them.
 *
 * @return their number, at most TTD_PARAMETERS_MAX; 0 if they are not known.
 */
TTD_EXPORT size_t ttd_event_parameters(const struct ttd_event *event,
                                       uint64_t parameters[TTD_PARAMETERS_MAX]);

TTD_END_DECLS

#endif
