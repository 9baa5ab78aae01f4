/* SPDX-License-Identifier: MIT */
#include "shelf.h"

#include <errno.h>
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

/* Whether the file was written over since: what is not read yet would be that of another. A file
 * that took its place, or nothing there at all, leaves it as it was. */
static bool is_overwritten(const struct binary *binary)
{
    struct stat now;
    const struct stat *then = &binary->status;
    return stat(binary->path, &now) == 0 && now.st_dev == then->st_dev &&
           now.st_ino == then->st_ino &&
           (now.st_size != then->st_size || now.st_mtim.tv_sec != then->st_mtim.tv_sec ||
            now.st_mtim.tv_nsec != then->st_mtim.tv_nsec);
}

static void drop(struct shelf *shelf, size_t index)
{
    close_binary(shelf->items[index]);
    shelf->items[index] = shelf->items[--shelf->count];
}

void shelf_clear(struct shelf *shelf)
{
    while (shelf->count > 0)
        drop(shelf, shelf->count - 1);
    shelf->next = 0;
}

/* Opens the file; once more with nothing on the shelf if there were no descriptors, or no memory,
 * for one more. */
static enum image_result open_image(struct image *image, struct shelf *shelf,
                                    const struct symbolize_module *module, bool with_debug)
{
    errno = 0;
    enum image_result opened = image_open(image, module, with_debug);
    if (opened == IMAGE_OPEN || shelf == NULL || shelf->count == 0 ||
        (errno != EMFILE && errno != ENFILE && errno != ENOMEM))
        return opened;
    shelf_clear(shelf);
    return image_open(image, module, with_debug);
}

/* A module's file, if it is there and still what it was; else NULL. */
static struct binary *find(struct shelf *shelf, const struct symbolize_module *module)
{
    for (size_t i = 0; i < shelf->count; i++) {
        if (!is_of(shelf->items[i], module))
            continue;
        if (!is_overwritten(shelf->items[i]))
            return shelf->items[i];
        drop(shelf, i);
        break;
    }
    return NULL;
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
    struct binary *kept = is_kept ? find(shelf, module) : NULL;
    if (kept != NULL) {
        *binary = kept;
        return IMAGE_OPEN;
    }
    struct image image;
    struct stat status = {0};
    is_kept = is_kept && stat(module->path, &status) == 0;
    enum image_result opened = open_image(&image, shelf, module, with_debug);
    if (opened != IMAGE_OPEN)
        return opened;
    *binary = grow_new(1, sizeof **binary);
    (*binary)->image = image;
    symbols_load(&(*binary)->symbols, &(*binary)->image);
    image_drop_unneeded(&(*binary)->image);
    (*binary)->has_units = with_debug && units_load(&(*binary)->units, &(*binary)->image);
    (*binary)->status = status;
    if (is_kept)
        keep(shelf, *binary, module);
    return IMAGE_OPEN;
}

void shelf_return(struct binary *binary)
{
    if (binary->path == NULL)
        close_binary(binary);
}
