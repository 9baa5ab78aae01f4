/* SPDX-License-Identifier: MIT */
/** Comparing the usage that two ways through a trace have found. */
#ifndef SUPPORT_USAGE_DIFFERENCE_H
#define SUPPORT_USAGE_DIFFERENCE_H

#include <string.h>

#include "analyses/activity/usage.h"

static inline bool usage_is_same_sum(struct heap_sum a, struct heap_sum b)
{
    return a.high == b.high && a.low == b.low;
}

static inline bool usage_is_same_site(const struct heap_site *a, const struct heap_site *b)
{
    return heap_key_compare(a->key, b->key) == 0 && a->allocations == b->allocations &&
           usage_is_same_sum(a->bytes, b->bytes) && a->temporary == b->temporary &&
           usage_is_same_sum(a->temporary_bytes, b->temporary_bytes) && a->soon == b->soon &&
           usage_is_same_sum(a->soon_bytes, b->soon_bytes) &&
           a->never_released == b->never_released && a->destroyed == b->destroyed &&
           usage_is_same_sum(a->byte_time, b->byte_time);
}

/** Returns a static description of the first difference, or NULL. The sites are in the order of
 * their keys. */
static inline const char *usage_difference(const struct heap_usage *found,
                                           const struct heap_usage *expected)
{
    if (memcmp(&found->outcome.counts, &expected->outcome.counts, sizeof found->outcome.counts) !=
            0 ||
        ttd_position_compare(found->outcome.position, expected->outcome.position) != 0)
        return "counts or position";
    if (!usage_is_same_site(&found->total, &expected->total) || found->count != expected->count)
        return "totals";
    for (size_t i = 0; i < found->count; i++) {
        if (!usage_is_same_site(&found->sites[i], &expected->sites[i]))
            return "a site";
    }
    for (int kind = 0; kind < HEAP_LIFETIME_KINDS; kind++) {
        for (int i = 0; i < HEAP_LIFETIMES; i++) {
            if (found->lifetimes[kind][i].blocks != expected->lifetimes[kind][i].blocks ||
                !usage_is_same_sum(found->lifetimes[kind][i].bytes,
                                   expected->lifetimes[kind][i].bytes))
                return "lifetimes";
        }
    }
    return NULL;
}

#endif
