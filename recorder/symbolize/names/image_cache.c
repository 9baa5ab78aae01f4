/* SPDX-License-Identifier: MIT */
#include "symbolize/names/module_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/child_arrays.h"

static void image_cache_close_binary(struct binary *binary)
{
    units_free(&binary->units);
    symbols_free(&binary->symbols);
    symbols_free(&binary->variables);
    statics_free(&binary->statics);
    image_close(&binary->image);
    free(binary->path);
    free(binary->build_id);
    free(binary);
}

static bool image_cache_is_of(const struct binary *binary, const struct symbolize_module *module)
{
    return binary->build_id_size == module->build_id_size &&
           memcmp(binary->build_id, module->build_id, module->build_id_size) == 0 &&
           strcmp(binary->path, module->path) == 0;
}

/* Whether the file was overwritten since it was opened, so that pages not read yet would be those
 * of another version. A file that was replaced or removed does no harm: the old one stays open. */
static bool image_cache_is_overwritten(const struct binary *binary)
{
    struct stat now;
    const struct stat *then = &binary->status;
    return stat(binary->path, &now) == 0 && now.st_dev == then->st_dev &&
           now.st_ino == then->st_ino &&
           (now.st_size != then->st_size || now.st_mtim.tv_sec != then->st_mtim.tv_sec ||
            now.st_mtim.tv_nsec != then->st_mtim.tv_nsec);
}

static void image_cache_drop(struct image_cache *images, size_t index)
{
    image_cache_close_binary(images->binaries[index]);
    images->binaries[index] = images->binaries[--images->count];
}

void image_cache_clear(struct image_cache *images)
{
    while (images->count > 0)
        image_cache_drop(images, images->count - 1);
    images->next = 0;
}

/* Opens the file. If descriptors or memory run out, clears the cache and tries once more. */
static enum image_result open_image(struct image *image, struct image_cache *images,
                                    const struct symbolize_module *module, bool with_debug)
{
    errno = 0;
    enum image_result opened = image_open(image, module, with_debug);
    if (opened == IMAGE_OPEN || !images || images->count == 0 ||
        (errno != EMFILE && errno != ENFILE && errno != ENOMEM))
        return opened;
    image_cache_clear(images);
    return image_open(image, module, with_debug);
}

/* Returns a module's cached binary, or NULL. Drops it if its file was overwritten. */
static struct binary *image_cache_find(struct image_cache *images,
                                       const struct symbolize_module *module)
{
    for (size_t i = 0; i < images->count; i++) {
        if (!image_cache_is_of(images->binaries[i], module))
            continue;
        if (!image_cache_is_overwritten(images->binaries[i]))
            return images->binaries[i];
        image_cache_drop(images, i);
        break;
    }
    return NULL;
}

static void image_cache_keep(struct image_cache *images, struct binary *binary,
                             const struct symbolize_module *module)
{
    size_t path_size = strlen(module->path) + 1;
    binary->path = grow_new(path_size, 1);
    memcpy(binary->path, module->path, path_size);
    binary->build_id = grow_new(module->build_id_size, 1);
    memcpy(binary->build_id, module->build_id, module->build_id_size);
    binary->build_id_size = module->build_id_size;
    if (images->count < IMAGE_CACHE_MAX) {
        images->binaries[images->count++] = binary;
        return;
    }
    image_cache_close_binary(images->binaries[images->next]);
    images->binaries[images->next] = binary;
    images->next = (images->next + 1) % IMAGE_CACHE_MAX;
}

enum image_result image_cache_open(struct image_cache *images,
                                   const struct symbolize_module *module, bool with_debug,
                                   struct binary **binary)
{
    bool is_kept = images && with_debug && module->path && module->build_id_size > 0;
    struct binary *cached = is_kept ? image_cache_find(images, module) : NULL;
    if (cached) {
        *binary = cached;
        return IMAGE_OPEN;
    }
    struct image image;
    struct stat status = {0};
    is_kept = is_kept && stat(module->path, &status) == 0;
    enum image_result opened = open_image(&image, images, module, with_debug);
    if (opened != IMAGE_OPEN)
        return opened;
    *binary = grow_new(1, sizeof **binary);
    (*binary)->image = image;
    (*binary)->with_debug = with_debug;
    (*binary)->status = status;
    if (is_kept)
        image_cache_keep(images, *binary, module);
    return IMAGE_OPEN;
}

void binary_load_code(struct binary *binary)
{
    if (binary->has_code)
        return;
    binary->has_code = true;
    symbols_load(&binary->symbols, &binary->image);
    binary_load_units(binary);
}

void binary_load_data(struct binary *binary)
{
    if (!binary->has_data)
        symbols_load_data(&binary->variables, &binary->image);
    binary->has_data = true;
}

void binary_load_units(struct binary *binary)
{
    if (binary->has_looked_for_units)
        return;
    binary->has_looked_for_units = true;
    if (binary->with_debug)
        image_prepare_debug(&binary->image);
    binary->has_units = binary->with_debug && units_load(&binary->units, &binary->image);
}

void image_cache_release(struct binary *binary)
{
    if (!binary->path)
        image_cache_close_binary(binary);
}
