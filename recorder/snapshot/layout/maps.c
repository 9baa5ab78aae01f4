/* SPDX-License-Identifier: MIT */
#include "snapshot/layout/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "arrays.h"
#include "snapshot/process_reader.h"

/* A million mappings or so; the rest is left out. */
enum { TEXT_FIRST = 64 * 1024, TEXT_MAX = 128 << 20 };

/* Reads a file whose size is not known. Returns NULL if memory runs out or it cannot be read. */
static char *maps_read_all(int file, bool *is_whole)
{
    size_t size = 0, capacity = TEXT_FIRST;
    char *text = malloc(capacity);
    ssize_t read_size = 0;
    while (text) {
        reader_enter();
        read_size = read(file, text + size, capacity - 1 - size);
        reader_leave();
        if (read_size < 0 && errno == EINTR)
            continue;
        if (read_size <= 0)
            break;
        size += (size_t)read_size;
        if (capacity - 1 - size >= TEXT_FIRST / 4)
            continue;
        char *grown = capacity < TEXT_MAX ? realloc(text, capacity * 2) : NULL;
        if (!grown)
            break;
        text = grown;
        capacity *= 2;
    }
    *is_whole = read_size == 0;
    if (!text || size == 0) {
        free(text);
        return NULL;
    }
    text[size] = '\0';
    return text;
}

/* Whether the process has its memory still: the text of one that was killed just ends. */
static bool maps_has_memory(int file)
{
    char byte;
    reader_enter();
    bool is_there = pread(file, &byte, 1, 0) == 1;
    reader_leave();
    return is_there;
}

/* Whether the pages of a private mapping are the process's own from the begin, whatever its name.
 */
static bool maps_is_plain_memory(const struct mapping *mapping)
{
    return !mapping->is_shared && (strcmp(mapping->name, "/dev/zero") == 0 ||
                                   strncmp(mapping->name, "/anon_hugepage", 14) == 0);
}

/* Decodes "begin-end perms offset device inode   name". Returns false if it is none. */
static bool maps_parse_line(char *line, struct mapping *mapping)
{
    char *text;
    mapping->begin = strtoull(line, &text, 16);
    if (*text != '-')
        return false;
    mapping->end = strtoull(text + 1, &text, 16);
    if (*text != ' ' || strlen(text) < 6 || mapping->end <= mapping->begin)
        return false;
    mapping->is_readable = text[1] == 'r';
    mapping->is_writable = text[2] == 'w';
    mapping->is_executable = text[3] == 'x';
    mapping->is_shared = text[4] == 's';
    mapping->offset = strtoull(text + 6, &text, 16);
    if (*text != ' ')
        return false;
    unsigned device = (unsigned)strtoul(text + 1, &text, 16);
    if (*text != ':')
        return false;
    mapping->device = makedev(device, (unsigned)strtoul(text + 1, &text, 16));
    mapping->inode = strtoull(text, &text, 10);
    mapping->name = text + strspn(text, " ");
    mapping->is_file = mapping->inode != 0 && !maps_is_plain_memory(mapping);
    return true;
}

static bool maps_add(struct maps *maps, const struct mapping *mapping)
{
    void *items = array_grow(maps->items, maps->count, &maps->capacity, sizeof *maps->items);
    if (!items)
        return false;
    maps->items = items;
    maps->items[maps->count++] = *mapping;
    return true;
}

static int open_maps(uint32_t pid, uint32_t tid)
{
    char path[64];
    if (tid == pid) /* the system would make a directory of the thread first */
        snprintf(path, sizeof path, "/proc/%u/maps", pid);
    else
        snprintf(path, sizeof path, "/proc/%u/task/%u/maps", pid, tid);
    reader_enter();
    int file = open(path, O_RDONLY | O_CLOEXEC);
    reader_leave();
    return file;
}

/* The system can also be asked for one mapping after the other, but a question takes as long as
 * some lines of the text do, or longer where calls are dear, and asks for no name. */
bool maps_read(struct maps *maps, uint32_t pid, uint32_t tid)
{
    *maps = (struct maps){0};
    int file = open_maps(pid, tid);
    if (file < 0)
        return false;
    maps->text = maps_read_all(file, &maps->is_whole);
    maps->is_whole = maps->is_whole && maps_has_memory(file);
    close(file);
    for (char *line = maps->text, *end; line && *line != '\0'; line = end) {
        struct mapping mapping;
        end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        if (maps_parse_line(line, &mapping) && !maps_add(maps, &mapping))
            maps->is_whole = false;
    }
    return maps->text != NULL;
}

void maps_free(struct maps *maps)
{
    free(maps->text);
    free(maps->items);
}
