/* SPDX-License-Identifier: MIT */
#include "symbols/fingerprint.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/grow.h"
#include "symbols/canonical.h"
#include "symbols/frames.h"

/* Role of a frame in a fingerprint. */
enum frame_kind {
    /* A frame below main(), such as _start. Neither it nor its callers count. */
    FRAME_BEGINNING,
    /* main() counts, but its callers do not. */
    FRAME_MAIN,
    /* A frame of a runtime library; it is left out. */
    FRAME_HIDDEN,
    /* A function of std; it counts if the program calls it. */
    FRAME_LIBRARY,
    FRAME_PROGRAM,
    /* A frame in no module, such as generated code. It counts each time, since two of them cannot
     * be distinguished. */
    FRAME_NOWHERE
};

struct fingerprint_frame {
    struct fingerprint name;
    enum frame_kind kind;
};

/* The frames of an address: `count` from `first` on in site_frames, outermost first. */
struct fingerprint_site {
    size_t first;
    size_t count;
    /* Hash of the module's name, for stacks that have nothing else. */
    struct fingerprint module;
};

/* The fingerprint of a stack up to its innermost frame, and the state that its callees go on from.
 */
struct fingerprint_node {
    struct fingerprint fingerprint;
    /* The last frame that was hashed; 0 for none. */
    struct fingerprint last;
    bool is_in_library;
    struct fingerprint modules;
    struct fingerprint last_module;
};

void fingerprinter_free(struct fingerprinter *fingerprinter)
{
    frame_list_free(&fingerprinter->frames);
    map_free(&fingerprinter->site_index);
    map_free(&fingerprinter->node_index);
    free(fingerprinter->text);
    free(fingerprinter->sites);
    free(fingerprinter->site_frames);
    free(fingerprinter->nodes);
    free(fingerprinter->path);
    *fingerprinter = (struct fingerprinter){0};
}

/* Starts over for another trace, since all that is kept belongs to one trace. */
static void fingerprint_begin(struct fingerprinter *fingerprinter, struct definitions *definitions)
{
    if (fingerprinter->definitions == definitions)
        return;
    fingerprinter_free(fingerprinter);
    fingerprinter->definitions = definitions;
    map_init(&fingerprinter->site_index);
    map_init(&fingerprinter->node_index);
}

