/* SPDX-License-Identifier: MIT */
#include "collect/channel/translate.h"

#include "channel_record.h"

#define ZERO OPERAND_ZERO
#define ONE  OPERAND_ONE

/* `parameters` arguments, then the address. */
#define ACQUIRE(parameters, size)                                                                  \
    {                                                                                              \
        CALL_ACQUISITION, TTD_ACTION_ALLOC, (parameters) + 1, parameters, ZERO, parameters, size,  \
            ONE, (parameters) == 1 ? USUAL_ALLOC : USUAL_NONE                                      \
    }
/* The base comes first; `size` as the caller has it, or ZERO. */
#define RELEASE(parameters, size)                                                                  \
    {                                                                                              \
        CALL_RELEASE, TTD_ACTION_FREE, parameters, parameters, 0, ZERO, size, ONE,                 \
            (parameters) == 1 || ((parameters) == 2 && (size) == 1) ? USUAL_FREE : USUAL_NONE      \
    }
#define REALLOCATE(parameters, size, count)                                                        \
    {                                                                                              \
        CALL_REALLOCATION, TTD_ACTION_REALLOC, parameters, parameters, 0, ZERO, size, count,       \
            USUAL_NONE                                                                             \
    }

#define HEAP(kind, action, operands, base, size)                                                   \
    {                                                                                              \
        CALL_##kind, TTD_ACTION_##action, operands, 0, base, ZERO, size, ONE, USUAL_NONE           \
    }

