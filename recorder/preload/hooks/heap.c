/* SPDX-License-Identifier: MIT */
/*
 * Custom heaps: the functions of ttdtrace/live_heap.h. The collector knows the existing heaps; here
 * a handle is only a number.
 */
#include <string.h>

#include <ttdtrace/event.h>

#include "preload/hooks/hooks.h"
#include "preload/hooks/live_hooks.h"

/* Returns the bytes of a name, cut off before a character that has no room. */
static size_t heap_name_size(const char *name)
{
    size_t size = name ? strnlen(name, TTD_LIVE_HEAP_NAME_MAX + 1) : 0;
    if (size <= TTD_LIVE_HEAP_NAME_MAX)
        return size;
    size = TTD_LIVE_HEAP_NAME_MAX;
    while (size > 0 && ((unsigned char)name[size] & 0xc0) == 0x80)
        size--;
    return size;
}

/* Each heap begins and ends with a new fragment: then the sequence alone shows whether a fork came
 * before or after. */

/* Reports a heap to the collector, even while the thread is suspended: calls of others need it. */
static __attribute__((noinline)) void heap_define(const struct ttd_live *live, const void *handle,
                                                  const void *parent, const char *name)
{
    struct thread *level = live_enter(live);
    if (!level)
        return;
    level->sequence = 0;
    if (live_append(level, (const uint64_t[2]){(uintptr_t)handle, (uintptr_t)parent}, EVENT_OF_HEAP,
                    &(struct event_data){.data = name, .size = heap_name_size(name)}))
        slot_note_heaps(level->sequence);
    live_leave(level);
}

/* Appends a call of the program: an acquisition's begin, or another call's end, is a step of its
 * own. A reallocation has two records. */
static bool heap_append_call(struct thread *level, unsigned operation,
                             const struct unwind_regs *caller, const uint64_t *operands,
                             unsigned count)
{
    bool acquires = operation == TTD_API_LIVE_HEAP_CREATE || operation == TTD_API_LIVE_HEAP_ALLOC;
    bool reallocates = operation == TTD_API_LIVE_HEAP_REALLOC;
    bool destroys = operation == TTD_API_LIVE_HEAP_DESTROY;
    if (level->outer) {
        if (!level_is_ready(level)) {
            level_count_lost(level);
            return false;
        }
        /* Its stack is this level's last capture; that ends here. */
        if (level->outer->held.is_captured)
            level_record_held(level->outer);
    }
    level->steps += acquires;
    level->island.remaining += reallocates; /* two records count once for the throttle */
    if (destroys)
        level->sequence = 0;
    bool is_recorded = thread_record(level, operation, caller, operands, count - reallocates);
    if (destroys && is_recorded)
        slot_note_heaps(level->sequence);
    if (reallocates && is_recorded)
        thread_append(level, OP_REALLOC_END, &(const struct unwind_delta){0}, &operands[count - 1],
                      1);
    else
        level->steps += !acquires;
    return is_recorded;
}

/* Reports a call; its first operand is the handle. It has the stack of the function that it is
 * inlined in. */
static inline __attribute__((always_inline)) bool heap_report(const struct ttd_live *live,
                                                              unsigned operation,
                                                              const uint64_t *operands,
                                                              unsigned count)
{
    if (operands[0] == 0 || !live_client_is_open(live))
        return false;
    struct thread *level = target_enter(0);
    if (!level)
        return false;
    struct unwind_regs caller;
    target_phase(level, PHASE_RECORD);
    LIVE_ANNOUNCE(level, live);
    unwind_here(&caller);
    bool is_recorded = heap_append_call(level, operation, &caller, operands, count);
    target_leave(level);
    return is_recorded;
}

#define REPORT(live, operation, ...)                                                               \
    heap_report(live, operation, (const uint64_t[]){__VA_ARGS__},                                  \
                sizeof(const uint64_t[]){__VA_ARGS__} / sizeof(uint64_t))

static bool heap_create(struct ttd_live *live, const void *handle, const void *parent,
                        const char *name, const uint64_t sizes[2])
{
    if (handle && live_client_is_open(live))
        heap_define(live, handle, parent, name);
    return REPORT(live, TTD_API_LIVE_HEAP_CREATE, (uintptr_t)handle, sizes[0], sizes[1]);
}

static bool heap_alloc(struct ttd_live *live, const void *handle, const void *block, size_t size)
{
    return REPORT(live, TTD_API_LIVE_HEAP_ALLOC, (uintptr_t)handle, size, (uintptr_t)block);
}

static bool heap_realloc(struct ttd_live *live, const void *handle, const void *old,
                         const void *block, size_t size)
{
    return REPORT(live, TTD_API_LIVE_HEAP_REALLOC, (uintptr_t)handle, (uintptr_t)old, size,
                  (uintptr_t)block);
}

static bool heap_free(struct ttd_live *live, const void *handle, const void *block)
{
    return block && REPORT(live, TTD_API_LIVE_HEAP_FREE, (uintptr_t)handle, (uintptr_t)block);
}

static bool heap_protect(struct ttd_live *live, const void *handle, bool is_read_only)
{
    return REPORT(live, TTD_API_LIVE_HEAP_PROTECT, (uintptr_t)handle, is_read_only);
}

static bool heap_lock(struct ttd_live *live, const void *handle)
{
    return REPORT(live, TTD_API_LIVE_HEAP_LOCK, (uintptr_t)handle);
}

static bool heap_unlock(struct ttd_live *live, const void *handle)
{
    return REPORT(live, TTD_API_LIVE_HEAP_UNLOCK, (uintptr_t)handle);
}

static bool heap_destroy(struct ttd_live *live, const void *handle)
{
    return REPORT(live, TTD_API_LIVE_HEAP_DESTROY, (uintptr_t)handle);
}

const struct ttd_live_heap_functions live_heap_functions = {
    .size = sizeof live_heap_functions,
    .create = heap_create,
    .alloc = heap_alloc,
    .realloc = heap_realloc,
    .free = heap_free,
    .protect = heap_protect,
    .lock = heap_lock,
    .unlock = heap_unlock,
    .destroy = heap_destroy,
};
