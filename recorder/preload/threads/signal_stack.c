/* SPDX-License-Identifier: MIT */
#include "preload/threads/internal.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "preload/system/own_memory.h"
#include "preload/system/sys.h"

/* A guard takes two of the 65530 mappings that the system allows; threads need some. */
enum { STACKS_MAX = 4096 };
/* Once the program has signal stacks, its handlers run here in threads that it has none for: as
 * much as programs give them. Pages that no handler touches take no memory. */
enum { STACK_SIZE = 64 * 1024 };

static atomic_bool are_given;
static atomic_uint stack_count;
static void *first;
/* The calling thread's; also the one of the thread that has forked this process. */
static __thread void *own __attribute__((tls_model("initial-exec")));

static void *map_stack(void)
{
    if (atomic_fetch_add(&stack_count, 1) >= STACKS_MAX)
        return NULL;
    char *guard = unwind_pages(UNWIND_PAGE + STACK_SIZE);
    if (!guard)
        return NULL;
    sys_call3(SYS_mprotect, (long)guard, UNWIND_PAGE, PROT_NONE);
    return guard + UNWIND_PAGE;
}

void signal_stack_give(void **memory)
{
    stack_t before = {0};
    if (!atomic_load(&are_given) || unwind_is_confined || (own && own == first) ||
        sys_call3(SYS_sigaltstack, 0, (long)&before, 0) != 0)
        return;
    if ((before.ss_flags & SS_DISABLE) == 0 && before.ss_sp != own)
        return;
    if (!*memory)
        *memory = map_stack();
    const stack_t stack = {.ss_sp = *memory, .ss_size = STACK_SIZE};
    if (stack.ss_sp && sys_call3(SYS_sigaltstack, (long)&stack, 0, 0) == 0)
        own = stack.ss_sp;
}

void signal_stacks_begin(void)
{
    atomic_store(&are_given, true);
    signal_stack_give(&first);
    atomic_store(&are_given, first != NULL);
}

void signal_stacks_end(void)
{
    atomic_store(&are_given, false);
}

bool signal_stacks_are_given(void)
{
    return atomic_load(&are_given);
}

bool signal_stack_is_own(const stack_t *stack)
{
    return (stack->ss_flags & SS_DISABLE) == 0 && own && stack->ss_sp == own;
}
