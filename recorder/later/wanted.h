/* SPDX-License-Identifier: MIT */
/** The frames and variables of a recorded trace that names can be looked up for. */
#ifndef RECORDER_LATER_WANTED_H
#define RECORDER_LATER_WANTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/ttdtrace.h>

#include "collect/trace/trace_stacks.h"
#include "collect/trace/variables.h"

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

#endif
