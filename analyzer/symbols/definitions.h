/* SPDX-License-Identifier: MIT */
/** All that events refer to by identifier, kept in memory. */
#ifndef ANALYZER_SYMBOLS_DEFINITIONS_H
#define ANALYZER_SYMBOLS_DEFINITIONS_H

#include <ttdtrace/reader.h>

#include "base/arena.h"
#include "base/idtable.h"
#include "base/map.h"
#include "symbols/stacks.h"

/** A string; `display` is its demangled form, once asked for, and `canonical` the one to compare
 * functions by. */
typedef struct definition_string {
    const char *text;
    uint32_t size;
    uint32_t display_size;
    uint32_t canonical_size;
    const char *display;
    const char *canonical;
} definition_string;

typedef struct definition_module {
    ttd_id path;
    uint64_t bias;
    uint64_t begin;
    uint64_t end;
    uint32_t build_id_size;
    uint8_t build_id[TTD_BUILD_ID_MAX];
    ttd_position loaded;
    /** Invalid while loaded. */
    ttd_position unloaded;
} definition_module;

typedef struct definition_thread {
    uint64_t os_id;
    ttd_id name;
    ttd_position begun;
    /** Invalid while running. */
    ttd_position ended;
} definition_thread;

typedef struct definition_heap {
    uint64_t handle;
    ttd_id name;
} definition_heap;

/** Names of an address: `count` frames from `first` on, innermost first. */
typedef struct definition_symbol {
    size_t first;
    uint32_t count;
} definition_symbol;

typedef struct definitions {
    idtable strings;
    stack_table stacks;
    idtable modules;
    idtable threads;
    idtable heaps;
    /** (module, offset) to an index in symbols. */
    hash_map symbol_index;
    definition_symbol *symbols;
    size_t symbol_count;
    size_t symbol_capacity;
    ttd_symbol_frame *frames;
    size_t frame_count;
    size_t frame_capacity;
    arena text;
} definitions;

void definitions_init(definitions *all);
void definitions_free(definitions *all);

/** Adds what a batch defines, if it does. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
ttd_status definitions_add(definitions *all, const ttd_batch *batch);

/* Look-ups; NULL if there is no such definition. */
definition_string *definitions_string(const definitions *all, ttd_id id);
const definition_module *definitions_module(const definitions *all, ttd_id id);
const definition_thread *definitions_thread(const definitions *all, ttd_id id);
const definition_heap *definitions_heap(const definitions *all, ttd_id id);
const definition_symbol *definitions_symbol(const definitions *all, ttd_id module, uint64_t offset);

/** As stack_table_get(). */
ttd_status definitions_stack(const definitions *all, ttd_id id, ttd_stack *stack);

/** The text of a string; size 0 and data "" if there is none. */
ttd_string definitions_text(const definitions *all, ttd_id id);

/** The text of a function's name, demangled. */
ttd_string definitions_function(definitions *all, ttd_id id);

/** The same in canonical form: see canonical.h. As it is displayed when memory is short. */
ttd_string definitions_canonical(definitions *all, ttd_id id);

#endif
