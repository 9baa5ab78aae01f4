/* SPDX-License-Identifier: MIT */
/** The real functions; the hooks call them. */
#ifndef RECORDER_PRELOAD_SYSTEM_REAL_H
#define RECORDER_PRELOAD_SYSTEM_REAL_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/system/sys.h"

/** ROW(result, name, parameters) for each function that the C library has under another name too,
 * such as __libc_malloc; and for the others. */
#define REAL_FUNCTIONS_LIBC(ROW)                                                                   \
    ROW(void *, malloc, (size_t))                                                                  \
    ROW(void *, calloc, (size_t, size_t))                                                          \
    ROW(void *, realloc, (void *, size_t))                                                         \
    ROW(void, free, (void *))                                                                      \
    ROW(void *, memalign, (size_t, size_t))                                                        \
    ROW(void *, valloc, (size_t))                                                                  \
    ROW(void *, pvalloc, (size_t))
#define REAL_FUNCTIONS(ROW)                                                                        \
    REAL_FUNCTIONS_LIBC(ROW)                                                                       \
    ROW(void *, reallocarray, (void *, size_t, size_t))                                            \
    ROW(int, posix_memalign, (void **, size_t, size_t))                                            \
    ROW(void *, aligned_alloc, (size_t, size_t))

struct real_functions {
#define REAL_MEMBER(result, name, parameters) result(*name) parameters;
    REAL_FUNCTIONS(REAL_MEMBER)
#undef REAL_MEMBER
    size_t (*malloc_usable_size)(void *);
};

/** Valid once real_ready() has returned true. The C library's functions under their other names,
 * such as __libc_malloc, are beside them; NULL where there is no such name. */
extern HIDDEN struct real_functions real, real_libc;

/** realloc() of the GNU C library, if it is among these; else NULL. */
extern HIDDEN void *(*real_glibc_realloc)(void *, size_t);

/** Code of the allocator, if the functions are not the C library's. */
extern uintptr_t real_allocator_begin, real_allocator_end;

/** Whether an address is in that allocator; it may call the C library's. */
static inline bool real_is_of_allocator(uintptr_t address)
{
    return address >= real_allocator_begin && address < real_allocator_end;
}

/**
 * Looks the functions up at the first call. False while that is going on: dlsym may allocate, and
 * its calls are served by the arena.
 */
bool real_find_all(void);

/** Set once they are known. */
extern HIDDEN _Atomic bool real_is_ready;

static inline bool real_ready(void)
{
    return __builtin_expect(atomic_load_explicit(&real_is_ready, memory_order_acquire), 1) ||
           real_find_all();
}

/** The way of a call: the one look that a hook takes before anything else (HOOK_ENTRY). */
enum real_way {
    REAL_EARLY, /* the real functions are not known yet */
    REAL_LONG,
    REAL_SHORT, /* not all calls are recorded */
};

extern HIDDEN _Atomic uint8_t real_way;

static inline enum real_way real_way_now(void)
{
    return (enum real_way)atomic_load_explicit(&real_way, memory_order_acquire);
}

/** Notes that not all calls are recorded. */
void real_not_usual(void);

/**
 * Functions that are looked up when the program starts, by real_find_later(); until then, or where
 * there is none, the pointer is NULL.
 */
struct real_later {
    /** The section is an array: its elements must have no gaps. */
    _Alignas(32) const char *name;
    void **function;
    /** The function that real_redirect() makes modules find; NULL to leave them as they are, since
     * each costs touching a page. */
    void (*hook)(void);
};

#define REAL_LATER(pointer, symbol, hook)                                                          \
    static struct real_later later_##pointer __attribute__((used, section("real_later"))) = {      \
        symbol, (void **)&pointer, (void (*)(void))hook};

/** The next function of this name; looked up here only in calls before the program starts. `hook`
 * is as in struct real_later. */
#define REAL(type, name, hook)                                                                     \
    static type *real_##name;                                                                      \
    REAL_LATER(real_##name, #name, hook)                                                           \
    static __attribute__((noinline)) type *find_##name(void)                                       \
    {                                                                                              \
        if (!real_##name)                                                                          \
            *(void **)&real_##name = dlsym(RTLD_NEXT, #name);                                      \
        return real_##name;                                                                        \
    }

void real_find_later(void);

/** Returns the function of this name; NULL if there is none. */
struct real_later *real_later_named(const char *name);

/**
 * Makes the libraries behind this one define the hooks instead of their functions, for modules that
 * look there first (hooks/redirect.c). Called once all functions are known.
 */
void real_redirect(void);

struct redirection {
    const char *name;
    uintptr_t real_function; /* 0 for none */
    uintptr_t hook;
    void *symbol; /* its definition; NULL at first */
};

void redirect(struct redirection *redirections, size_t count);

/** Turns existing bindings to the functions into bindings to the hooks, except in the modules that
 * define them (hooks/redirect.c). */
void rebind(const struct redirection *redirections, size_t count);

/** Puts the hooks of functions that only one allocator has in their place (hooks/entries.c). Called
 * once, when the program starts. */
void entries_redirect(void);

/** Notes that a later module calls such functions of an allocator that came with it. */
void entries_look_at(uintptr_t address);

/** Finds a function in the module that defines `function`; NULL if there is none. */
void *real_find_beside(uintptr_t function, const char *name);

/** Whether reallocarray() does the same as a call of our realloc(), and nothing else: it is the C
 * library's, and ours is the first realloc() of all. Set when the program starts. */
extern bool real_reallocarray_is_plain;

/** Finds the next function of a name, also in a library opened with RTLD_LOCAL; NULL if there is
 * none. */
void *real_find(const char *name);

/** A bump arena for the calls that come before the real functions are known; never freed. */
void *arena_alloc(size_t size, size_t alignment);
enum { ARENA_SIZE = 64 * 1024 };
extern HIDDEN char arena_bytes[ARENA_SIZE];

static inline bool real_arena_owns(const void *block)
{
    return (uintptr_t)block - (uintptr_t)arena_bytes < ARENA_SIZE;
}

/** Returns the bytes from `block` to the end of the used part of the arena: at least its size. */
size_t arena_size(const void *block);

#endif
