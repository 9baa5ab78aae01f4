/* SPDX-License-Identifier: MIT */
/** Looks up the names of a module's addresses, in symbol tables and debug information. */
#ifndef RECORDER_SYMBOLIZE_NAMES_MODULE_NAMES_H
#define RECORDER_SYMBOLIZE_NAMES_MODULE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolize/wire/wire.h"
#include "symbolize/names/image_cache.h"

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
