/* SPDX-License-Identifier: MIT */
/** Translates a recorded call into a normalized event of the trace. */
#ifndef RECORDER_COLLECT_CHANNEL_TRANSLATE_H
#define RECORDER_COLLECT_CHANNEL_TRANSLATE_H

#include <stdbool.h>
#include <stdint.h>

#include <ttdtrace/model.h>

enum call_kind {
    CALL_UNKNOWN,      /* an operation that no thread's stream has */
    CALL_ACQUISITION,  /* recorded after its return */
    CALL_RELEASE,      /* takes effect when it begins */
    CALL_REALLOCATION, /* has a second record, for its end */
    CALL_END,          /* the end of a reallocation */
    CALL_EVENT,        /* an event of the live API; no call */
};

/** Indexes of operands as TTD_APIS has them, their largest number, and the indexes of two constants
 * that stand for operands which a call does not have. */
enum {
    OPERAND_0,
    OPERAND_1,
    OPERAND_2,
    CALL_OPERANDS_MAX = 5,
    OPERAND_ZERO = CALL_OPERANDS_MAX,
    OPERAND_ONE,
    CALL_OPERANDS
};

/** Calls that can be a struct ttd_call, if they have an address, by their operands. */
enum usual_call {
    USUAL_NONE,
    USUAL_ALLOC, /* size; address */
    USUAL_FREE,  /* address, perhaps size */
};

/** The meaning of a call's operands, by their indexes. */
struct call_shape {
    uint8_t kind;       /* enum call_kind */
    uint8_t action;     /* ttd_action */
    uint8_t operands;   /* arguments and results */
    uint8_t parameters; /* the arguments; they come first */
    uint8_t base;
    uint8_t address;
    uint8_t size;
    uint8_t count; /* to be multiplied with size */
    uint8_t usual; /* enum usual_call */
};

/** By operation; functions by TTD_APIS. */
extern const struct call_shape call_shapes[UINT8_MAX + 1];

/**
 * Sets action, addresses, size, result and parameters of `event` from `operands` with the two
 * constants. `event->parameters` points to `operands`. Other fields are left alone.
 */
static inline void translate_call(const struct call_shape *shape, const uint64_t *operands,
                                  struct ttd_event *event)
{
    uint64_t base = operands[shape->base], address = operands[shape->address], size;
    if (__builtin_mul_overflow(operands[shape->size], operands[shape->count], &size))
        size = UINT64_MAX;
    event->action = shape->action;
    event->size = size;
    event->base_address = base;
    event->previous_address = shape->kind == CALL_REALLOCATION ? base : 0;
    event->address = address;
    event->result = shape->kind != CALL_ACQUISITION || address != 0;
    event->parameters = operands;
    event->parameter_count = shape->parameters;
}

/** Sets the result of a reallocation, the address that it returned, and how it moved the block. */
void translate_reallocation_end(unsigned operation, uint64_t address, struct ttd_event *event);

#endif
