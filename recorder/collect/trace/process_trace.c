/* SPDX-License-Identifier: MIT */
/* The records of a trace. */
#include "collect/trace/process_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/trace/live_sizes.h"
#include "collect/trace/trace_modules.h"

enum { SIZE = 16 * 1024 };

struct gathered {
    struct ttd_output output;
    size_t used;
    char bytes[SIZE];
};

int gathered_flush(struct gathered *gathered)
{
    size_t size = gathered->used;
    gathered->used = 0;
    return size != 0 ? gathered->output.write(gathered->output.context, gathered->bytes, size) : 0;
}

static int process_trace_write_gathered(void *context, const void *data, size_t size)
{
    struct gathered *gathered = context;
    if (size > SIZE - gathered->used) {
        int reason = gathered_flush(gathered);
        if (reason != 0)
            return reason;
    }
    if (size > SIZE)
        return gathered->output.write(gathered->output.context, data, size);
    memcpy(gathered->bytes + gathered->used, data, size);
    gathered->used += size;
    return 0;
}

static int process_trace_close_gathered(void *context)
{
    struct gathered *gathered = context;
    int reason = gathered_flush(gathered);
    int closing = gathered->output.close(gathered->output.context);
    free(gathered);
    return reason != 0 ? reason : closing;
}

struct gathered *gathered_put_before(struct ttd_output *output)
{
    struct gathered *gathered = malloc(sizeof *gathered);
    if (!gathered)
        return NULL;
    gathered->output = *output;
    gathered->used = 0;
    *output =
        (struct ttd_output){gathered, process_trace_write_gathered, process_trace_close_gathered};
    return gathered;
}

void trace_fail(struct trace *trace, const struct ttd_error *error)
{
    trace->error = *error;
    ttd_writer_close(trace->writer, NULL, NULL);
    trace->writer = NULL;
}

bool trace_check(struct trace *trace, enum ttd_status status)
{
    if (status == TTD_OK)
        return true;
    if (status == TTD_ERROR_ARGUMENT) {
        /* Invalid records are reported once: the program has overwritten them, and calls may be
         * missing. */
        if (!trace->is_damaged) {
            trace->is_damaged = true;
            trace_loss(trace, TTD_LOSS_DAMAGE, TTD_NONE, TTD_UNKNOWN, trace->last,
                       ttd_position_max());
        }
        return false;
    }
    struct ttd_error error = ttd_writer_error(trace->writer);
    error.status = status;
    trace_fail(trace, &error);
    return false;
}

void trace_out_of_memory(struct trace *trace)
{
    if (trace->writer)
        trace_fail(trace, &(struct ttd_error){.status = TTD_ERROR_NO_MEMORY,
                                              .offset = TTD_NOWHERE,
                                              .chunk = TTD_NOWHERE,
                                              .what = "no memory for stacks or modules"});
}

void trace_metadata(struct trace *trace, const char *key, const char *value)
{
    struct ttd_metadata metadata = {{key, strlen(key)}, {value, strlen(value)}};
    if (trace->writer)
        trace_check(trace, ttd_writer_metadata(trace->writer, &metadata));
}

static ttd_id trace_string(struct trace *trace, const char *text, size_t size)
{
    ttd_id id = TTD_NONE;
    if (trace->writer && text && size > 0)
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
    if (trace->writer)
        trace_check(trace, ttd_writer_thread(trace->writer, &thread, &id));
    return id;
}

void trace_thread_end(struct trace *trace, struct ttd_position position, ttd_id id,
                      const char *name)
{
    struct ttd_thread thread = {
        .action = TTD_THREAD_END,
        .id = id,
        .position = position,
        .name = trace_string(trace, name, name ? strlen(name) : 0),
    };
    if (trace->writer)
        trace_check(trace, ttd_writer_thread(trace->writer, &thread, NULL));
}

ttd_id trace_heap(struct trace *trace, const struct ttd_heap *heap, ttd_id parent)
{
    struct ttd_heap_parent within = {.parent = parent};
    if (!trace->writer || !trace_check(trace, ttd_writer_heap(trace->writer, heap, &within.heap)))
        return TTD_NONE;
    if (parent != TTD_NONE)
        trace_check(trace, ttd_writer_heap_parent(trace->writer, &within));
    return within.heap;
}

