/* SPDX-License-Identifier: MIT */
/** Calls that are kept in memory until all of them are sorted by effect, each packed into some 25
 * bytes. */
#ifndef ANALYZER_IMPORT_WINDBG_CALLS_H
#define ANALYZER_IMPORT_WINDBG_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ttdtrace/event.h>
#include <ttdtrace/status.h>

/** A call. */
struct windbg_call {
    struct ttd_position start;
    struct ttd_position end;
    uint64_t heap;
    uint64_t thread;
    uint64_t address;
    uint64_t base;
    /** Size of a block; a Create's bytes to commit; whether a Protect makes read-only. */
    uint64_t size;
    uint64_t reserve;
    uint64_t flags;
    uint64_t result;
    uint8_t action;
    bool has_thread;
};

struct windbg_key;

/** Begins as zeros. */
struct windbg_calls {
    size_t count;
    /** Packed calls, in the order in which they were added. */
    uint8_t *packed;
    size_t size;
    size_t capacity;
    /** Effect of the last call, and whether any call's was not before the next one's. */
    struct ttd_position effect;
    bool is_unsorted;
    /** Their order, once they are sorted; NULL if it is the order of `packed`. */
    struct windbg_key *keys;
    /** The call that is next: its number and its place. */
    size_t next;
    const uint8_t *next_packed;
};

/** Adds a call. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status windbg_calls_add(struct windbg_calls *calls, const struct windbg_call *call);

/** Sorts the calls by effect, then by start, then in the order in which they were added; none may
 * be added later. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status windbg_calls_sort(struct windbg_calls *calls);

/** Returns the next of the sorted calls; false behind the last one. */
bool windbg_calls_next(struct windbg_calls *calls, struct windbg_call *call);

void windbg_calls_free(struct windbg_calls *calls);

#endif
