/* SPDX-License-Identifier: MIT */
#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../../arrays.h"

/* A million mappings or so; the rest is left out. */
enum { TEXT_FIRST = 64 * 1024, TEXT_MAX = 128 << 20, MAPPINGS_MAX = 1 << 20, NAME_MAX_SIZE = 4200 };

struct maps_text {
    struct maps_text *next;
    char bytes[];
};

/* Linux 6.11; headers may be older. */
struct query {
    uint64_t size, flags, address;
    uint64_t begin, end, mapping_flags, page_size, offset, inode;
    uint32_t major, minor;
    uint32_t name_size, build_id_size;
    uint64_t name, build_id;
};

#define QUERY_IOCTL _IOWR('f', 17, struct query)

enum { FLAG_READABLE = 1, FLAG_WRITABLE = 2, FLAG_EXECUTABLE = 4, FLAG_SHARED = 8, OR_NEXT = 16 };

/* Reads a file whose size is not known. Returns NULL if memory runs out or it cannot be read. */
static struct maps_text *read_all(int file, bool *is_whole)
{
    size_t size = 0, capacity = TEXT_FIRST;
    struct maps_text *text = malloc(sizeof *text + capacity);
    ssize_t read_size = 0;
    while (text != NULL) {
        read_size = read(file, text->bytes + size, capacity - 1 - size);
        if (read_size < 0 && errno == EINTR)
            continue;
        if (read_size <= 0)
            break;
        size += (size_t)read_size;
        if (capacity - 1 - size >= TEXT_FIRST / 4)
            continue;
        if (capacity >= TEXT_MAX)
            break;
        struct maps_text *grown = realloc(text, sizeof *text + capacity * 2);
        if (grown == NULL)
            break;
        text = grown;
        capacity *= 2;
    }
    *is_whole = read_size == 0;
    if (text == NULL || size == 0) {
        free(text);
        return NULL;
    }
    text->bytes[size] = '\0';
    text->next = NULL;
    return text;
}

/* Whether there may be something in a mapping that the program has written, or can read. */
static bool is_of_use(const struct mapping *mapping, bool is_readable)
{
    return is_readable || !(mapping->is_file || mapping->is_shared);
}

/* Decodes "begin-end perms offset device inode   name". Returns false if there is nothing in the
 * mapping that the program has written, or can read. */
static bool parse(char *line, struct mapping *mapping)
{
    char *text;
    mapping->begin = strtoull(line, &text, 16);
    if (*text != '-')
        return false;
    mapping->end = strtoull(text + 1, &text, 16);
    if (*text != ' ' || strlen(text) < 6 || mapping->end <= mapping->begin)
        return false;
    bool is_readable = text[1] == 'r';
    mapping->is_writable = text[2] == 'w';
    mapping->is_executable = text[3] == 'x';
    mapping->is_shared = text[4] == 's';
    text = strchr(text + 6, ' '); /* behind the offset */
    if (text == NULL)
        return false;
    text = strchr(text + 1, ' '); /* behind the device */
    if (text == NULL)
        return false;
    mapping->inode = strtoull(text + 1, &text, 10);
    mapping->is_file = mapping->inode != 0;
    mapping->name = text + strspn(text, " ");
    return is_of_use(mapping, is_readable);
}

static bool add(struct maps *maps, const struct mapping *mapping)
{
    void *items = array_grow(maps->items, maps->count, &maps->capacity, sizeof *maps->items);
    if (items == NULL)
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
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Reads the text from an open file, which it closes. */
static bool read_text(struct maps *maps, int file)
{
    *maps = (struct maps){0};
    maps->texts = read_all(file, &maps->is_whole);
    close(file);
    for (char *line = maps->texts != NULL ? maps->texts->bytes : NULL, *end;
         line != NULL && *line != '\0'; line = end) {
        struct mapping mapping;
        end = strchr(line, '\n');
        if (end != NULL)
            *end++ = '\0';
        if (parse(line, &mapping) && !add(maps, &mapping))
            maps->is_whole = false;
    }
    return maps->texts != NULL;
}

bool maps_read_text(struct maps *maps, uint32_t pid, uint32_t tid)
{
    int file = open_maps(pid, tid);
    *maps = (struct maps){0};
    return file >= 0 && read_text(maps, file);
}

const char *maps_name(struct maps *maps, struct mapping *mapping)
{
    char name[NAME_MAX_SIZE] = "";
    struct query query = {.size = sizeof query,
                          .address = mapping->begin,
                          .name_size = sizeof name,
                          .name = (uintptr_t)name};
    if (mapping->name != NULL)
        return mapping->name;
    mapping->name = "";
    if (!maps->has_file || ioctl(maps->file, QUERY_IOCTL, &query) != 0 || query.name_size == 0)
        return mapping->name;
    size_t size = strnlen(name, sizeof name - 1);
    struct maps_text *text = malloc(sizeof *text + size + 1);
    if (text == NULL)
        return mapping->name;
    memcpy(text->bytes, name, size);
    text->bytes[size] = '\0';
    text->next = maps->texts;
    maps->texts = text;
    return mapping->name = text->bytes;
}

/* Whether the next mapping at or behind an address was found. Sets errno if not: ENOENT if there is
 * none. */
static bool ask(int file, uint64_t address, struct mapping *mapping, bool *is_readable)
{
    struct query query = {.size = sizeof query, .flags = OR_NEXT, .address = address};
    if (ioctl(file, QUERY_IOCTL, &query) != 0)
        return false;
    *is_readable = (query.mapping_flags & FLAG_READABLE) != 0;
    *mapping = (struct mapping){.begin = query.begin,
                                .end = query.end,
                                .is_writable = (query.mapping_flags & FLAG_WRITABLE) != 0,
                                .is_executable = (query.mapping_flags & FLAG_EXECUTABLE) != 0,
                                .is_shared = (query.mapping_flags & FLAG_SHARED) != 0,
                                .is_file = query.inode != 0,
                                .inode = query.inode};
    errno = EINVAL;
    return query.end > address;
}

bool maps_read(struct maps *maps, uint32_t pid, uint32_t tid)
{
    struct mapping mapping;
    bool is_readable;
    int file = open_maps(pid, tid);
    *maps = (struct maps){.has_file = file >= 0, .file = file};
    if (file < 0)
        return false;
    uint64_t address = 0;
    while (maps->count < MAPPINGS_MAX && ask(file, address, &mapping, &is_readable)) {
        address = mapping.end;
        if (is_of_use(&mapping, is_readable) && !add(maps, &mapping))
            break;
    }
    maps->is_whole = errno == ENOENT;
    return address != 0 || read_text(maps, file); /* the system cannot be asked */
}

void maps_free(struct maps *maps)
{
    while (maps->texts != NULL) {
        struct maps_text *text = maps->texts;
        maps->texts = text->next;
        free(text);
    }
    if (maps->has_file)
        close(maps->file);
    free(maps->items);
}