void trace_new_heap(struct trace *trace, struct ttd_position position, ttd_id thread)
{
    if (trace->heap != TTD_NONE && !trace_is_stopped(trace)) {
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
        heap_pages_clear(&trace->pages);
        trace->superseded =
            trace->acquisitions > trace->releases ? trace->acquisitions - trace->releases : 0;
    }
    struct ttd_heap heap = {.name = trace_string(trace, "malloc", 6)};
    trace->heap = trace_heap(trace, &heap, TTD_NONE);
}

void trace_module_load(struct trace *trace, struct ttd_position position, struct module *module)
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
    bool is_written =
        trace->writer && trace_check(trace, ttd_writer_module(trace->writer, &load, &id));
    bool is_added = is_written && modules_add(&trace->modules, module);
    if (!is_added)
        module_files_release(module);
    if (is_written && !is_added)
        trace_out_of_memory(trace);
}

static void process_trace_unload(struct trace *trace, struct ttd_position position, size_t index)
{
    const struct module *module = &trace->modules.items[index];
    struct ttd_module record = {
        .action = TTD_MODULE_UNLOAD, .id = (ttd_id)(index + 1), .position = position};
    modules_unload(&trace->modules, index);
    stacks_forget(&trace->stacks, module->begin, module->end);
    if (trace->writer)
        trace_check(trace, ttd_writer_module(trace->writer, &record, NULL));
}

void trace_module_unload(struct trace *trace, struct ttd_position position, uint64_t begin)
{
    size_t index = modules_at(&trace->modules, begin);
    if (index != SIZE_MAX)
        process_trace_unload(trace, position, index);
}

void trace_unload_all(struct trace *trace, struct ttd_position position)
{
    for (size_t i = 0; i < trace->modules.count; i++)
        if (trace->modules.items[i].is_loaded)
            process_trace_unload(trace, position, i);
    modules_forget(&trace->modules);
    stacks_forget(&trace->stacks, 0, UINT64_MAX);
}

/* Whether a return address is in a hook. */
static bool trace_is_of_hook(const struct trace *trace, uint64_t pc)
{
    return pc > trace->hooks_begin && pc <= trace->hooks_end;
}

static ttd_id trace_write_stack(struct trace *trace, ttd_id parent, uint64_t pc)
{
    ttd_id id = TTD_NONE;
    const struct frame *frame = modules_frame(&trace->modules, pc);
    if (!frame)
        trace_out_of_memory(trace);
    else
        trace_check(trace,
                    ttd_writer_stack(trace->writer, parent, frame->module, frame->offset, &id));
    return id;
}

ttd_id trace_new_stack(struct trace *trace, uint32_t hash, ttd_id parent, uint64_t pc)
{
    if (!trace->writer)
        return TTD_NONE;
    struct stack_entry *entry = stacks_find(&trace->stacks, hash, parent, pc);
    if (!entry) {
        trace_out_of_memory(trace);
        return TTD_NONE;
    }
    bool is_left_out = parent != TTD_NONE && trace_is_of_hook(trace, pc);
    entry->id = is_left_out ? parent : trace_write_stack(trace, parent, pc);
    return entry->id;
}

void trace_name_address(struct trace *trace, uint64_t address)
{
    for (size_t i = 0; i < trace->modules.count; i++) {
        const struct module *module = &trace->modules.items[i];
        if (module->is_loaded && address >= module->begin && address < module->end)
            variables_add(&trace->variables, (ttd_id)(i + 1), address - module->bias);
    }
}

void trace_name_stray(struct trace *trace, uint64_t address)
{
    enum { STRAYS_MAX = 256 };
    if (trace->strays == STRAYS_MAX)
        return;
    trace->strays++;
    trace_name_address(trace, address);
}

