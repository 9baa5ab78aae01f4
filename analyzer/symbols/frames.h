/* SPDX-License-Identifier: MIT */
/** Lists of frames: stacks with the names of their frames. */
#ifndef ANALYZER_SYMBOLS_FRAMES_H
#define ANALYZER_SYMBOLS_FRAMES_H

#include "symbols/trace_definitions.h"

/** A frame of a stack. Unknown texts have size 0. All texts are untrusted, and belong to the
 * definitions. */
struct frame {
    struct ttd_string function;
    /** The function's name as in the trace, not demangled. */
    struct ttd_string symbol;
    /** Identifier of the function's name, for definitions_canonical(). */
    ttd_id name;
    struct ttd_string file;
    uint32_t line;
    /** Path of the module. */
    struct ttd_string module;
    ttd_id module_id;
    /** Address relative to the module, and in the process. */
    uint64_t offset;
    uint64_t address;
    /** The function was inlined into the frame that follows. */
    bool is_inlined;
};

/** Limit on the frames of a list: a crafted trace can have millions that are inlined. */
#define FRAME_LIST_MAX 65536

/** All zero when empty. Reused from stack to stack. */
struct frame_list {
    struct frame *frames;
    size_t count;
    size_t capacity;
};

void frame_list_free(struct frame_list *list);

/**
 * Sets `list` to the frames of a stack, innermost first, inlined ones expanded. Empty for
 * TTD_NONE; a stack that is not defined, such as one of a damaged part, ends the list.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
enum ttd_status frame_list_expand(struct frame_list *list, struct definitions *definitions,
                                  ttd_id stack);

/** Expands a stack like frame_list_expand(), but stops after about `max_count` frames. */
enum ttd_status frame_list_begin(struct frame_list *list, struct definitions *definitions,
                                 ttd_id stack, size_t max_count);

/** Adds the frames of one address of a stack. @return TTD_OK, TTD_ERROR_NO_MEMORY,
 * TTD_ERROR_LIMIT (see stack_table_spend()). */
enum ttd_status frame_list_add(struct frame_list *list, struct definitions *definitions,
                               const struct ttd_stack *stack);

/** Adds a frame at the end. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status frame_list_push(struct frame_list *list, const struct frame *frame);

#endif
