/* SPDX-License-Identifier: MIT */
/** Recognizes frames of the C and C++ runtimes, and frames below main(), by their names. */
#ifndef ANALYZER_SYMBOLS_RUNTIME_H
#define ANALYZER_SYMBOLS_RUNTIME_H

#include "symbols/frames.h"

/** Whether a module is a C or C++ library or the dynamic linker, by the base name of its path. */
bool runtime_has_module(struct ttd_string path);

/** Whether a frame is one that every thread or process begins with, such as _start. */
bool runtime_begins(const struct frame *frame);

/** Whether a stack without a function that a thread or process begins with is not whole: if the
 * definitions name any such function, or the recorder's own module, which records whole stacks. */
bool runtime_has_beginning(const struct definitions *definitions);

/**
 * Whether a function, by its canonical name, is defined in the C++ library's headers, whatever
 * module it is in.
 *
 * @param is_mixed  set to true for functions of strings and streams, which some builds have in the
 *                  library's module and others inline
 */
bool runtime_has_function(struct ttd_string canonical, bool *is_mixed);

/** Whether a frame is of Rust's standard library, whatever module it is in: its names begin like
 * those of namespaces of C++, so the symbol decides. */
bool runtime_is_rust(const struct frame *frame);

/** Whether a frame is the program's main(), or a part of it that the compiler split off. */
bool runtime_is_main(const struct frame *frame);

/** Whether the definitions name the dynamic linker's code for thread-local storage. */
bool runtime_has_thread_storage(const struct definitions *definitions);

/** Whether a block with these innermost frames is thread-local storage, which the C library
 * allocates with a thread and keeps until the thread has ended and was joined. */
bool runtime_is_thread_storage(const struct frame_list *list);

/** Returns the index of the outermost main() in a list, or its count if there is none. */
size_t runtime_main_of(const struct frame_list *list);

/** Returns the index of the outermost frame that is the program's: of main(), or of the function
 * that the runtimes called in a new thread. The count if the stack does not begin with frames of
 * the runtimes, or has no others. */
size_t runtime_begin_of(const struct frame_list *list);

#endif
