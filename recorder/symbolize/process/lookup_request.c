/* SPDX-License-Identifier: MIT */
#include "lookup_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../grow.h"

enum { NUMBER = sizeof(uint64_t), MODULE_NUMBERS = 10 };

static size_t round_up(size_t size)
{
    return (size + NUMBER - 1) / NUMBER * NUMBER;
}

static size_t path_size(const struct symbolize_module *module)
{
    return module->offset_count > 0 && module->path != NULL ? strlen(module->path) : 0;
}

static size_t place_size(const struct symbolize_module *module)
{
    return module->offset_count > 0 && module->place != NULL ? strlen(module->place) : 0;
}

static size_t text_size(const struct symbolize_module *module)
{
    return round_up(path_size(module) + 1 + place_size(module) + 1 + module->build_id_size);
}

static void put(uint8_t **cursor, const void *data, size_t size)
{
    if (size > 0)
        memcpy(*cursor, data, size);
    *cursor += size;
}

static void put_number(uint8_t **cursor, uint64_t number)
{
    put(cursor, &number, sizeof number);
}

static void put_module(uint8_t **cursor, const struct symbolize_module *module)
{
    put_number(cursor, path_size(module));
    put_number(cursor, place_size(module));
    put_number(cursor, module->build_id_size);
    put_number(cursor, module->offset_count);
    put_number(cursor, module->is_data);
    put_number(cursor, module->file.device);
    put_number(cursor, module->file.inode);
    put_number(cursor, module->file.size);
    put_number(cursor, module->file.modified);
    put_number(cursor, module->file.changed);
    uint8_t *text = *cursor;
    put(&text, module->path, path_size(module));
    text++;
    put(&text, module->place, place_size(module));
    text++;
    put(&text, module->build_id, module->build_id_size);
    *cursor += text_size(module);
    put(cursor, module->offsets, module->offset_count * NUMBER);
}

uint8_t *lookup_request_pack(const struct symbolize_module *modules, size_t count, size_t *size)
{
    *size = 2 * NUMBER;
    for (size_t i = 0; i < count; i++)
        *size +=
            MODULE_NUMBERS * NUMBER + text_size(&modules[i]) + modules[i].offset_count * NUMBER;
    uint8_t *data = calloc(*size, 1);
    uint8_t *cursor = data;
    if (data == NULL)
        return NULL;
    put_number(&cursor, *size - NUMBER);
    put_number(&cursor, count);
    for (size_t i = 0; i < count; i++)
        put_module(&cursor, &modules[i]);
    return data;
}

static bool receive(int fd, uint8_t *data, size_t size)
{
    while (size > 0) {
        ssize_t n = read(fd, data, size);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        if (n > 0) {
            data += n;
            size -= (size_t)n;
        }
    }
    return true;
}

static uint64_t take_number(const uint8_t **cursor)
{
    uint64_t number;
    memcpy(&number, *cursor, sizeof number);
    *cursor += sizeof number;
    return number;
}

static void take_module(const uint8_t **cursor, struct symbolize_module *module)
{
    size_t length = take_number(cursor);
    size_t place_length = take_number(cursor);
    module->build_id_size = take_number(cursor);
    module->offset_count = take_number(cursor);
    module->is_data = take_number(cursor) != 0;
    module->file.device = take_number(cursor);
    module->file.inode = take_number(cursor);
    module->file.size = take_number(cursor);
    module->file.modified = take_number(cursor);
    module->file.changed = take_number(cursor);
    module->path = (const char *)*cursor;
    module->place = place_length > 0 ? module->path + length + 1 : NULL;
    module->build_id = *cursor + length + 1 + place_length + 1;
    *cursor += round_up(length + 1 + place_length + 1 + module->build_id_size);
    module->offsets = (const uint64_t *)(const void *)*cursor;
    *cursor += module->offset_count * NUMBER;
}

bool lookup_request_receive(struct lookup_request *request, int fd)
{
    uint64_t size;
    if (!receive(fd, (uint8_t *)&size, sizeof size))
        return false;
    request->data = grow_new(size, 1);
    if (!receive(fd, request->data, size)) {
        free(request->data);
        return false;
    }
    const uint8_t *cursor = request->data;
    request->count = take_number(&cursor);
    request->modules = grow_new(request->count, sizeof *request->modules);
    for (size_t i = 0; i < request->count; i++)
        take_module(&cursor, &request->modules[i]);
    return true;
}

void lookup_request_free(struct lookup_request *request)
{
    free(request->data);
    free(request->modules);
}
