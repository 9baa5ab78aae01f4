/* SPDX-License-Identifier: MIT */
#include "shelf.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"

static void close_binary(struct binary *binary)
{
    units_free(&binary->units);
    symbols_free(&binary->symbols);
    image_close(&binary->image);
    free(binary->path);
    free(binary->build_id);
    free(binary);
}

static bool is_of(const struct binary *binary, const struct symbolize_module *module)
{
    return binary->build_id_size == module->build_id_size &&
           memcmp(binary->build_id, module->build_id, module->build_id_size) == 0 &&
           strcmp(binary->path, module->path) == 0;
}

static void keep(struct shelf *shelf, struct binary *binary, const struct symbolize_module *module)
{
    size_t path_size = strlen(module->path) + 1;
    binary->path = grow_new(path_size, 1);
    memcpy(binary->path, module->path, path_size);
    binary->build_id = grow_new(module->build_id_size, 1);
    memcpy(binary->build_id, module->build_id, module->build_id_size);
    binary->build_id_size = module->build_id_size;
    if (shelf->count < SHELF_MAX) {
        shelf->items[shelf->count++] = binary;
        return;
    }
    close_binary(shelf->items[shelf->next]);
    shelf->items[shelf->next] = binary;
    shelf->next = (shelf->next + 1) % SHELF_MAX;
}

enum image_result shelf_take(struct shelf *shelf, const struct symbolize_module *module,
                             bool with_debug, struct binary **binary)
{
    bool is_kept = shelf != NULL && with_debug && module->path != NULL && module->build_id_size > 0;
    for (size_t i = 0; is_kept && i < shelf->count; i++) {
        if (is_of(shelf->items[i], module)) {
            *binary = shelf->items[i];
            return IMAGE_OPEN;
        }
    }
    struct image image;
    enum image_result opened = image_open(&image, module, with_debug);
    if (opened != IMAGE_OPEN)
        return opened;
    *binary = grow_new(1, sizeof **binary);
    (*binary)->image = image;
    symbols_load(&(*binary)->symbols, &image);
    (*binary)->has_units = with_debug && units_load(&(*binary)->units, &image);
    if (is_kept)
        keep(shelf, *binary, module);
    return IMAGE_OPEN;
}

void shelf_return(struct binary *binary)
{
    if (binary->path == NULL)
        close_binary(binary);
}

void shelf_clear(struct shelf *shelf)
{
    while (shelf->count > 0)
        close_binary(shelf->items[--shelf->count]);
    shelf->next = 0;
}
