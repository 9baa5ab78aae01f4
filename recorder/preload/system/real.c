/* SPDX-License-Identifier: MIT */
#include "preload/system/real.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "preload/system/replaced.h"
#include "preload/system/symbols.h"
#include "preload/system/sys.h"

/* The C library's other names; no header declares them; hooks here. */
#define DECLARE_LIBC(result, name, parameters) result __libc_##name parameters;
/* NOLINTNEXTLINE(clang-diagnostic-reserved-identifier) */
REAL_FUNCTIONS_LIBC(DECLARE_LIBC)

struct real_functions real, real_libc;
void *(*real_glibc_realloc)(void *, size_t);
uintptr_t real_allocator_begin, real_allocator_end;

_Atomic bool real_is_ready;
_Atomic uint8_t real_way;
static _Atomic bool is_unusual;
static atomic_flag is_searching = ATOMIC_FLAG_INIT;

_Alignas(64) char arena_bytes[ARENA_SIZE];
static _Atomic size_t arena_used;

void *arena_alloc(size_t size, size_t alignment)
{
    if (alignment < 16)
        alignment = 16;
    if (size > sizeof arena_bytes || alignment > 64)
        return NULL;
    size_t room = ((size ? size : 1) + alignment - 1) / alignment * alignment;
    size_t used = atomic_load(&arena_used);
    size_t begin;
    do {
        begin = (used + alignment - 1) / alignment * alignment;
        if (begin > sizeof arena_bytes || room > sizeof arena_bytes - begin)
            return NULL;
    } while (!atomic_compare_exchange_weak(&arena_used, &used, begin + room));
    return arena_bytes + begin;
}

size_t arena_size(const void *block)
{
    return atomic_load(&arena_used) - ((uintptr_t)block - (uintptr_t)arena_bytes);
}

/*
 * POSIX lets dlsym return functions; ISO C has no cast for it. Functions that may be absent are not
 * looked up here: the loader may be calling, before the C library can word an error.
 */
#define FIND(result, name, parameters) *(void **)&real.name = dlsym(RTLD_NEXT, #name);
#define FIND_LIBC(result, name, parameters)                                                        \
    *(void **)&real_libc.name = dlsym(RTLD_NEXT, "__libc_" #name);

/* Whether a function is the C library's. Sets `object` to where it is, unless that is unknown. */
static bool real_is_of_libc(uintptr_t function, struct dl_find_object *object)
{
    struct dl_find_object libc;
    return function != 0 && _dl_find_object((void *)function, object) == 0 &&
           _dl_find_object((void *)(uintptr_t)gnu_get_libc_version, &libc) == 0 &&
           object->dlfo_link_map == libc.dlfo_link_map;
}

static void real_find_glibc_realloc(void)
{
    struct dl_find_object object;
    if (real_is_of_libc((uintptr_t)real.realloc, &object))
        real_glibc_realloc = real.realloc;
    else if (real_is_of_libc((uintptr_t)real_libc.realloc, &object))
        real_glibc_realloc = real_libc.realloc;
}

static void real_find_allocator(void)
{
    struct dl_find_object object = {.dlfo_link_map = NULL};
    if (real.malloc == real_libc.malloc || real_is_of_libc((uintptr_t)real.malloc, &object) ||
        !object.dlfo_link_map)
        return;
    real_allocator_begin = (uintptr_t)object.dlfo_map_start;
    real_allocator_end = (uintptr_t)object.dlfo_map_end;
}

static void real_find_functions(void)
{
    REAL_FUNCTIONS_LIBC(FIND_LIBC)
    REAL_FUNCTIONS(FIND)
    FIND(size_t, malloc_usable_size, (void *))
    real_find_allocator();
    real_find_glibc_realloc();
    replaced_find();
}

void real_not_usual(void)
{
    atomic_store(&is_unusual, true);
    if (atomic_load(&real_is_ready))
        atomic_store(&real_way, REAL_SHORT);
}

bool real_find_all(void)
{
    if (atomic_flag_test_and_set(&is_searching))
        return atomic_load_explicit(&real_is_ready, memory_order_acquire);
    real_find_functions();
    atomic_store_explicit(&real_is_ready, true, memory_order_release);
    atomic_store(&real_way, atomic_load(&is_unusual) ? REAL_SHORT : REAL_LONG);
    return true;
}

extern struct real_later first_later __asm__("__start_real_later")
    __attribute__((visibility("hidden")));
extern struct real_later last_later __asm__("__stop_real_later")
    __attribute__((visibility("hidden")));

struct real_later *real_later_named(const char *name)
{
    for (struct real_later *later = &first_later; later < &last_later; later++)
        if (strcmp(later->name, name) == 0)
            return later;
    return NULL;
}

bool real_reallocarray_is_plain;

static void real_find_whether_plain(void)
{
    struct dl_find_object object;
    real_reallocarray_is_plain = real.realloc &&
                                 real_is_of_libc((uintptr_t)real.reallocarray, &object) &&
                                 dlsym(RTLD_DEFAULT, "realloc") == (void *)(uintptr_t)realloc;
}

/* Whether a module has a function that RTLD_NEXT may find. */
static int real_is_defined(struct dl_phdr_info *info, size_t size, void *name)
{
    struct dl_find_object object, own;
    struct symbols symbols;
    const ElfW(Phdr) *segment = info->dlpi_phdr;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum && segment->p_type != PT_LOAD; i++)
        segment++;
    if (segment == info->dlpi_phdr + info->dlpi_phnum)
        return 0;
    return _dl_find_object((void *)(info->dlpi_addr + segment->p_vaddr), &object) == 0 &&
           _dl_find_object(&real, &own) == 0 && object.dlfo_link_map != own.dlfo_link_map &&
           object.dlfo_link_map->l_prev && symbols_of(&object, &symbols) &&
           symbols_find(&symbols, name, 0);
}

