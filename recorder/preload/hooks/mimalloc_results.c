/* SPDX-License-Identifier: MIT */
/*
 * Functions of mimalloc that do more than return a block of a given size, or return it elsewhere.
 * Apart from mimalloc.c: in a unit with all of them the compiler inlines less into the hooks.
 */
#include <string.h>

#include "preload/hooks/entries.h"

/* Releases the block if it cannot be made larger. That is recorded behind it: there is no telling
 * before. */
#define REALLOCATES_OR_FREES(function, parameters, arguments)                                      \
    ENTRY(void *, function, parameters)                                                            \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        bool begun = false;                                                                        \
        struct thread *thread = target_enter((uintptr_t)base);                                     \
        if (LIKELY(thread))                                                                        \
            REALLOCATION_BEGIN(thread, begun, TTD_API_REALLOC, (uintptr_t)base, size);             \
        void *block = ENTRY_CALL(void *, function, parameters, arguments);                         \
        if (LIKELY(thread))                                                                        \
            reallocation_hook_end(thread, begun, OP_REALLOC_END, block);                           \
        if (!block && base && (thread = target_enter((uintptr_t)base))) {                          \
            RELEASE_BEGIN(thread, TTD_API_FREE, (uintptr_t)base);                                  \
            release_hook_end(thread);                                                              \
        }                                                                                          \
        return block;                                                                              \
    }

REALLOCATES_OR_FREES(mi_reallocf, (void *base, size_t size), (base, size))
REALLOCATES_OR_FREES(mi_heap_reallocf, (void *heap, void *base, size_t size), (heap, base, size))
REALLOCATES_OR_FREES(reallocf, (void *base, size_t size), (base, size))

/* Replaces the pointer to the block; returns 0 if it has. */
#define REALLOCATES_IN_PLACE(function)                                                             \
    ENTRY(int, function, (void *pointer, size_t count, size_t size))                               \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        bool begun = false;                                                                        \
        void **block = pointer;                                                                    \
        uintptr_t base = block ? (uintptr_t)*block : 0;                                            \
        struct thread *thread = target_enter(base);                                                \
        if (LIKELY(thread))                                                                        \
            REALLOCATION_BEGIN(thread, begun, TTD_API_REALLOCARRAY, base, count, size);            \
        int status = ENTRY_CALL(int, function, (void *, size_t, size_t), (pointer, count, size));  \
        if (LIKELY(thread))                                                                        \
            reallocation_hook_end(thread, begun, OP_REALLOC_END,                                   \
                                  status == 0 && block ? *block : NULL);                           \
        return status;                                                                             \
    }

REALLOCATES_IN_PLACE(mi_reallocarr)
REALLOCATES_IN_PLACE(reallocarr)

/* Copies a text. `own` is whether the copy is a block: a path may be written elsewhere. */
#define COPIES(function, operation, parameters, arguments, own)                                    \
    ENTRY(char *, function, parameters)                                                            \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        struct thread *thread = (own) ? target_enter(0) : NULL;                                    \
        char *copy = ENTRY_CALL(char *, function, parameters, arguments);                          \
        if (LIKELY(thread)) {                                                                      \
            size_t size = copy ? strlen(copy) + 1 : 0;                                             \
            ACQUISITION_END(thread, operation, (uintptr_t)text, size, (uintptr_t)copy);            \
        }                                                                                          \
        return copy;                                                                               \
    }

COPIES(mi_strdup, TTD_API_MI_STRDUP, (const char *text), (text), true)
COPIES(mi_mbsdup, TTD_API_MI_STRDUP, (const char *text), (text), true)
COPIES(mi_strndup, TTD_API_MI_STRDUP, (const char *text, size_t limit), (text, limit), true)
COPIES(mi_realpath, TTD_API_MI_REALPATH, (const char *text, char *place), (text, place), !place)
COPIES(mi_heap_strdup, TTD_API_MI_STRDUP, (void *heap, const char *text), (heap, text), true)
COPIES(mi_heap_strndup, TTD_API_MI_STRDUP, (void *heap, const char *text, size_t limit),
       (heap, text, limit), true)
COPIES(mi_heap_realpath, TTD_API_MI_REALPATH, (void *heap, const char *text, char *place),
       (heap, text, place), !place)

/* Copies a text of two-byte characters. */
ENTRY(uint16_t *, mi_wcsdup, (const uint16_t *text))
{
    HOOK_FRAME();
    struct thread *thread = target_enter(0);
    uint16_t *copy = ENTRY_CALL(uint16_t *, mi_wcsdup, (const uint16_t *text), (text));
    if (LIKELY(thread)) {
        size_t count = 0;
        while (copy && copy[count++] != 0)
            ;
        ACQUISITION_END(thread, TTD_API_MI_STRDUP, (uintptr_t)text, count * sizeof *copy,
                        (uintptr_t)copy);
    }
    return copy;
}

/* Copies a variable of the environment. */
ENTRY(int, mi_dupenv_s, (char **text, size_t *length, const char *name))
{
    HOOK_FRAME();
    struct thread *thread = text && name ? target_enter(0) : NULL;
    int status =
        ENTRY_CALL(int, mi_dupenv_s, (char **, size_t *, const char *), (text, length, name));
    if (LIKELY(thread)) {
        const char *copy = status == 0 ? *text : NULL;
        size_t size = copy ? strlen(copy) + 1 : 0;
        ACQUISITION_END(thread, TTD_API_MI_STRDUP, (uintptr_t)name, size, (uintptr_t)copy);
    }
    return status;
}