static void fingerprint_put_number(unsigned char *bytes, uint64_t value)
{
    for (size_t i = 0; i < sizeof value; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
}

static struct fingerprint fingerprint_hash_bytes(const void *bytes, size_t size)
{
    XXH128_hash_t hash = XXH3_128bits(bytes, size);
    return (struct fingerprint){hash.high64, hash.low64};
}

static struct fingerprint fingerprint_chain(struct fingerprint before, struct fingerprint next)
{
    unsigned char bytes[32];
    fingerprint_put_number(bytes, before.high);
    fingerprint_put_number(bytes + 8, before.low);
    fingerprint_put_number(bytes + 16, next.high);
    fingerprint_put_number(bytes + 24, next.low);
    return fingerprint_hash_bytes(bytes, sizeof bytes);
}

/* Describes a frame by its canonical name. Functions of std have no template arguments in it,
 * because their spelling differs between libraries. */
static enum ttd_status fingerprint_describe_name(struct fingerprinter *fingerprinter,
                                                 const struct frame *frame,
                                                 struct fingerprint_frame *result)
{
    bool is_mixed;
    struct ttd_string name = definitions_canonical(fingerprinter->definitions, frame->name);
    result->kind = FRAME_PROGRAM;
    if (runtime_has_function(name, &is_mixed)) {
        enum ttd_status status = grow_array((void **)&fingerprinter->text,
                                            &fingerprinter->text_capacity, name.size + 1, 1);
        if (status != TTD_OK)
            return status;
        name = (struct ttd_string){fingerprinter->text, canonical_bare(name, fingerprinter->text)};
        result->kind = is_mixed ? FRAME_HIDDEN : FRAME_LIBRARY;
    }
    result->name = fingerprint_hash_bytes(name.data, name.size);
    if (runtime_is_main(frame))
        result->kind = FRAME_MAIN;
    return TTD_OK;
}

static enum ttd_status fingerprint_describe_frame(struct fingerprinter *fingerprinter,
                                                  const struct frame *frame,
                                                  struct fingerprint_frame *result)
{
    unsigned char offset[sizeof frame->offset + 1] = {'+'};
    *result =
        (struct fingerprint_frame){.kind = FRAME_NOWHERE, .name = fingerprint_hash_bytes("?", 1)};
    if (runtime_begins(frame))
        result->kind = FRAME_BEGINNING;
    else if (runtime_has_module(frame->module))
        result->kind = FRAME_HIDDEN;
    else if (frame->function.size)
        return fingerprint_describe_name(fingerprinter, frame, result);
    else if (frame->module_id) {
        fingerprint_put_number(offset + 1, frame->offset);
        *result = (struct fingerprint_frame){fingerprint_hash_bytes(offset, sizeof offset),
                                             FRAME_PROGRAM};
    }
    return TTD_OK;
}

/* Hashes the name of the library of an address: "libc" of "/lib/libc.so.6". */
static struct fingerprint fingerprint_module(const struct fingerprinter *fingerprinter)
{
    if (!fingerprinter->frames.count)
        return (struct fingerprint){0, 0};
    struct ttd_string path = fingerprinter->frames.frames[0].module;
    if (!path.size)
        return fingerprint_hash_bytes("", 0);
    size_t begin = path.size;
    while (begin > 0 && path.data[begin - 1] != '/')
        begin--;
    size_t end = begin;
    while (end < path.size && (path.size - end < 3 || memcmp(path.data + end, ".so", 3) != 0))
        end++;
    return fingerprint_hash_bytes(path.data + begin, end - begin);
}

/* Makes the site of an address: the descriptions of its frames, and the hash of its module. */
static enum ttd_status fingerprint_make_site(struct fingerprinter *fingerprinter,
                                             const struct ttd_stack *stack)
{
    fingerprinter->frames.count = 0;
    struct fingerprint_site site = {.first = fingerprinter->site_frame_count};
    enum ttd_status status =
        frame_list_add(&fingerprinter->frames, fingerprinter->definitions, stack);
    size_t count = fingerprinter->frames.count;
    size_t inlined_count = count < FINGERPRINT_INLINED_MAX ? count : FINGERPRINT_INLINED_MAX;
    for (size_t i = 0; i < inlined_count && status == TTD_OK; i++) {
        status =
            grow_array((void **)&fingerprinter->site_frames, &fingerprinter->site_frame_capacity,
                       fingerprinter->site_frame_count + 1, sizeof *fingerprinter->site_frames);
        if (status == TTD_OK)
            status = fingerprint_describe_frame(
                fingerprinter, &fingerprinter->frames.frames[count - 1 - i],
                &fingerprinter->site_frames[fingerprinter->site_frame_count++]);
    }
    if (status == TTD_OK)
        status = grow_array((void **)&fingerprinter->sites, &fingerprinter->site_capacity,
                            fingerprinter->site_count + 1, sizeof *fingerprinter->sites);
    if (status == TTD_OK)
        status = map_set(&fingerprinter->site_index, stack->module, stack->offset,
                         (uint32_t)fingerprinter->site_count);
    if (status != TTD_OK)
        return status;
    site.count = inlined_count;
    site.module = fingerprint_module(fingerprinter);
    fingerprinter->sites[fingerprinter->site_count++] = site;
    return TTD_OK;
}

static void fingerprint_add_frame(struct fingerprint_node *node,
                                  const struct fingerprint_frame *frame)
{
    bool is_in_library = frame->kind == FRAME_HIDDEN || frame->kind == FRAME_LIBRARY;
    if (frame->kind == FRAME_BEGINNING || frame->kind == FRAME_MAIN)
        *node =
            (struct fingerprint_node){.modules = node->modules, .last_module = node->last_module};
    bool counts = frame->kind == FRAME_MAIN || frame->kind == FRAME_PROGRAM ||
                  frame->kind == FRAME_NOWHERE ||
                  (frame->kind == FRAME_LIBRARY && !node->is_in_library);
    bool is_again = frame->kind != FRAME_NOWHERE && fingerprint_equal(frame->name, node->last);
    node->is_in_library = is_in_library;
    if (!counts || is_again)
        return;
    node->fingerprint = fingerprint_chain(node->fingerprint, frame->name);
    node->last = frame->name;
}

/* Extends the fingerprint of a caller by an address that it calls. */
static enum ttd_status fingerprint_add_address(struct fingerprinter *fingerprinter,
                                               const struct ttd_stack *stack,
                                               struct fingerprint_node *node)
{
    uint32_t index = map_get(&fingerprinter->site_index, stack->module, stack->offset);
    if (index == MAP_NONE) {
        enum ttd_status status = fingerprint_make_site(fingerprinter, stack);
        if (status != TTD_OK)
            return status;
        index = (uint32_t)fingerprinter->site_count - 1;
    }
    const struct fingerprint_site *site = &fingerprinter->sites[index];
    for (size_t i = 0; i < site->count; i++)
        fingerprint_add_frame(node, &fingerprinter->site_frames[site->first + i]);
    if (!fingerprint_equal(site->module, node->last_module)) {
        node->modules = fingerprint_chain(node->modules, site->module);
        node->last_module = site->module;
    }
    return TTD_OK;
}

static enum ttd_status fingerprint_keep_node(struct fingerprinter *fingerprinter, ttd_id stack,
                                             const struct fingerprint_node *node)
{
    enum ttd_status status =
        grow_array((void **)&fingerprinter->nodes, &fingerprinter->node_capacity,
                   fingerprinter->node_count + 1, sizeof *fingerprinter->nodes);
    if (status == TTD_OK)
        status = map_set(&fingerprinter->node_index, stack, 0, (uint32_t)fingerprinter->node_count);
    if (status == TTD_OK)
        fingerprinter->nodes[fingerprinter->node_count++] = *node;
    return status;
}

/* Collects the stacks without a node, from `stack` outward, and sets `known` to the node of the
 * first caller that has one, or to MAP_NONE. */
static enum ttd_status fingerprint_find_path(struct fingerprinter *fingerprinter, ttd_id stack,
                                             size_t *count, uint32_t *known_node)
{
    *count = 0;
    for (;;) {
        struct ttd_stack current;
        *known_node = map_get(&fingerprinter->node_index, stack, 0);
        if (*known_node != MAP_NONE)
            return TTD_OK;
        enum ttd_status status = definitions_stack(fingerprinter->definitions, stack, &current);
        if (status == TTD_OK)
            status = grow_array((void **)&fingerprinter->path, &fingerprinter->path_capacity,
                                *count + 1, sizeof *fingerprinter->path);
        if (status != TTD_OK)
            return status == TTD_END ? TTD_OK : status;
        fingerprinter->path[(*count)++] = current;
        stack = current.parent;
    }
}

enum ttd_status fingerprint_stack(struct fingerprinter *fingerprinter,
                                  struct definitions *definitions, ttd_id stack,
                                  struct fingerprint *result)
{
    struct fingerprint_node node = {.is_in_library = false};
    size_t count;
    uint32_t known_node;
    fingerprint_begin(fingerprinter, definitions);
    enum ttd_status status = fingerprint_find_path(fingerprinter, stack, &count, &known_node);
    if (status == TTD_OK && known_node != MAP_NONE)
        node = fingerprinter->nodes[known_node];
    while (count > 0 && status == TTD_OK) {
        const struct ttd_stack *current = &fingerprinter->path[--count];
        status = fingerprint_add_address(fingerprinter, current, &node);
        if (status == TTD_OK)
            status = fingerprint_keep_node(fingerprinter, current->id, &node);
    }
    if (status != TTD_OK)
        return status;
    *result = node.fingerprint.high || node.fingerprint.low
                  ? node.fingerprint
                  : fingerprint_chain(node.modules, node.modules);
    return TTD_OK;
}

/* Fingerprints as text, for baselines and reports. */

void fingerprint_format(struct fingerprint value, char text[FINGERPRINT_TEXT])
{
    for (unsigned i = 0; i < 32; i++) {
        uint64_t half = i < 16 ? value.high : value.low;
        text[i] = "0123456789abcdef"[half >> (60 - 4 * (i % 16)) & 15];
    }
    text[32] = 0;
}

bool fingerprint_parse(const char *text, struct fingerprint *result)
{
    uint64_t halves[2] = {0, 0};
    for (unsigned i = 0; i < 32; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit)
            return false;
        halves[i / 16] = halves[i / 16] << 4 | (uint64_t)(digit - digits);
    }
    if (text[32])
        return false;
    *result = (struct fingerprint){halves[0], halves[1]};
    return true;
}