void real_find_later(void)
{
    real_find_whether_plain();
    /* A lookup that fails calls malloc(), and leaves memory behind that the next one frees; others
     * may not expect it. Most programs lack the operators of C++. */
    for (struct real_later *later = &first_later; later < &last_later; later++)
        if (strncmp(later->name, "_Z", 2) != 0 ||
            dl_iterate_phdr(real_is_defined, (void *)(uintptr_t)later->name) != 0)
            *later->function = dlsym(RTLD_NEXT, later->name);
}

void real_redirect(void)
{
    enum { MAX = 64 };
#define REDIRECTION(result, name, parameters) {#name, (uintptr_t)real.name, (uintptr_t)name, NULL},
#define REDIRECTION_LIBC(result, name, parameters)                                                 \
    {"__libc_" #name, (uintptr_t)real_libc.name, (uintptr_t)__libc_##name, NULL},
#define ONE(result, name, parameters) +1
    struct redirection redirections[MAX] = {REAL_FUNCTIONS(REDIRECTION)
                                                REAL_FUNCTIONS_LIBC(REDIRECTION_LIBC)};
    size_t count = REAL_FUNCTIONS(ONE) REAL_FUNCTIONS_LIBC(ONE);
#undef ONE
    for (const struct real_later *later = &first_later; later < &last_later && count < MAX; later++)
        if (later->hook)
            redirections[count++] = (struct redirection){later->name, (uintptr_t)*later->function,
                                                         (uintptr_t)later->hook, NULL};
    redirect(redirections, count);
}

void *real_find(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    /* A C++ runtime that came with a plugin is not in the search order of this library. */
    static const char *const runtimes[] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};
    for (size_t i = 0; !function && i < sizeof runtimes / sizeof *runtimes; i++) {
        void *handle = dlopen(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);
        if (!handle)
            continue;
        function = dlsym(handle, name);
        dlclose(handle);
    }
    if (!function)
        dlerror(); /* the program must not find this error */
    return function;
}
