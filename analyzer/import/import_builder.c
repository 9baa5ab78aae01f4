/* SPDX-License-Identifier: MIT */
#include "import/import_builder.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "common/search.h"

void import_builder_open(struct import_builder *builder, const struct ttd_output *output,
                         struct import_text *text)
{
    *builder = (struct import_builder){.output = output, .text = text};
    builder->trace.trace_id = hash_key_new().add | 1;
    builder->trace.parent_position = ttd_position_invalid();
    builder->trace.time_unit = IMPORT_NO_TIMES;
    builder->trace.pointer_size = 8;
    map_init(&builder->threads);
    map_init(&builder->heaps);
}

static void import_free_modules(struct import_module *modules, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(modules[i].path);
    free(modules);
}

enum ttd_status import_builder_close(struct import_builder *builder, enum ttd_status status)
{
    struct ttd_end end = {.reason = TTD_END_REASON_NOT_RECORDED, .wall_time = builder->wall_time};
    if (!builder->writer) {
        if (builder->output->close)
            builder->output->close(builder->output->context);
    } else if (status == TTD_OK) {
        status = ttd_writer_close(builder->writer, &end, builder->text->error);
    } else {
        if (!builder->text->result->reason[0] && builder->text->error->status != status)
            *builder->text->error = ttd_writer_error(builder->writer);
        ttd_writer_close(builder->writer, NULL, NULL);
    }
    map_free(&builder->threads);
    map_free(&builder->heaps);
    import_free_modules(builder->modules, builder->module_count);
    import_free_modules(builder->files, builder->file_count);
    return status;
}

enum ttd_status import_fact(struct import_builder *builder, const char *key,
                            struct ttd_string value)
{
    struct ttd_metadata fact = {{key, strlen(key)}, value};
    return ttd_writer_metadata(builder->writer, &fact);
}

enum ttd_status import_loss(struct import_builder *builder, struct ttd_position last_good,
                            struct ttd_position first_good, uint64_t count)
{
    struct ttd_loss loss = {TTD_LOSS_NOT_RECORDING, TTD_NONE, count, last_good, first_good};
    return ttd_writer_loss(builder->writer, &loss);
}

/* No source says that it has all calls of the process: the loss never ends. */
enum ttd_status import_source(struct import_builder *builder, const char *source)
{
    enum ttd_status status = ttd_writer_open(builder->output, &builder->trace, NULL, NULL,
                                             &builder->writer, builder->text->error);
    if (status != TTD_OK) {
        /* The writer has closed the output. */
        static const struct ttd_output closed = {NULL, NULL, NULL};
        builder->output = &closed;
        return status;
    }
    status = import_fact(builder, "imported", (struct ttd_string){source, strlen(source)});
    if (status == TTD_OK)
        status = import_loss(builder, ttd_position_min(), ttd_position_invalid(), TTD_UNKNOWN);
    return status;
}

enum ttd_status import_thread(struct import_builder *builder, uint64_t os_id, ttd_id *id)
{
    uint32_t known = map_get(&builder->threads, os_id, 1);
    if (known != MAP_NONE) {
        *id = known;
        return TTD_OK;
    }
    struct ttd_thread thread = {.action = TTD_THREAD_BEGIN, .os_id = os_id};
    enum ttd_status status = ttd_writer_thread(builder->writer, &thread, id);
    return status == TTD_OK ? map_set(&builder->threads, os_id, 1, *id) : status;
}

enum ttd_status import_heap(struct import_builder *builder, uint64_t handle, ttd_id *id)
{
    uint32_t known = handle ? map_get(&builder->heaps, handle, 1) : TTD_NONE;
    if (known != MAP_NONE) {
        *id = known;
        return TTD_OK;
    }
    struct ttd_heap heap = {.handle = handle};
    enum ttd_status status = ttd_writer_heap(builder->writer, &heap, id);
    return status == TTD_OK ? map_set(&builder->heaps, handle, 1, *id) : status;
}

/* Modules. */

void import_modules_begin(struct import_builder *builder)
{
    for (size_t i = 0; i < builder->module_count; i++)
        builder->modules[i].is_absent = true;
}

static struct ttd_position import_now(const struct import_builder *builder)
{
    return (struct ttd_position){builder->sequence, 0};
}

static enum ttd_status import_module_unload(struct import_builder *builder, size_t index)
{
    struct import_module *module = &builder->modules[index];
    struct ttd_module record = {.action = TTD_MODULE_UNLOAD, .id = module->id};
    record.position = import_now(builder);
    enum ttd_status status = ttd_writer_module(builder->writer, &record, NULL);
    free(module->path);
    memmove(module, module + 1, (--builder->module_count - index) * sizeof *module);
    return status;
}

enum ttd_status import_modules_end(struct import_builder *builder)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = builder->module_count; i-- > 0 && status == TTD_OK;) {
        if (builder->modules[i].is_absent)
            status = import_module_unload(builder, i);
    }
    return status;
}

