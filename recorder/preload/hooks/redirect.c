/* SPDX-License-Identifier: MIT */
/*
 * Changes the symbol tables of the libraries behind this one, so that they define the hooks instead
 * of their allocation functions. Some modules are bound to those although the hooks come first: a
 * plugin opened with RTLD_DEEPBIND looks in its own libraries, and dlsym() in the library that it
 * is given. Calls within such a library, and modules that are bound already, are not affected.
 */
#include <sys/mman.h>

#include "preload/system/real.h"
#include "preload/system/sys.h"
#include "preload/channel/target.h"
#include "preload/hooks/symbols.h"

enum { PAGE = 4096 };

/* The definitions of one module that are to be changed. */
struct change {
    struct symbols symbols;
    uintptr_t begin, end; /* of the pages that they are on */
};

/* Finds the definition of each function of this module. */
static void redirect_find_all(const struct link_map *map, struct change *change,
                              struct redirection *redirections, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct redirection *redirection = &redirections[i];
        struct dl_find_object object;
        if (redirection->real_function == 0 || redirection->symbol ||
            _dl_find_object((void *)redirection->real_function, &object) != 0 ||
            object.dlfo_link_map != map)
            continue;
        ElfW(Sym) *symbol =
            symbols_find(&change->symbols, redirection->name, redirection->real_function);
        if (!symbol)
            continue;
        uintptr_t begin = (uintptr_t)symbol & -(uintptr_t)PAGE;
        uintptr_t end = ((uintptr_t)(symbol + 1) + PAGE - 1) & -(uintptr_t)PAGE;
        change->begin = begin < change->begin ? begin : change->begin;
        change->end = end > change->end ? end : change->end;
        redirection->symbol = symbol;
    }
}

static bool protect(const struct change *change, int protection)
{
    return sys_call3(SYS_mprotect, (long)change->begin, (long)(change->end - change->begin),
                     protection) == 0;
}

static void redirect_module(const struct dl_find_object *object, struct redirection *redirections,
                            size_t count)
{
    struct change change = {.begin = UINTPTR_MAX};
    if (!symbols_of(object, &change.symbols) || change.symbols.protection < 0)
        return;
    redirect_find_all(object->dlfo_link_map, &change, redirections, count);
    if (change.begin >= change.end || !protect(&change, change.symbols.protection | PROT_WRITE))
        return;
    for (size_t i = 0; i < count; i++) {
        ElfW(Sym) *symbol = redirections[i].symbol;
        /* Another thread may be looking it up. */
        if ((uintptr_t)symbol >= change.begin && (uintptr_t)symbol < change.end)
            __atomic_store_n(&symbol->st_value, redirections[i].hook - change.symbols.bias,
                             __ATOMIC_RELEASE);
    }
    protect(&change, change.symbols.protection);
}

void redirect(struct redirection *redirections, size_t count)
{
    const struct link_map *last_module = NULL;
    for (size_t i = 0; i < count; i++) {
        struct dl_find_object object;
        if (redirections[i].real_function == 0 || redirections[i].symbol ||
            _dl_find_object((void *)redirections[i].real_function, &object) != 0 ||
            object.dlfo_link_map == last_module)
            continue;
        redirect_module(&object, redirections, count);
        last_module = object.dlfo_link_map;
    }
}

void *real_find_beside(uintptr_t function, const char *name)
{
    struct dl_find_object object;
    struct symbols symbols;
    if (_dl_find_object((void *)function, &object) != 0 || !symbols_of(&object, &symbols))
        return NULL;
    const ElfW(Sym) *symbol = symbols_find(&symbols, name, 0);
    return symbol ? (void *)(symbols.bias + symbol->st_value) : NULL;
}
