/* SPDX-License-Identifier: MIT */
#include "symbols/demangle.h"

#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include <libiberty/demangle.h>

/* Longer names stay mangled, because the demangler's use of stack grows with their length. */
#define MANGLED_MAX 8192

struct sink {
    char *text;
    size_t size;
    jmp_buf full;
};

/* Collects the demangler's output. A crafted name of some hundred bytes can stand for gigabytes of
 * text, and the demangler has no limit of its own: longjmp() leaves it at the limit. This is
 * safe because the demangler keeps its state on the stack. */
static void collect(const char *data, size_t size, void *context)
{
    struct sink *sink = context;
    if (size > DEMANGLE_MAX - sink->size)
        longjmp(sink->full, 1);
    if (size) /* `data` may be NULL for size 0 */
        memcpy(sink->text + sink->size, data, size);
    sink->size += size;
}

static bool try_all(const char *name, struct sink *sink)
{
    int options = DMGL_PARAMS | DMGL_ANSI;
    if (rust_demangle_callback(name, options, collect, sink))
        return true;
    sink->size = 0;
    return cplus_demangle_v3_callback(name, options, collect, sink);
}

size_t demangle(const char *name, char text[DEMANGLE_MAX + 1])
{
    bool may_be = name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
    if (!may_be || strlen(name) > MANGLED_MAX)
        return 0;
    struct sink sink = {.text = text};
    if (setjmp(sink.full))
        return 0;
    if (!try_all(name, &sink))
        return 0;
    text[sink.size] = '\0';
    return sink.size;
}
