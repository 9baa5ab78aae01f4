/* SPDX-License-Identifier: MIT */
/* Profiles for pprof and speedscope, and the table of frames of all profiles. Both have a table of
 * frames, each of them written once, and samples that refer to it. */
#include "report/export/export_reports.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "report/sections/say.h"
#include "report/writers/out.h"

/* Longer names are cut, so that an escaped one fits into a buffer of text. */
#define PROFILE_NAME_MAX 4096

const char *report_measure_words(enum report_measure measure)
{
    static const char *const words[] = {
        [REPORT_LIVE] = "live",
        [REPORT_PEAK] = "live at the peak",
        [REPORT_ALLOCATED] = "allocated",
        [REPORT_TEMPORARY] = "temporary",
    };
    return words[measure];
}

void profile_free(struct profile_table *table)
{
    map_free(&table->by_address);
    free(table->sites);
    free(table->frames);
    free(table->path);
    frame_list_free(&table->scratch);
}

/* Adds an address and its frames. */
static enum ttd_status profile_add_site(struct profile_table *table, const struct ttd_stack *stack)
{
    table->scratch.count = 0;
    enum ttd_status status = frame_list_add(&table->scratch, table->report->definitions, stack);
    size_t count = table->scratch.count;
    if (status == TTD_OK)
        status = grow_array((void **)&table->frames, &table->frame_capacity,
                            table->frame_count + count, sizeof *table->frames);
    if (status == TTD_OK)
        status = grow_array((void **)&table->sites, &table->site_capacity, table->site_count + 1,
                            sizeof *table->sites);
    if (status == TTD_OK)
        status =
            map_set(&table->by_address, stack->module, stack->offset, (uint32_t)table->site_count);
    if (status != TTD_OK)
        return status;
    if (count)
        memcpy(&table->frames[table->frame_count], table->scratch.frames,
               count * sizeof *table->frames);
    table->sites[table->site_count++] =
        (struct profile_site){.stack = *stack, .first = table->frame_count, .count = count};
    table->frame_count += count;
    return TTD_OK;
}

enum ttd_status profile_walk(struct profile_table *table, ttd_id id)
{
    struct ttd_stack stack;
    enum ttd_status status = TTD_OK;
    table->path_count = 0;
    for (; id != TTD_NONE && status == TTD_OK; id = stack.parent) {
        status = definitions_stack(table->report->definitions, id, &stack);
        if (status != TTD_OK)
            break;
        uint32_t site = map_get(&table->by_address, stack.module, stack.offset);
        if (site == MAP_NONE) {
            site = (uint32_t)table->site_count;
            status = profile_add_site(table, &stack);
        }
        if (status == TTD_OK)
            status = grow_array((void **)&table->path, &table->path_capacity, table->path_count + 1,
                                sizeof *table->path);
        if (status == TTD_OK)
            table->path[table->path_count++] = site;
    }
    return status == TTD_END ? TTD_OK : status;
}

/* pprof: a message of protocol buffers is a sequence of fields, in any order. The encoder is
 * smaller than the use of a library would be. */

enum { PPROF_VARINT = 0, PPROF_BYTES = 2 };

/* Fields of a Profile. */
enum {
    PPROF_SAMPLE_TYPE = 1,
    PPROF_SAMPLE = 2,
    PPROF_MAPPING = 3,
    PPROF_LOCATION = 4,
    PPROF_FUNCTION = 5,
    PPROF_STRING = 6,
    PPROF_TIME = 9,
    PPROF_PERIOD_TYPE = 11,
    PPROF_PERIOD = 12,
    PPROF_COMMENT = 13,
    PPROF_DEFAULT_TYPE = 14
};

/* A message that is being composed. */
struct pprof_message {
    unsigned char *bytes;
    size_t size;
    size_t capacity;
};

struct pprof_writer {
    struct profile_table table;
    struct pprof_message message;
    struct pprof_message line;
    /** Strings that were written, and texts that are escaped. */
    uint64_t strings;
    struct text_output *escaped;
    /** Numbers of modules, and of functions by name and file. */
    struct hash_map modules;
    uint32_t module_count;
    struct hash_map functions;
    uint32_t function_count;
    /** Addresses that were written; and whether the one for no stack was. */
    size_t written;
    uint64_t no_stack;
    enum ttd_status status;
};

static size_t pprof_encode(unsigned char bytes[10], uint64_t value)
{
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[size++] = (unsigned char)(value | 0x80);
    bytes[size++] = (unsigned char)value;
    return size;
}

static void pprof_add(struct pprof_writer *writer, struct pprof_message *message, const void *data,
                      size_t size)
{
    if (writer->status == TTD_OK)
        writer->status =
            grow_array((void **)&message->bytes, &message->capacity, message->size + size, 1);
    if (writer->status != TTD_OK || !size)
        return;
    memcpy(message->bytes + message->size, data, size);
    message->size += size;
}

