/* SPDX-License-Identifier: MIT */
/** All names of one module. */
#ifndef TTD_SYMBOLIZE_NAMES_H
#define TTD_SYMBOLIZE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "outbox.h"
#include "shelf.h"

/**
 * Answers as many offsets as it can.
 *
 * @param shelf     keeps what was read for later calls; NULL to keep nothing.
 * @param answered  for each offset whether it is to be passed over; NULL for none.
 * @param reduced   leave debug information alone.
 */
enum wire_result names_tell(struct outbox *box, struct shelf *shelf,
                            const struct symbolize_module *module, const uint8_t *answered,
                            bool reduced);

#endif
