/* SPDX-License-Identifier: MIT */
/*
 * Files of modules that may not be at their paths any more when names are looked up: libraries that
 * are removed once they are loaded, that never had a path, or that are replaced while they run.
 * They stay open in the collector, where the processes that look up names read them.
 */
#ifndef RECORDER_COLLECT_TRACE_MODULE_FILES_H
#define RECORDER_COLLECT_TRACE_MODULE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "collect/trace/trace_modules.h"

/*
 * Descriptors that the collector keeps open for long. Their number may be limited to fewer than
 * there are recorded processes, and other work needs some for a moment. The system gives out the
 * lowest free number, so a number shows how many are in use.
 */

/* Quarters of the limit below which a descriptor may stay open. */
enum { DESCRIPTORS_OF_FILES = 2, DESCRIPTORS_OF_PROCESSES = 3, DESCRIPTORS_ALL = 4 };

static inline bool descriptor_may_stay(int descriptor, unsigned quarters)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
           (rlim_t)descriptor < limit.rlim_cur / DESCRIPTORS_ALL * quarters;
}

enum { MODULE_FILES_MAX = 128 };

/* A process's log of a module's file. */
struct logged_file {
    bool is_there;              /* at the module's path */
    uint64_t begin, end;        /* its first mapping */
    struct symbolize_file file; /* if it is not there, no more than device and inode */
};

/*
 * Sets `module->kept` and `module->file` by the log of process `pid` about the module's file. The
 * file stays open until all modules that have it are released.
 */
void module_files_keep(struct module *module, const struct logged_file *logged, uint32_t pid);
void module_files_release(struct module *module);

/* Returns the path at which this process has the file open, valid until the next call for the same
 * file; NULL if names are to be looked up at the module's path. */
const char *module_files_place(const struct module *module);

#endif
