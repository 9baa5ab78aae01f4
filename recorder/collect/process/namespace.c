/* SPDX-License-Identifier: MIT */
#include "collect/process/namespace.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/* Whether the process or thread of a directory in /proc has an id in its own namespace, which the
 * list of its ids ends with. */
static bool namespace_has_id(const char *directory, uint32_t inner)
{
    char path[128], line[256];
    bool has_id = false;
    snprintf(path, sizeof path, "%s/status", directory);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "NSpid:", 6) != 0)
            continue;
        const char *last = strrchr(line, '\t');
        has_id = last != NULL && strtoul(last, NULL, 10) == inner;
        break;
    }
    if (file != NULL)
        fclose(file);
    return has_id;
}

static bool namespace_has_value(uint32_t pid, uint64_t address, uint64_t value)
{
    uint64_t word;
    struct iovec local = {&word, sizeof word}, remote = {(void *)(uintptr_t)address, sizeof word};
    return process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0) == sizeof word && word == value;
}

/* Finds an entry of a directory of processes or threads. Without an address any value will do. */
static uint32_t namespace_find(const char *directory, uint32_t inner, uint64_t address,
                               uint64_t value)
{
    char path[96];
    uint32_t found = 0;
    DIR *entries = opendir(directory);
    const struct dirent *entry;
    while (found == 0 && entries != NULL && (entry = readdir(entries)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        uint32_t id = (uint32_t)strtoul(entry->d_name, NULL, 10);
        snprintf(path, sizeof path, "%.64s/%u", directory, id);
        if ((address == 0 || namespace_has_value(id, address, value)) &&
            namespace_has_id(path, inner))
            found = id;
    }
    if (entries != NULL)
        closedir(entries);
    return found;
}

uint32_t namespace_process(uint32_t inner, uint64_t address, uint64_t value)
{
    return address != 0 ? namespace_find("/proc", inner, address, value) : 0;
}

uint32_t namespace_thread(uint32_t pid, uint32_t inner)
{
    char directory[64];
    snprintf(directory, sizeof directory, "/proc/%u/task", pid);
    return namespace_find(directory, inner, 0, 0);
}
