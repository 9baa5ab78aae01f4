/* SPDX-License-Identifier: MIT */
#include "collect/channel/translate.h"

#include "channel_record.h"

/* Kind of a recorded call, by its effect (enum ttd_api_effect). */
#define KIND(effect)                                                                               \
    ((effect) == TTD_EFFECT_ALLOC || (effect) == TTD_EFFECT_CREATE ? CALL_ACQUISITION              \
     : ((effect)&TTD_EFFECT_ACTION_MASK) == TTD_EFFECT_REALLOC     ? CALL_REALLOCATION             \
                                                                   : CALL_RELEASE)

/* Calls with a size and a block, or with a block and perhaps its size. */
#define IS_USUAL_ALLOC(effect, operands, arguments)                                                \
    ((effect) == TTD_EFFECT_ALLOC && (operands) == 2 && (arguments) == 1)
#define IS_USUAL_FREE(effect, arguments, size)                                                     \
    (((effect)&TTD_EFFECT_ACTION_MASK) == TTD_EFFECT_FREE &&                                       \
     ((arguments) == 1 || ((arguments) == 2 && (size) == 1)))

/* An acquisition's last operand is the block. */
#define SHAPE(name, value, text, symbol, template, effect, family, operands, arguments, base,      \
              size, count)                                                                         \
    [value] = {(operands) == 0 ? CALL_UNKNOWN : KIND(TTD_EFFECT_##effect),                         \
               TTD_EFFECT_##effect & TTD_EFFECT_ACTION_MASK,                                       \
               operands,                                                                           \
               arguments,                                                                          \
               OPERAND_##base,                                                                     \
               TTD_EFFECT_##effect == TTD_EFFECT_ALLOC && (operands) > 0 ? (operands)-1            \
                                                                         : OPERAND_ZERO,           \
               OPERAND_##size,                                                                     \
               OPERAND_##count,                                                                    \
               IS_USUAL_ALLOC(TTD_EFFECT_##effect, operands, arguments)        ? USUAL_ALLOC       \
               : IS_USUAL_FREE(TTD_EFFECT_##effect, arguments, OPERAND_##size) ? USUAL_FREE        \
                                                                               : USUAL_NONE},

const struct call_shape call_shapes[UINT8_MAX + 1] = {
    [OP_EVENT] = {.kind = CALL_EVENT, .operands = EVENT_OPERANDS},
    [OP_REALLOC_END] = {.kind = CALL_END, .operands = 1}, /* result */
    [OP_REALLOC_COPIED] = {.kind = CALL_END, .operands = 1},
    [OP_REALLOC_REMAPPED] = {.kind = CALL_END, .operands = 1},
    TTD_APIS(SHAPE)};

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
