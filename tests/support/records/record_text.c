/* SPDX-License-Identifier: MIT */
#include "support/records/record_text.h"

#include <inttypes.h>

static void bytes(struct text *to, const void *data, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *byte = data;
    if (size == 0)
        text_append(to, "-");
    while (size > 0) {
        char line[2 * 256 + 1];
        size_t n = size < 256 ? size : 256;
        for (size_t i = 0; i < n; i++) {
            line[2 * i] = digits[byte[i] >> 4];
            line[2 * i + 1] = digits[byte[i] & 15];
        }
        line[2 * n] = '\0';
        text_append(to, "%s", line);
        byte += n;
        size -= n;
    }
}

static void position(struct text *to, const char *name, struct ttd_position of)
{
    text_append(to, " %s=%" PRIx64 ":%" PRIx64, name, of.sequence, of.steps);
}

static void trace(struct text *to, const struct ttd_trace *of)
{
    text_append(to, "trace id=%" PRIx64 " group=", of->trace_id);
    bytes(to, of->group.bytes, sizeof of->group.bytes);
    text_append(to, " parent=%" PRIx64, of->parent_trace_id);
    position(to, "at", of->parent_position);
    text_append(to, " start=%" PRId64 " unit=%" PRIx64 " process=%" PRIx64 " of=%" PRIx64,
                of->start_time, of->time_unit, of->process_id, of->parent_process_id);
    text_append(to, " flags=%x architecture=%x pointer=%x", of->flags, of->architecture,
                of->pointer_size);
    text_append(to, " source=%" PRIx64 " size=%" PRIx64 " hash=%" PRIx64 "\n", of->source_trace_id,
                of->source_size, of->source_hash);
}

static void string(struct text *to, const struct ttd_string_definition *of)
{
    text_append(to, "string id=%x text=", of->id);
    bytes(to, of->text.data, of->text.size);
    text_append(to, "\n");
}

static void stack(struct text *to, const struct ttd_stack *of)
{
    text_append(to, "stack id=%x parent=%x module=%x offset=%" PRIx64 "\n", of->id, of->parent,
                of->module, of->offset);
}

static void module(struct text *to, const struct ttd_module *of)
{
    text_append(to, "module action=%x id=%x", (unsigned)of->action, of->id);
    position(to, "at", of->position);
    if (of->action == TTD_MODULE_LOAD) {
        text_append(to,
                    " path=%x bias=%" PRIx64 " begin=%" PRIx64 " end=%" PRIx64 " build=", of->path,
                    of->bias, of->begin, of->end);
        bytes(to, of->build_id, of->build_id_size);
    }
    text_append(to, "\n");
}

static void thread(struct text *to, const struct ttd_thread *of)
{
    text_append(to, "thread action=%x id=%x", (unsigned)of->action, of->id);
    position(to, "at", of->position);
    if (of->action == TTD_THREAD_BEGIN)
        text_append(to, " os=%" PRIx64, of->os_id);
    text_append(to, " name=%x\n", of->name);
}

static void heap(struct text *to, const struct ttd_heap *of)
{
    text_append(to, "heap id=%x handle=%" PRIx64 " name=%x\n", of->id, of->handle, of->name);
}

static void heap_parent(struct text *to, const struct ttd_heap_parent *of)
{
    text_append(to, "parent heap=%x parent=%x\n", of->heap, of->parent);
}

static void symbol(struct text *to, const struct ttd_symbol *of)
{
    text_append(to, "symbol module=%x offset=%" PRIx64, of->module, of->offset);
    for (uint32_t i = 0; i < of->frame_count; i++)
        text_append(to, " %x,%x,%x", of->frames[i].function, of->frames[i].file,
                    of->frames[i].line);
    text_append(to, "\n");
}

