/* SPDX-License-Identifier: MIT */
/* Demangling of usual names, and of long ones within a process for these. */
#include "symbols/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* Demangling without limits on stack and time, for a process that may be killed. */

#define DEMANGLE_OPTIONS (DMGL_PARAMS | DMGL_ANSI)

/* Template arguments beside each other; further ones are left out of a shortened name. */
#define ARGUMENTS_MAX 64

struct demangle_sink {
    char *text;
    size_t size;
    size_t limit;
    jmp_buf full;
};

/* Collects the demangler's output. A crafted name of some hundred bytes can stand for gigabytes of
 * text, and the demangler has no limit of its own: longjmp() leaves it at the limit. This is
 * safe because the demangler keeps its state on the stack, or in a tree that is then dropped. */
static void demangle_collect(const char *data, size_t size, void *context)
{
    struct demangle_sink *sink = context;
    if (size > sink->limit - sink->size)
        longjmp(sink->full, 1);
    if (size) /* `data` may be NULL for size 0 */
        memcpy(sink->text + sink->size, data, size);
    sink->size += size;
}

static bool demangle_any(const char *name, int options, struct demangle_sink *sink)
{
    if (rust_demangle_callback(name, DEMANGLE_OPTIONS | options, demangle_collect, sink))
        return true;
    sink->size = 0;
    return cplus_demangle_v3_callback(name, DEMANGLE_OPTIONS | options, demangle_collect, sink);
}

/** Demangles a NUL-terminated name by `options` of libiberty beside the usual ones; 0 if it is not
 * mangled, `limit` + 1 if the text would be longer. Sets `text` as demangle_long() does. */
static size_t demangle_plain(const char *name, int options, char *text, size_t limit)
{
    struct demangle_sink sink = {.text = text, .limit = limit};
    if (setjmp(sink.full))
        return limit + 1;
    return demangle_any(name, options, &sink) ? sink.size : 0;
}

/* A walk through the components of a name, each once, with few levels of template arguments first.
 */
struct demangle_walk {
    struct demangle_component **nodes;
    size_t count;
    size_t capacity;
    bool has_failed;
};

/* Adds a component that was not there. The demangler's own mark serves; it must be 0 when it
 * prints. */
static void demangle_walk_add(struct demangle_walk *walk, struct demangle_component *node)
{
    if (!node || node->d_counting || walk->has_failed)
        return;
    if (grow_array((void **)&walk->nodes, &walk->capacity, walk->count + 1, sizeof *walk->nodes) !=
        TTD_OK) {
        walk->has_failed = true;
        return;
    }
    node->d_counting = 1;
    walk->nodes[walk->count++] = node;
}

/* Whether a component has two others. Those that are not known here remain as they are. */
static bool demangle_has_parts(const struct demangle_component *node)
{
    switch (node->type) {
    case DEMANGLE_COMPONENT_QUAL_NAME:
    case DEMANGLE_COMPONENT_LOCAL_NAME:
    case DEMANGLE_COMPONENT_TYPED_NAME:
    case DEMANGLE_COMPONENT_TEMPLATE:
    case DEMANGLE_COMPONENT_TYPEINFO_NAME:
    case DEMANGLE_COMPONENT_RESTRICT:
    case DEMANGLE_COMPONENT_VOLATILE:
    case DEMANGLE_COMPONENT_CONST:
    case DEMANGLE_COMPONENT_RESTRICT_THIS:
    case DEMANGLE_COMPONENT_VOLATILE_THIS:
    case DEMANGLE_COMPONENT_CONST_THIS:
    case DEMANGLE_COMPONENT_REFERENCE_THIS:
    case DEMANGLE_COMPONENT_RVALUE_REFERENCE_THIS:
    case DEMANGLE_COMPONENT_POINTER:
    case DEMANGLE_COMPONENT_REFERENCE:
    case DEMANGLE_COMPONENT_RVALUE_REFERENCE:
    case DEMANGLE_COMPONENT_FUNCTION_TYPE:
    case DEMANGLE_COMPONENT_ARRAY_TYPE:
    case DEMANGLE_COMPONENT_PTRMEM_TYPE:
    case DEMANGLE_COMPONENT_ARGLIST:
    case DEMANGLE_COMPONENT_TEMPLATE_ARGLIST:
    case DEMANGLE_COMPONENT_PACK_EXPANSION:
    case DEMANGLE_COMPONENT_TAGGED_NAME:
    case DEMANGLE_COMPONENT_CLONE:
        return true;
    default:
        return false;
    }
}

