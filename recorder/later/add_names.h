/* SPDX-License-Identifier: MIT */
/** Looks up names for a trace that was recorded before, and writes them. */
#ifndef RECORDER_LATER_ADD_NAMES_H
#define RECORDER_LATER_ADD_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/ttdtrace.h>

#include "collect/trace/trace_modules.h"
#include "collect/trace/variables.h"
#include "common/output_path.h"
#include "symbolize/symbolize.h"

/* The frames and variables of a recorded trace that names can be looked up for. */

/** Limits that only a crafted trace exceeds. Anything beyond them gets no names. */
enum {
    WANTED_MODULES_MAX = 1 << 16,
    WANTED_PARTS_MAX = 1 << 20,
    WANTED_ADDRESSES_MAX = 1 << 22,
    WANTED_REGIONS_MAX = 1 << 20,
};

struct wanted_module {
    ttd_id id, path_id;
    size_t order; /* number of its definition; of several with one id the first counts */
    char *path;   /* NULL if it is not in the trace */
    uint64_t bias;
    uint8_t build_id[TTD_BUILD_ID_MAX];
    uint32_t build_id_size;
};

/** Quality of the names of an address: none, a function, or a function with its source line. */
enum name_quality { NAME_NONE, NAME_FUNCTION, NAME_SOURCE };

/** An address of a frame; or an address that has names, though perhaps no stack contains it. */
struct wanted_address {
    ttd_id module; /* number in `modules` from 1 on, not an id; 0 for an address in none of them */
    enum name_quality quality;
    uint64_t offset;
    bool is_in_stack;
    bool is_improved; /* better names were found now */
};

struct wanted {
    struct wanted_module *modules; /* by id */
    size_t module_count, module_capacity;
    size_t *by_path; /* indexes of modules, by path_id */
    struct wanted_address *addresses;
    size_t address_count, address_capacity;
    struct stacks places;       /* from (module, offset) to the index of an address + 1 */
    struct variables variables; /* modules as in wanted_address */
    ttd_id *parts;              /* strings that name parts of sections, such as ".tbss+0x8" */
    size_t part_count, part_capacity;
    bool is_partial; /* a limit was reached */
    bool is_closed;  /* the trace has its End */
};

/**
 * Reads the addresses and variables that the stacks and snapshots of a trace refer to; passes over
 * damaged parts. The input is closed and `wanted` must be freed, also on failure.
 * Returns TTD_OK, statuses of ttd_reader_open(), TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
enum ttd_status wanted_read(struct wanted *wanted, const struct ttd_input *input,
                            struct ttd_error *error);
void wanted_free(struct wanted *wanted);

/** Returns an address that was read. */
struct wanted_address *wanted_find(struct wanted *wanted, ttd_id module, uint64_t offset);

/* The names that are added. */

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