static void event(struct text *to, const struct ttd_event *of)
{
    text_append(to, "event n=%" PRIx64 " action=%x api=%x thread=%x heap=%x stack=%x", of->number,
                of->action, of->api, of->thread, of->heap, of->stack);
    position(to, "start", of->time_start);
    position(to, "end", of->time_end);
    text_append(to, " wall=%" PRIx64 " address=%" PRIx64 " previous=%" PRIx64 " base=%" PRIx64,
                of->wall_time, of->address, of->previous_address, of->base_address);
    text_append(to, " size=%" PRIx64 " flags=%" PRIx64 " result=%" PRIx64, of->size, of->flags,
                of->result);
    text_append(to, " reserve=%" PRIx64 " commit=%" PRIx64 " read_only=%" PRIx64, of->reserve_size,
                of->commit_size, of->make_read_only);
    uint64_t parameters[TTD_PARAMETERS_MAX];
    size_t count = ttd_event_parameters(of, parameters);
    for (size_t i = 0; i < count; i++)
        text_append(to, "%s%" PRIx64, i ? "," : " parameters=", parameters[i]);
    text_append(to, "\n");
}

static void user_event(struct text *to, const struct ttd_user_event *of)
{
    text_append(to, "user client=");
    bytes(to, of->client, sizeof of->client);
    position(to, "at", of->position);
    text_append(to, " wall=%" PRIx64 " thread=%x flags=%x data=", of->wall_time, of->thread,
                of->flags);
    bytes(to, of->data, of->size);
    text_append(to, "\n");
}

static void loss(struct text *to, const struct ttd_loss *of)
{
    text_append(to, "loss reason=%x thread=%x count=%" PRIx64, (unsigned)of->reason, of->thread,
                of->count);
    position(to, "last", of->last_good);
    position(to, "first", of->first_good);
    text_append(to, "\n");
}

static void live_blocks(struct text *to, const struct ttd_live_blocks *of)
{
    text_append(to, "blocks list=%x id=%x last=%x", (unsigned)of->list, of->list_id, of->last);
    position(to, "at", of->position);
    text_append(to, "\n");
    for (size_t i = 0; i < of->count; i++) {
        const struct ttd_block *block = &of->blocks[i];
        text_append(to, "block address=%" PRIx64 " size=%" PRIx64 " event=%" PRIx64, block->address,
                    block->size, block->event);
        position(to, "at", block->allocated);
        text_append(to, " thread=%x heap=%x stack=%x api=%x\n", block->thread, block->heap,
                    block->stack, block->api);
    }
}

static void pages(struct text *to, const struct ttd_pages *of)
{
    for (uint32_t i = 0; i < of->count; i++) {
        text_append(to, "page id=%" PRIx64 " data=", of->first_page + i);
        bytes(to, of->data + (size_t)i * of->page_size, of->page_size);
        text_append(to, "\n");
    }
}

static void memory_map(struct text *to, const struct ttd_memory_map *of)
{
    text_append(to, "map snapshot=%x last=%x page_size=%x", of->snapshot, of->last, of->page_size);
    position(to, "at", of->position);
    text_append(to, "\n");
    for (size_t i = 0; i < of->count; i++) {
        const struct ttd_memory_run *run = &of->runs[i];
        text_append(to,
                    "run address=%" PRIx64 " pages=%" PRIx64 " protection=%x page=%" PRIx64 "\n",
                    run->address, run->page_count, run->protection, run->page);
    }
}

static void metadata(struct text *to, const struct ttd_metadata *of)
{
    text_append(to, "metadata key=");
    bytes(to, of->key.data, of->key.size);
    text_append(to, " value=");
    bytes(to, of->value.data, of->value.size);
    text_append(to, "\n");
}

