/* SPDX-License-Identifier: MIT */
/*
 * The format of heaptrack: the letter of a record in front of each line, numbers in hexadecimal.
 *
 *     v VERSION FILE_VERSION
 *     s SIZE TEXT                            the next string, from 1
 *     i ADDRESS MODULE [FUNCTION FILE LINE]...  the next address: its frames, innermost first
 *     t ADDRESS PARENT                       the next stack, from 1; parent 0 for none
 *     a SIZE STACK                           the next kind of blocks, from 0
 *     + KIND, - KIND                         an allocation, a release
 *     c MILLISECONDS                         time since the start
 *     X COMMAND
 *
 * Definitions come before their first use, so that the trace is written in one pass.
 */
#include "report/export/export_reports.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/table.h"
#include "report/sections/say.h"

/* heaptrack 1.4.0, the first one with this file version. */
#define HEAPTRACK_HEADER "v 10400 3\n"

/* Nanoseconds between two lines of time; heaptrack's own files have as many. */
#define HEAPTRACK_INTERVAL UINT64_C(10000000)

/* Longer names are cut, so that an escaped one fits into a buffer of text. */
#define HEAPTRACK_NAME_MAX 4096

/* No record, no kind of blocks, no heap. */
#define HEAPTRACK_NONE UINT32_MAX

/** A record of the table of live blocks: the kind of its block, 0 if none is written, else 1 more;
 * and its neighbours in the list of its heap's blocks, which end all at once if the heap is
 * destroyed. */
struct heaptrack_record {
    uint32_t kind;
    uint32_t next;
    uint32_t previous;
    uint32_t heap;
};

struct heaptrack_heap {
    uint32_t first;
    bool is_wanted;
};

struct heaptrack_writer {
    struct report *report;
    struct heaptrack_choice choice;
    struct heaptrack_record *records;
    size_t record_capacity;
    struct heaptrack_heap *heaps;
    size_t heap_count;
    size_t heap_capacity;
    /** Numbers of heaps; of strings by address and size; of addresses by module and offset; of
     * stacks, HEAPTRACK_UNWANTED for one that is not wanted; of kinds by size and stack. */
    struct hash_map by_heap;
    struct hash_map strings;
    struct hash_map addresses;
    struct hash_map stacks;
    struct hash_map kinds;
    uint32_t string_count;
    uint32_t address_count;
    uint32_t stack_count;
    uint32_t kind_count;
    /** The heap that was used last, by its identifier and number. */
    ttd_id last_heap;
    uint32_t last_number;
    uint64_t time;
    struct frame_list frames;
    ttd_id *path;
    size_t path_capacity;
    struct text_output *escaped;
};

#define HEAPTRACK_UNWANTED (MAP_NONE - 1)

struct heaptrack_writer *report_heaptrack_begin(struct report *report,
                                                const struct heaptrack_choice *choice)
{
    struct heaptrack_writer *writer = calloc(1, sizeof *writer);
    struct text_output *escaped = malloc(sizeof *escaped);
    if (!writer || !escaped) {
        free(writer);
        free(escaped);
        return NULL;
    }
    writer->report = report;
    writer->choice = *choice;
    writer->escaped = escaped;
    out_init(escaped, -1, false);
    map_init(&writer->by_heap);
    map_init(&writer->strings);
    map_init(&writer->addresses);
    map_init(&writer->stacks);
    map_init(&writer->kinds);
    out_text(report->output, HEAPTRACK_HEADER);
    return writer;
}

/* Appends a number in hexadecimal. */
static size_t heaptrack_file_digits(char *line, uint64_t value)
{
    size_t digits = value ? (size_t)(67 - __builtin_clzll(value)) / 4 : 1;
    for (size_t i = digits; i > 0; i--, value >>= 4)
        line[i - 1] = "0123456789abcdef"[value & 15];
    return digits;
}

/* Writes a record of up to three numbers. */
static void heaptrack_file_write(struct heaptrack_writer *writer, char letter,
                                 const uint64_t *numbers, size_t count)
{
    char line[64] = {letter};
    size_t size = 1;
    for (size_t i = 0; i < count; i++) {
        line[size++] = ' ';
        size += heaptrack_file_digits(line + size, numbers[i]);
    }
    out_write(writer->report->output, line, size);
    out_char(writer->report->output, '\n');
}

