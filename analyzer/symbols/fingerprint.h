/* SPDX-License-Identifier: MIT */
/**
 * Fingerprints of stacks: hashes that are equal for the same place in a program, whatever the build
 * and the run. A fingerprint does not change with the run, with other debug files, renamed source
 * files or other line numbers, and mostly not with another optimisation.
 *
 * The frames that count are those from main(), or the start of a thread, to the call that
 * allocates, inlined ones included. A frame is represented by its function's canonical name
 * (canonical.h); without a name by its offset in the module; without a module by its presence
 * alone. Left out are: frames in the modules of the C and C++ libraries; functions of std, except
 * the one that the program calls (that one as well if it belongs to strings or streams: those are
 * partly in the library and partly inlined); and recursive calls. A stack without any other frame
 * is represented by its modules. No module's name, line or address is part of a fingerprint. Only
 * the outermost FINGERPRINT_INLINED_MAX of the frames inlined at one address count. Fingerprints
 * may be stored: they depend on nothing else.
 *
 * Optimisations that remove frames change fingerprints: a tail call has no frame of its caller, and
 * merged functions have one name.
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

/** Makes the fingerprints of the stacks of one trace. All zero when empty. Results are kept for
 * each address and stack, so that shared callers are hashed once. */
struct fingerprinter {
    struct definitions *definitions;
    struct frame_list frames;
    char *text;
    size_t text_capacity;
    /** Index in `sites` by (module, offset) of an address. `site_frames` has the frames of all
     * sites. */
    struct hash_map site_index;
    struct fingerprint_site *sites;
    size_t site_count;
    size_t site_capacity;
    struct fingerprint_frame *site_frames;
    size_t site_frame_count;
    size_t site_frame_capacity;
    /** Index in `nodes` by stack. */
    struct hash_map node_index;
    struct fingerprint_node *nodes;
    size_t node_count;
    size_t node_capacity;
    /** The stacks between the one asked for and the nearest caller that has a node. */
    struct ttd_stack *path;
    size_t path_capacity;
};

void fingerprinter_free(struct fingerprinter *fingerprinter);

/**
 * Computes the fingerprint of a stack. TTD_NONE and an undefined stack count as stacks without
 * frames.
 *
 * @param definitions  complete; the fingerprinter starts over when they are another trace's
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY with `result` untouched.
 */
enum ttd_status fingerprint_stack(struct fingerprinter *fingerprinter,
                                  struct definitions *definitions, ttd_id stack,
                                  struct fingerprint *result);

static inline bool fingerprint_equal(struct fingerprint a, struct fingerprint b)
{
    return a.high == b.high && a.low == b.low;
}

/** Size of a fingerprint as text, with its NUL. */
#define FINGERPRINT_TEXT 33

/** Writes 32 hexadecimal digits in lower case. */
void fingerprint_format(struct fingerprint value, char text[FINGERPRINT_TEXT]);

/** Reads the text that fingerprint_format() writes; false, with `result` untouched, for any other
 * text. */
bool fingerprint_parse(const char *text, struct fingerprint *result);

#endif