/* Leaves out the arguments of a list: those behind the first ones, or all of an inner list. Those
 * of the outermost level keep their places, since parameters refer to them by number. */
static void demangle_cut_arguments(struct demangle_component *list, bool is_inner,
                                   struct demangle_component *ellipsis)
{
    size_t count = 1;
    for (; !is_inner && list && count < ARGUMENTS_MAX; count++)
        list = list->u.s_binary.right;
    if (!list || !list->u.s_binary.left || (!is_inner && !list->u.s_binary.right))
        return;
    list->u.s_binary.left = ellipsis;
    list->u.s_binary.right = NULL;
}

/* Leaves out template arguments more than `levels` deep. */
static bool demangle_cut_tree(struct demangle_component *tree, size_t levels,
                              struct demangle_component *ellipsis)
{
    struct demangle_walk walk = {0}, inner = {0};
    demangle_walk_add(&walk, tree);
    size_t done_count = 0;
    for (size_t level = 0; done_count < walk.count; level++) {
        for (; done_count < walk.count; done_count++) {
            struct demangle_component *node = walk.nodes[done_count];
            if (!demangle_has_parts(node))
                continue;
            struct demangle_component *right = node->u.s_binary.right;
            demangle_walk_add(&walk, node->u.s_binary.left);
            if (node->type != DEMANGLE_COMPONENT_TEMPLATE || !right ||
                right->type != DEMANGLE_COMPONENT_TEMPLATE_ARGLIST) {
                demangle_walk_add(&walk, right);
                continue;
            }
            demangle_cut_arguments(right, level > levels, ellipsis);
            demangle_walk_add(&inner, right);
        }
        for (size_t i = 0; i < inner.count; i++) {
            inner.nodes[i]->d_counting = 0;
            demangle_walk_add(&walk, inner.nodes[i]);
        }
        inner.count = 0;
    }
    for (size_t i = 0; i < walk.count; i++)
        walk.nodes[i]->d_counting = 0;
    bool has_failed = walk.has_failed || inner.has_failed;
    free(walk.nodes);
    free(inner.nodes);
    return !has_failed;
}

static size_t demangle_print_cut(struct demangle_component *tree, size_t levels, char *text,
                                 size_t limit)
{
    struct demangle_component ellipsis = {.type = DEMANGLE_COMPONENT_NAME};
    struct demangle_sink sink = {.text = text, .limit = limit};
    cplus_demangle_fill_name(&ellipsis, "…", (int)strlen("…"));
    if (!demangle_cut_tree(tree, levels, &ellipsis) || setjmp(sink.full))
        return 0;
    return cplus_demangle_print_callback(DEMANGLE_OPTIONS | DMGL_NO_RECURSE_LIMIT, tree,
                                         demangle_collect, &sink)
               ? sink.size
               : 0;
}

size_t demangle_long(const char *name, char *text, size_t limit)
{
    static const size_t levels[] = {24, 8, 4, 2, 1, 0};
    size_t size = demangle_plain(name, DMGL_NO_RECURSE_LIMIT, text, limit);
    if (size && size <= limit)
        return size;
    size = 0;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0] && !size; i++) {
        void *memory = NULL;
        /* Printing that was left leaves marks in the tree: each time a new one. */
        struct demangle_component *tree =
            cplus_demangle_v3_components(name, DEMANGLE_OPTIONS | DMGL_NO_RECURSE_LIMIT, &memory);
        if (!tree)
            return 0;
        size = demangle_print_cut(tree, levels[i], text, limit);
        free(memory);
    }
    return size;
}

/* Names that are demangled at once: the demangler's use of stack grows with their length. */
#define SHORT_NAME_MAX 1024
#define SHORT_TEXT_MAX 4096

#define PARAMETERS_TRIED_MAX 8

