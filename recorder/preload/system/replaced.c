/* SPDX-License-Identifier: MIT */
#include "preload/system/replaced.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include "preload/system/real.h"

bool replaced_any;

/*
 * Functions that acquire and release, with their arguments: a size, an alignment, a count of 1, a
 * null pointer, a tag, where the result is to be stored, and the block.
 */
struct pair {
    const char *acquire;
    const char *acquire_arguments;
    const char *release;
    const char *release_arguments;
};

#define OPERATORS(new, delete)                                                                     \
    {"_Zn" new "m", "s", "_Zd" delete "Pv", "b"}, {"_Zn" new "m", "s", "_Zd" delete "Pvm", "bs"},  \
        {"_Zn" new "mRKSt9nothrow_t", "st", "_Zd" delete "PvRKSt9nothrow_t", "bt"},                \
        {"_Zn" new "mSt11align_val_t", "sa", "_Zd" delete "PvSt11align_val_t", "ba"},              \
        {"_Zn" new "mSt11align_val_t", "sa", "_Zd" delete "PvmSt11align_val_t", "bsa"},            \
    {                                                                                              \
        "_Zn" new "mSt11align_val_tRKSt9nothrow_t", "sat",                                         \
            "_Zd" delete "PvSt11align_val_tRKSt9nothrow_t", "bat"                                  \
    }

static const struct pair pairs[] = {
    {"malloc", "s", "free", "b"},
    {"calloc", "1s", "cfree", "b"},
    {"realloc", "0s", "free_sized", "bs"},
    {"reallocarray", "01s", "free", "b"},
    {"memalign", "as", "free", "b"},
    {"aligned_alloc", "as", "free_aligned_sized", "bas"},
    {"posix_memalign", "ras", "free", "b"},
    {"valloc", "s", "free", "b"},
    {"pvalloc", "s", "free", "b"},
    OPERATORS("w", "l"),
    OPERATORS("a", "a"),
};

enum { PAIRS = sizeof pairs / sizeof *pairs };

/* Finds the function if the program defines it, and does not merely have an address for calling one
 * of a library; NULL otherwise. Its symbol has its size. */
static void *find_replaced(const char *name, const struct link_map *this_library,
                           const ElfW(Sym) * *symbol)
{
    struct dl_find_object object;
    Dl_info info;
    void *entry = NULL;
    void *first = dlsym(RTLD_DEFAULT, name);
    if (!first || (_dl_find_object(first, &object) == 0 && object.dlfo_link_map == this_library) ||
        dladdr1(first, &info, &entry, RTLD_DL_SYMENT) == 0 || !entry)
        return NULL;
    *symbol = entry;
    return (*symbol)->st_shndx != SHN_UNDEF ? first : NULL;
}

bool replaced_each(bool (*found)(const char *name, uintptr_t function, size_t size))
{
    struct dl_find_object object;
    const ElfW(Sym) * symbol;
    if (_dl_find_object((void *)(uintptr_t)replaced_find, &object) != 0)
        return false;
    for (size_t i = 0; i < (size_t)2 * PAIRS; i++) {
        const char *name = i % 2 == 0 ? pairs[i / 2].acquire : pairs[i / 2].release;
        void *function = find_replaced(name, object.dlfo_link_map, &symbol);
        if (function && !found(name, (uintptr_t)function, symbol->st_size))
            return false;
    }
    return true;
}

static bool replaced_is_none(const char *name, uintptr_t function, size_t size)
{
    (void)name;
    (void)function;
    (void)size;
    return false;
}

void replaced_find(void)
{
    replaced_any = !replaced_each(replaced_is_none);
}

/* Calls of the C library within one call of the program's functions. */
enum { CALLS = 16 };
static struct {
    uintptr_t base;
    size_t size;
} acquired[CALLS];
static uintptr_t released[CALLS];
static size_t acquired_count, released_count;

static struct real_functions before, before_libc;

static void replaced_note_acquired(const void *base, size_t size)
{
    if (!base || acquired_count == CALLS)
        return;
    acquired[acquired_count].base = (uintptr_t)base;
    acquired[acquired_count++].size = size;
}

static void replaced_note_released(const void *base)
{
    if (base && released_count != CALLS)
        released[released_count++] = (uintptr_t)base;
}

static void *replaced_watch_malloc(size_t size)
{
    void *base = before.malloc(size);
    replaced_note_acquired(base, size);
    return base;
}

static void *replaced_watch_calloc(size_t count, size_t size)
{
    void *base = before.calloc(count, size);
    replaced_note_acquired(base, count * size);
    return base;
}

static void *replaced_watch_realloc(void *old, size_t size)
{
    replaced_note_released(old);
    void *base = before.realloc(old, size);
    replaced_note_acquired(base, size);
    return base;
}

static void replaced_watch_free(void *base)
{
    replaced_note_released(base);
    before.free(base);
}

static void *replaced_watch_memalign(size_t alignment, size_t size)
{
    void *base = before.memalign(alignment, size);
    replaced_note_acquired(base, size);
    return base;
}

