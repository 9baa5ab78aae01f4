/* SPDX-License-Identifier: MIT */
/** Files of modules that were read, kept for later questions. */
#ifndef TTD_SYMBOLIZE_SHELF_H
#define TTD_SYMBOLIZE_SHELF_H

#include <sys/stat.h>

#include "image.h"
#include "symbols.h"
#include "units.h"

enum { SHELF_MAX = 16 };

/** A module's file, with what all questions about it need. */
struct binary {
    struct image image;
    struct symbols symbols;
    struct units units;
    /** Whether there is debug information, and it is to be used. */
    bool has_units;
    /** Which module it is of; NULL if it is not kept. What the file was like when it was opened. */
    char *path;
    struct stat status;
    uint8_t *build_id;
    size_t build_id_size;
};

/** All zero when empty, but for what comes last. */
struct shelf {
    struct binary *items[SHELF_MAX];
    size_t count;
    /** The one that makes room for the next when there is none. */
    size_t next;
    /** Bytes of address space beyond which the owner clears it. */
    uint64_t mapped_max;
};

/**
 * The file of a module, from the shelf if it is there.
 *
 * @param shelf   NULL to keep nothing. Files without a build-id are not kept: they may have changed
 *                when they are asked for again.
 * @param binary  set if IMAGE_OPEN is returned; to be given back with shelf_return()
 */
enum image_result shelf_take(struct shelf *shelf, const struct symbolize_module *module,
                             bool with_debug, struct binary **binary);

/** Closes it unless it is kept. */
void shelf_return(struct binary *binary);

/** Closes all. */
void shelf_clear(struct shelf *shelf);

#endif
