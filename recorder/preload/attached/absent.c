/* SPDX-License-Identifier: MIT */
/* Parts that a library which is attached to a running process does not have. */
#include "preload/system/real.h"
#include "preload/threads/signal_stack.h"

/* A signal stack would have to be taken away from a thread that runs. */
void signal_stack_give(void **memory)
{
    (void)memory;
}

/* The recorder looks for functions of allocators itself. */
void entries_look_at(uintptr_t address)
{
    (void)address;
}