/* Counts calls that were written. */
static void process_trace_count_calls(struct trace *trace, const struct ttd_calls *calls,
                                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct ttd_call *call = &calls->calls[i];
        if (call->action == TTD_ACTION_FREE) {
            trace->releases++;
            /* Such are the variables of the program. More precision would cost time. */
            if (!heap_pages_enclose(&trace->pages, call->address))
                trace_name_stray(trace, call->address);
            continue;
        }
        trace->acquisitions++;
        heap_pages_add(&trace->pages, call->address, call->size);
    }
    if (count == 0)
        return;
    bool frees = calls->calls[count - 1].action == TTD_ACTION_FREE;
    trace->last = calls->start;
    trace->last.steps += 2 * (count - 1) + !frees;
    trace->clock = calls->wall_time;
    trace->events += count;
}

void trace_count_sizes(struct trace *trace, struct live_sizes *sizes)
{
    trace->sizes = sizes;
    trace->is_followed |= sizes != NULL;
}

void trace_follow(struct trace *trace, const struct ttd_event *event, struct ttd_position position)
{
    if (trace->sizes && event->heap == trace->heap)
        live_sizes_event(trace->sizes, event);
    if (trace->kept)
        trace_keep(trace, event, position);
    else
        trace_write_event(trace, event, position);
}

void trace_calls(struct trace *trace, const struct ttd_calls *calls)
{
    if (trace->sizes && calls->heap == trace->heap)
        live_sizes_calls(trace->sizes, calls);
    if (trace->kept) {
        trace_keep_calls(trace, calls);
        return;
    }
    struct ttd_calls unwritten = *calls;
    while (unwritten.count != 0) {
        size_t written = 0;
        enum ttd_status status = trace->writer
                                     ? ttd_writer_calls(trace->writer, &unwritten, &written)
                                     : TTD_ERROR_MISUSE;
        process_trace_count_calls(trace, &unwritten, written);
        if (status != TTD_OK)
            trace_unwritten(trace, status);
        written += status != TTD_OK;
        unwritten.calls += written;
        unwritten.count -= written;
        unwritten.start.steps += 2 * written;
    }
}

void trace_late(struct trace *trace, const struct ttd_event *event)
{
    trace_loss(trace, TTD_LOSS_LATE, event->thread, 1, ttd_event_position(event), trace->last);
}

void trace_unwritten(struct trace *trace, enum ttd_status status)
{
    if (trace->writer)
        trace_check(trace, status);
    trace->lost++; /* the file has ended and cannot state the loss: only the summary can */
}

void trace_loss(struct trace *trace, enum ttd_loss_reason reason, ttd_id thread, uint64_t count,
                struct ttd_position last_good, struct ttd_position first_good)
{
    struct ttd_loss loss = {.reason = reason,
                            .thread = thread,
                            .count = count,
                            .last_good = last_good,
                            .first_good = first_good};
    if (trace->writer)
        trace_check(trace, ttd_writer_loss(trace->writer, &loss));
    if (trace->sizes)
        live_sizes_doubt(trace->sizes, LIVE_UNKNOWN);
    if (count != TTD_UNKNOWN)
        trace->lost += count;
}

void trace_stop(struct trace *trace)
{
    trace_metadata(trace, "unrecorded", "calls after the trace had the size of --max-size");
    trace_flush(trace);
    if (trace->sizes)
        live_sizes_doubt(trace->sizes, LIVE_UNKNOWN);
    trace->at_limit = trace->writer;
    trace->writer = NULL;
    trace->lost_before_limit = trace->lost;
}

bool trace_state_stop(struct trace *trace)
{
    if (!trace_is_stopped(trace))
        return false;
    uint64_t count = trace->lost - trace->lost_before_limit;
    trace->writer = trace->at_limit;
    trace->at_limit = NULL;
    trace->lost = trace->lost_before_limit;
    if (count != 0)
        trace_loss(trace, TTD_LOSS_LIMIT, TTD_NONE, count, trace->last, ttd_position_invalid());
    return count != 0;
}

bool trace_user_event(struct trace *trace, const struct ttd_user_event *event)
{
    return trace->writer && trace_check(trace, ttd_writer_user_event(trace->writer, event));
}

