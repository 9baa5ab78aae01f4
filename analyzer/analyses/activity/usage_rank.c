/* SPDX-License-Identifier: MIT */
/* Sites of usage as a table: their order and their sums. */
#include "analyses/activity/usage.h"

/* Less than, equal to or greater than 0, the larger first. */
static int descending(double a, double b)
{
    return (a < b) - (a > b);
}

static double site_rank_value(const struct heap_site *site, enum heap_rank_order order)
{
    switch (order) {
    case HEAP_RANK_BY_CALLS:
        return (double)site->allocations;
    case HEAP_RANK_BY_LIFETIME:
        return site->byte_seconds;
    case HEAP_RANK_BY_TEMPORARY:
        return (double)site->temporary;
    case HEAP_RANK_BY_STACK:
        return 0;
    case HEAP_RANK_BY_BYTES:
        break;
    }
    return (double)site->bytes.high * 0x1p64 + (double)site->bytes.low;
}

static int site_rank_compare(const struct heap_site *x, const struct heap_site *y,
                             enum heap_rank_order order)
{
    int result = descending(site_rank_value(x, order), site_rank_value(y, order));
    return result ? result : heap_key_compare(x->key, y->key);
}

static int compare_calls(const void *a, const void *b)
{
    return site_rank_compare(a, b, HEAP_RANK_BY_CALLS);
}

static int compare_bytes(const void *a, const void *b)
{
    return site_rank_compare(a, b, HEAP_RANK_BY_BYTES);
}

static int compare_lifetime(const void *a, const void *b)
{
    return site_rank_compare(a, b, HEAP_RANK_BY_LIFETIME);
}

static int compare_temporary(const void *a, const void *b)
{
    return site_rank_compare(a, b, HEAP_RANK_BY_TEMPORARY);
}

static int compare_stacks(const void *a, const void *b)
{
    return site_rank_compare(a, b, HEAP_RANK_BY_STACK);
}

static void usage_add_sum(struct heap_sum *sum, struct heap_sum value)
{
    heap_sum_add(sum, value.low);
    sum->high += value.high;
}

static void usage_merge_sites(void *target, const void *source)
{
    struct heap_site *sum = target;
    const struct heap_site *site = source;
    sum->allocations += site->allocations;
    usage_add_sum(&sum->bytes, site->bytes);
    sum->temporary += site->temporary;
    usage_add_sum(&sum->temporary_bytes, site->temporary_bytes);
    sum->never_released += site->never_released;
    sum->destroyed += site->destroyed;
    sum->byte_seconds += site->byte_seconds;
}

static struct heap_amount amount_of_calls(const void *record)
{
    const struct heap_site *site = record;
    return (struct heap_amount){site->allocations, heap_sum_value(site->bytes), site->allocations};
}

static struct heap_amount amount_of_bytes(const void *record)
{
    const struct heap_site *site = record;
    uint64_t bytes = heap_sum_value(site->bytes);
    return (struct heap_amount){bytes, bytes, site->allocations};
}

/* Trees order by whole numbers: bytes times microseconds loses little and does not overflow. */
static struct heap_amount amount_of_lifetime(const void *record)
{
    const struct heap_site *site = record;
    double value = site->byte_seconds * 1e6 + 0.5;
    uint64_t weight = value < 0x1p64 ? (uint64_t)value : UINT64_MAX;
    return (struct heap_amount){weight, heap_sum_value(site->bytes), site->allocations};
}

static struct heap_amount amount_of_temporary(const void *record)
{
    const struct heap_site *site = record;
    uint64_t bytes = heap_sum_value(site->temporary_bytes);
    return (struct heap_amount){site->temporary, bytes, site->temporary};
}

/* Filters take sites away: the totals are those of the sites that are left. */
static void usage_recount(void *owner)
{
    struct heap_usage *usage = owner;
    usage->total = (struct heap_site){.allocations = 0};
    for (size_t i = 0; i < usage->count; i++)
        usage_merge_sites(&usage->total, &usage->sites[i]);
}

struct heap_site_table heap_usage_site_table(struct heap_usage *usage)
{
    static const struct {
        int (*compare)(const void *a, const void *b);
        struct heap_amount (*amount)(const void *item);
    } orders[] = {[HEAP_RANK_BY_CALLS] = {compare_calls, amount_of_calls},
                  [HEAP_RANK_BY_BYTES] = {compare_bytes, amount_of_bytes},
                  [HEAP_RANK_BY_LIFETIME] = {compare_lifetime, amount_of_lifetime},
                  [HEAP_RANK_BY_TEMPORARY] = {compare_temporary, amount_of_temporary},
                  [HEAP_RANK_BY_STACK] = {compare_stacks, amount_of_bytes}};
    return (struct heap_site_table){.owner = usage,
                                    .records = usage->sites,
                                    .count = &usage->count,
                                    .size = sizeof *usage->sites,
                                    .merge = usage_merge_sites,
                                    .compare = orders[usage->options.order].compare,
                                    .amount_of = orders[usage->options.order].amount,
                                    .recount = usage_recount};
}
