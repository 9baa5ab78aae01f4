/* SPDX-License-Identifier: MIT */
/* Looks up names for a trace that was recorded before, and writes them. */
#ifndef RECORDER_LATER_ADD_NAMES_H
#define RECORDER_LATER_ADD_NAMES_H

#include "symbolize/symbolize.h"
#include "later/wanted.h"

/* The names that are being added to a trace. All zero but the first group when it begins. */
struct names_to_add {
    struct wanted *wanted;
    bool shows_progress; /* stderr is a terminal */

    struct symbolize_module *modules; /* each twice: with its addresses, then with its data */
    enum symbolize_result *results;   /* of the lookups, in the order of `modules` */
    uint64_t *offsets;                /* the addresses and data of all `modules` */
    struct ttd_names *names;
    struct ttd_writer *writer;
    enum ttd_status status; /* of the first failure to write */
    int reason;             /* errno value: the lookup has failed */
    size_t variables;       /* number of variables that got names */
};

/* Looks all names up, and writes those that say more than the trace does. A ttd_amend_function:
 * `context` is a names_to_add. */
enum ttd_status names_add(void *context, struct ttd_writer *writer);

void names_free(struct names_to_add *adding);

#endif