static void pprof_number(struct pprof_writer *writer, struct pprof_message *message, unsigned field,
                         uint64_t value)
{
    unsigned char bytes[20];
    size_t size = pprof_encode(bytes, field << 3 | PPROF_VARINT);
    size += pprof_encode(bytes + size, value);
    pprof_add(writer, message, bytes, size);
}

/* Values are signed. */
static uint64_t pprof_value(uint64_t value)
{
    return value < INT64_MAX ? value : INT64_MAX;
}

static void pprof_write_bytes(struct pprof_writer *writer, unsigned field, const void *data,
                              size_t size)
{
    unsigned char head[20];
    size_t head_size = pprof_encode(head, field << 3 | PPROF_BYTES);
    head_size += pprof_encode(head + head_size, size);
    out_write(writer->table.report->output, (const char *)head, head_size);
    out_write(writer->table.report->output, data, size);
}

static void pprof_write_message(struct pprof_writer *writer, unsigned field)
{
    pprof_write_bytes(writer, field, writer->message.bytes, writer->message.size);
    writer->message.size = 0;
}

static void pprof_write_number(struct pprof_writer *writer, unsigned field, uint64_t value)
{
    writer->message.size = 0;
    pprof_number(writer, &writer->message, field, value);
    out_write(writer->table.report->output, (const char *)writer->message.bytes,
              writer->message.size);
    writer->message.size = 0;
}

/* Writes a text as UTF-8, and returns its number. */
static uint64_t pprof_string(struct pprof_writer *writer, struct ttd_string text)
{
    struct text_output *escaped = writer->escaped;
    if (text.size > PROFILE_NAME_MAX)
        text.size = PROFILE_NAME_MAX;
    escaped->used = 0;
    escape_text(escaped, text);
    pprof_write_bytes(writer, PPROF_STRING, escaped->buffer, escaped->used);
    return writer->strings++;
}

static uint64_t pprof_text(struct pprof_writer *writer, const char *text)
{
    return pprof_string(writer, escape_string(text));
}

/* Writes a module, once, and returns its number; 0 for none. Nothing is left to look up in its
 * file: the trace has the names. */
static uint64_t pprof_module(struct pprof_writer *writer, ttd_id id)
{
    struct definitions *definitions = writer->table.report->definitions;
    const struct definition_module *module = definitions_module(definitions, id);
    uint32_t number = map_get(&writer->modules, id, 0);
    if (!module || number != MAP_NONE)
        return module ? number : 0;
    number = ++writer->module_count;
    char build_id[2 * TTD_BUILD_ID_MAX + 1] = "";
    for (uint32_t i = 0; i < module->build_id_size; i++) {
        build_id[2 * i] = "0123456789abcdef"[module->build_id[i] >> 4];
        build_id[2 * i + 1] = "0123456789abcdef"[module->build_id[i] & 15];
    }
    uint64_t path = pprof_string(writer, definitions_text(definitions, module->path));
    uint64_t build = pprof_text(writer, build_id);
    const uint64_t values[] = {number, module->begin, module->end, 0, path, build, 1, 1, 1, 1};
    for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++)
        pprof_number(writer, &writer->message, i + 1, values[i]);
    pprof_write_message(writer, PPROF_MAPPING);
    if (writer->status == TTD_OK)
        writer->status = map_set(&writer->modules, id, 0, number);
    return number;
}

static uint64_t pprof_write_function(struct pprof_writer *writer, struct ttd_string name,
                                     struct ttd_string symbol, struct ttd_string file)
{
    uint64_t number = ++writer->function_count;
    const uint64_t values[] = {number, pprof_string(writer, name), pprof_string(writer, symbol),
                               pprof_string(writer, file)};
    for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++)
        pprof_number(writer, &writer->message, i + 1, values[i]);
    pprof_write_message(writer, PPROF_FUNCTION);
    return number;
}

static uint64_t pprof_function(struct pprof_writer *writer, const struct frame *frame)
{
    uint64_t file = frame->file.size ? (uint64_t)(uintptr_t)frame->file.data : 0;
    uint32_t number = map_get(&writer->functions, frame->name, file);
    if (number != MAP_NONE)
        return number;
    number = (uint32_t)pprof_write_function(writer, frame->function, frame->symbol, frame->file);
    if (writer->status == TTD_OK)
        writer->status = map_set(&writer->functions, frame->name, file, number);
    return number;
}

