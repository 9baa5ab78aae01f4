/* SPDX-License-Identifier: MIT */
/* The modules of a process, and the frames of its stacks as modules and offsets. */
#ifndef RECORDER_COLLECT_TRACE_TRACE_MODULES_H
#define RECORDER_COLLECT_TRACE_TRACE_MODULES_H

#include "collect/trace/trace_stacks.h"
#include "symbolize/symbolize.h"

struct module {
    char *path;
    uint32_t kept; /* number of the kept file, from 1; 0 for none: see module_files.h */
    struct symbolize_file file;
    uint8_t build_id[TTD_BUILD_ID_MAX];
    uint32_t build_id_size;
    uint64_t bias, begin, end;
    bool is_loaded;
    bool has_names; /* the trace has a name of an address in it */
};

/* An address that occurs in stacks. */
struct frame {
    ttd_id module;   /* TTD_NONE if it is in no module; the offset is then the address */
    bool is_settled; /* its names are in the trace, or it has none */
    uint64_t offset;
};

struct modules {
    struct module *items; /* by id in the trace - 1, also those that were unloaded */
    size_t count, capacity;
    size_t hint; /* index of the last module found */
    struct frame *frames;
    size_t frame_count, frame_capacity;
    struct stacks addresses; /* address to frame: stacks without a caller, with indexes of frames +
                                1 as ids */
};

/* False when there is no memory. */
bool modules_init(struct modules *modules);
void modules_free(struct modules *modules);

/* Adds a loaded module; copies its path. Returns false if memory ran out. */
bool modules_add(struct modules *modules, const struct module *module);

/* Returns the index of the loaded module with this begin, or SIZE_MAX. */
size_t modules_at(const struct modules *modules, uint64_t begin);

/* Marks a module as unloaded, and forgets its addresses, which other code will use. */
void modules_unload(struct modules *modules, size_t index);

/* Forgets all addresses, when the process image has ended. */
void modules_forget(struct modules *modules);

/* Returns the frame of an address, valid until the next call; NULL if memory ran out. */
const struct frame *modules_frame(struct modules *modules, uint64_t pc);

/*
 * Allocators that are linked into a module under names of their own, such as the jemalloc of Rust
 * programs. Their calls never reach the C library.
 */

/* Returns the name of the function by which the module's file has such an allocator; NULL if its
 * symbol tables have none, or cannot be read. Remembers the answers for files. */
const char *allocators_find(const struct module *module);

#endif
