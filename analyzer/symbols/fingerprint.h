/* SPDX-License-Identifier: MIT */
/**
 * Where in a program a stack is, apart from how the program was built and where it runs: the same
 * in another run, on a machine with other debug files, of a renamed file, with other lines, and
 * mostly with another optimisation.
 *
 * A fingerprint is of the frames from main(), or where a thread begins, to the call that allocates,
 * inlined ones like others. A frame is its function's name in canonical form (canonical.h), or
 * without a name its offset in the module, or without a module nothing but that it is there. Left
 * out are frames of the C and C++ libraries' modules; of functions of std that call each other all
 * but the one that the program calls, and that one too if it belongs to strings or streams, which
 * are partly in the library and partly inlined; and calls of a function by itself. A stack of
 * nothing else is known by the modules. No module's name, line or address is in it. Of the frames
 * inlined at one address the outermost FINGERPRINT_INLINED_MAX count. Fingerprints may be stored:
 * they depend on nothing else.
 *
 * Frames that optimisation removes make fingerprints differ: a call in tail position has no frame
 * of its caller, and merged functions have one name.
 */
#ifndef ANALYZER_SYMBOLS_FINGERPRINT_H
#define ANALYZER_SYMBOLS_FINGERPRINT_H

#include <stdbool.h>

#include "symbols/frames.h"

#define FINGERPRINT_INLINED_MAX 256

struct fingerprint {
    uint64_t high;
    uint64_t low;
};

/** Makes the fingerprints of the stacks of one trace; all zero when empty. Keeps what it has found
 * for each address and stack, so that shared callers are looked at once. */
struct fingerprinter {
    struct definitions *definitions;
    struct frame_list frames;
    char *text;
    size_t text_capacity;
    /** (module, offset) of an address to an index in `sites`; `items` are the frames of all. */
    struct hash_map site_index;
    struct fingerprint_site *sites;
    size_t site_count;
    size_t site_capacity;
    struct fingerprint_frame *site_frames;
    size_t site_frame_count;
    size_t site_frame_capacity;
    /** Stack to an index in `nodes`. */
    struct hash_map node_index;
    struct fingerprint_node *nodes;
    size_t node_count;
    size_t node_capacity;
    /** Stacks on the way to one that is known. */
    struct ttd_stack *path;
    size_t path_capacity;
};

void fingerprinter_free(struct fingerprinter *fingerprinter);

/**
 * The fingerprint of a stack; TTD_NONE and one that is not defined have that of no frames.
 *
 * @param all  complete, and the same or unchanged from call to call
 * @return TTD_OK, TTD_ERROR_NO_MEMORY with `result` untouched.
 */
enum ttd_status fingerprint_stack(struct fingerprinter *fingerprinter,
                                  struct definitions *definitions, ttd_id stack,
                                  struct fingerprint *result);

static inline bool fingerprint_equal(struct fingerprint a, struct fingerprint b)
{
    return a.high == b.high && a.low == b.low;
}

/** Size of a text with its NUL. */
#define FINGERPRINT_TEXT 33

/** 32 hexadecimal digits in lower case. */
void fingerprint_format(struct fingerprint value, char text[FINGERPRINT_TEXT]);

/** Reads what fingerprint_format() writes; false, with `result` untouched, if it is not that. */
bool fingerprint_parse(const char *text, struct fingerprint *result);

#endif
