/* SPDX-License-Identifier: MIT */
#include "symbols/demangle_long.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/grow.h"

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

size_t demangle_plain(const char *name, int options, char *text, size_t limit)
{
    struct demangle_sink sink = {.text = text, .limit = limit};
    if (setjmp(sink.full))
        return limit + 1;
    return demangle_any(name, options, &sink) ? sink.size : 0;
}

/* The components of a name that are gone through, each once, those of few levels of template
 * arguments first. */
struct demangle_walk {
    struct demangle_component **nodes;
    size_t count;
    size_t capacity;
    bool has_failed;
};

/* Adds a component that was not there. The demangler's own mark serves, which must be 0 when it
 * prints. */
static void walk_add(struct demangle_walk *walk, struct demangle_component *node)
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
static bool has_parts(const struct demangle_component *node)
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
static void cut_arguments(struct demangle_component *list, bool is_inner,
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

/* Leaves out what lies more than `levels` deep in template arguments. */
static bool cut_tree(struct demangle_component *tree, size_t levels,
                     struct demangle_component *ellipsis)
{
    struct demangle_walk walk = {0}, inner = {0};
    walk_add(&walk, tree);
    size_t done_count = 0;
    for (size_t level = 0; done_count < walk.count; level++) {
        for (; done_count < walk.count; done_count++) {
            struct demangle_component *node = walk.nodes[done_count];
            if (!has_parts(node))
                continue;
            struct demangle_component *right = node->u.s_binary.right;
            walk_add(&walk, node->u.s_binary.left);
            if (node->type != DEMANGLE_COMPONENT_TEMPLATE || !right ||
                right->type != DEMANGLE_COMPONENT_TEMPLATE_ARGLIST) {
                walk_add(&walk, right);
                continue;
            }
            cut_arguments(right, level > levels, ellipsis);
            walk_add(&inner, right);
        }
        for (size_t i = 0; i < inner.count; i++) {
            inner.nodes[i]->d_counting = 0;
            walk_add(&walk, inner.nodes[i]);
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

static size_t print_cut(struct demangle_component *tree, size_t levels, char *text, size_t limit)
{
    struct demangle_component ellipsis = {.type = DEMANGLE_COMPONENT_NAME};
    struct demangle_sink sink = {.text = text, .limit = limit};
    cplus_demangle_fill_name(&ellipsis, "…", (int)strlen("…"));
    if (!cut_tree(tree, levels, &ellipsis) || setjmp(sink.full))
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
        size = print_cut(tree, levels[i], text, limit);
        free(memory);
    }
    return size;
}
