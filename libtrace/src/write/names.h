/* SPDX-License-Identifier: MIT */
/** State of the names API: strings and modules in names.c, stacks in names_stacks.c. */
#ifndef TTD_WRITE_NAMES_H
#define TTD_WRITE_NAMES_H

#include <stdbool.h>

#include <ttdtrace/names.h>

#include "base/buffer.h"
#include "base/map.h"

/** A string that was written; its text is in names->text. */
struct known_string {
    size_t offset;
    size_t size;
    ttd_id id;
};

/** A module that is loaded. */
struct known_module {
    uint64_t begin;
    uint64_t end;
    uint64_t bias;
    ttd_id id;
};

/** A stack that was written; and a frame, which has neither parent nor id. */
struct known_stack {
    uint64_t offset;
    ttd_id module;
    ttd_id parent;
    ttd_id id;
};

/** A table of records that are found by a hash; equal hashes have neighbouring keys. */
struct names_table {
    struct ttd_map map;
    void *records;
    size_t count;
    size_t capacity;
};

struct ttd_names {
    struct ttd_allocator allocator;
    struct ttd_writer *writer;
    ttd_names_lookup lookup;
    void *context;
    /** Loaded modules, by address. */
    struct known_module *modules;
    size_t module_count;
    size_t module_capacity;
    struct names_table strings;
    struct ttd_buffer text;
    struct names_table stacks;
    struct names_table frames;
    struct ttd_name looked_up[TTD_NAMES_MAX];
    /** The frames of the symbol that is being written: kept, because names come in thousands. */
    struct ttd_symbol_frame *symbol_frames;
    size_t symbol_capacity;
};

/** Makes room for one more record of `size` bytes. False without memory. */
bool ttd_names_reserve(struct ttd_names *names, struct names_table *table, size_t size);
/** The module that is loaded at an address; NULL if there is none. Valid until the next load. */
const struct known_module *ttd_names_module_at(const struct ttd_names *names, uint64_t address);

#endif