const struct call_shape call_shapes[UINT8_MAX + 1] = {
    [TTD_API_MALLOC] = ACQUIRE(1, 0), /* size */
    [TTD_API_CALLOC] = {CALL_ACQUISITION, TTD_ACTION_ALLOC, 3, 2, ZERO, 2, 1, 0,
                        USUAL_NONE},              /* count, size */
    [TTD_API_REALLOC] = REALLOCATE(2, 1, ONE),    /* base, size */
    [TTD_API_REALLOCARRAY] = REALLOCATE(3, 2, 1), /* base, count, size */
    [TTD_API_FREE] = RELEASE(1, ZERO),            /* base */
    [TTD_API_CFREE] = RELEASE(1, ZERO),
    [TTD_API_MEMALIGN] = ACQUIRE(2, 1), /* alignment, size */
    /* result pointer, alignment, size; status, address */
    [TTD_API_POSIX_MEMALIGN] = {CALL_ACQUISITION, TTD_ACTION_ALLOC, 5, 3, ZERO, 4, 2, ONE,
                                USUAL_NONE},
    [TTD_API_ALIGNED_ALLOC] = ACQUIRE(2, 1), /* alignment, size */
    [TTD_API_VALLOC] = ACQUIRE(1, 0),        /* size */
    [TTD_API_PVALLOC] = ACQUIRE(1, 0),
    [TTD_API_FREE_SIZED] = RELEASE(2, 1),          /* base, size */
    [TTD_API_FREE_ALIGNED_SIZED] = RELEASE(3, 2),  /* base, alignment, size */
    [TTD_API_NEW] = ACQUIRE(1, 0),                 /* size */
    [TTD_API_NEW_NOTHROW] = ACQUIRE(2, 0),         /* size, tag */
    [TTD_API_NEW_ALIGNED] = ACQUIRE(2, 0),         /* size, alignment */
    [TTD_API_NEW_ALIGNED_NOTHROW] = ACQUIRE(3, 0), /* size, alignment, tag */
    [TTD_API_NEW_ARRAY] = ACQUIRE(1, 0),           /* new[] likewise */
    [TTD_API_NEW_ARRAY_NOTHROW] = ACQUIRE(2, 0),
    [TTD_API_NEW_ARRAY_ALIGNED] = ACQUIRE(2, 0),
    [TTD_API_NEW_ARRAY_ALIGNED_NOTHROW] = ACQUIRE(3, 0),
    [TTD_API_DELETE] = RELEASE(1, ZERO),                 /* base */
    [TTD_API_DELETE_NOTHROW] = RELEASE(2, ZERO),         /* base, tag */
    [TTD_API_DELETE_SIZED] = RELEASE(2, 1),              /* base, size */
    [TTD_API_DELETE_ALIGNED] = RELEASE(2, ZERO),         /* base, alignment */
    [TTD_API_DELETE_ALIGNED_NOTHROW] = RELEASE(3, ZERO), /* base, alignment, tag */
    [TTD_API_DELETE_SIZED_ALIGNED] = RELEASE(3, 1),      /* base, size, alignment */
    [TTD_API_DELETE_ARRAY] = RELEASE(1, ZERO),           /* delete[] likewise */
    [TTD_API_DELETE_ARRAY_NOTHROW] = RELEASE(2, ZERO),
    [TTD_API_DELETE_ARRAY_SIZED] = RELEASE(2, 1),
    [TTD_API_DELETE_ARRAY_ALIGNED] = RELEASE(2, ZERO),
    [TTD_API_DELETE_ARRAY_ALIGNED_NOTHROW] = RELEASE(3, ZERO),
    [TTD_API_DELETE_ARRAY_SIZED_ALIGNED] = RELEASE(3, 1),
    /* Custom heaps: the handle, then: */
    [TTD_API_LIVE_HEAP_CREATE] = HEAP(ACQUISITION, CREATE, 3, ZERO, ZERO), /* reserve, commit */
    [TTD_API_LIVE_HEAP_ALLOC] = {CALL_ACQUISITION, TTD_ACTION_ALLOC, 3, 0, ZERO, 2, 1, ONE,
                                 USUAL_NONE},                            /* size, address */
    [TTD_API_LIVE_HEAP_REALLOC] = HEAP(REALLOCATION, REALLOC, 3, 1, 2),  /* base, size */
    [TTD_API_LIVE_HEAP_FREE] = HEAP(RELEASE, FREE, 2, 1, ZERO),          /* base */
    [TTD_API_LIVE_HEAP_PROTECT] = HEAP(RELEASE, PROTECT, 2, ZERO, ZERO), /* is read-only */
    [TTD_API_LIVE_HEAP_LOCK] = HEAP(RELEASE, LOCK, 1, ZERO, ZERO),
    [TTD_API_LIVE_HEAP_UNLOCK] = HEAP(RELEASE, UNLOCK, 1, ZERO, ZERO),
    [TTD_API_LIVE_HEAP_DESTROY] = HEAP(RELEASE, DESTROY, 1, ZERO, ZERO),
    [TTD_API_MALLOCX] = ACQUIRE(2, 0),           /* size, flags */
    [TTD_API_RALLOCX] = REALLOCATE(3, 1, ONE),   /* base, size, flags */
    [TTD_API_XALLOCX] = REALLOCATE(4, 1, ONE),   /* base, size, extra, flags */
    [TTD_API_DALLOCX] = RELEASE(2, ZERO),        /* base, flags */
    [TTD_API_SDALLOCX] = RELEASE(3, 1),          /* base, size, flags */
    [TTD_API_MI_MALLOC_ALIGNED] = ACQUIRE(2, 0), /* size, alignment */
    /* count, size, alignment */
    [TTD_API_MI_CALLOC_ALIGNED] = {CALL_ACQUISITION, TTD_ACTION_ALLOC, 4, 3, ZERO, 3, 1, 0,
                                   USUAL_NONE},
    [TTD_API_MI_REALLOC_ALIGNED] = REALLOCATE(3, 1, ONE), /* base, size, alignment */
    [TTD_API_MI_RECALLOC_ALIGNED] = REALLOCATE(4, 2, 1),  /* base, count, size, alignment */
    [TTD_API_MI_EXPAND] = REALLOCATE(2, 1, ONE),          /* base, size */
    [TTD_API_MI_FREE_SIZE] = RELEASE(2, 1),               /* base, size */
    [TTD_API_MI_FREE_ALIGNED] = RELEASE(2, ZERO),         /* base, alignment */
    /* text; bytes of the copy, address */
    [TTD_API_MI_STRDUP] = {CALL_ACQUISITION, TTD_ACTION_ALLOC, 3, 1, ZERO, 2, 1, ONE, USUAL_NONE},
    [TTD_API_MI_REALPATH] = {CALL_ACQUISITION, TTD_ACTION_ALLOC, 3, 1, ZERO, 2, 1, ONE, USUAL_NONE},
    [OP_EVENT] = {.kind = CALL_EVENT, .operands = EVENT_OPERANDS},
    [OP_REALLOC_END] = {.kind = CALL_END, .operands = 1}, /* result */
    [OP_REALLOC_COPIED] = {.kind = CALL_END, .operands = 1},
    [OP_REALLOC_REMAPPED] = {.kind = CALL_END, .operands = 1},
};

void translate_reallocation_end(unsigned operation, uint64_t address, struct ttd_event *event)
{
    /* The C library's realloc(base, 0) releases the block and returns NULL: a success. */
    bool released = address == 0 && event->size == 0 && event->base_address != 0;
    event->address = address;
    event->result = address != 0 || released;
    event->flags = operation == OP_REALLOC_COPIED     ? TTD_REALLOC_COPIED
                   : operation == OP_REALLOC_REMAPPED ? TTD_REALLOC_REMAPPED
                                                      : 0;
}
