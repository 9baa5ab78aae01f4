/* SPDX-License-Identifier: MIT */
/** A chunk of one stack as a reader with lazy_stacks gives it, for tests that have no trace. */
#ifndef SUPPORT_LAZY_STACK_H
#define SUPPORT_LAZY_STACK_H

#include <ttdtrace/advanced.h>

#define STORED_STACK_SIZE_MAX 64

/** The batch of a stack; `payload` must stay as long as it. */
struct ttd_batch lazy_stack(const struct ttd_stack *stack, uint8_t payload[STORED_STACK_SIZE_MAX]);

#endif
