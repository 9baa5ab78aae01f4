/* SPDX-License-Identifier: MIT */
#include "signal_stack.h"

#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "../system/memory.h"
#include "../system/sys.h"

/* A guard takes two of the mappings of which the system allows 65530; threads need some. */
enum { STACKS_MAX = 4096 };
/* HANDLER_SIZE is what handlers can count on by tradition, besides the registers that the kernel
 * saves. Handlers of the program may run there once it has signal stacks in other threads. */
enum { FIRST_SIZE = 64 * 1024, HANDLER_SIZE = 8 * 1024, REGISTERS_MIN = 2048 };

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51 /* Linux 5.14; headers may be older */
#endif

static atomic_bool are_given;
static atomic_uint stack_count;
static void *first;
static size_t size; /* of the others */
/* The calling thread's; also that of the thread that has forked this process. */
static __thread void *own __attribute__((tls_model("initial-exec")));

static void *map_stack(size_t bytes)
{
    if (atomic_fetch_add(&stack_count, 1) >= STACKS_MAX)
        return NULL;
    char *guard = unwind_pages(UNWIND_PAGE + bytes);
    if (guard == NULL)
        return NULL;
    sys_call3(SYS_mprotect, (long)guard, UNWIND_PAGE, PROT_NONE);
    return guard + UNWIND_PAGE;
}

static void give(void **memory, size_t bytes)
{
    stack_t before = {0};
    if (!atomic_load(&are_given) || unwind_is_confined || (own != NULL && own == first) ||
        sys_call3(SYS_sigaltstack, 0, (long)&before, 0) != 0)
        return;
    if ((before.ss_flags & SS_DISABLE) == 0 && before.ss_sp != own)
        return;
    if (*memory == NULL)
        *memory = map_stack(bytes);
    const stack_t stack = {.ss_sp = *memory, .ss_size = bytes};
    if (stack.ss_sp != NULL && sys_call3(SYS_sigaltstack, (long)&stack, 0, 0) == 0)
        own = stack.ss_sp;
}

void signal_stack_give(void **memory)
{
    give(memory, size);
}

void signal_stacks_begin(void)
{
    unsigned long registers = getauxval(AT_MINSIGSTKSZ);
    size = (registers > REGISTERS_MIN ? registers : REGISTERS_MIN) + HANDLER_SIZE;
    size = (size + UNWIND_PAGE - 1) / UNWIND_PAGE * UNWIND_PAGE;
    atomic_store(&are_given, true);
    give(&first, FIRST_SIZE);
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
    return (stack->ss_flags & SS_DISABLE) == 0 && own != NULL && stack->ss_sp == own;
}
