/* SPDX-License-Identifier: MIT */
/** Binary search. A macro, since the records and their order differ everywhere. It stands alone:
 * any part of the programs may include it, and it includes nothing. */
#ifndef TTD_COMMON_SEARCH_H
#define TTD_COMMON_SEARCH_H

/**
 * Searches records in order: advances `LOW` to the first index in [LOW, HIGH) for which
 * `IS_BEFORE`, an expression of the index `MIDDLE`, is false; to `HIGH` if there is none. It must
 * be true up to one record, and false from there on. Changes `HIGH`.
 */
#define SEARCH_SORTED(LOW, HIGH, MIDDLE, IS_BEFORE)                                                \
    while ((LOW) < (HIGH)) {                                                                       \
        __typeof__(LOW) MIDDLE = (LOW) + ((HIGH) - (LOW)) / 2;                                     \
        if (IS_BEFORE)                                                                             \
            (LOW) = MIDDLE + 1;                                                                    \
        else                                                                                       \
            (HIGH) = MIDDLE;                                                                       \
    }

#endif