static int trace_compare_addresses(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

void trace_runtime_blocks(struct trace *trace, uint64_t *addresses, size_t count, bool is_all)
{
    struct ttd_block *blocks = calloc(count + 1, sizeof *blocks);
    if (!blocks || !trace->writer) {
        free(blocks);
        return;
    }
    qsort(addresses, count, sizeof *addresses, trace_compare_addresses);
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

void trace_variable(struct trace *trace, struct ttd_variable *variable, const char *name,
                    size_t name_size)
{
    variable->name = trace_string(trace, name, name_size);
    if (trace->writer && variable->name != TTD_NONE)
        trace_check(trace, ttd_writer_variable(trace->writer, variable));
}

ttd_id trace_text(struct trace *trace, const char *text)
{
    return text ? trace_string(trace, text, strlen(text)) : TTD_NONE;
}

void trace_flush(struct trace *trace)
{
    if (!trace->writer || !trace_check(trace, ttd_writer_flush(trace->writer)))
        return;
    int reason = gathered_flush(trace->gathered);
    if (reason != 0)
        trace_fail(trace,
                   &(struct ttd_error){TTD_ERROR_IO, reason, TTD_NOWHERE, TTD_NOWHERE, "write"});
}

/* The records of snapshots in a trace. */

bool trace_regions(struct trace *trace, const struct ttd_regions *regions)
{
    return trace->writer && trace_check(trace, ttd_writer_regions(trace->writer, regions));
}

bool trace_references(struct trace *trace, struct ttd_reference_pack *pack)
{
    return trace->writer && trace_check(trace, ttd_writer_reference_pack(trace->writer, pack));
}

bool trace_classes(struct trace *trace, const struct ttd_classes *classes)
{
    return trace->writer && trace_check(trace, ttd_writer_classes(trace->writer, classes));
}

bool trace_block_headers(struct trace *trace, const struct ttd_block_headers *headers)
{
    return trace->writer && trace_check(trace, ttd_writer_block_headers(trace->writer, headers));
}

ttd_id trace_whole_stack(struct trace *trace, const uint64_t *pcs, size_t count)
{
    ttd_id stack = TTD_NONE;
    uint32_t hash = 0;
    for (size_t i = count; i-- > 0;) {
        uint64_t pc = pcs[i]; /* the program may change it meanwhile */
        hash = stacks_hash(&trace->stacks, hash, pc);
        stack = trace_stack(trace, hash, stack, pc);
    }
    return stack;
}

/* Returns the same with the frames of hooks, each with an address in `frames`. */
static ttd_id trace_every_frame(struct trace *trace, const struct stack_frames *frames)
{
    ttd_id stack = TTD_NONE;
    uint32_t hash = 0;
    for (size_t i = frames->count; i-- > 0;) {
        uint64_t pc = frames->pcs[i];
        bool is_of_hook = trace->writer && trace_is_of_hook(trace, pc);
        hash = stacks_hash(&trace->stacks, hash, pc);
        stack =
            is_of_hook ? trace_write_stack(trace, stack, pc) : trace_stack(trace, hash, stack, pc);
    }
    return stack;
}

bool trace_frames(struct trace *trace, uint32_t snapshot, ttd_id thread,
                  const struct stack_frames *found)
{
    struct ttd_frames frames = {.snapshot = snapshot,
                                .thread = thread,
                                .stack = trace_every_frame(trace, found),
                                .addresses = found->cfas};
    while (frames.count < found->count && found->cfas[frames.count] != 0)
        frames.count++;
    return frames.stack == TTD_NONE ||
           (trace->writer && trace_check(trace, ttd_writer_frames(trace->writer, &frames)));
}

bool trace_snapshot(struct trace *trace, const struct ttd_snapshot *snapshot)
{
    return trace->writer && trace_check(trace, ttd_writer_snapshot(trace->writer, snapshot));
}

bool trace_fatal_signal(struct trace *trace, const struct ttd_fatal_signal *fatal)
{
    return trace->writer && trace_check(trace, ttd_writer_fatal_signal(trace->writer, fatal));
}
