/* SPDX-License-Identifier: MIT */
#include "trace_of.h"

#include <criterion/criterion.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

enum { MODULES_MAX = 64 };

const struct borrowed_code *trace_of_copy;

struct context {
    struct found *found;
    struct ttd_writer *writer;
    const struct heap_pages *pages;
    uint64_t own_memory;
    struct snapshot_module modules[MODULES_MAX];
    size_t module_count;
};

static int list_module(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct context *context = argument;
    struct ttd_module load = {.action = TTD_MODULE_LOAD, .begin = UINT64_MAX};
    struct snapshot_module *module = &context->modules[context->module_count];
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uint64_t begin = info->dlpi_addr + segment->p_vaddr, end = begin + segment->p_memsz;
        if (segment->p_type != PT_LOAD)
            continue;
        load.begin = begin < load.begin ? begin : load.begin;
        load.end = end > load.end ? end : load.end;
    }
    load.bias = info->dlpi_addr;
    load.begin = load.begin / 4096 * 4096;
    cr_assert(ttd_writer_module(context->writer, &load, &module->id) == TTD_OK);
    module->path = info->dlpi_name;
    module->bias = load.bias;
    module->begin = load.begin;
    module->end = load.end;
    context->module_count++;
    return context->module_count == MODULES_MAX;
}

static bool settle(void *argument, struct snapshot_subject *subject)
{
    struct context *context = argument;
    dl_iterate_phdr(list_module, context);
    *subject = (struct snapshot_subject){.modules = context->modules,
                                         .module_count = context->module_count,
                                         .pages = context->pages,
                                         .own_memory = context->own_memory};
    return true;
}

static ttd_id find_thread(void *argument, uint32_t tid)
{
    struct context *context = argument;
    struct found *found = context->found;
    for (size_t i = 0; i < found->thread_count; i++)
        if (found->tids[i] == tid)
            return (ttd_id)(i + 1);
    struct ttd_thread thread = {.action = TTD_THREAD_BEGIN, .position = {1, 0}, .os_id = tid};
    ttd_id id = TTD_NONE;
    cr_assert(found->thread_count < sizeof found->tids / sizeof *found->tids);
    cr_assert(ttd_writer_thread(context->writer, &thread, &id) == TTD_OK);
    found->tids[found->thread_count++] = tid;
    cr_assert(id == found->thread_count);
    return id;
}

static ttd_id write_text(void *argument, const char *text)
{
    ttd_id id = TTD_NONE;
    cr_assert(ttd_writer_string(((struct context *)argument)->writer, text, strlen(text), &id) ==
              TTD_OK);
    return id;
}

static bool write_regions(void *argument, const struct ttd_regions *regions)
{
    return ttd_writer_regions(((struct context *)argument)->writer, regions) == TTD_OK;
}

static bool write_references(void *argument, const struct ttd_reference *references, size_t count)
{
    struct context *context = argument;
    struct ttd_references list = {context->found->snapshot.number, references, count};
    return ttd_writer_references(context->writer, &list) == TTD_OK;
}

static bool write_classes(void *argument, const struct ttd_classes *classes)
{
    return ttd_writer_classes(((struct context *)argument)->writer, classes) == TTD_OK;
}

static bool write_headers(void *argument, const struct ttd_block_headers *headers)
{
    return ttd_writer_block_headers(((struct context *)argument)->writer, headers) == TTD_OK;
}

static bool write_frames(void *argument, uint32_t tid, const struct stack_frames *frames)
{
    struct context *context = argument;
    struct found *found = context->found;
    cr_assert(found->stack_count < sizeof found->stacks / sizeof *found->stacks);
    found->stacks[found->stack_count++] = (struct found_stack){tid, *frames};
    return true;
}

static void note_missing_frames(void *argument, size_t threads)
{
    ((struct context *)argument)->found->stacks_missing += threads;
}

static void note_variable(void *argument, const struct region *region, uint64_t offset)
{
    struct context *context = argument;
    const struct snapshot_module *loaded = &context->modules[region->module - 1];
    uint64_t address = region->begin + offset;
    cr_assert_lt(address, region->end);
    cr_assert(region->kind == TTD_REGION_TLS ||
              (address >= loaded->begin && address < loaded->end));
    context->found->variable_count++;
}

static void tick(void *argument)
{
    (void)argument;
}

static size_t room_for(size_t count)
{
    size_t room = 64;
    while (room < count)
        room *= 2;
    return room;
}

