/* SPDX-License-Identifier: MIT */
#include "later/add_names.h"

#include <errno.h>
#include <stdlib.h>

#include "collect/trace/frame_names.h"
#include "later/report.h"

/* Limits in milliseconds. The user waits for the names, and servers take their time. */
enum {
    MODULE_TIME = 60 * 1000,
    MODULE_TIME_OF_SERVERS = 11 * 60 * 1000, /* two downloads, each of five minutes at most */
    TOTAL_TIME = 60 * 60 * 1000
};

void names_free(struct names_to_add *adding)
{
    free(adding->modules);
    free(adding->results);
    free(adding->offsets);
}

/* Whether names of an address are asked for. A module without a build-id is not asked about: the
 * file at its path may be any other. */
static bool is_asked(const struct wanted *wanted, const struct wanted_address *address)
{
    return address->is_in_stack && address->module != 0 && address->quality != NAME_SOURCE &&
           wanted->modules[address->module - 1].build_id_size != 0;
}

static void describe_modules(struct names_to_add *adding)
{
    size_t count = adding->wanted->module_count;
    for (size_t i = 0; i < 2 * count; i++) {
        const struct wanted_module *module = &adding->wanted->modules[i % count];
        adding->modules[i] = (struct symbolize_module){.path = module->path,
                                                       .build_id = module->build_id,
                                                       .build_id_size = module->build_id_size,
                                                       .is_data = i >= count};
    }
}

/* Sorts the offsets of code by module. Returns how many there are. */
static size_t sort_offsets(struct names_to_add *adding)
{
    const struct wanted *wanted = adding->wanted;
    size_t next = 0;
    for (size_t i = 0; i < wanted->address_count; i++)
        if (is_asked(wanted, &wanted->addresses[i]))
            adding->modules[wanted->addresses[i].module - 1].offset_count++;
    for (size_t i = 0; i < wanted->module_count; i++) {
        adding->modules[i].offsets = adding->offsets + next;
        next += adding->modules[i].offset_count;
        adding->modules[i].offset_count = 0;
    }
    for (size_t i = 0; i < wanted->address_count; i++) {
        if (!is_asked(wanted, &wanted->addresses[i]))
            continue;
        struct symbolize_module *module = &adding->modules[wanted->addresses[i].module - 1];
        size_t index = (size_t)(module->offsets - adding->offsets) + module->offset_count++;
        adding->offsets[index] = wanted->addresses[i].offset;
    }
    return next;
}

/* Adds the words of data, which are sorted by module and offset. */
static void add_words(struct names_to_add *adding, size_t next)
{
    const struct variables *variables = &adding->wanted->variables;
    struct symbolize_module *of_data = adding->modules + adding->wanted->module_count;
    for (size_t i = 0; i < variables->count; i++, next++) {
        struct symbolize_module *module = &of_data[variables->words[i].module - 1];
        if (module->build_id_size == 0)
            continue;
        if (module->offset_count++ == 0)
            module->offsets = adding->offsets + next;
        adding->offsets[next] = variables->words[i].offset;
    }
}

/* False without memory. */
static bool make_request(struct names_to_add *adding)
{
    struct wanted *wanted = adding->wanted;
    size_t count = 2 * wanted->module_count + 1;
    variables_sort(&wanted->variables);
    adding->modules = calloc(count, sizeof *adding->modules);
    adding->results = calloc(count, sizeof *adding->results);
    adding->offsets =
        calloc(wanted->address_count + wanted->variables.count + 1, sizeof *adding->offsets);
    if (adding->modules == NULL || adding->results == NULL || adding->offsets == NULL)
        return false;
    describe_modules(adding);
    add_words(adding, sort_offsets(adding));
    return true;
}

/* Notes the first failure to write, and ends the lookup then. */
static void note(struct names_to_add *adding, enum ttd_status status)
{
    if (status == TTD_OK || adding->status != TTD_OK)
        return;
    adding->status = status;
    symbolize_stop();
}

static enum name_quality quality_of(const struct symbolize_frame *frames, size_t count)
{
    enum name_quality quality = NAME_NONE;
    for (size_t i = 0; i < count; i++) {
        if (frames[i].file != NULL)
            return NAME_SOURCE;
        quality = frames[i].function != NULL ? NAME_FUNCTION : quality;
    }
    return quality;
}

static void adding_take_variable(struct names_to_add *adding, const struct wanted_module *module,
                                 const struct symbolize_frame *frame)
{
    /* Parts of sections are in the trace, as names of its regions. */
    if (frame->function_size == 0 || frame->function[0] == '.')
        return;
    struct ttd_variable variable = {
        .module = module->id, .offset = frame->begin, .size = frame->size};
    note(adding,
         ttd_names_string(adding->names, (struct ttd_string){frame->function, frame->function_size},
                          &variable.name));
    if (adding->status == TTD_OK)
        note(adding, ttd_writer_variable(adding->writer, &variable));
    adding->variables++;
}

static void adding_take_answer(void *context, size_t index, uint64_t offset,
                               const struct symbolize_frame *frames, size_t count)
{
    struct names_to_add *adding = context;
    size_t modules = adding->wanted->module_count;
    const struct wanted_module *module = &adding->wanted->modules[index % modules];
    if (count == 0 || adding->status != TTD_OK)
        return;
    if (index >= modules) {
        adding_take_variable(adding, module, frames);
        return;
    }
    struct wanted_address *address = wanted_find(adding->wanted, (ttd_id)(index + 1), offset);
    enum name_quality quality = quality_of(frames, count);
    if (address == NULL || quality <= address->quality)
        return;
    address->quality = quality;
    address->is_improved = true;
    note(adding, frame_names_write(adding->names, module->id, offset, frames, count));
}

static void begin_module(void *context, size_t index)
{
    struct names_to_add *adding = context;
    size_t modules = adding->wanted->module_count;
    if (adding->shows_progress)
        report_progress(&adding->wanted->modules[index % modules], index, 2 * modules);
}

static bool has_servers(void)
{
    const char *servers = getenv("DEBUGINFOD_URLS");
    return servers != NULL && *servers != '\0';
}

enum ttd_status names_add(void *context, struct ttd_writer *writer)
{
    struct names_to_add *adding = context;
    const struct symbolize_options options = {
        .module_time = has_servers() ? MODULE_TIME_OF_SERVERS : MODULE_TIME,
        .total_time = TOTAL_TIME,
        .results = NULL,
        .begin = begin_module,
    };
    if (!make_request(adding))
        return TTD_ERROR_NO_MEMORY;
    struct symbolize_options request_options = options;
    request_options.results = adding->results;
    adding->writer = writer;
    adding->status = ttd_names_open(writer, NULL, NULL, NULL, &adding->names);
    if (adding->status != TTD_OK)
        return adding->status;
    adding->reason =
        symbolize_with(&request_options, adding->modules, 2 * adding->wanted->module_count,
                       adding_take_answer, adding, NULL);
    if (adding->shows_progress)
        report_progress_end();
    ttd_names_close(adding->names);
    if (adding->status != TTD_OK)
        return adding->status;
    return adding->reason == 0 ? TTD_OK : TTD_ERROR_IO;
}
