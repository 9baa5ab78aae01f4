/* SPDX-License-Identifier: MIT */
#include "symbolize/process/lookup_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/grow.h"

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

static void request_put(uint8_t **cursor, const void *data, size_t size)
{
    if (size > 0)
        memcpy(*cursor, data, size);
    *cursor += size;
}

static void request_put_number(uint8_t **cursor, uint64_t number)
{
    request_put(cursor, &number, sizeof number);
}

static void put_module(uint8_t **cursor, const struct symbolize_module *module)
{
    request_put_number(cursor, path_size(module));
    request_put_number(cursor, place_size(module));
    request_put_number(cursor, module->build_id_size);
    request_put_number(cursor, module->offset_count);
    request_put_number(cursor, module->is_data);
    request_put_number(cursor, module->file.device);
    request_put_number(cursor, module->file.inode);
    request_put_number(cursor, module->file.size);
    request_put_number(cursor, module->file.modified);
    request_put_number(cursor, module->file.changed);
    uint8_t *text = *cursor;
    request_put(&text, module->path, path_size(module));
    text++;
    request_put(&text, module->place, place_size(module));
    text++;
    request_put(&text, module->build_id, module->build_id_size);
    *cursor += text_size(module);
    request_put(cursor, module->offsets, module->offset_count * NUMBER);
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
    request_put_number(&cursor, *size - NUMBER);
    request_put_number(&cursor, count);
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

static uint64_t request_take_number(const uint8_t **cursor)
{
    uint64_t number;
    memcpy(&number, *cursor, sizeof number);
    *cursor += sizeof number;
    return number;
}

static void request_take_module(const uint8_t **cursor, struct symbolize_module *module)
{
    size_t length = request_take_number(cursor);
    size_t place_length = request_take_number(cursor);
    module->build_id_size = request_take_number(cursor);
    module->offset_count = request_take_number(cursor);
    module->is_data = request_take_number(cursor) != 0;
    module->file.device = request_take_number(cursor);
    module->file.inode = request_take_number(cursor);
    module->file.size = request_take_number(cursor);
    module->file.modified = request_take_number(cursor);
    module->file.changed = request_take_number(cursor);
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
    request->count = request_take_number(&cursor);
    request->modules = grow_new(request->count, sizeof *request->modules);
    for (size_t i = 0; i < request->count; i++)
        request_take_module(&cursor, &request->modules[i]);
    return true;
}

void lookup_request_free(struct lookup_request *request)
{
    free(request->data);
    free(request->modules);
}
