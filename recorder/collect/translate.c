/* SPDX-License-Identifier: MIT */
#include "translate.h"

#include "../channel.h"

/* Where the operands of a call are; NONE if it has no such operand. */
struct shape {
    uint8_t kind;
    int8_t base;
    int8_t size;
    int8_t count; /* to be multiplied with size */
};

#define NONE (-1)

static const struct shape shapes[TTD_API_COUNT] = {
    [TTD_API_MALLOC] = {CALL_ACQUISITION, NONE, 0, NONE},
    [TTD_API_CALLOC] = {CALL_ACQUISITION, NONE, 1, 0},
    [TTD_API_REALLOC] = {CALL_REALLOCATION, 0, 1, NONE},
    [TTD_API_REALLOCARRAY] = {CALL_REALLOCATION, 0, 2, 1},
    [TTD_API_FREE] = {CALL_RELEASE, 0, NONE, NONE},
    [TTD_API_CFREE] = {CALL_RELEASE, 0, NONE, NONE},
    [TTD_API_MEMALIGN] = {CALL_ACQUISITION, NONE, 1, NONE},
    [TTD_API_POSIX_MEMALIGN] = {CALL_ACQUISITION, NONE, 2, NONE},
    [TTD_API_ALIGNED_ALLOC] = {CALL_ACQUISITION, NONE, 1, NONE},
    [TTD_API_VALLOC] = {CALL_ACQUISITION, NONE, 0, NONE},
    [TTD_API_PVALLOC] = {CALL_ACQUISITION, NONE, 0, NONE},
    [TTD_API_FREE_SIZED] = {CALL_RELEASE, 0, 1, NONE},
    [TTD_API_FREE_ALIGNED_SIZED] = {CALL_RELEASE, 0, 2, NONE},
    [TTD_API_NEW] = {CALL_ACQUISITION, NONE, 0, NONE},
    [TTD_API_NEW_NOTHROW] = {CALL_ACQUISITION, NONE, 0, NONE},
    [TTD_API_NEW_ALIGNED] = {CALL_ACQUISITION, NONE, 0, NONE},
    [TTD_API_NEW_ALIGNED_NOTHROW] = {CALL_ACQUISITION, NONE, 0, NONE},
    [TTD_API_NEW_ARRAY] = {CALL_ACQUISITION, NONE, 0, NONE},
    [TTD_API_NEW_ARRAY_NOTHROW] = {CALL_ACQUISITION, NONE, 0, NONE},
    [TTD_API_NEW_ARRAY_ALIGNED] = {CALL_ACQUISITION, NONE, 0, NONE},
    [TTD_API_NEW_ARRAY_ALIGNED_NOTHROW] = {CALL_ACQUISITION, NONE, 0, NONE},
    [TTD_API_DELETE] = {CALL_RELEASE, 0, NONE, NONE},
    [TTD_API_DELETE_NOTHROW] = {CALL_RELEASE, 0, NONE, NONE},
    [TTD_API_DELETE_SIZED] = {CALL_RELEASE, 0, 1, NONE},
    [TTD_API_DELETE_ALIGNED] = {CALL_RELEASE, 0, NONE, NONE},
    [TTD_API_DELETE_ALIGNED_NOTHROW] = {CALL_RELEASE, 0, NONE, NONE},
    [TTD_API_DELETE_SIZED_ALIGNED] = {CALL_RELEASE, 0, 1, NONE},
    [TTD_API_DELETE_ARRAY] = {CALL_RELEASE, 0, NONE, NONE},
    [TTD_API_DELETE_ARRAY_NOTHROW] = {CALL_RELEASE, 0, NONE, NONE},
    [TTD_API_DELETE_ARRAY_SIZED] = {CALL_RELEASE, 0, 1, NONE},
    [TTD_API_DELETE_ARRAY_ALIGNED] = {CALL_RELEASE, 0, NONE, NONE},
    [TTD_API_DELETE_ARRAY_ALIGNED_NOTHROW] = {CALL_RELEASE, 0, NONE, NONE},
    [TTD_API_DELETE_ARRAY_SIZED_ALIGNED] = {CALL_RELEASE, 0, 1, NONE},
};

enum call_kind translate_kind(unsigned operation)
{
    return operation < TTD_API_COUNT ? (enum call_kind)shapes[operation].kind : CALL_UNKNOWN;
}

static uint64_t requested_size(const struct shape *shape, const uint64_t *operands)
{
    uint64_t size = shape->size != NONE ? operands[shape->size] : 0;
    if (shape->count != NONE && __builtin_mul_overflow(size, operands[shape->count], &size))
        return UINT64_MAX;
    return size;
}

void translate_call(unsigned operation, const uint64_t *operands, ttd_event *event)
{
    const struct shape *shape = &shapes[operation];
    uint32_t count = (uint32_t)record_operands(operation);
    event->api = (uint8_t)operation;
    event->size = requested_size(shape, operands);
    event->base_address = shape->base != NONE ? operands[shape->base] : 0;
    event->previous_address = 0;
    event->address = 0;
    event->result = 1;
    event->parameters = operands;
    event->parameter_count = count;
    if (shape->kind == CALL_RELEASE) {
        event->action = TTD_ACTION_FREE;
    } else if (shape->kind == CALL_REALLOCATION) {
        event->action = TTD_ACTION_REALLOC;
        event->previous_address = event->base_address;
    } else {
        event->action = TTD_ACTION_ALLOC;
        event->address = operands[count - 1];
        event->result = event->address != 0;
        /* Results are no parameters; posix_memalign has its status besides. */
        event->parameter_count = count - (operation == TTD_API_POSIX_MEMALIGN ? 2 : 1);
    }
}

void translate_reallocation_end(uint64_t address, ttd_event *event)
{
    /* The C library's realloc(base, 0) releases the block and returns NULL: a success. */
    bool released = address == 0 && event->size == 0 && event->base_address != 0;
    event->address = address;
    event->result = address != 0 || released;
}
