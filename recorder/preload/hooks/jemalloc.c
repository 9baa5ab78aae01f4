/* SPDX-License-Identifier: MIT */
/* jemalloc's own functions. */
#include <string.h>

#include "preload/hooks/entries.h"

ENTRY_ACQUIRES(mallocx, TTD_API_MALLOCX, (size_t size, int flags), (size, flags), size,
               (uint64_t)flags)
ENTRY_REALLOCATES(rallocx, TTD_API_RALLOCX, (void *base, size_t size, int flags),
                  (base, size, flags), (uintptr_t)base, size, (uint64_t)flags)
ENTRY_RELEASES(dallocx, TTD_API_DALLOCX, (void *base, int flags), (base, flags), (uintptr_t)base,
               (uint64_t)flags)
ENTRY_RELEASES(sdallocx, TTD_API_SDALLOCX, (void *base, size_t size, int flags),
               (base, size, flags), (uintptr_t)base, size, (uint64_t)flags)

/* Stays where it is, and returns how large it is now: less than `size` if it could not grow. */
ENTRY_RESIZES(size_t, xallocx, xallocx, TTD_API_XALLOCX,
              (void *base, size_t size, size_t extra, int flags), (base, size, extra, flags),
              result >= size ? base : NULL, (uintptr_t)base, size, extra, (uint64_t)flags)

/* Notes calls that release all blocks of an arena. */
static void note_reset(const char *name)
{
    size_t size = strlen(name);
    if (strncmp(name, "arena.", 6) == 0 && size > 6 &&
        (strcmp(name + size - 6, ".reset") == 0 || strcmp(name + size - 7, "destroy") == 0))
        process_note(NOTE_ARENAS);
}

#define CONTROL (const char *name, void *old, size_t *old_size, void *value, size_t size)

ENTRY(int, mallctl, CONTROL)
{
    note_reset(name);
    return ENTRY_CALL(int, mallctl, CONTROL, (name, old, old_size, value, size));
}

/* The first call describes the second one, which has only numbers. */
#define LOOK_UP (const char *name, size_t *mib, size_t *length)

ENTRY(int, mallctlnametomib, LOOK_UP)
{
    note_reset(name);
    return ENTRY_CALL(int, mallctlnametomib, LOOK_UP, (name, mib, length));
}
