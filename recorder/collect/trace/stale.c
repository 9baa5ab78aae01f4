/* SPDX-License-Identifier: MIT */
#include "collect/trace/stale.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ttdtrace/ttdtrace.h>

bool stale_look(const char *path, struct ttd_trace *old)
{
    static const struct ttd_group no_group;
    struct stat status;
    struct ttd_input input;
    struct ttd_reader *reader;
    struct ttd_error error;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) ||
        ttd_input_file(path, NULL, &input, &error) != TTD_OK ||
        ttd_reader_open(&input, NULL, NULL, &reader, &error) != TTD_OK)
        return false;
    *old = *ttd_reader_trace(reader);
    ttd_reader_close(reader);
    return memcmp(&old->group, &no_group, sizeof no_group) != 0;
}

/* Returns the process id in a file name, after the name of the launched program's trace; 0 if there
 * is none. */
static uint64_t named_process(const char *name, const char *base)
{
    size_t size = strlen(base);
    char *end;
    if (strncmp(name, base, size) != 0 || name[size] != '.' || name[size + 1] < '1' ||
        name[size + 1] > '9')
        return 0;
    unsigned long long process = strtoull(name + size + 1, &end, 10);
    return *end == '\0' || *end == '.' || *end == '-' ? process : 0;
}

static bool is_stale(const char *path, uint64_t process, const struct ttd_trace *old)
{
    struct stat status;
    struct ttd_trace trace;
    return process != 0 && lstat(path, &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_uid == geteuid() && stale_look(path, &trace) &&
           memcmp(&trace.group, &old->group, sizeof trace.group) == 0 &&
           trace.process_id == process && trace.trace_id != old->trace_id;
}

void stale_remove(const char *path, const struct ttd_trace *old)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    int size = (int)(base - path);
    char sibling[2 * PATH_MAX];
    snprintf(sibling, sizeof sibling, "%.*s", size, path);
    DIR *directory = opendir(size > 0 ? sibling : ".");
    const struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        uint64_t process = named_process(entry->d_name, base);
        int length = snprintf(sibling, sizeof sibling, "%.*s%s", size, path, entry->d_name);
        if (length > 0 && (size_t)length < sizeof sibling && is_stale(sibling, process, old))
            unlink(sibling);
    }
    if (directory != NULL)
        closedir(directory);
}
