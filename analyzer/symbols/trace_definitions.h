/* SPDX-License-Identifier: MIT */
/** The definitions of a trace in memory: the strings, modules, threads, heaps, symbols and stacks
 * that events refer to by identifier. The name comes from the format's specification. */
#ifndef ANALYZER_SYMBOLS_TRACE_DEFINITIONS_H
#define ANALYZER_SYMBOLS_TRACE_DEFINITIONS_H

#include <stddef.h>

#include <ttdtrace/advanced.h>
#include <ttdtrace/model.h>
#include <ttdtrace/reader.h>
#include <ttdtrace/status.h>

#include "base/grow.h"
#include "base/hash_map.h"
#include "symbols/demangle.h"

/* The table of a trace's stacks. They stay encoded as in the file, because there may be millions
 * of which few are looked at: see <ttdtrace/advanced.h>. */

/** The stacks of a chunk. */
struct stack_chunk {
    ttd_id first;
    uint32_t count;
    struct ttd_stacks *stacks;
};

/** Receiver of damage found in stacks, called at each look-up: the error is the same for all stacks
 * of a chunk. */
struct stack_damage {
    void *context;
    void (*tell)(void *context, const struct ttd_error *error);
};

/** All zero at first. */
struct stack_table {
    /** Chunks, in increasing order of their identifiers. */
    struct stack_chunk *chunks;
    size_t count;
    size_t capacity;
    /** May be set before the first look-up. */
    struct stack_damage damage;
    /** Steps that are left, see stack_table_spend(); NULL for no limit. Not owned. */
    uint64_t *steps;
};

void stack_table_free(struct stack_table *table);

/**
 * Adds a chunk. A chunk that defines an identifier again is ignored, since a definition never
 * changes.
 *
 * @param batch  of a reader with lazy_stacks
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status stack_table_add(struct stack_table *table, const struct ttd_batch *batch);

/**
 * Spends steps, the unit of work on stacks. Limits the cost of a crafted trace whose millions of
 * stacks share thousands of callers.
 *
 * @return TTD_OK, or TTD_ERROR_LIMIT if fewer steps are left
 */
enum ttd_status stack_table_spend(const struct stack_table *table, uint64_t steps);

/** Finds the chunk of a stack; NULL if there is none. */
struct stack_chunk *stack_table_find(const struct stack_table *table, ttd_id id);

/**
 * Looks up a stack. Costs one step.
 *
 * @param stack  set on TTD_OK
 * @return TTD_OK, TTD_END (undefined, or damaged and reported), TTD_ERROR_NO_MEMORY,
 * TTD_ERROR_LIMIT.
 */
enum ttd_status stack_table_get(const struct stack_table *table, ttd_id id,
                                struct ttd_stack *stack);

/** Looks up a stack of a chunk of the table. Statuses and cost as stack_table_get(). */
enum ttd_status stack_chunk_get(const struct stack_table *table, const struct stack_chunk *chunk,
                                ttd_id id, struct ttd_stack *stack);

/* A table of records by dense identifier. Missing identifiers, such as the ones of a damaged
 * chunk, cost nothing: memory grows with the records, never with the value of an identifier. */

/** A run of consecutive identifiers, and their records. */
struct idtable_run {
    ttd_id first;
    size_t count;
    size_t capacity;
    void *records;
};

struct idtable {
    size_t record_size;
    struct idtable_run *runs;
    size_t run_count;
    size_t run_capacity;
};

void idtable_init(struct idtable *table, size_t record_size);
void idtable_free(struct idtable *table);

/**
 * Adds the record of `id`, all zero, and sets `*record` to it. Identifiers come in increasing
 * order; an earlier one is ignored and sets `*record` to NULL, since a definition never changes.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status idtable_add(struct idtable *table, ttd_id id, void **record);

/** Looks up the record of `id`; NULL if there is none. Valid until the next addition. */
void *idtable_get(const struct idtable *table, ttd_id id);

