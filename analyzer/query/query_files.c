/* SPDX-License-Identifier: MIT */
/* The system's own functions for files, but for one: temporary files are written through a count.
 */
#include "query/query_files.h"

#include <sqlite3.h>
#include <stdint.h>

#include "cli/process/limits.h"

/* Global, because SQLite's file systems are the process's, and a file has no place for more. */
static sqlite3_vfs *files_system;
static sqlite3_vfs files_counted = {.zName = NULL};
static const sqlite3_io_methods *files_methods;
static sqlite3_io_methods files_counted_methods;
static uint64_t files_room;
static bool files_are_full;

static int files_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset)
{
    files_are_full |= (uint64_t)size > files_room;
    if (files_are_full)
        return SQLITE_FULL;
    files_room -= (uint64_t)size;
    return files_methods->xWrite(file, data, size, offset);
}

/* All temporary files have the same methods, as none of them is locked. */
static int files_open(sqlite3_vfs *system, const char *name, sqlite3_file *file, int flags,
                      int *opened)
{
    (void)system;
    int status = files_system->xOpen(files_system, name, file, flags, opened);
    if (status != SQLITE_OK || !(flags & SQLITE_OPEN_DELETEONCLOSE))
        return status;
    if (!files_methods) {
        files_methods = file->pMethods;
        files_counted_methods = *files_methods;
        files_counted_methods.xWrite = files_write;
    }
    if (file->pMethods == files_methods)
        file->pMethods = &files_counted_methods;
    return status;
}

const char *query_files_begin(void)
{
    files_room = limits_files();
    files_are_full = false;
    if (files_system)
        return files_counted.zName;
    sqlite3_vfs *system = sqlite3_vfs_find(NULL);
    if (!system)
        return NULL;
    files_counted = *system;
    files_counted.pNext = NULL;
    files_counted.zName = "ttdanalyze";
    files_counted.xOpen = files_open;
    if (sqlite3_vfs_register(&files_counted, 0) != SQLITE_OK)
        return NULL;
    files_system = system;
    return files_counted.zName;
}

bool query_files_are_full(void)
{
    return files_are_full;
}