/* Bytes of a name that stands for one that cannot be demangled, without its end. */
#define LEADING_MAX 1024

void demangler_free(struct demangler *demangler)
{
    demangle_process_end(&demangler->process);
    free(demangler->text);
    *demangler = (struct demangler){.long_bytes = 0};
}

static void demangle_leading_add(char *text, size_t *size, const char *part, size_t part_size)
{
    if (part_size > LEADING_MAX - *size)
        part_size = LEADING_MAX - *size;
    memcpy(text + *size, part, part_size);
    *size += part_size;
}

/* Copies an identifier preceded by its length; NULL if there is none. */
static const char *demangle_leading_identifier(const char *next, const char *end, char *text,
                                               size_t *size)
{
    size_t length = 0;
    while (next < end && *next >= '0' && *next <= '9' && length < (size_t)(end - next))
        length = length * 10 + (size_t)(*next++ - '0');
    if (!length || length > (size_t)(end - next))
        return NULL;
    if (*size)
        demangle_leading_add(text, size, "::", 2);
    demangle_leading_add(text, size, next, length);
    return next + length;
}

/* Writes the part of a mangled name before its first template arguments, and the hash of the
 * whole: other names may begin alike. */
static size_t demangle_leading_name(struct ttd_string name, char *text)
{
    const char *next = name.data + 2, *end = name.data + name.size;
    size_t size = 0;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < name.size; i++)
        hash = (hash ^ (unsigned char)name.data[i]) * UINT64_C(0x100000001b3);
    bool is_nested = next < end && *next == 'N';
    next += is_nested;
    while (next < end && memchr("rVKROL", *next, 6))
        next++;
    if (end - next > 2 && memcmp(next, "St", 2) == 0) {
        demangle_leading_add(text, &size, "std", 3);
        next += 2;
    }
    for (const char *after = next; after; next = after ? after : next)
        after = demangle_leading_identifier(next, end, text, &size);
    if (!size)
        demangle_leading_add(text, &size, name.data, name.size);
    else if (next < end && *next == 'I')
        demangle_leading_add(text, &size, "<…>", strlen("<…>"));
    return size + (size_t)sprintf(text + size, "%s… [%08x]", is_nested ? "::" : "",
                                  (unsigned)(hash ^ hash >> 32));
}

/* Whether a name may take the demangler exponential time: it tries twice the possible template
 * arguments of a parameter in the type of a conversion. */
static bool demangle_is_slow(struct ttd_string name)
{
    size_t count = 0;
    const char *end = name.data + name.size;
    if (!memmem(name.data, name.size, "cv", 2))
        return false;
    for (const char *next = name.data; (next = memchr(next, 'T', (size_t)(end - next)));) {
        next++;
        next += strspn(next, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        count += next[0] == '_' && next[1] == 'I';
    }
    return count > PARAMETERS_TRIED_MAX;
}

static size_t demangle_in_process(struct demangler *demangler, struct ttd_string name)
{
    size_t limit = demangler->long_bytes < DEMANGLE_MANY_BYTES ? DEMANGLE_MAX : DEMANGLE_MANY_MAX;
    size_t size = demangle_process_find(&demangler->process, name, demangler->text, limit);
    if (!size)
        size = demangle_leading_name(name, demangler->text);
    demangler->long_bytes += size;
    return size;
}

struct ttd_string demangler_find(struct demangler *demangler, struct ttd_string name)
{
    const struct ttd_string none = {"", 0};
    /* The demangler takes C strings: a name with a NUL stays as it is. */
    if (name.size < 3 || name.data[0] != '_' || (name.data[1] != 'Z' && name.data[1] != 'R') ||
        memchr(name.data, 0, name.size))
        return none;
    if (!demangler->text)
        demangler->text = malloc(DEMANGLE_MAX + 1);
    if (!demangler->text)
        return none;
    size_t size = SHORT_TEXT_MAX + 1;
    if (name.size <= SHORT_NAME_MAX && !demangle_is_slow(name))
        size = demangle_plain(name.data, 0, demangler->text, SHORT_TEXT_MAX);
    if (size > SHORT_TEXT_MAX)
        size = demangle_in_process(demangler, name);
    return (struct ttd_string){demangler->text, size};
}
