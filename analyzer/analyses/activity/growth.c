/* SPDX-License-Identifier: MIT */
#include "analyses/activity/growth.h"

/* Fewer growths than these show no pattern. */
#define MEASURED_MIN 3

/* Largest variance, relative to the squared mean, of what counts as about the same. */
#define SAME_MAX 0.04

/* Sums of values and of their squares suffice for mean and variance, whatever the number of
 * reallocations. */
void heap_growth_add(struct heap_move_group *group, uint64_t before, uint64_t after)
{
    uint64_t low = before < after ? before : after;
    uint64_t high = before < after ? after : before;
    if (low < group->smallest)
        group->smallest = low;
    if (high > group->largest)
        group->largest = high;
    if (after < before)
        group->shrunk++;
    if (after > before)
        group->grown++;
    if (after <= before || !before)
        return;
    double factor = (double)after / (double)before;
    double step = (double)(after - before);
    group->measured++;
    group->factor_sum += factor;
    group->factor_squares += factor * factor;
    group->step_sum += step;
    group->step_squares += step * step;
}

void heap_growth_merge(struct heap_move_group *sum, const struct heap_move_group *group)
{
    if (group->smallest < sum->smallest)
        sum->smallest = group->smallest;
    if (group->largest > sum->largest)
        sum->largest = group->largest;
    sum->grown += group->grown;
    sum->shrunk += group->shrunk;
    sum->measured += group->measured;
    /* Sums and squares of both measures can be added, so groups merge without their single
     * sizes. */
    sum->factor_sum += group->factor_sum;
    sum->factor_squares += group->factor_squares;
    sum->step_sum += group->step_sum;
    sum->step_squares += group->step_squares;
}

/* Variance relative to the squared mean. */
static double growth_spread(double sum, double squares, double count)
{
    double mean = sum / count;
    double variance = squares / count - mean * mean;
    return variance > 0 ? variance / (mean * mean) : 0;
}

enum heap_growth heap_move_growth(const struct heap_move_group *group, double *measure)
{
    *measure = 0;
    uint64_t measured = group->counts.moved + group->counts.in_place - group->counts.unknown_old;
    if (group->shrunk > measured / 2)
        return HEAP_GROWTH_SHRINKING;
    if (measured >= MEASURED_MIN && group->grown < measured - group->grown - group->shrunk)
        return HEAP_GROWTH_SAME;
    if (group->measured < MEASURED_MIN)
        return HEAP_GROWTH_UNKNOWN;
    double count = (double)group->measured;
    double factor = group->factor_sum / count;
    double step = group->step_sum / count;
    double factor_spread = growth_spread(group->factor_sum, group->factor_squares, count);
    double step_spread = growth_spread(group->step_sum, group->step_squares, count);
    /* A small step between large sizes is nearly the same factor as well, so the step wins if it
     * varies no more than the factor. */
    if (step_spread <= SAME_MAX && step_spread <= factor_spread) {
        *measure = step;
        return HEAP_GROWTH_LINEAR;
    }
    if (factor_spread <= SAME_MAX) {
        *measure = factor;
        return HEAP_GROWTH_GEOMETRIC;
    }
    return HEAP_GROWTH_IRREGULAR;
}

const char *heap_growth_name(enum heap_growth growth)
{
    switch (growth) {
    case HEAP_GROWTH_SHRINKING:
        return "shrinking";
    case HEAP_GROWTH_SAME:
        return "same size";
    case HEAP_GROWTH_LINEAR:
        return "linear";
    case HEAP_GROWTH_GEOMETRIC:
        return "geometric";
    case HEAP_GROWTH_IRREGULAR:
        return "irregular";
    case HEAP_GROWTH_UNKNOWN:
        break;
    }
    return "unknown";
}