/* An array grows by doubling: a sanitizer copies it whenever it grows. */
static void add_all(void *to, size_t *count, const void *records, size_t more, size_t size)
{
    char *array = *(void **)to;
    size_t room = room_for(*count + more);
    if (!array || room > room_for(*count))
        array = realloc(array, room * size);
    cr_assert(array != NULL);
    memcpy(array + *count * size, records, more * size);
    *(void **)to = array;
    *count += more;
}

static void read_batch(struct found *found, const struct ttd_batch *batch)
{
    if (batch->kind == TTD_KIND_REGIONS)
        add_all(&found->regions, &found->region_count, batch->u.regions->regions,
                batch->u.regions->count, sizeof *found->regions);
    else if (batch->kind == TTD_KIND_REFERENCES)
        add_all(&found->references, &found->reference_count, batch->u.references->references,
                batch->u.references->count, sizeof *found->references);
}

static void read_back(struct found *found, const struct ttd_memory_output *memory)
{
    struct ttd_input input;
    struct ttd_reader *reader;
    struct ttd_batch batch;
    struct ttd_error error;
    struct ttd_reader_options options = ttd_reader_options_default();
    cr_assert(ttd_input_memory(memory->data, memory->size, NULL, &input) == TTD_OK);
    cr_assert(ttd_reader_open(&input, &options, NULL, &reader, &error) == TTD_OK);
    enum ttd_status status;
    while ((status = ttd_reader_next(reader, &batch, &error)) == TTD_OK)
        read_batch(found, &batch);
    cr_assert(status == TTD_END, "%s at %lu", error.what, (unsigned long)error.offset);
    ttd_reader_close(reader);
}

struct found trace_of(uint32_t pid, const struct snapshot_request *request,
                      const struct heap_pages *pages, uint64_t time_limit)
{
    struct ttd_memory_output memory;
    struct ttd_output output;
    struct ttd_error error;
    struct ttd_trace info = {
        .trace_id = 1, .time_unit = 1, .architecture = TTD_ARCH_X86_64, .pointer_size = 8};
    struct ttd_end end = {.reason = TTD_END_REASON_EXITED};
    struct found found = {.snapshot = {.number = 1,
                                       .position = {9, 0},
                                       .contents = TTD_SNAPSHOT_REFERENCES,
                                       .reason = TTD_SNAPSHOT_REQUESTED}};
    struct context context = {.found = &found, .pages = pages};
    context.own_memory = request ? request->own_memory : 0;
    cr_assert(ttd_output_memory(&memory, NULL, &output) == TTD_OK);
    cr_assert(ttd_writer_open(&output, &info, NULL, NULL, &context.writer, &error) == TTD_OK);
    struct interrupted_calls interrupted = {0};
    struct copy_history copies = {0};
    struct take_stalls stalls = {0};
    struct snapshot_order order = {.pid = pid,
                                   .interrupted = &interrupted,
                                   .copies = &copies,
                                   .stalls = &stalls,
                                   .borrowed = trace_of_copy,
                                   .copy_min = trace_of_copy ? 0 : UINT64_MAX,
                                   .child = pid,
                                   .request = request,
                                   .time_limit = time_limit,
                                   .calls = {.settle = settle,
                                             .thread = find_thread,
                                             .text = write_text,
                                             .regions = write_regions,
                                             .references = write_references,
                                             .classes = write_classes,
                                             .headers = write_headers,
                                             .frames = write_frames,
                                             .frames_missing = note_missing_frames,
                                             .variable = note_variable,
                                             .tick = tick,
                                             .follow = tick,
                                             .context = &context}};
    found.is_taken = snapshot_take(&order, &found.snapshot) == TAKE_DONE;
    interrupted_calls_free(&interrupted);
    if (found.is_taken)
        cr_assert(ttd_writer_snapshot(context.writer, &found.snapshot) == TTD_OK);
    cr_assert(ttd_writer_close(context.writer, &end, &error) == TTD_OK, "%s", error.what);
    read_back(&found, &memory);
    ttd_memory_output_free(&memory);
    return found;
}

void found_free(struct found *found)
{
    free(found->regions);
    free(found->references);
}

const struct ttd_reference *found_at(const struct found *found, uint64_t address,
                                     const struct ttd_region **region)
{
    for (size_t i = 0; i < found->reference_count; i++) {
        const struct ttd_reference *reference = &found->references[i];
        *region = &found->regions[reference->region - 1];
        if ((*region)->begin + reference->offset == address)
            return reference;
    }
    *region = NULL;
    return NULL;
}
