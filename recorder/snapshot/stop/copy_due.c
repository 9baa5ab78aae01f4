/* SPDX-License-Identifier: MIT */
#include "snapshot/stop/copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/reader.h"

static uint64_t resident(uint32_t pid)
{
    char path[64];
    unsigned long long size = 0, pages = 0;
    snprintf(path, sizeof path, "/proc/%u/statm", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    bool is_read = fscanf(file, "%llu %llu", &size, &pages) == 2;
    fclose(file);
    return is_read ? (uint64_t)pages * MEMORY_PAGE : 0;
}

/* Whether a descriptor is of a file that is read into the pages of the process directly: systems
 * have lost what was read while a process was copied. */
static bool is_direct(uint32_t pid, const char *descriptor)
{
    char path[320], line[128];
    unsigned long flags = 0;
    snprintf(path, sizeof path, "/proc/%u/fdinfo/%s", pid, descriptor);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "flags:", 6) == 0)
            flags = strtoul(line + 6, NULL, 8);
    fclose(file);
    return (flags & O_DIRECT) != 0;
}

static bool has_direct(uint32_t pid)
{
    enum { DESCRIPTORS_MAX = 10000 };
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/fdinfo", pid);
    DIR *directory = opendir(path);
    bool is_found = directory == NULL;
    const struct dirent *entry;
    for (int i = 0; !is_found && (entry = readdir(directory)) != NULL; i++)
        is_found = i == DESCRIPTORS_MAX || (*entry->d_name != '.' && is_direct(pid, entry->d_name));
    if (directory != NULL)
        closedir(directory);
    return is_found;
}

static bool copy_gaps_add(struct copy_gaps *gaps, struct memory_span span)
{
    if (gaps->count == gaps->capacity) {
        size_t capacity = gaps->capacity * 2 + 16;
        void *items = reallocarray(gaps->items, capacity, sizeof *gaps->items);
        if (items == NULL)
            return false;
        gaps->items = items;
        gaps->capacity = capacity;
    }
    gaps->items[gaps->count++] = span;
    return true;
}

static FILE *gaps_open(const char *path)
{
    reader_enter();
    FILE *file = fopen(path, "re");
    reader_leave();
    return file;
}

/* The list cannot be read while the process changes it. */
static bool gaps_read_line(FILE *file, char **line, size_t *capacity)
{
    reader_enter();
    bool is_read = getline(line, capacity, file) > 0;
    reader_leave();
    return is_read;
}

/* Lists the mappings that the program keeps out of copies, or lets them be empty in copies. */
static bool find_gaps(uint32_t pid, struct copy_gaps *gaps)
{
    char path[64], *line = NULL;
    size_t capacity = 0;
    bool is_read = false;
    struct memory_span span = {0};
    snprintf(path, sizeof path, "/proc/%u/smaps", pid);
    FILE *file = gaps_open(path);
    if (file == NULL)
        return false;
    while (gaps_read_line(file, &line, &capacity)) {
        char *end;
        uint64_t begin = strtoull(line, &end, 16);
        if (*end == '-' && end != line)
            span = (struct memory_span){begin, strtoull(end + 1, NULL, 16)};
        if (strncmp(line, "VmFlags:", 8) != 0)
            continue;
        is_read = strstr(line, " dc") == NULL && strstr(line, " wf") == NULL;
        if (!is_read && !(is_read = copy_gaps_add(gaps, span)))
            break;
    }
    free(line);
    fclose(file);
    return is_read;
}

bool copy_is_due(uint32_t pid, uint64_t least, struct copy_gaps *gaps)
{
    *gaps = (struct copy_gaps){0};
    return resident(pid) >= least && !has_direct(pid) && find_gaps(pid, gaps);
}

void copy_gaps_free(struct copy_gaps *gaps)
{
    free(gaps->items);
}
