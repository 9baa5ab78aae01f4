/* SPDX-License-Identifier: MIT */
/**
 * The log of a process: records of the modules that were loaded and unloaded, and when. Its callers
 * hold the lock of modules.c. Records that there is no room for are left out; the module then has
 * no name.
 */
#ifndef RECORDER_PRELOAD_PROCESS_MODULE_LOG_H
#define RECORDER_PRELOAD_PROCESS_MODULE_LOG_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "channel_record.h"

struct module {
    uintptr_t begin;
    uintptr_t end;
    const struct link_map *map;
    bool gone;
    bool is_lasting;              /* the program started with it, and it is never unloaded */
    bool is_settled;              /* false while a thread logs it: `kept` is not the module's yet */
    uint16_t kept_at, kept_words; /* its record, kept for forked children; 0 words if it is not */
};

/** Gives the memory for records, of module_log_room() bytes. */
size_t module_log_room(void);
void module_log_keep(void *room);

/** Logs that a module was loaded, at that sequence and step. Its header is read in memory. */
void module_log_load(struct module *module, uint64_t sequence, uint64_t steps);

/** Does so in the child of a fork, for a module that was logged in its parent. */
void module_log_again(struct module *module, uint64_t sequence);

/** Logs that the module with this begin was unloaded, in a fragment of its own. */
void module_log_unload(uintptr_t begin);

/** Begins a log anew: the child of a fork has one of its own. */
void module_log_forget(void);

/*
 * The file of a loaded module: its path, and its identity among files at that path. The memory map
 * decides, since the loader's name may be relative, a symbolic link, or the name of a replaced
 * file. Its callers hold the lock of modules.c.
 */

struct module_file {
    char path[MODULE_PATH_MAX];
    size_t path_size;
    uint64_t facts[MODULE_FILE_FACTS]; /* by enum module_file_fact */
};

/** Reads the memory map once, for all modules up to module_files_end(). */
void module_files_begin(void);
void module_files_end(void);

/** Returns the file of a module, valid until the next call. */
const struct module_file *module_file_of(const struct module *module);

#endif