/* Definitions. Each function sets a number, and writes a definition that has none yet. */

static enum ttd_status heaptrack_file_find_string(struct heaptrack_writer *writer,
                                                  struct ttd_string text, uint32_t *number)
{
    struct text_output *output = writer->report->output;
    *number = 0;
    if (!text.size)
        return TTD_OK;
    *number = map_get(&writer->strings, (uint64_t)(uintptr_t)text.data, text.size);
    if (*number != MAP_NONE)
        return TTD_OK;
    *number = ++writer->string_count;
    enum ttd_status status =
        map_set(&writer->strings, (uint64_t)(uintptr_t)text.data, text.size, *number);
    if (text.size > HEAPTRACK_NAME_MAX)
        text.size = HEAPTRACK_NAME_MAX;
    writer->escaped->used = 0;
    escape_text(writer->escaped, text);
    out_format(output, "s %zx ", writer->escaped->used);
    out_write(output, writer->escaped->buffer, writer->escaped->used);
    out_char(output, '\n');
    return status;
}

static enum ttd_status heaptrack_file_write_address(struct heaptrack_writer *writer,
                                                    const struct ttd_stack *stack)
{
    struct text_output *output = writer->report->output;
    uint32_t module = 0;
    writer->frames.count = 0;
    enum ttd_status status = frame_list_add(&writer->frames, writer->report->definitions, stack);
    const struct frame *frames = writer->frames.frames;
    size_t count = writer->frames.count, named = 0;
    /* Strings come first: a record is a line. */
    if (status == TTD_OK && count)
        status = heaptrack_file_find_string(writer, frames[0].module, &module);
    for (size_t i = 0; i < count && status == TTD_OK; i++) {
        uint32_t number;
        status = heaptrack_file_find_string(writer, frames[i].function, &number);
        if (status == TTD_OK)
            status = heaptrack_file_find_string(writer, frames[i].file, &number);
        named += frames[i].function.size != 0;
    }
    if (status != TTD_OK)
        return status;
    out_format(output, "i %llx %x", count ? (unsigned long long)frames[0].address : 0ULL,
               (unsigned)module);
    for (size_t i = 0; named && i < count && status == TTD_OK; i++) {
        uint32_t function, file;
        status = heaptrack_file_find_string(writer, frames[i].function, &function);
        if (status == TTD_OK)
            status = heaptrack_file_find_string(writer, frames[i].file, &file);
        if (status == TTD_OK)
            out_format(output, " %x %x %x", (unsigned)function, (unsigned)file,
                       (unsigned)frames[i].line);
    }
    out_char(output, '\n');
    return status;
}

static enum ttd_status heaptrack_file_find_address(struct heaptrack_writer *writer,
                                                   const struct ttd_stack *stack, uint32_t *number)
{
    *number = map_get(&writer->addresses, stack->module, stack->offset);
    if (*number != MAP_NONE)
        return TTD_OK;
    *number = ++writer->address_count;
    enum ttd_status status = map_set(&writer->addresses, stack->module, stack->offset, *number);
    return status == TTD_OK ? heaptrack_file_write_address(writer, stack) : status;
}

/* Lists a stack and the callers that were not written yet, innermost first; sets `known`
 * to the number of the first caller that was. */
static enum ttd_status heaptrack_file_list_path(struct heaptrack_writer *writer, ttd_id id,
                                                size_t *count, uint32_t *known)
{
    enum ttd_status status = TTD_OK;
    struct ttd_stack stack;
    *known = 0;
    *count = 0;
    for (; id != TTD_NONE && status == TTD_OK; id = stack.parent) {
        uint32_t number = map_get(&writer->stacks, id, 1);
        if (number != MAP_NONE) {
            *known = number;
            break;
        }
        status = definitions_stack(writer->report->definitions, id, &stack);
        if (status == TTD_OK)
            status = grow_array((void **)&writer->path, &writer->path_capacity, *count + 1,
                                sizeof *writer->path);
        if (status == TTD_OK)
            writer->path[(*count)++] = id;
    }
    return status == TTD_END ? TTD_OK : status;
}

