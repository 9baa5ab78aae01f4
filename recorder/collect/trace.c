/* SPDX-License-Identifier: MIT */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/output_path.h"

/* Reports records that cannot be: the program has written over them, and calls may be missing. */
static void tell_damage(struct trace *trace)
{
    if (trace->is_damaged)
        return;
    trace->is_damaged = true;
    trace_loss(trace, TTD_LOSS_DAMAGE, TTD_NONE, TTD_UNKNOWN, trace->last, ttd_position_max());
}

/* Whether something was written. What the writer does not take is left out; after a failure, which
 * is remembered, the file is not continued, and what is in it stays. */
static bool trace_check(struct trace *trace, enum ttd_status status)
{
    if (status == TTD_OK)
        return true;
    if (status == TTD_ERROR_ARGUMENT) {
        tell_damage(trace);
        return false;
    }
    trace->error = ttd_writer_error(trace->writer);
    trace->error.status = status;
    ttd_writer_close(trace->writer, NULL, NULL);
    trace->writer = NULL;
    return false;
}

static void out_of_memory(struct trace *trace)
{
    if (trace->writer == NULL)
        return;
    ttd_writer_close(trace->writer, NULL, NULL);
    trace->writer = NULL;
    trace->error = (struct ttd_error){.status = TTD_ERROR_NO_MEMORY,
                                      .offset = TTD_NOWHERE,
                                      .chunk = TTD_NOWHERE,
                                      .what = "no memory for stacks or modules"};
}

/* A file is replaced by another one, so that who has it open keeps what it was. */
static enum ttd_status open_output(struct trace *trace, struct ttd_output *output,
                                   struct ttd_error *error)
{
    struct output_path destination;
    int reason = output_path_resolve(trace->path, &destination);
    if (reason == 0 && destination.path != NULL && destination.exists &&
        unlink(destination.path) != 0) {
        reason = errno;
        output_path_free(&destination);
    }
    if (reason != 0) {
        *error = (struct ttd_error){TTD_ERROR_IO, reason, TTD_NOWHERE, TTD_NOWHERE,
                                    "cannot write to it"};
        return TTD_ERROR_IO;
    }
    if (destination.path == NULL)
        return ttd_output_descriptor(destination.descriptor, 1, NULL, output);
    enum ttd_status result = ttd_output_file(destination.path, NULL, output, error);
    trace->created = result == TTD_OK ? destination.path : NULL;
    if (result != TTD_OK)
        output_path_free(&destination);
    return result;
}

static enum ttd_status open_child_output(struct trace *trace, struct ttd_output *output,
                                         struct ttd_error *error)
{
    struct stat there;
    if (lstat(trace->path, &there) == 0 && (S_ISREG(there.st_mode) || S_ISLNK(there.st_mode)))
        unlink(trace->path);
    enum ttd_status result = ttd_output_file(trace->path, NULL, output, error);
    trace->created = result == TTD_OK ? strdup(trace->path) : NULL;
    return result;
}

typedef enum ttd_status output_function(struct trace *trace, struct ttd_output *output,
                                        struct ttd_error *error);

static struct trace *open_with(output_function *function, const char *path,
                               const struct ttd_trace *info, struct ttd_error *error)
{
    struct ttd_output output;
    struct trace *trace = calloc(1, sizeof *trace);
    *error = (struct ttd_error){TTD_ERROR_NO_MEMORY, 0, TTD_NOWHERE, TTD_NOWHERE, "no memory"};
    if (trace == NULL)
        return NULL;
    trace->info = *info;
    trace->path = strdup(path);
    if (trace->path == NULL || !stacks_init(&trace->stacks) || !modules_init(&trace->modules) ||
        function(trace, &output, error) != TTD_OK)
        goto failed;
    if (ttd_writer_open(&output, info, NULL, NULL, &trace->writer, error) == TTD_OK)
        return trace;
failed:
    trace_discard(trace);
    return NULL;
}

struct trace *trace_open(const char *path, const struct ttd_trace *info, struct ttd_error *error)
{
    return open_with(open_output, path, info, error);
}