static void pprof_add_line(struct pprof_writer *writer, uint64_t function, uint64_t line)
{
    unsigned char head[20];
    writer->line.size = 0;
    pprof_number(writer, &writer->line, 1, function);
    pprof_number(writer, &writer->line, 2, line);
    size_t size = pprof_encode(head, 4 << 3 | PPROF_BYTES);
    size += pprof_encode(head + size, writer->line.size);
    pprof_add(writer, &writer->message, head, size);
    pprof_add(writer, &writer->message, writer->line.bytes, writer->line.size);
}

/* Writes an address as location number `index` + 1. Its functions come before it, since one
 * message is composed at a time. */
static void pprof_location(struct pprof_writer *writer, size_t index)
{
    const struct profile_site *site = &writer->table.sites[index];
    const struct frame *frames = &writer->table.frames[site->first];
    uint64_t module = pprof_module(writer, site->stack.module);
    for (size_t i = 0; i < site->count; i++) {
        if (frames[i].function.size)
            pprof_function(writer, &frames[i]);
    }
    pprof_number(writer, &writer->message, 1, index + 1);
    pprof_number(writer, &writer->message, 2, module);
    pprof_number(writer, &writer->message, 3, site->count ? frames[0].address : 0);
    for (size_t i = 0; i < site->count; i++) {
        if (frames[i].function.size)
            pprof_add_line(writer, pprof_function(writer, &frames[i]), frames[i].line);
    }
    pprof_write_message(writer, PPROF_LOCATION);
}

/* Writes the location of blocks without a stack; its number is none that an address has. */
static uint64_t pprof_no_stack(struct pprof_writer *writer)
{
    static const struct ttd_string none = {.data = "", .size = 0};
    if (writer->no_stack)
        return writer->no_stack;
    writer->no_stack = UINT32_MAX;
    uint64_t function = pprof_write_function(writer, escape_string("[no stack]"), none, none);
    pprof_number(writer, &writer->message, 1, writer->no_stack);
    pprof_add_line(writer, function, 0);
    pprof_write_message(writer, PPROF_LOCATION);
    return writer->no_stack;
}

static void pprof_sample(struct pprof_writer *writer, const struct heap_group *group)
{
    struct profile_table *table = &writer->table;
    enum ttd_status status = profile_walk(table, group->key.stack);
    if (writer->status == TTD_OK)
        writer->status = status;
    if (writer->status != TTD_OK)
        return;
    for (; writer->written < table->site_count; writer->written++)
        pprof_location(writer, writer->written);
    uint64_t no_stack = table->path_count ? 0 : pprof_no_stack(writer);
    for (size_t i = 0; i < table->path_count; i++)
        pprof_number(writer, &writer->message, 1, table->path[i] + 1);
    if (no_stack)
        pprof_number(writer, &writer->message, 1, no_stack);
    pprof_number(writer, &writer->message, 2, pprof_value(group->blocks));
    pprof_number(writer, &writer->message, 2, pprof_value(group->bytes));
    pprof_write_message(writer, PPROF_SAMPLE);
}

static void pprof_type(struct pprof_writer *writer, unsigned field, uint64_t type, uint64_t unit)
{
    pprof_number(writer, &writer->message, 1, type);
    pprof_number(writer, &writer->message, 2, unit);
    pprof_write_message(writer, field);
}

/* Values have the names that Go's profiles of memory have, if these have such values. */
static const char *const pprof_values[][2] = {
    [REPORT_LIVE] = {"inuse_objects", "inuse_space"},
    [REPORT_PEAK] = {"peak_objects", "peak_space"},
    [REPORT_ALLOCATED] = {"alloc_objects", "alloc_space"},
    [REPORT_TEMPORARY] = {"temporary_objects", "temporary_space"},
};

static void pprof_header(struct pprof_writer *writer, const struct report_profile *data)
{
    const struct certainty *certainty = &writer->table.report->certainty;
    pprof_text(writer, "");
    const char *const *values = pprof_values[data->measure];
    uint64_t objects = pprof_text(writer, values[0]), count = pprof_text(writer, "count");
    uint64_t space = pprof_text(writer, values[1]), bytes = pprof_text(writer, "bytes");
    pprof_type(writer, PPROF_SAMPLE_TYPE, objects, count);
    pprof_type(writer, PPROF_SAMPLE_TYPE, space, bytes);
    pprof_type(writer, PPROF_PERIOD_TYPE, pprof_text(writer, "space"), bytes);
    pprof_write_number(writer, PPROF_PERIOD, 1);
    pprof_write_number(writer, PPROF_TIME, (uint64_t)data->trace->start_time);
    pprof_write_number(writer, PPROF_DEFAULT_TYPE, space);
    for (size_t i = 0; i < certainty->count; i++) {
        char text[CERTAINTY_REASON_SIZE + 16] = "Uncertain: ";
        strncat(text, certainty->reasons[i], CERTAINTY_REASON_SIZE);
        pprof_write_number(writer, PPROF_COMMENT, pprof_text(writer, text));
    }
}