static enum ttd_status heaptrack_file_write_stack(struct heaptrack_writer *writer, ttd_id id,
                                                  uint32_t *number)
{
    size_t count;
    enum ttd_status status = heaptrack_file_list_path(writer, id, &count, number);
    while (count > 0 && status == TTD_OK) {
        struct ttd_stack stack;
        uint32_t address;
        ttd_id next = writer->path[--count];
        status = definitions_stack(writer->report->definitions, next, &stack);
        if (status == TTD_OK)
            status = heaptrack_file_find_address(writer, &stack, &address);
        if (status != TTD_OK)
            break;
        heaptrack_file_write(writer, 't', (uint64_t[]){address, *number}, 2);
        *number = ++writer->stack_count;
        status = map_set(&writer->stacks, next, 1, *number);
    }
    return status;
}

/* By stack whether it is wanted, and its number: the callers of a stack that is wanted need not be
 * wanted by themselves. */
static enum ttd_status heaptrack_file_find_stack(struct heaptrack_writer *writer, ttd_id id,
                                                 uint32_t *number)
{
    bool is_wanted = true;
    *number = map_get(&writer->stacks, id, 0);
    if (*number != MAP_NONE)
        return TTD_OK;
    enum ttd_status status = TTD_OK;
    if (writer->choice.filter)
        status = writer->choice.filter(writer->choice.filter_context, id, &is_wanted);
    if (status != TTD_OK)
        return status;
    *number = HEAPTRACK_UNWANTED;
    if (is_wanted)
        status = heaptrack_file_write_stack(writer, id, number);
    return status == TTD_OK ? map_set(&writer->stacks, id, 0, *number) : status;
}

/* Sets `kind` to 1 more than the number of a block's kind; to 0 if the block is not wanted. */
static enum ttd_status heaptrack_file_find_kind(struct heaptrack_writer *writer,
                                                const struct heap_block *block, uint32_t *kind)
{
    uint32_t stack;
    enum ttd_status status = heaptrack_file_find_stack(writer, block->stack, &stack);
    *kind = 0;
    if (status != TTD_OK || stack == HEAPTRACK_UNWANTED)
        return status;
    uint32_t known = map_get(&writer->kinds, block->size, stack + UINT64_C(1));
    if (known == MAP_NONE) {
        known = ++writer->kind_count;
        heaptrack_file_write(writer, 'a', (uint64_t[]){block->size, stack}, 2);
        status = map_set(&writer->kinds, block->size, stack + UINT64_C(1), known);
    }
    *kind = known;
    return status;
}

/* Sets `number` to the number of a heap. */
static enum ttd_status heaptrack_file_find_heap(struct heaptrack_writer *writer, ttd_id heap,
                                                uint32_t *number)
{
    *number = writer->last_number;
    if (writer->heap_count && writer->last_heap == heap)
        return TTD_OK;
    *number = map_get(&writer->by_heap, heap, 0);
    if (*number == MAP_NONE) {
        *number = (uint32_t)writer->heap_count;
        enum ttd_status status = grow_array((void **)&writer->heaps, &writer->heap_capacity,
                                            writer->heap_count + 1, sizeof *writer->heaps);
        if (status == TTD_OK)
            status = map_set(&writer->by_heap, heap, 0, *number);
        if (status != TTD_OK)
            return status;
        writer->heaps[writer->heap_count++] = (struct heaptrack_heap){
            .first = HEAPTRACK_NONE,
            .is_wanted = heap_parents_get(writer->choice.parents, heap) == TTD_NONE};
    }
    writer->last_heap = heap;
    writer->last_number = *number;
    return TTD_OK;
}

/* Effects. */

static enum ttd_status heaptrack_file_make_room(struct heaptrack_writer *writer, uint32_t record)
{
    size_t capacity = writer->record_capacity ? writer->record_capacity : 1024;
    while (capacity <= record)
        capacity = table_next(capacity, sizeof *writer->records);
    if (capacity == writer->record_capacity)
        return TTD_OK;
    struct heaptrack_record *grown =
        table_resize(writer->records, writer->record_capacity * sizeof *writer->records,
                     capacity * sizeof *writer->records);
    if (!grown)
        return TTD_ERROR_NO_MEMORY;
    writer->records = grown;
    writer->record_capacity = capacity;
    return TTD_OK;
}