struct trace *trace_open_child(const char *path, const struct ttd_trace *info,
                               struct ttd_error *error)
{
    return open_with(open_child_output, path, info, error);
}

void trace_rename(struct trace *trace, const char *path)
{
    char *renamed = strdup(path), *created = strdup(path);
    if (renamed == NULL || created == NULL || trace->created == NULL ||
        renameat2(AT_FDCWD, trace->created, AT_FDCWD, path, RENAME_NOREPLACE) != 0) {
        free(renamed);
        free(created);
        return;
    }
    free(trace->path);
    free(trace->created);
    trace->path = renamed;
    trace->created = created;
}

struct trace *trace_none(const char *path, const struct ttd_trace *info,
                         const struct ttd_error *error)
{
    struct trace *trace = calloc(1, sizeof *trace);
    if (trace == NULL)
        return NULL;
    trace->info = *info;
    trace->error = *error;
    trace->path = strdup(path);
    if (trace->path != NULL && stacks_init(&trace->stacks) && modules_init(&trace->modules))
        return trace;
    trace_free(trace);
    return NULL;
}

void trace_discard(struct trace *trace)
{
    ttd_writer_close(trace->writer, NULL, NULL);
    if (trace->created != NULL)
        unlink(trace->created);
    trace_free(trace);
}

void trace_free(struct trace *trace)
{
    stacks_free(&trace->stacks);
    modules_free(&trace->modules);
    ttd_names_close(trace->names);
    free(trace->created);
    free(trace->path);
    free(trace);
}

void trace_abandon(struct trace *trace)
{
    ttd_writer_close(trace->writer, NULL, NULL);
    trace_free(trace);
}

void trace_metadata(struct trace *trace, const char *key, const char *value)
{
    struct ttd_metadata metadata = {{key, strlen(key)}, {value, strlen(value)}};
    if (trace->writer != NULL)
        trace_check(trace, ttd_writer_metadata(trace->writer, &metadata));
}

static ttd_id trace_string(struct trace *trace, const char *text, size_t size)
{
    ttd_id id = TTD_NONE;
    if (trace->writer != NULL && text != NULL && size > 0)
        trace_check(trace, ttd_writer_string(trace->writer, text, size, &id));
    return id;
}

ttd_id trace_thread_begin(struct trace *trace, struct ttd_position position, uint64_t tid,
                          const char *name)
{
    ttd_id id = TTD_NONE;
    struct ttd_thread thread = {
        .action = TTD_THREAD_BEGIN,
        .position = position,
        .os_id = tid,
        .name = trace_string(trace, name, strlen(name)),
    };
    if (trace->writer != NULL)
        trace_check(trace, ttd_writer_thread(trace->writer, &thread, &id));
    return id;
}

void trace_thread_end(struct trace *trace, struct ttd_position position, ttd_id id)
{
    struct ttd_thread thread = {.action = TTD_THREAD_END, .id = id, .position = position};
    if (trace->writer != NULL)
        trace_check(trace, ttd_writer_thread(trace->writer, &thread, NULL));
}

void trace_new_heap(struct trace *trace, struct ttd_position position, ttd_id thread)
{
    if (trace->heap != TTD_NONE) {
        struct ttd_event event = {
            .action = TTD_ACTION_DESTROY,
            .api = TTD_API_OTHER,
            .heap = trace->heap,
            .thread = thread,
            .result = 1,
            .wall_time = trace->clock,
            .time_start = position,
            .time_end = {position.sequence, position.steps + 1},
        };
        trace_event(trace, &event, position);
    }
    struct ttd_heap heap = {.name = trace_string(trace, "malloc", 6)};
    if (trace->writer != NULL)
        trace_check(trace, ttd_writer_heap(trace->writer, &heap, &trace->heap));
}

