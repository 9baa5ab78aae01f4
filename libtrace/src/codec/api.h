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

/** How many X a template has. */
size_t ttd_template_stored(const char *items);

/**
 * Fills in what the template gives, taking the values of X from `stored`.
 *
 * @return false if a Q cannot be computed
 */
bool ttd_template_apply(const char *items, const struct ttd_event *event, const uint64_t *stored,
                        uint64_t *parameters);

/** Whether the API has a template, and the event's explicit parameters are what it gives. */
bool ttd_event_fits_template(const struct ttd_event *event);

#endif