static int replaced_watch_posix_memalign(void **base, size_t alignment, size_t size)
{
    int status = before.posix_memalign(base, alignment, size);
    if (status == 0)
        replaced_note_acquired(*base, size);
    return status;
}

static void *replaced_watch_valloc(size_t size)
{
    void *base = before.valloc(size);
    replaced_note_acquired(base, size);
    return base;
}

/* Makes the hooks call the functions above; those call the C library's. */
static void replaced_watch(void)
{
    before = real;
    before_libc = real_libc;
    real = (struct real_functions){.malloc = replaced_watch_malloc,
                                   .calloc = replaced_watch_calloc,
                                   .realloc = replaced_watch_realloc,
                                   .reallocarray = before.reallocarray, /* calls realloc() */
                                   .free = replaced_watch_free,
                                   .memalign = replaced_watch_memalign,
                                   .posix_memalign = replaced_watch_posix_memalign,
                                   .aligned_alloc = replaced_watch_memalign,
                                   .valloc = replaced_watch_valloc,
                                   .pvalloc = replaced_watch_valloc,
                                   .malloc_usable_size = before.malloc_usable_size};
    real_libc = real;
}

enum { ALIGNMENT = 64 };

/* Calls a function; it gets three arguments, and takes as many as it has. */
static void *replaced_call(const char *name, const char *arguments, void *block, size_t size)
{
    static char tag;
    void *(*function)(uintptr_t, uintptr_t, uintptr_t);
    void *stored = NULL;
    uintptr_t values[3] = {0};
    for (size_t i = 0; i < 3 && arguments[i] != '\0'; i++) {
        const struct {
            char letter;
            uintptr_t value;
        } kinds[] = {{'s', size},
                     {'a', ALIGNMENT},
                     {'1', 1},
                     {'t', (uintptr_t)&tag},
                     {'r', (uintptr_t)&stored},
                     {'b', (uintptr_t)block}};
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            if (arguments[i] == kinds[k].letter)
                values[i] = kinds[k].value;
    }
    *(void **)&function = dlsym(RTLD_DEFAULT, name);
    if (!function)
        return NULL;
    acquired_count = released_count = 0;
    void *result = function(values[0], values[1], values[2]);
    return arguments[0] == 'r' ? stored : result;
}

/* Returns the block of the C library, acquired in this call, that holds the returned memory and
 * little else; 0 if there is none. */
static uintptr_t replaced_find_base(const void *block, size_t size)
{
    enum { MORE_MAX = 4096 };
    uintptr_t begin = (uintptr_t)block;
    for (size_t i = 0; i < acquired_count; i++) {
        uintptr_t base = acquired[i].base;
        if (acquired[i].size >= size && acquired[i].size - size <= MORE_MAX && begin >= base &&
            begin - base <= acquired[i].size - size)
            return base;
    }
    return 0;
}

/* Whether a call that has just returned released the block. */
static bool replaced_has_released(uintptr_t base)
{
    for (size_t i = 0; i < released_count; i++)
        if (released[i] == base)
            return true;
    return false;
}

/* Tries a pair twice at the same time: an allocator may take much at once and hand out parts. */
static bool replaced_pair_forwards(const struct pair *pair, size_t size)
{
    void *blocks[2];
    uintptr_t bases[2];
    if (strchr(pair->acquire_arguments, 'a') && size % ALIGNMENT != 0)
        return true;
    for (int i = 0; i < 2; i++) {
        blocks[i] = replaced_call(pair->acquire, pair->acquire_arguments, NULL, size);
        bases[i] = blocks[i] ? replaced_find_base(blocks[i], size) : 0;
        if (bases[i] == 0)
            return false;
    }
    if (bases[0] == bases[1])
        return false;
    for (int i = 0; i < 2; i++) {
        replaced_call(pair->release, pair->release_arguments, blocks[i], size);
        if (!replaced_has_released(bases[i]))
            return false;
    }
    return true;
}

/* A block that grows may stay where it is, but not without a call of the C library's. */
static bool replaced_growth_forwards(size_t size)
{
    void *block = replaced_call("malloc", "s", NULL, size);
    block = block ? replaced_call("realloc", "bs", block, 3 * size) : NULL;
    uintptr_t base = block ? replaced_find_base(block, 3 * size) : 0;
    if (base == 0)
        return false;
    replaced_call("free", "b", block, 0);
    return replaced_has_released(base);
}

bool replaced_forward(void)
{
    static const size_t sizes[] = {8, 24, 64, 256, 1024, 4096, 32768, 200000};
    bool forwards = true;
    replaced_watch();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && forwards; i++) {
        for (size_t pair = 0; pair < PAIRS && forwards; pair++)
            forwards = replaced_pair_forwards(&pairs[pair], sizes[i]);
        forwards = forwards && replaced_growth_forwards(sizes[i]);
    }
    real = before;
    real_libc = before_libc;
    return forwards;
}