static void state(struct text *to, const struct ttd_state *of)
{
    text_append(to, "state form=%x", (unsigned)of->form);
    position(to, "at", of->position);
    text_append(to, " blocks=%" PRIx64, of->blocks);
    if (of->form == TTD_STATE_PEAK) {
        text_append(to, " bytes=%" PRIx64 ",%" PRIx64 "\n", of->bytes_high, of->bytes);
        return;
    }
    text_append(to, " counts=%" PRIx64 ",%" PRIx64 ",%" PRIx64 ",%" PRIx64 ",%" PRIx64 ",%" PRIx64,
                of->next_event, of->events, of->failed, of->unfinished, of->unknown_releases,
                of->overlaps);
    for (size_t i = 0; i < TTD_STATE_ACTIONS; i++)
        text_append(to, ",%" PRIx64, of->actions[i]);
    if (of->form == TTD_STATE_SUMMARY) {
        text_append(to, " sums=%" PRIx64, of->sums);
        position(to, "end", of->end);
    }
    text_append(to, "\n");
}

static void sum(struct text *to, const struct ttd_sum *of)
{
    text_append(to, "sum table=%x key=%x api=%x", (unsigned)of->table, of->key, of->api);
    text_append(to, " blocks=%" PRIx64 " bytes=%" PRIx64, of->blocks, of->bytes);
    if (of->table == TTD_SUMS_BY_STACK) {
        position(to, "first", of->first);
        position(to, "last", of->last);
    }
    text_append(to, "\n");
}

static void end(struct text *to, const struct ttd_end *of)
{
    text_append(to, "end reason=%x code=%x wall=%" PRIx64 " events=%" PRIx64 " lost=%" PRIx64,
                (unsigned)of->reason, of->code, of->wall_time, of->events, of->lost_events);
    text_append(to, " chunks=%" PRIx64 " index=%" PRIx64 "\n", of->chunks, of->index_offset);
}

#define EACH(function, member)                                                                     \
    for (size_t i = 0; i < batch->count; i++)                                                      \
    function(to, &batch->u.member[i])

void text_of_batch(struct text *to, const struct ttd_batch *batch)
{
    if (batch->synthetic)
        return;
    switch (batch->kind) {
    case TTD_KIND_TRACE:
        trace(to, batch->u.trace);
        break;
    case TTD_KIND_STRINGS:
        EACH(string, strings);
        break;
    case TTD_KIND_STACKS:
        EACH(stack, stacks);
        break;
    case TTD_KIND_MODULES:
        EACH(module, modules);
        break;
    case TTD_KIND_SYMBOLS:
        EACH(symbol, symbols);
        break;
    case TTD_KIND_THREADS:
        EACH(thread, threads);
        break;
    case TTD_KIND_HEAPS:
        EACH(heap, heaps);
        break;
    case TTD_KIND_HEAP_PARENTS:
        EACH(heap_parent, heap_parents);
        break;
    case TTD_KIND_EVENTS:
        EACH(event, events);
        break;
    case TTD_KIND_USER_EVENTS:
        EACH(user_event, user_events);
        break;
    case TTD_KIND_LOSSES:
        EACH(loss, losses);
        break;
    case TTD_KIND_LIVE_BLOCKS:
        live_blocks(to, batch->u.live_blocks);
        break;
    case TTD_KIND_PAGES:
        pages(to, batch->u.pages);
        break;
    case TTD_KIND_MEMORY_MAP:
        memory_map(to, batch->u.memory_map);
        break;
    case TTD_KIND_METADATA:
        EACH(metadata, metadata);
        break;
    case TTD_KIND_STATES:
        EACH(state, states);
        break;
    case TTD_KIND_SUMS:
        EACH(sum, sums);
        break;
    case TTD_KIND_SNAPSHOTS:
    case TTD_KIND_REGIONS:
    case TTD_KIND_REFERENCES:
    case TTD_KIND_VARIABLES:
    case TTD_KIND_FRAMES:
    case TTD_KIND_CLASSES:
    case TTD_KIND_BLOCK_HEADERS:
    case TTD_KIND_FATAL_SIGNALS:
        text_of_snapshots(to, batch);
        break;
    case TTD_KIND_END:
        end(to, batch->u.end);
        break;
    case TTD_KIND_INDEX:
    case TTD_KIND_PACKED_REFERENCES: /* of no batch */
        break;
    }
}
