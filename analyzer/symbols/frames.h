/* SPDX-License-Identifier: MIT */
/** Lists of frames: stacks with the names of their frames, and the frames of the language
 * runtimes. */
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

/* Recognizes frames of the C and C++ runtimes, and frames below main(), by their names. */

/** Whether a module is a C or C++ library or the dynamic linker, by the base name of its path. */
bool runtime_has_module(struct ttd_string path);

/** Whether a frame is one that every thread or process begins with, such as _start. */
bool runtime_begins(const struct frame *frame);

/** Whether a stack without a function that a thread or process begins with is not whole: if the
 * definitions name any such function, or the recorder's own module: it records whole stacks. */
bool runtime_has_beginning(const struct definitions *definitions);

/** Properties of a frame that show whether a stack is whole: bits. */
enum runtime_trait {
    RUNTIME_IS_MAIN = 1,
    /** See runtime_begins(). */
    RUNTIME_IS_BEGINNING = 2,
    /** See runtime_has_module(). */
    RUNTIME_IS_LIBRARY = 4,
    RUNTIME_IS_NAMELESS = 8,
    /** Stands for a stack, as of blocks that a recorder found when it was attached. */
    RUNTIME_IS_NOTE = 16
};

unsigned runtime_traits(const struct frame *frame);

/** Whether the frames of a stack, from the outermost inward, reach the function that its thread
 * began with. */
enum runtime_reach {
    RUNTIME_NO_FRAME,
    /** They do not as far as is known, with the outermost frame alone. */
    RUNTIME_ONE_NAMED,
    RUNTIME_ONE_NAMELESS,
    RUNTIME_CUT,
    RUNTIME_WHOLE
};

/** Goes on to the next frame inward, by its traits. */
enum runtime_reach runtime_reach_next(enum runtime_reach reach, unsigned traits);

/**
 * Whether a function, by its canonical name, is defined in the C++ library's headers, whatever
 * module it is in.
 *
 * @param is_mixed  set to true for functions of strings and streams: some builds have them in the
 * library's module, others inline them
 */
bool runtime_has_function(struct ttd_string canonical, bool *is_mixed);

/** Whether a frame is of Rust's standard library, whatever module it is in: its names begin like
 * namespaces of C++, so the symbol decides. */
bool runtime_is_rust(const struct frame *frame);

/** Whether a frame is the program's main(), or a part of it that the compiler split off. */
bool runtime_is_main(const struct frame *frame);

/** Whether the definitions name the dynamic linker's code for thread-local storage. */
bool runtime_has_thread_storage(const struct definitions *definitions);

/** Whether a block with these innermost frames is thread-local storage: the C library allocates it
 * with a thread and keeps it until the thread has ended and was joined. */
bool runtime_is_thread_storage(const struct frame_list *list);

/** Returns the index of the outermost main() in a list, or its count if there is none. */
size_t runtime_main_of(const struct frame_list *list);

/** Returns the index of the outermost frame that is the program's: of main(), or of the function
 * that the runtimes called in a new thread. The count if the stack does not begin with frames of
 * the runtimes, or has no others. */
size_t runtime_begin_of(const struct frame_list *list);

#endif
