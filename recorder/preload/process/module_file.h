/* SPDX-License-Identifier: MIT */
/*
 * The file of a loaded module: its path, and what tells it from other files at that path. The
 * memory map decides, since the loader's name may be relative, a symbolic link, or that of a file
 * that was replaced. Its callers hold the lock of modules.c.
 */
#ifndef RECORDER_PRELOAD_PROCESS_MODULE_FILE_H
#define RECORDER_PRELOAD_PROCESS_MODULE_FILE_H

#include "channel_record.h"
#include "preload/process/module_log.h"

struct module_file {
    char path[MODULE_PATH_MAX];
    size_t path_size;
    uint64_t facts[MODULE_FILE_FACTS]; /* by enum module_file_fact */
};

/* Reads the memory map once, for all modules up to module_files_end(). */
void module_files_begin(void);
void module_files_end(void);

/* Returns the file of a module, valid until the next call. */
const struct module_file *module_file_of(const struct module *module);

#endif