/** Counts the records. */
size_t idtable_count(const struct idtable *table);

/** A string. `display` is its demangled form and `canonical` its canonical name; both are NULL
 * until they are asked for. */
struct definition_string {
    const char *text;
    uint32_t size;
    uint32_t display_size;
    uint32_t canonical_size;
    const char *display;
    const char *canonical;
};

struct definition_module {
    ttd_id path;
    uint64_t bias;
    uint64_t begin;
    uint64_t end;
    uint32_t build_id_size;
    uint8_t build_id[TTD_BUILD_ID_MAX];
    struct ttd_position loaded;
    /** Invalid while loaded. */
    struct ttd_position unloaded;
};

struct definition_thread {
    uint64_t os_id;
    ttd_id name;
    struct ttd_position begin;
    /** Invalid while running. */
    struct ttd_position end;
};

struct definition_heap {
    uint64_t handle;
    ttd_id name;
    /** The heap in whose blocks its blocks lie; TTD_NONE if its memory is the system's. */
    ttd_id parent;
};

/** The names of an address: `count` frames from `first` on, innermost first. */
struct definition_symbol {
    size_t first;
    uint32_t count;
};

struct definitions {
    struct idtable strings;
    struct stack_table stacks;
    struct idtable modules;
    struct idtable threads;
    struct idtable heaps;
    /** Index in `symbols` by (module, offset). */
    struct hash_map symbol_index;
    struct definition_symbol *symbols;
    size_t symbol_count;
    size_t symbol_capacity;
    struct ttd_symbol_frame *frames;
    size_t frame_count;
    size_t frame_capacity;
    struct arena text;
    struct demangler demangler;
};

void definitions_init(struct definitions *definitions);
void definitions_free(struct definitions *definitions);

/** Adds the definitions of a batch; other batches are ignored. @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status definitions_add(struct definitions *definitions, const struct ttd_batch *batch);

/* Look-ups. NULL if there is no such definition. */
struct definition_string *definitions_string(const struct definitions *definitions, ttd_id id);
const struct definition_module *definitions_module(const struct definitions *definitions,
                                                   ttd_id id);
const struct definition_thread *definitions_thread(const struct definitions *definitions,
                                                   ttd_id id);
const struct definition_heap *definitions_heap(const struct definitions *definitions, ttd_id id);
const struct definition_symbol *definitions_symbol(const struct definitions *definitions,
                                                   ttd_id module, uint64_t offset);

/** Returns the handle of a heap; 0 if the heap is not defined. */
uint64_t definitions_heap_handle(const struct definitions *definitions, ttd_id id);

/** Looks up a stack: see stack_table_get(). */
enum ttd_status definitions_stack(const struct definitions *definitions, ttd_id id,
                                  struct ttd_stack *stack);

/** Returns the text of a string; size 0 and data "" if it is not defined. */
struct ttd_string definitions_text(const struct definitions *definitions, ttd_id id);

/** Returns the demangled name of a function. */
struct ttd_string definitions_function(struct definitions *definitions, ttd_id id);

/** Returns the demangled name of a class from the name in its type_info, such as "6Server". */
struct ttd_string definitions_class(struct definitions *definitions, ttd_id id);

/** Returns the canonical name of a function (canonical.h); its demangled name when memory is short.
 */
struct ttd_string definitions_canonical(struct definitions *definitions, ttd_id id);

/* Search in all names of a trace: functions, modules and files. */

/** The predicate of a search. */
struct names_matcher {
    const void *context;
    bool (*matches)(const void *context, struct ttd_string name);
    /** Names of source files are searched as well. */
    bool takes_files;
};

/**
 * Looks for a function, module or file whose name matches, even if no stack contains it. Each name
 * is tried once.
 *
 * @param has_match  set on TTD_OK
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status names_find(struct definitions *definitions, const struct names_matcher *matcher,
                           bool *has_match);

#endif
