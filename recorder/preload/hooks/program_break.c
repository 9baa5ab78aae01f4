/* SPDX-License-Identifier: MIT */
/*
 * The program break. The C library's allocator moves it by a name of its own, so calls of these
 * functions are the program's: it has memory there that looks like the allocator's.
 */
#include <unistd.h>

#include "preload/hooks/hooks.h"

REAL(__typeof__(sbrk), sbrk, NULL)
REAL(__typeof__(brk), brk, NULL)

EXPORT void *sbrk(intptr_t increment)
{
    if (increment != 0)
        process_note(NOTE_BREAK);
    return find_sbrk()(increment);
}

EXPORT int brk(void *address)
{
    process_note(NOTE_BREAK);
    return find_brk()(address);
}
