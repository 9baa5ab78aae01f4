/* SPDX-License-Identifier: MIT */
/* Parts that a library which is attached to a running process does not have. */
#include "../end/fatal.h"
#include "../system/real.h"
#include "../threads/signal_stack.h"

/* Handlers of signals that the program has not set would be seen by it: there are none. */
void fatal_watch_child(void)
{
}

void fatal_unwatch(void)
{
}

void fatal_await_death(void)
{
}

bool fatal_is_fault(int number)
{
    (void)number;
    return false;
}

void signal_stack_give(void **memory)
{
    (void)memory;
}

/* The recorder looks for functions of allocators itself. */
void entries_look_at(uintptr_t address)
{
    (void)address;
}
