/* SPDX-License-Identifier: MIT */
/*
 * Looks at the C library's list of handlers. It is made of arrays of entries, and ends in one that
 * is a variable of the library:
 *
 *     next array, number of entries, entries of {kind, function, argument, module}...
 *
 * exit() lowers the number before it runs an entry, and a new handler takes the next free entry. So
 * a handler is the last one if a new one raises the number of the last array from 0 to 1, and
 * takes the entry of the handler that runs.
 */
#include <dlfcn.h>
#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "preload/end/last.h"

/* The C library's registration of handlers, which it runs in reverse order. It calls them with the
 * status as well, as on_exit() does. */
int libc_atexit(void (*function)(void *, int), void *argument,
                void *module) __asm__("__cxa_atexit");

enum { WORD_NEXT, WORD_COUNT, WORD_KIND, WORD_FUNCTION, WORD_ARGUMENT, WORD_MODULE };
enum { KIND_FREE = 0, KIND_WITH_MODULE = 4 };
enum { ENTRY_WORDS = WORD_MODULE + 1 - WORD_KIND, ENTRIES = 32 };

/* Addresses that nothing else has. */
static char handler_marks[2], probe_marks[2];

/* The part of the C library's data that is zero at first. */
struct zeroes {
    uintptr_t *begin, *end;
};

static struct zeroes find_zeroes(void)
{
    struct dl_find_object object;
    struct zeroes found = {NULL, NULL};
    if (_dl_find_object((void *)(uintptr_t)gnu_get_libc_version, &object) != 0)
        return found;
    const ElfW(Ehdr) *header = object.dlfo_map_start;
    const ElfW(Phdr) *segment = (const ElfW(Phdr) *)((const char *)header + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++) {
        uintptr_t begin = object.dlfo_link_map->l_addr + segment[i].p_vaddr;
        if (segment[i].p_type == PT_LOAD && (segment[i].p_flags & PF_W) != 0) {
            found.begin = (uintptr_t *)((begin + segment[i].p_filesz + 7) & -(uintptr_t)8);
            found.end = (uintptr_t *)((begin + segment[i].p_memsz) & -(uintptr_t)8);
        }
    }
    return found;
}

static bool has_marks(const uintptr_t *words, const char marks[2])
{
    return words[WORD_ARGUMENT] == (uintptr_t)&marks[0] &&
           words[WORD_MODULE] == (uintptr_t)&marks[1];
}

/* Returns the array of handlers as it is if its first entry is this library's handler; else NULL.
 */
static const uintptr_t *find_array(void)
{
    struct zeroes zeroes = find_zeroes();
    for (const uintptr_t *words = zeroes.begin; words < zeroes.end - WORD_MODULE; words++)
        if (has_marks(words, handler_marks))
            return words;
    return NULL;
}

/* Returns the array whose last entry is at `last`, and sets `index` to its place; NULL if there is
 * none such, which is the variable of the library. */
static uintptr_t *array_of(uintptr_t *last, const uintptr_t *begin, size_t *index)
{
    for (*index = 0; *index < ENTRIES; ++*index) {
        uintptr_t *array = last - *index * ENTRY_WORDS - WORD_KIND;
        if (array < begin)
            return NULL;
        if (array[WORD_NEXT] == 0 && array[WORD_COUNT] == *index + 1)
            return array;
        if (array[WORD_KIND] == KIND_FREE || array[WORD_KIND] > KIND_WITH_MODULE)
            return NULL;
    }
    return NULL;
}

/*
 * Moves this library's handler, which has just been registered, before those that the constructors
 * of other libraries have registered, such as libstdc++: it then runs after them. No other thread
 * runs yet.
 */
static void move_to_front(void)
{
    struct zeroes zeroes = find_zeroes();
    uintptr_t entry[ENTRY_WORDS];
    size_t index;
    for (uintptr_t *words = zeroes.begin; words < zeroes.end - WORD_MODULE; words++) {
        if (!has_marks(words, handler_marks))
            continue;
        uintptr_t *last = words + WORD_KIND;
        uintptr_t *array = array_of(last, zeroes.begin, &index);
        if (array == NULL)
            return;
        memcpy(entry, last, sizeof entry);
        memmove(array + WORD_KIND + ENTRY_WORDS, array + WORD_KIND, index * sizeof entry);
        memcpy(array + WORD_KIND, entry, sizeof entry);
        return;
    }
}

static void do_nothing(void *unused, int status)
{
    (void)unused;
    (void)status;
}

void last_register(last_function *function)
{
    if (libc_atexit(function, &handler_marks[0], &handler_marks[1]) == 0)
        move_to_front();
}

bool last_is_running(void)
{
    const uintptr_t *array = find_array();
    /* All handlers also run, without an end, when a program calls __cxa_finalize(). */
    if (array == NULL || array[WORD_NEXT] != 0 || array[WORD_COUNT] != 0 ||
        array[WORD_KIND] != KIND_FREE ||
        libc_atexit(do_nothing, &probe_marks[0], &probe_marks[1]) != 0)
        return false;
    return array[WORD_COUNT] == 1 && array[WORD_KIND] == KIND_WITH_MODULE &&
           has_marks(array, probe_marks);
}
