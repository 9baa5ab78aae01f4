/* SPDX-License-Identifier: MIT */
/**
 * The reports about pointers to blocks: their data, and the functions that write them in all forms.
 * Nothing is owned.
 */
#ifndef ANALYZER_REPORT_REACHABILITY_REACHABILITY_REPORTS_H
#define ANALYZER_REPORT_REACHABILITY_REACHABILITY_REPORTS_H

#include "analyses/reachability/leaks.h"
#include "analyses/reachability/referrers.h"
#include "analyses/reachability/retained.h"
#include "analyses/state/heap_tree.h"
#include "report/sections/sections.h"

/** The findings of `leaks`. */
struct report_leaks {
    const struct heap_leaks *leaks;
    /** The groups of the kinds to list, one kind after the other. */
    const struct heap_groups *groups;
    /** With groups by heap, the heaps; else NULL. */
    const struct heap_tree *heaps;
    /** Text shows the possibly lost groups as one, if there are several; they come last. */
    bool folds_possible;
    bool is_at_end;
    /** Whether the process may release blocks that it had before it was recorded. */
    bool has_early_blocks;
    /** The recorder was attached to a process that had run before. */
    bool is_attached;
    const struct heap_choice *choice;
};

/** The findings of `referrers`. */
struct report_referrers {
    const struct heap_referrers *referrers;
    /** The address that was asked about. */
    uint64_t address;
    /** The group of blocks that it is the first one of, else NULL; and the group's number in
     * `leaks`, 0 for the largest group of any kind. */
    const struct heap_group *group;
    uint64_t number;
};

/** The findings of `retained` and `roots`. */
struct report_retained {
    const struct heap_retained *retained;
    const struct heap_retained_options *options;
};

void report_leaks(struct report *report, const struct report_leaks *data);
void report_referrers(struct report *report, const struct report_referrers *data);
void report_retained(struct report *report, const struct report_retained *data);

/** Writes who points at a block, in lines of their own. */
void report_pointers_text(struct report *report, const struct heap_referrers *referrers);
/** Writes the same as an object; null for NULL. */
void row_pointers(struct row *row, const char *key, const struct heap_referrers *referrers);

/* Details of a group of leaks: one of its blocks, who holds that, and the blocks below.
 * Private to leaks*.c. */

/* Possibly lost blocks, by how they are held: part of the report of `leaks`. */

/** Returns the number of groups that are listed one by one. The others come last, and are possibly
 * lost. */
size_t leaks_listed(const struct report_leaks *data);

/** Writes the groups that are not listed one by one, if any, as one. */
void leaks_possible_text(struct report *report, const struct report_leaks *data);
/** Writes the sums of all possibly lost groups by way, as an array. */
void row_possible_ways(struct row *row, const struct heap_groups *groups);

/** Writes how a group is held: text as a line; nothing, or empty columns, if the group is not
 * possibly lost. */
void leaks_way_text(struct report *report, const struct heap_group *group);
void row_way(struct row *row, struct heap_way way);

/** @param number  of the group, from 1, as `referrers --group` takes it */
void leaks_details_text(struct report *report, const struct report_leaks *data,
                        const struct heap_group *group, size_t number);
/** @param group  NULL for empty columns in CSV */
void row_leak_details(struct row *row, const struct report_leaks *data,
                      const struct heap_group *group, size_t number);

#endif
