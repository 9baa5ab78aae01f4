/* SPDX-License-Identifier: MIT */
/** Looks up names for a trace that was recorded before, and writes them. */
#ifndef RECORDER_LATER_ADD_NAMES_H
#define RECORDER_LATER_ADD_NAMES_H

#include "common/output_path.h"
#include "later/wanted.h"
#include "symbolize/symbolize.h"

/** The names that are being added to a trace. All zero but the first group when it begins. */
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

/** Looks all names up, and writes those that say more than the trace does. A ttd_amend_function:
 * `context` is a names_to_add. */
enum ttd_status names_add(void *context, struct ttd_writer *writer);

void names_free(struct names_to_add *adding);

/* A new file that replaces an existing one, if there is one, only when it is complete. */

struct replacement {
    struct output_path destination;
    char *temporary; /* beside the destination; NULL if that is no regular file */
    int descriptor;  /* to write to */
};

/** Creates the file, readable by its owner only. A signal that ends this process removes it. Only
 * one file can be in the making at a time. Returns 0, or an errno value if nothing was created. */
int replacement_begin(struct replacement *replacement, const char *path);

/** Gives the file its name. Only if it replaces `source`, its content's, it gets the owner of that.
 * Returns 0, or an errno value after the file was removed. */
int replacement_publish(struct replacement *replacement, const char *source);

/** Removes the file. */
void replacement_discard(struct replacement *replacement);

/* Reports the names that were added to a trace, and why others were not. */

/** Shows on the terminal, in one line that is overwritten, the number of the lookup, of `count`,
 * that has begun. */
void report_progress(const struct wanted_module *module, size_t index, size_t count);
void report_progress_end(void);

/** Prints how many names were added to the trace `path`, and the modules that have none. */
void report_names(const struct names_to_add *adding, const char *path);

#endif
