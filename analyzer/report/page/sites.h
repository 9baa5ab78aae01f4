/* SPDX-License-Identifier: MIT */
/** Call sites of a page: those that have most by themselves, and all others as one. */
#ifndef ANALYZER_REPORT_PAGE_SITES_H
#define ANALYZER_REPORT_PAGE_SITES_H

#include "analyses/activity/ticks.h"
#include "analyses/activity/usage.h"

/** Call sites at most in a page, so that a trace of a million has a page of a size that browsers
 * load at once. A quarter are those with most live bytes at any tick; the others those with most
 * live blocks, most allocated bytes and most allocations. */
#define PAGE_SITES_MAX 20000

/** The key of the site that stands for all others; no stack has it. */
#define PAGE_SITE_OTHERS UINT32_MAX

/** Numbers of stacks in the arrays of call sites. */
struct page_sites {
    ttd_id *stacks;
    size_t count;
    size_t capacity;
    struct hash_map index;
    /** Number of stacks that are one call site, and the number of that; valid if there are any. */
    size_t other_count;
    uint32_t others;
};

void page_sites_free(struct page_sites *sites);

/**
 * Numbers the call sites: first the sites of the usage, in its order, then one for all others.
 *
 * @param max    on the sites that are not among the others; SIZE_MAX for all
 * @param sites  release with page_sites_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status page_sites_choose(struct page_sites *sites, const struct heap_ticks *ticks,
                                  const struct heap_usage *usage, size_t max);

/** Sets `number` to the number of a stack, or of the others. @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status page_sites_add(struct page_sites *sites, ttd_id stack, uint32_t *number);

/** Whether a number stands for the others. */
static inline bool page_sites_is_other(const struct page_sites *sites, uint32_t number)
{
    return sites->other_count && number == sites->others;
}

/**
 * Makes a series in which the others are one record, the last one; `folded` has its keys, changes
 * and ends only.
 *
 * @param folded  release with heap_series_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status page_sites_fold(struct page_sites *sites, const struct heap_tick_series *series,
                                struct heap_tick_series *folded);

#endif
