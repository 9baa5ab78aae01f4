/* SPDX-License-Identifier: MIT */
/** Records written byte by byte, and the bad files with one of them in place of the base file's
 * heaps. */
#ifndef VECTORS_ITEMS_H
#define VECTORS_ITEMS_H

#include "vectors/edit.h"

/** The invalid sequence as a varint, and as a u64. */
#define INVALID    0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1
#define INVALID_64 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF
#define ZERO_64    0, 0, 0, 0, 0, 0, 0, 0
#define U32(value) (value) & 0xFF, (value) >> 8 & 0xFF, (value) >> 16 & 0xFF, (value) >> 24 & 0xFF

/** Defines a function that replaces the heaps by one item with the bytes given. */
#define ITEM(name_, kind_, first_item_, ...)                                                       \
    static void name_(struct vector_file *file)                                                    \
    {                                                                                              \
        static const uint8_t payload[] = {__VA_ARGS__};                                            \
        vector_replace(file, kind_, first_item_, payload, sizeof payload);                         \
    }

/** A bad file that says so when it is read. */
#define BAD(name_, purpose_, requirements_, damage_, chunk_, what_)                                \
    {                                                                                              \
        .name = "bad-" name_, .purpose = purpose_, .requirements = requirements_,                  \
        .damage = damage_, .status = TTD_ERROR_CORRUPT, .chunk = chunk_, .what = what_             \
    }

#endif
