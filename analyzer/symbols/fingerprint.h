/* SPDX-License-Identifier: MIT */
/**
 * What a stack is, apart from where things happened to be loaded and in which line they stand: the
 * same in another run, with other addresses, modules and identifiers, and mostly after a rebuild.
 *
 * A fingerprint is XXH3-128 of the frames, innermost first, inlined ones like others. A frame is
 * its function's name as displayed, without the suffix of a compiler's clone, and the base name of
 * its module; without a name the base name and the offset in the module; without a module nothing
 * but that it is there. No line, no address in the process. Fingerprints may be stored: they depend
 * on nothing else.
 */
#ifndef ANALYZER_SYMBOLS_FINGERPRINT_H
#define ANALYZER_SYMBOLS_FINGERPRINT_H

#include <stdbool.h>

#include "symbols/frames.h"

typedef struct fingerprint {
    uint64_t high;
    uint64_t low;
} fingerprint;

/** Memory of the work, used again and again: all zero when empty. */
typedef struct fingerprinter {
    frame_list frames;
    /** Of the hash. Frames are hashed one by one: those of a crafted trace can take gigabytes. */
    struct XXH3_state_s *state;
} fingerprinter;

void fingerprinter_free(fingerprinter *work);

/** A function's name without the suffix that tells which copy of it a compiler chose: a part of
 * `name`. */
ttd_string fingerprint_name(ttd_string name);

/**
 * The fingerprint of a stack; TTD_NONE and one that is not defined have that of no frames.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY with `result` untouched.
 */
ttd_status fingerprint_stack(fingerprinter *work, definitions *all, ttd_id stack,
                             fingerprint *result);

static inline bool fingerprint_equal(fingerprint a, fingerprint b)
{
    return a.high == b.high && a.low == b.low;
}

/** Size of a text with its NUL. */
#define FINGERPRINT_TEXT 33

/** 32 hexadecimal digits in lower case. */
void fingerprint_format(fingerprint value, char text[FINGERPRINT_TEXT]);

/** Reads what fingerprint_format() writes; false, with `result` untouched, if it is not that. */
bool fingerprint_parse(const char *text, fingerprint *result);

#endif
