/* SPDX-License-Identifier: MIT */
#include "snapshot_calls.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "process/ahead.h"

/* Lists the modules that are loaded. Returns false if memory ran out. */
static bool list_modules(struct snapshot_taking *taking, struct snapshot_subject *subject)
{
    const struct modules *modules = &taking->trace->modules;
    taking->modules = calloc(modules->count + 1, sizeof *taking->modules);
    if (taking->modules == NULL)
        return false;
    for (size_t i = 0; i < modules->count; i++) {
        const struct module *module = &modules->items[i];
        if (module->is_loaded)
            taking->modules[subject->module_count++] = (struct snapshot_module){
                (ttd_id)(i + 1), module->path, module->bias, module->begin, module->end};
    }
    subject->modules = taking->modules;
    return true;
}

bool snapshot_settle(void *context, struct snapshot_subject *subject)
{
    struct snapshot_taking *taking = context;
    struct host *host = &taking->collector->host;
    struct stat channel;
    uint64_t sequence = atomic_fetch_add(&host->channel->sequence, 1) + 1;
    if (sequence > TTD_SEQUENCE_MAX || fstat(host->memfd, &channel) != 0)
        return false;
    taking->snapshot.position = (struct ttd_position){sequence, 0};
    collector_collect(taking->collector);
    ahead_add_blocks(taking->process, host);
    *subject = (struct snapshot_subject){.pages = &taking->trace->pages,
                                         .channel_inode = channel.st_ino,
                                         .own_memory = taking->own_memory};
    return taking->trace->writer != NULL && list_modules(taking, subject);
}

ttd_id snapshot_thread(void *context, uint32_t tid)
{
    const struct snapshot_taking *taking = context;
    return process_thread_id(taking->process, taking->snapshot.position, tid);
}

static ttd_id write_text(void *context, const char *text)
{
    return trace_text(((const struct snapshot_taking *)context)->trace, text);
}

static bool write_regions(void *context, const struct ttd_regions *regions)
{
    return trace_regions(((const struct snapshot_taking *)context)->trace, regions);
}

static bool write_references(void *context, const struct ttd_references *references)
{
    return trace_references(((const struct snapshot_taking *)context)->trace, references);
}

static bool write_classes(void *context, const struct ttd_classes *classes)
{
    return trace_classes(((const struct snapshot_taking *)context)->trace, classes);
}

static void note_variable(void *context, const struct region *region, uint64_t offset)
{
    struct trace *trace = ((const struct snapshot_taking *)context)->trace;
    uint64_t begin = region->kind == TTD_REGION_TLS
                         ? TTD_THREAD_LOCAL
                         : region->begin - trace->modules.items[region->module - 1].bias;
    variables_add(&trace->variables, region->module, begin + offset);
}

static bool write_frames(void *context, uint32_t tid, const struct stack_frames *frames)
{
    const struct snapshot_taking *taking = context;
    return trace_frames(taking->trace, taking->snapshot.number, snapshot_thread(context, tid),
                        frames);
}

static void note_missing_frames(void *context, size_t threads)
{
    ((const struct snapshot_taking *)context)->collector->stacks_missing += threads;
}

static void tick(void *context)
{
    host_tick(&((const struct snapshot_taking *)context)->collector->host);
}

static void follow(void *context)
{
    collector_collect(((const struct snapshot_taking *)context)->collector);
}

struct snapshot_calls snapshot_calls_of(struct snapshot_taking *taking)
{
    return (struct snapshot_calls){
        .settle = snapshot_settle,
        .thread = snapshot_thread,
        .text = write_text,
        .regions = write_regions,
        .references = write_references,
        .classes = write_classes,
        .frames = write_frames,
        .frames_missing = note_missing_frames,
        .variable = note_variable,
        .tick = tick,
        .follow = follow,
        .context = taking,
    };
}