static void heaptrack_file_link(struct heaptrack_writer *writer, uint32_t index, uint32_t heap)
{
    struct heaptrack_record *record = &writer->records[index];
    uint32_t first = writer->heaps[heap].first;
    record->heap = heap;
    record->next = first;
    record->previous = HEAPTRACK_NONE;
    if (first != HEAPTRACK_NONE)
        writer->records[first].previous = index;
    writer->heaps[heap].first = index;
}

static void heaptrack_file_unlink(struct heaptrack_writer *writer,
                                  const struct heaptrack_record *record)
{
    if (record->previous == HEAPTRACK_NONE)
        writer->heaps[record->heap].first = record->next;
    else
        writer->records[record->previous].next = record->next;
    if (record->next != HEAPTRACK_NONE)
        writer->records[record->next].previous = record->previous;
}

static enum ttd_status heaptrack_file_acquire(struct heaptrack_writer *writer,
                                              const struct heap_effect *effect)
{
    uint32_t heap = 0, kind = 0;
    enum ttd_status status = heaptrack_file_make_room(writer, effect->record);
    if (status == TTD_OK)
        status = heaptrack_file_find_heap(writer, effect->block->heap, &heap);
    if (status == TTD_OK && writer->heaps[heap].is_wanted)
        status = heaptrack_file_find_kind(writer, effect->block, &kind);
    if (status != TTD_OK)
        return status;
    writer->records[effect->record].kind = kind;
    if (!kind)
        return TTD_OK;
    heaptrack_file_link(writer, effect->record, heap);
    heaptrack_file_write(writer, '+', (uint64_t[]){kind - UINT64_C(1)}, 1);
    return TTD_OK;
}

static void heaptrack_file_release(struct heaptrack_writer *writer, uint32_t index)
{
    struct heaptrack_record *record =
        index < writer->record_capacity ? &writer->records[index] : NULL;
    if (!record || !record->kind)
        return;
    heaptrack_file_unlink(writer, record);
    heaptrack_file_write(writer, '-', (uint64_t[]){record->kind - UINT64_C(1)}, 1);
    record->kind = 0;
}

/* The blocks of a destroyed heap end at once; the replay comes to each of them later. */
static enum ttd_status heaptrack_file_destroy(struct heaptrack_writer *writer, ttd_id id)
{
    uint32_t heap;
    enum ttd_status status = heaptrack_file_find_heap(writer, id, &heap);
    while (status == TTD_OK && writer->heaps[heap].first != HEAPTRACK_NONE)
        heaptrack_file_release(writer, writer->heaps[heap].first);
    return status;
}

enum ttd_status report_heaptrack_effect(void *context, const struct heap_effect *effect)
{
    struct heaptrack_writer *writer = context;
    if (effect->wall_time >= writer->time + HEAPTRACK_INTERVAL) {
        writer->time = effect->wall_time - effect->wall_time % HEAPTRACK_INTERVAL;
        heaptrack_file_write(writer, 'c', (uint64_t[]){writer->time / 1000000}, 1);
    }
    switch (effect->kind) {
    case HEAP_ACQUIRED:
        return heaptrack_file_acquire(writer, effect);
    case HEAP_RELEASED:
    case HEAP_OVERLAPPED:
        heaptrack_file_release(writer, effect->record);
        return TTD_OK;
    case HEAP_DESTROYED:
        return heaptrack_file_destroy(writer, effect->heap);
    case HEAP_DISCARDED:
    case HEAP_UNKNOWN_RELEASE:
        break;
    }
    return TTD_OK;
}

void report_heaptrack_end(struct heaptrack_writer *writer, bool is_complete)
{
    struct text_output *output = writer->report->output;
    const struct certainty *certainty = &writer->report->certainty;
    if (is_complete) {
        out_text(output, "X ");
        escape_text(output, escape_string(writer->report->path));
        for (size_t i = 0; i < certainty->count; i++) {
            out_text(output, i ? "; " : " (uncertain: ");
            escape_text(output, escape_string(certainty->reasons[i]));
        }
        out_text(output, certainty->count ? ")\n" : "\n");
    }
    table_free(writer->records, writer->record_capacity * sizeof *writer->records);
    free(writer->heaps);
    map_free(&writer->by_heap);
    map_free(&writer->strings);
    map_free(&writer->addresses);
    map_free(&writer->stacks);
    map_free(&writer->kinds);
    frame_list_free(&writer->frames);
    free(writer->path);
    free(writer->escaped);
    free(writer);
}
