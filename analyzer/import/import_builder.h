/* SPDX-License-Identifier: MIT */
/** The trace that an import makes: definitions, each written once, and calls in order of effect. */
#ifndef ANALYZER_IMPORT_IMPORT_BUILDER_H
#define ANALYZER_IMPORT_IMPORT_BUILDER_H

#include <stdbool.h>
#include <ttdtrace/writer.h>

#include "base/hash_map.h"
#include "import/import.h"

/** The time_unit of a trace without wall times: coarser than any recording. */
#define IMPORT_NO_TIMES UINT64_MAX

/** An address range of a loaded module. */
struct import_module {
    ttd_id id;
    uint64_t bias;
    uint64_t begin;
    uint64_t end;
    /** Path, owned. */
    char *path;
    size_t path_size;
    /** The last list of modules did not have it. */
    bool is_absent;
};

struct import_builder {
    const struct ttd_output *output;
    struct import_text *text;
    /** Written with the first definition; a reader may change it before. */
    struct ttd_trace trace;
    struct ttd_writer *writer;
    /** Ids by a thread's system id, and by a heap's handle. */
    struct hash_map threads;
    struct hash_map heaps;
    /** Loaded modules, sorted by address. */
    struct import_module *modules;
    size_t module_count;
    size_t module_capacity;
    /** Modules known by their path only, with frames relative to it. */
    struct import_module *files;
    size_t file_count;
    size_t file_capacity;
    /** Position of the next call, for sources that have none: each call is a sequence. */
    uint64_t sequence;
    /** Wall time of the last call that has one. */
    uint64_t wall_time;
};

/* All functions return TTD_OK, or a failure of the writer, whose detail is in its error. */

/** Prepares a trace; takes over the output. */
void import_builder_open(struct import_builder *builder, const struct ttd_output *output,
                         struct import_text *text);

/** Completes the trace if `status` is TTD_OK, and releases the builder. Returns `status`, or the
 * failure of the output. */
enum ttd_status import_builder_close(struct import_builder *builder, enum ttd_status status);

/** Names the source, such as "heaptrack 1.4.0". The first call of a reader that has recognised its
 * text. */
enum ttd_status import_source(struct import_builder *builder, const char *source);

/** Writes a fact about the recording. */
enum ttd_status import_fact(struct import_builder *builder, const char *key,
                            struct ttd_string value);

/** Records that the source has no calls between two positions, such as rows that are not in it. */
enum ttd_status import_loss(struct import_builder *builder, struct ttd_position last_good,
                            struct ttd_position first_good, uint64_t count);

/** Finds or defines a thread by its system id. */
enum ttd_status import_thread(struct import_builder *builder, uint64_t os_id, ttd_id *id);

/** Finds or defines a heap by its handle; TTD_NONE for 0, an unknown heap. */
enum ttd_status import_heap(struct import_builder *builder, uint64_t handle, ttd_id *id);

/** Begins another list of the loaded modules; modules that are not listed again are unloaded. */
void import_modules_begin(struct import_builder *builder);

/** Lists a loaded module at [begin, end). A range that overlaps another one of the list is
 * ignored. */
enum ttd_status import_module_load(struct import_builder *builder, struct ttd_string path,
                                   uint64_t bias, uint64_t begin, uint64_t end);

/** Ends the list. */
enum ttd_status import_modules_end(struct import_builder *builder);

/** Defines the stack of a return address, called from `parent`. */
enum ttd_status import_frame(struct import_builder *builder, ttd_id parent, uint64_t address,
                             ttd_id *id);

/** Finds or defines a module that is known by its path only. */
enum ttd_status import_file(struct import_builder *builder, struct ttd_string path, ttd_id *id);

/** Names a frame by its function. */
enum ttd_status import_symbol(struct import_builder *builder, ttd_id module, uint64_t offset,
                              struct ttd_string function);

/** Sets time_start and time_end of a call of a source without positions. */
void import_place(struct import_builder *builder, struct ttd_event *event);

/** Appends a call; a source with positions appends its calls in order of effect. */
enum ttd_status import_event(struct import_builder *builder, const struct ttd_event *event);

#endif
