/* SPDX-License-Identifier: MIT */
/** The table of APIs: names, and templates of their parameters (spec, "APIs"). */
#ifndef TTD_CODEC_API_H
#define TTD_CODEC_API_H

#include <stdbool.h>
#include <stddef.h>

#include <ttdtrace/model.h>

/**
 * Meaning of each raw argument, one letter each: S size, B base_address, F flags, R reserve_size,
 * C commit_size, P make_read_only, Q size divided by the argument before it, X anything else.
 * NULL for an API that has no template.
 */
const char *ttd_api_template(unsigned value);

/** Returns the number of X in a template: of arguments that must be stored with an event. */
size_t ttd_template_stored(const char *items);

/**
 * Computes the parameters of an event from its other members and from `stored`, the values of X.
 *
 * @return false if a Q cannot be computed: the size is no multiple, or the divisor is 0
 */
bool ttd_template_apply(const char *items, const struct ttd_event *event, const uint64_t *stored,
                        uint64_t *parameters);

/** Whether the API of an event has a template that yields exactly the event's parameters, so that
 * they need not be stored. */
bool ttd_event_fits_template(const struct ttd_event *event);

#endif