void trace_module_load(struct trace *trace, struct ttd_position position,
                       const struct module *module)
{
    struct ttd_module load = {
        .action = TTD_MODULE_LOAD,
        .position = position,
        .path = trace_string(trace, module->path, strlen(module->path)),
        .bias = module->bias,
        .begin = module->begin,
        .end = module->end,
        .build_id_size = module->build_id_size,
    };
    memcpy(load.build_id, module->build_id, module->build_id_size);
    ttd_id id;
    if (trace->writer == NULL || !trace_check(trace, ttd_writer_module(trace->writer, &load, &id)))
        return;
    if (!modules_add(&trace->modules, module))
        out_of_memory(trace);
}

static void unload(struct trace *trace, struct ttd_position position, size_t index)
{
    const struct module *module = &trace->modules.items[index];
    struct ttd_module record = {
        .action = TTD_MODULE_UNLOAD, .id = (ttd_id)(index + 1), .position = position};
    modules_unload(&trace->modules, index);
    stacks_forget(&trace->stacks, module->begin, module->end);
    if (trace->writer != NULL)
        trace_check(trace, ttd_writer_module(trace->writer, &record, NULL));
}

void trace_module_unload(struct trace *trace, struct ttd_position position, uint64_t begin)
{
    size_t index = modules_at(&trace->modules, begin);
    if (index != SIZE_MAX)
        unload(trace, position, index);
}

void trace_unload_all(struct trace *trace, struct ttd_position position)
{
    for (size_t i = 0; i < trace->modules.count; i++)
        if (trace->modules.items[i].loaded)
            unload(trace, position, i);
    modules_forget(&trace->modules);
    stacks_forget(&trace->stacks, 0, UINT64_MAX);
}

ttd_id trace_new_stack(struct trace *trace, ttd_id parent, uint64_t pc)
{
    if (trace->writer == NULL)
        return TTD_NONE;
    struct stack_entry *entry = stacks_find(&trace->stacks, parent, pc);
    const struct frame *frame = entry != NULL ? modules_frame(&trace->modules, pc) : NULL;
    if (frame == NULL) {
        out_of_memory(trace);
        return TTD_NONE;
    }
    trace_check(trace,
                ttd_writer_stack(trace->writer, parent, frame->module, frame->offset, &entry->id));
    return entry->id;
}

void trace_late(struct trace *trace, const struct ttd_event *event)
{
    trace_loss(trace, TTD_LOSS_LATE, event->thread, 1, ttd_event_position(event), trace->last);
}

void trace_unwritten(struct trace *trace, enum ttd_status status)
{
    if (trace->writer != NULL)
        trace_check(trace, status);
    trace->lost++; /* there is no file any more that could say so */
}

void trace_loss(struct trace *trace, enum ttd_loss_reason reason, ttd_id thread, uint64_t count,
                struct ttd_position last_good, struct ttd_position first_good)
{
    struct ttd_loss loss = {.reason = reason,
                            .thread = thread,
                            .count = count,
                            .last_good = last_good,
                            .first_good = first_good};
    if (trace->writer != NULL)
        trace_check(trace, ttd_writer_loss(trace->writer, &loss));
    if (count != TTD_UNKNOWN)
        trace->lost += count;
}

static int compare_addresses(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

void trace_runtime_blocks(struct trace *trace, uint64_t *addresses, size_t count, bool is_all)
{
    struct ttd_block *blocks = calloc(count + 1, sizeof *blocks);
    if (blocks == NULL || trace->writer == NULL) {
        free(blocks);
        return;
    }
    qsort(addresses, count, sizeof *addresses, compare_addresses);
    size_t unique = 0;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || addresses[i] != addresses[i - 1])
            blocks[unique++] = (struct ttd_block){.address = addresses[i], .event = TTD_UNKNOWN};
    struct ttd_live_blocks list = {.list = TTD_BLOCKS_RUNTIME,
                                   .list_id = 1,
                                   .last = is_all,
                                   .position = trace->last,
                                   .blocks = blocks,
                                   .count = unique};
    trace_check(trace, ttd_writer_live_blocks(trace->writer, &list));
    free(blocks);
}

void trace_flush(struct trace *trace)
{
    if (trace->writer != NULL)
        trace_check(trace, ttd_writer_flush(trace->writer));
}
