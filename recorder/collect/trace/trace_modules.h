/* SPDX-License-Identifier: MIT */
/** The modules of a process, and the frames of its stacks as modules and offsets. */
#ifndef RECORDER_COLLECT_TRACE_TRACE_MODULES_H
#define RECORDER_COLLECT_TRACE_TRACE_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <ttdtrace/model.h>
#include <ttdtrace/names.h>

#include "arrays.h"
#include "symbolize/symbolize.h"

/* Hash table of a trace's stacks: from (caller's stack, return address) to the stack's id. Also of
 * other pairs of a number and an address. */

struct stack_entry {
    uint64_t pc;
    ttd_id parent;
    ttd_id id; /* TTD_NONE in a free entry */
};

struct stacks {
    struct stack_entry *entries;
    uint32_t *hashes; /* of the entries, for a larger table */
    size_t capacity;  /* a power of two */
    size_t count;
    uint64_t key;      /* random: addresses come from an untrusted process */
    uint64_t removals; /* moves when stacks are removed */
};

/** False when there is no memory. */
bool stacks_init(struct stacks *stacks);
void stacks_free(struct stacks *stacks);

/**
 * Returns the hash of a frame: `parent` is the hash of its caller's stack, and 0 for the outermost
 * frame. It does not depend on ids. So the hashes of all frames of a stack, or of several, are
 * known before the first of them is looked up, and their entries come into the cache at the same
 * time.
 */
static inline uint32_t stacks_hash(const struct stacks *stacks, uint32_t parent, uint64_t pc)
{
    return (uint32_t)(array_hash(pc ^ (uint64_t)parent << 32 ^ stacks->key, stacks->key | 1) >> 16);
}

/** Begins to load the entry of a frame into the cache. */
static inline void stacks_prefetch(const struct stacks *stacks, uint32_t hash)
{
    __builtin_prefetch(&stacks->entries[hash & (stacks->capacity - 1)]);
}

/** Returns the entry of a frame, or the free entry where it belongs. */
static inline struct stack_entry *stacks_probe(const struct stacks *stacks, uint32_t hash,
                                               ttd_id parent, uint64_t pc)
{
    size_t slot = hash & (stacks->capacity - 1);
    for (;; slot = (slot + 1) & (stacks->capacity - 1)) {
        struct stack_entry *entry = &stacks->entries[slot];
        if (entry->id == TTD_NONE || (entry->pc == pc && entry->parent == parent))
            return entry;
    }
}

/**
 * Returns the entry of a frame, added if it is new: its id is then TTD_NONE, and the caller sets it
 * before any other call. Returns NULL if memory ran out.
 */
struct stack_entry *stacks_find(struct stacks *stacks, uint32_t hash, ttd_id parent, uint64_t pc);

/** Removes the stacks of addresses in [begin, end): other code will use them. */
void stacks_forget(struct stacks *stacks, uint64_t begin, uint64_t end);

struct module {
    char *path;
    uint32_t kept; /* number of the kept file, from 1; 0 for none: see module_files_keep() */
    struct symbolize_file file;
    uint8_t build_id[TTD_BUILD_ID_MAX];
    uint32_t build_id_size;
    uint64_t bias, begin, end;
    bool is_loaded;
    bool has_names; /* the trace has a name of an address in it */
};

/** An address that occurs in stacks. */
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

/** False when there is no memory. */
bool modules_init(struct modules *modules);
void modules_free(struct modules *modules);

/** Adds a loaded module; copies its path. Returns false if memory ran out. */
bool modules_add(struct modules *modules, const struct module *module);

/** Returns the index of the loaded module with this begin, or SIZE_MAX. */
size_t modules_at(const struct modules *modules, uint64_t begin);

/** Marks a module as unloaded, and forgets its addresses: other code will use them. */
void modules_unload(struct modules *modules, size_t index);

/** Forgets all addresses, when the process image has ended. */
void modules_forget(struct modules *modules);

/** Returns the frame of an address, valid until the next call; NULL if memory ran out. */
const struct frame *modules_frame(struct modules *modules, uint64_t pc);

/*
 * Allocators that are linked into a module under names of their own, such as the jemalloc of Rust
 * programs. Their calls never reach the C library.
 */

/** Returns the name of the function that gives the module's file such an allocator; NULL if its
 * symbol tables have none, or cannot be read. Remembers the answers for files. */
const char *allocators_find(const struct module *module);

/*
 * Files of modules that may not be at their paths any more when names are looked up: libraries that
 * are removed once they are loaded, that never had a path, or that are replaced while they run.
 * They stay open in the collector, where the processes that look up names read them.
 */

/*
 * Descriptors that the collector keeps open for long. Their number may be limited to fewer than
 * there are recorded processes, and other work needs some for a moment. The system gives out the
 * lowest free number, so a number shows how many are in use.
 */

/** Quarters of the limit; a descriptor below them may stay open. */
enum { DESCRIPTORS_OF_FILES = 2, DESCRIPTORS_OF_PROCESSES = 3, DESCRIPTORS_ALL = 4 };

static inline bool trace_descriptor_may_stay(int descriptor, unsigned quarters)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
           (rlim_t)descriptor < limit.rlim_cur / DESCRIPTORS_ALL * quarters;
}

enum { MODULE_FILES_MAX = 128 };

/** A process's log of a module's file. */
struct logged_file {
    bool is_there;              /* at the module's path */
    uint64_t begin, end;        /* its first mapping */
    struct symbolize_file file; /* if it is not there, no more than device and inode */
};

/**
 * Sets `module->kept` and `module->file` by the log of process `pid` about the module's file. The
 * file stays open until all modules that have it are released.
 */
void module_files_keep(struct module *module, const struct logged_file *logged, uint32_t pid);
void module_files_release(struct module *module);

/** Returns the path where this process has the file open, valid until the next call for the same
 * file; NULL if names are to be looked up at the module's path. */
const char *module_files_place(const struct module *module);

/* The names of an address: turned from their looked-up form into their written form. */

/** Writes the names of an address. `count` is at most SYMBOLIZE_FRAMES_MAX. */
static inline enum ttd_status frame_names_write(struct ttd_names *names, ttd_id module,
                                                uint64_t offset,
                                                const struct symbolize_frame *frames, size_t count)
{
    struct ttd_name named[SYMBOLIZE_FRAMES_MAX];
    for (size_t i = 0; i < count; i++)
        named[i] = (struct ttd_name){
            .function = {frames[i].function, frames[i].function_size},
            .file = {frames[i].file, frames[i].file_size},
            .line = frames[i].line,
        };
    return ttd_names_symbol(names, module, offset, named, count);
}

#endif
