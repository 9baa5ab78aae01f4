/* SPDX-License-Identifier: MIT */
/** Rows of the tables of bad files: how each is made, and how it is refused. */
#ifndef VECTORS_ROWS_H
#define VECTORS_ROWS_H

#include "vectors/edit.h"

/** The invalid sequence as a varint, and as a u64. */
#define INVALID    0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1
#define INVALID_64 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF
#define ZERO_64    0, 0, 0, 0, 0, 0, 0, 0
#define U32(value) (value) & 0xFF, (value) >> 8 & 0xFF, (value) >> 16 & 0xFF, (value) >> 24 & 0xFF

/*
 * Changes that need no function, as members of a vector: a field of a chunk's header or payload, of
 * 1, 2, 4 or 8 bytes, with its checksums made right; records in place of the base file's heaps.
 */
#define HEADER(chunk_, at_, size_, value_)                                                         \
    .field = {.chunk = chunk_, .at = at_, .size = size_, .value = value_}
#define PAYLOAD(chunk_, at_, size_, value_) HEADER(chunk_, TTD_HEADER_SIZE + (at_), size_, value_)
#define RECORDS(count_, kind_, first_record_, ...)                                                 \
    .records = {.kind = kind_,                                                                     \
                .first_record = first_record_,                                                     \
                .count = count_,                                                                   \
                .bytes = (const uint8_t[]){__VA_ARGS__},                                           \
                .size = sizeof((const uint8_t[]){__VA_ARGS__})}
#define RECORD(...) RECORDS(1, __VA_ARGS__)

/** A file that reading refuses at a chunk, and how it is changed. */
#define REFUSED(name_, purpose_, requirements_, status_, chunk_, what_, ...)                       \
    {                                                                                              \
        .name = name_, .purpose = purpose_, .requirements = requirements_, .status = status_,      \
        .chunk = chunk_, .what = what_, __VA_ARGS__                                                \
    }

/** A bad file that says so when it is read. */
#define BAD(name_, purpose_, requirements_, chunk_, what_, ...)                                    \
    REFUSED("bad-" name_, purpose_, requirements_, TTD_ERROR_CORRUPT, chunk_, what_, __VA_ARGS__)

/** A bad file that reads well, and of which verify says first what is wrong. */
#define DOUBTFUL(name_, purpose_, requirements_, what_, ...)                                       \
    {                                                                                              \
        .name = "bad-" name_, .purpose = purpose_, .requirements = requirements_,                  \
        .chunk = VECTOR_NOWHERE, .verify_status = TTD_ERROR_CORRUPT, .verify_what = what_,         \
        __VA_ARGS__                                                                                \
    }

#endif
