/* SPDX-License-Identifier: MIT */
/** Tells the frames of the C and C++ runtimes, and those that lead to main(), from the program's.
 */
#ifndef ANALYZER_SYMBOLS_RUNTIME_H
#define ANALYZER_SYMBOLS_RUNTIME_H

#include "symbols/frames.h"

/** Whether a module is a C or C++ library or the dynamic linker, by the base name of its path. */
bool runtime_has_module(struct ttd_string path);

/** Whether a frame is one that every thread or process begins with. */
bool runtime_begins(const struct frame *frame);

/**
 * Whether a function, by its canonical name, is of the C++ library's headers, whatever module it is
 * in.
 *
 * @param is_mixed  set to whether it is in the library's module in some builds: of strings, streams
 */
bool runtime_has_function(struct ttd_string canonical, bool *is_mixed);

/** Whether a frame is the program's main(). */
bool runtime_is_main(const struct frame *frame);

/** Whether names that are known are of the dynamic linker's code for thread-local storage. */
bool runtime_has_thread_storage(const struct definitions *definitions);

/**
 * Whether a block with these innermost frames is thread-local storage: the C library allocates it
 * with a thread, and keeps it until that has ended and was joined.
 */
bool runtime_is_thread_storage(const struct frame_list *list);

/** The index of the outermost main() in a list, or its count if there is none. */
size_t runtime_main_of(const struct frame_list *list);

#endif