/* Defines a module, and adds it to a list that has room. */
static enum ttd_status import_module_define(struct import_builder *builder,
                                            struct import_module *modules, size_t *count,
                                            size_t index, const struct import_module *module)
{
    struct ttd_module record = {.action = TTD_MODULE_LOAD,
                                .position = import_now(builder),
                                .bias = module->bias,
                                .begin = module->begin,
                                .end = module->end};
    enum ttd_status status =
        ttd_writer_string(builder->writer, module->path, module->path_size, &record.path);
    struct import_module *added = &modules[index];
    char *path = malloc(module->path_size + 1);
    if (status == TTD_OK && !path)
        status = TTD_ERROR_NO_MEMORY;
    ttd_id id = TTD_NONE;
    if (status == TTD_OK)
        status = ttd_writer_module(builder->writer, &record, &id);
    if (status != TTD_OK) {
        free(path);
        return status;
    }
    memcpy(path, module->path, module->path_size);
    memmove(added + 1, added, ((*count)++ - index) * sizeof *added);
    *added = *module;
    added->path = path;
    added->id = id;
    return TTD_OK;
}

/* Returns the index of the first module that ends behind an address. */
static size_t import_module_index(const struct import_builder *builder, uint64_t address)
{
    size_t low = 0;
    size_t high = builder->module_count;
    SEARCH_SORTED(low, high, middle, builder->modules[middle].end <= address);
    return low;
}

enum ttd_status import_module_load(struct import_builder *builder, struct ttd_string path,
                                   uint64_t bias, uint64_t begin, uint64_t end)
{
    size_t index = import_module_index(builder, begin);
    struct import_module module = {.bias = bias,
                                   .begin = begin,
                                   .end = end,
                                   .path = (char *)(uintptr_t)path.data,
                                   .path_size = path.size};
    while (index < builder->module_count && builder->modules[index].begin < end) {
        struct import_module *other = &builder->modules[index];
        if (other->begin == begin && other->end == end && other->bias == bias &&
            other->path_size == path.size && memcmp(other->path, path.data, path.size) == 0)
            other->is_absent = false;
        if (!other->is_absent)
            return TTD_OK;
        enum ttd_status status = import_module_unload(builder, index);
        if (status != TTD_OK)
            return status;
    }
    enum ttd_status status = grow_array((void **)&builder->modules, &builder->module_capacity,
                                        builder->module_count + 1, sizeof *builder->modules);
    return status == TTD_OK ? import_module_define(builder, builder->modules,
                                                   &builder->module_count, index, &module)
                            : status;
}

enum ttd_status import_file(struct import_builder *builder, struct ttd_string path, ttd_id *id)
{
    for (size_t i = builder->file_count; i-- > 0;) {
        const struct import_module *file = &builder->files[i];
        if (file->path_size == path.size && memcmp(file->path, path.data, path.size) == 0) {
            *id = file->id;
            return TTD_OK;
        }
    }
    struct import_module module = {.path = (char *)(uintptr_t)path.data, .path_size = path.size};
    enum ttd_status status = grow_array((void **)&builder->files, &builder->file_capacity,
                                        builder->file_count + 1, sizeof *builder->files);
    if (status == TTD_OK)
        status = import_module_define(builder, builder->files, &builder->file_count,
                                      builder->file_count, &module);
    if (status == TTD_OK)
        *id = builder->files[builder->file_count - 1].id;
    return status;
}

enum ttd_status import_frame(struct import_builder *builder, ttd_id parent, uint64_t address,
                             ttd_id *id)
{
    size_t index = import_module_index(builder, address - 1);
    if (index < builder->module_count && builder->modules[index].begin < address)
        return ttd_writer_stack(builder->writer, parent, builder->modules[index].id,
                                address - builder->modules[index].bias, id);
    return ttd_writer_stack(builder->writer, parent, TTD_NONE,
                            TTD_FRAMES_LEFT_OUT_COUNT(address) ? 0 : address, id);
}

enum ttd_status import_symbol(struct import_builder *builder, ttd_id module, uint64_t offset,
                              struct ttd_string function)
{
    struct ttd_symbol_frame frame = {.function = TTD_NONE};
    enum ttd_status status =
        ttd_writer_string(builder->writer, function.data, function.size, &frame.function);
    struct ttd_symbol symbol = {module, offset, &frame, 1};
    return status == TTD_OK ? ttd_writer_symbol(builder->writer, &symbol) : status;
}

/* Calls. */

void import_place(struct import_builder *builder, struct ttd_event *event)
{
    event->time_start = (struct ttd_position){++builder->sequence, 0};
    event->time_end = (struct ttd_position){builder->sequence, 1};
}

enum ttd_status import_event(struct import_builder *builder, const struct ttd_event *event)
{
    enum ttd_status status = ttd_writer_event(builder->writer, event);
    if (status == TTD_OK) {
        builder->text->result->events++;
        builder->wall_time =
            event->wall_time > builder->wall_time ? event->wall_time : builder->wall_time;
    }
    return status;
}