void report_profile_pprof(struct report *report, const struct report_profile *data)
{
    struct pprof_writer writer = {.table = {.report = report}, .status = TTD_OK};
    map_init(&writer.table.by_address);
    map_init(&writer.modules);
    map_init(&writer.functions);
    writer.escaped = malloc(sizeof *writer.escaped);
    if (writer.escaped) {
        out_init(writer.escaped, -1, false);
        pprof_header(&writer, data);
    } else {
        writer.status = TTD_ERROR_NO_MEMORY;
    }
    for (size_t i = 0; i < data->groups->count && writer.status == TTD_OK; i++)
        pprof_sample(&writer, &data->groups->items[i]);
    if (writer.status != TTD_OK)
        report->status = writer.status;
    free(writer.escaped);
    free(writer.message.bytes);
    free(writer.line.bytes);
    map_free(&writer.modules);
    map_free(&writer.functions);
    profile_free(&writer.table);
}

/* speedscope. */

/* Writes the frames of a stack from the outermost inward. */
static void speedscope_sample(struct profile_table *table, const struct heap_group *group)
{
    struct text_output *output = table->report->output;
    const char *separator = "";
    enum ttd_status status = profile_walk(table, group->key.stack);
    if (status != TTD_OK) {
        table->report->status = status;
        return;
    }
    out_char(output, '[');
    for (size_t i = table->path_count; i > 0; i--) {
        const struct profile_site *site = &table->sites[table->path[i - 1]];
        for (size_t j = site->count; j > 0; j--) {
            out_text(output, separator);
            out_unsigned(output, site->first + j - 1);
            separator = ",";
        }
    }
    out_char(output, ']');
}

static uint64_t speedscope_weight(const struct heap_group *group, bool is_bytes)
{
    return is_bytes ? group->bytes : group->blocks;
}

/* Weights are numbers at any size, so that each has the same type. */
static void speedscope_profile(struct profile_table *table, const struct report_profile *data,
                               bool is_bytes)
{
    const struct heap_groups *groups = data->groups;
    struct text_output *output = table->report->output;
    uint64_t total = 0;
    out_format(output, "{\"type\":\"sampled\",\"name\":\"%s, %s\",\"unit\":\"%s\",\"samples\":[",
               is_bytes ? "bytes" : "blocks", report_measure_words(data->measure),
               is_bytes ? "bytes" : "none");
    for (size_t i = 0; i < groups->count && table->report->status == TTD_OK; i++) {
        out_text(output, i ? ",\n" : "\n");
        speedscope_sample(table, &groups->items[i]);
    }
    out_text(output, "],\n\"weights\":[");
    for (size_t i = 0; i < groups->count; i++) {
        uint64_t weight = speedscope_weight(&groups->items[i], is_bytes);
        out_text(output, i ? "," : "");
        out_unsigned(output, weight);
        total = heap_add(total, weight);
    }
    say(output, "],\"startValue\":0,\"endValue\":", number(total), "}");
}

static void speedscope_frame(struct text_output *output, const struct frame *frame)
{
    out_text(output, "{\"name\":\"");
    if (frame->function.size) {
        escape_json(output, frame->function);
    } else {
        escape_json(output, frame->module);
        out_text(output, frame->module.size ? "+" : "");
        out_hex(output, frame->module.size ? frame->offset : frame->address);
    }
    out_char(output, '"');
    if (frame->file.size) {
        out_text(output, ",\"file\":\"");
        escape_json(output, frame->file);
        out_char(output, '"');
    }
    if (frame->line)
        out_format(output, ",\"line\":%u", (unsigned)frame->line);
    out_char(output, '}');
}

void report_profile_speedscope(struct report *report, const struct report_profile *data)
{
    struct text_output *output = report->output;
    struct profile_table table = {.report = report};
    map_init(&table.by_address);
    out_text(output, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
                     "\"exporter\":\"ttdanalyze\",\"activeProfileIndex\":0,\n\"name\":\"");
    escape_json(output, escape_string(report->path));
    for (size_t i = 0; i < report->certainty.count; i++) {
        out_text(output, i ? "; " : " (uncertain: ");
        escape_json(output, escape_string(report->certainty.reasons[i]));
    }
    out_text(output, report->certainty.count ? ")\",\n\"profiles\":[" : "\",\n\"profiles\":[");
    speedscope_profile(&table, data, true);
    out_text(output, ",\n");
    speedscope_profile(&table, data, false);
    out_text(output, "],\n\"shared\":{\"frames\":[");
    for (size_t i = 0; i < table.frame_count; i++) {
        out_text(output, i ? ",\n" : "\n");
        speedscope_frame(output, &table.frames[i]);
    }
    out_text(output, "]}}\n");
    profile_free(&table);
}
