/* SPDX-License-Identifier: MIT */
/** Looks up the names of a module's addresses, in symbol tables and debug information. */
#ifndef RECORDER_SYMBOLIZE_NAMES_MODULE_NAMES_H
#define RECORDER_SYMBOLIZE_NAMES_MODULE_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "symbolize/dwarf/units.h"
#include "symbolize/image/elf_image.h"
#include "symbolize/wire/wire.h"

/** Cache of opened images with their symbol tables and units, for later requests. */

enum { IMAGE_CACHE_MAX = 16 };

/** A module's file, with the tables that the requests for it so far needed. */
struct binary {
    struct image image;
    /** Functions and units; empty before the first binary_load_code(). */
    struct symbols symbols;
    struct units units;
    /** Variables; empty before the first binary_load_data(). */
    struct symbols variables;
    /** Variables of functions, as far as they were asked for. */
    struct statics statics;
    bool has_code;
    bool has_data;
    /** The request uses debug information. */
    bool with_debug;
    /** The file has debug information, and the request uses it. Known after
     * binary_load_units(). */
    bool has_units;
    bool has_looked_for_units;
    /** The module's path; NULL if the binary is not cached. */
    char *path;
    /** Status of the file when it was opened. */
    struct stat status;
    uint8_t *build_id;
    size_t build_id_size;
};

/** All zero when empty, except mapped_max. */
struct image_cache {
    struct binary *binaries[IMAGE_CACHE_MAX];
    size_t count;
    /** Index of the binary that is replaced next when the cache is full. */
    size_t next;
    /** Bytes of address space; beyond them the owner clears the cache. */
    uint64_t mapped_max;
};

/**
 * Opens the file of a module, or finds it in the cache.
 *
 * @param images  NULL to cache nothing. Files without a build-id are not cached: they may have
 *                changed when they are asked for again.
 * @param binary  set if IMAGE_OPEN is returned; the caller calls image_cache_release()
 */
enum image_result image_cache_open(struct image_cache *images,
                                   const struct symbolize_module *module, bool with_debug,
                                   struct binary **binary);

/** Loads the tables for names of functions, or of variables, unless they are loaded. */
void binary_load_code(struct binary *binary);
void binary_load_data(struct binary *binary);

/** Loads the units, unless they are loaded; after one of the others. */
void binary_load_units(struct binary *binary);

/** Closes the binary unless it is cached. */
void image_cache_release(struct binary *binary);

/** Closes all cached binaries. */
void image_cache_clear(struct image_cache *images);

/**
 * Encodes an answer for each offset that has a name.
 *
 * @param images      caches opened files for later calls; NULL to cache nothing.
 * @param answered    for each offset, 1 to skip it; NULL to skip none.
 * @param is_reduced  read no debug information.
 */
enum wire_result names_look_up(struct wire_encoder *encoder, struct image_cache *images,
                               const struct symbolize_module *module, const uint8_t *answered,
                               bool is_reduced);

#endif
