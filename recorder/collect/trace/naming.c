/* SPDX-License-Identifier: MIT */
/*
 * Writes names for the addresses in the stacks of a trace, and for the data that held references in
 * its snapshots. Names in the cache are written while the
 * program runs, so that a trace has them even if the recorder is killed; the rest at its end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/trace/trace_modules.h"
#include "collect/trace/process_trace.h"
#include "messages.h"
#include "symbolize/cache/cache.h"
#include "symbolize/image/image_file.h"

/* Modules of a trace whose addresses have no names because their files are gone. */

/* Returns why the file of a module cannot be read; NULL if it can. */
static const char *nameless_reason(const struct module *module)
{
    struct stat status;
    const char *place = module_files_place(module), *path = place ? place : module->path;
    bool is_copy = place && module->file.inode == 0;
    if (path[0] != '/' || module->has_names)
        return NULL;
    if (is_copy || (!place && stat(path, &status) != 0))
        return "its file was removed or replaced while the program ran";
    int fd = image_file_open(path);
    bool is_same = fd < 0 || image_file_is(fd, &module->file);
    if (fd >= 0)
        close(fd);
    return is_same ? NULL : "its file was replaced or changed while the program ran";
}

static bool naming_lacks_lines(const struct module *module)
{
    const char *place = module_files_place(module);
    return inflate_lacks_method(place ? place : module->path);
}

static void nameless_say(struct trace *trace, const char *path, const char *missing,
                         const char *reason)
{
    char *text;
    unsigned hash = 0;
    for (const char *c = path; *c != '\0'; c++)
        hash = hash * 31 + (unsigned char)*c;
    if (asprintf(&text, "%s: %s", path, reason) < 0)
        return;
    trace_metadata(trace, "unnamed", text);
    free(text);
    if (message_is_first(MESSAGE_NAMELESS, (int)(hash >> 1)))
        message("warning: '%s' has no %s: %s", path, missing, reason);
}

/* Says why such modules have no names: in the trace, and once for each path on stderr. Called when
 * all names are written. */
static void nameless_note(struct trace *trace)
{
    const struct modules *modules = &trace->modules;
    bool *is_used = calloc(modules->count + 1, sizeof *is_used);
    if (!is_used)
        return;
    for (size_t i = 0; i < modules->frame_count; i++)
        if (modules->frames[i].module != TTD_NONE)
            is_used[modules->frames[i].module - 1] = true;
    for (size_t i = 0; i < modules->count; i++) {
        const char *reason = is_used[i] ? nameless_reason(&modules->items[i]) : NULL;
        if (reason)
            nameless_say(trace, modules->items[i].path, "names", reason);
        else if (is_used[i] && naming_lacks_lines(&modules->items[i]))
            nameless_say(trace, modules->items[i].path, "source lines",
                         "its debug information is in zstd, which takes a ttdrecord with libzstd");
    }
    free(is_used);
}

/* An address to name, and the index of its frame. */
struct address {
    ttd_id module;
    uint64_t offset;
    size_t frame;
};

/* The modules of a trace, each twice: with its addresses in stacks that have no names yet, and
 * then, after all of these, with its words of data that have none. */
struct name_request {
    struct trace *trace;
    struct symbolize_module *modules;
    size_t module_count;
    struct address *addresses; /* sorted */
    uint64_t *offsets;         /* of the same */
    size_t count;
};

static int naming_compare_addresses(const void *left, const void *right)
{
    const struct address *a = left, *b = right;
    if (a->module != b->module)
        return a->module < b->module ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static struct symbolize_module naming_symbolize_module_of(const struct module *module, bool is_data)
{
    return (struct symbolize_module){.path = module->path,
                                     .place = module_files_place(module),
                                     .file = module->file,
                                     .build_id = module->build_id,
                                     .build_id_size = module->build_id_size,
                                     .is_data = is_data};
}

static void naming_free_request(struct name_request *request)
{
    free(request->modules);
    free(request->addresses);
    free(request->offsets);
}

static void naming_collect_addresses(struct name_request *request, const struct modules *modules)
{
    for (size_t i = 0; i < modules->frame_count; i++) {
        const struct frame *frame = &modules->frames[i];
        if (!frame->is_settled)
            request->addresses[request->count++] =
                (struct address){.module = frame->module, .offset = frame->offset, .frame = i};
    }
    if (request->count > 0)
        qsort(request->addresses, request->count, sizeof *request->addresses,
              naming_compare_addresses);
}

/* Adds an offset, the next one, to a module of the request. */
static void naming_add_offset(struct name_request *request, size_t module, size_t index,
                              uint64_t offset)
{
    struct symbolize_module *asked = &request->modules[module];
    request->offsets[index] = offset;
    if (asked->offset_count++ == 0)
        asked->offsets = &request->offsets[index];
}

/* False without memory; the request is to be freed in any case. */
static bool naming_load_request(struct name_request *request, struct trace *trace)
{
    const struct modules *modules = &trace->modules;
    struct variables *variables = &trace->variables;
    variables_sort(variables);
    *request = (struct name_request){
        .trace = trace,
        .modules = calloc(2 * modules->count + 1, sizeof *request->modules),
        .module_count = 2 * modules->count,
        .addresses = calloc(modules->frame_count + 1, sizeof *request->addresses),
        .offsets = calloc(modules->frame_count + variables->count + 1, sizeof *request->offsets),
    };
    if (!request->modules || !request->addresses || !request->offsets)
        return false;
    for (size_t i = 0; i < request->module_count; i++)
        request->modules[i] =
            naming_symbolize_module_of(&modules->items[i % modules->count], i >= modules->count);
    naming_collect_addresses(request, modules);
    for (size_t i = 0; i < request->count; i++)
        naming_add_offset(request, request->addresses[i].module - 1, i,
                          request->addresses[i].offset);
    for (size_t i = 0; i < variables->count; i++)
        naming_add_offset(request, modules->count + variables->words[i].module - 1,
                          request->count + i, variables->words[i].offset);
    return true;
}

/* Marks the frame of an address: its names are written, or it has none. */
static void naming_settle(struct name_request *request, ttd_id module, uint64_t offset)
{
    struct address key = {.module = module, .offset = offset};
    const struct address *address =
        bsearch(&key, request->addresses, request->count, sizeof key, naming_compare_addresses);
    if (address)
        request->trace->modules.frames[address->frame].is_settled = true;
}

static void naming_write_names(struct trace *trace, ttd_id module, uint64_t offset,
                               const struct symbolize_frame *frames, size_t count)
{
    if (count == 0 || !trace->writer)
        return;
    trace->modules.items[module - 1].has_names = true;
    if (trace->names || ttd_names_open(trace->writer, NULL, NULL, NULL, &trace->names) == TTD_OK)
        frame_names_write(trace->names, module, offset, frames, count);
}

/* Whether the region of a word says as much: it is in no variable of these sections. */
static bool naming_is_said_by_region(const char *name, size_t size)
{
    static const char *const sections[] = {".data", ".bss"};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        size_t section = strlen(sections[i]);
        if (size >= section && memcmp(name, sections[i], section) == 0 &&
            (size == section || name[section] == '+'))
            return true;
    }
    return false;
}

static void naming_write_variable(struct trace *trace, ttd_id module,
                                  const struct symbolize_frame *variable)
{
    variables_know(&trace->variables, module, variable->begin, variable->size);
    if (naming_is_said_by_region(variable->function, variable->function_size))
        return;
    trace_variable(
        trace,
        &(struct ttd_variable){.module = module, .offset = variable->begin, .size = variable->size},
        variable->function, variable->function_size);
}

static void naming_add_names(void *context, size_t module, uint64_t offset,
                             const struct symbolize_frame *frames, size_t count)
{
    struct name_request *request = context;
    size_t modules = request->trace->modules.count;
    if (module >= modules) {
        if (count > 0)
            naming_write_variable(request->trace, (ttd_id)(module - modules + 1), frames);
        return;
    }
    naming_settle(request, (ttd_id)(module + 1), offset);
    naming_write_names(request->trace, (ttd_id)(module + 1), offset, frames, count);
}

static void naming_name_addresses(struct trace *trace, struct symbolize_cache *names)
{
    struct name_request request;
    int error = ENOMEM;
    if (naming_load_request(&request, trace))
        error = symbolize_cached(names, request.modules, request.module_count, naming_add_names,
                                 &request);
    if (error != 0 && message_is_first(MESSAGE_UNNAMED, error))
        message("%s: not all addresses have names: %s", trace->path, strerror(error));
    naming_free_request(&request);
}

/* Returns the number of a module's image for symbolize_answer(), or SIZE_MAX. */
static size_t naming_image_of(struct symbolize_cache *names, const struct module *module,
                              bool is_data)
{
    struct symbolize_module asked = naming_symbolize_module_of(module, is_data);
    return symbolize_image(names, &asked);
}

static void naming_write_known(struct trace *trace, const struct symbolize_cache *names,
                               const size_t *images)
{
    struct modules *modules = &trace->modules;
    trace->frames_unnamed = 0;
    for (size_t i = 0; i < modules->frame_count; i++) {
        struct symbolize_frame frames[SYMBOLIZE_FRAMES_MAX];
        struct frame *frame = &modules->frames[i];
        size_t count;
        if (frame->is_settled)
            continue;
        frame->is_settled =
            symbolize_answer(names, images[frame->module - 1], frame->offset, frames, &count);
        if (frame->is_settled)
            naming_write_names(trace, frame->module, frame->offset, frames, count);
        trace->frames_unnamed += !frame->is_settled;
    }
}

static void naming_write_known_variables(struct trace *trace, struct symbolize_cache *names)
{
    struct variables *variables = &trace->variables;
    struct symbolize_frame frames[SYMBOLIZE_FRAMES_MAX], variable = {.size = 0};
    ttd_id module = TTD_NONE;
    size_t image = SIZE_MAX, kept = 0, count;
    variables_sort(variables);
    for (size_t i = 0; i < variables->count; i++) {
        struct variable_word word = variables->words[i];
        if (word.module != module) {
            module = word.module;
            image = naming_image_of(names, &trace->modules.items[module - 1], true);
            variable.size = 0;
        }
        if (word.offset - variable.begin < variable.size)
            continue;
        if (symbolize_answer(names, image, word.offset, frames, &count) && count > 0) {
            variable = frames[0];
            naming_write_variable(trace, module, &variable);
        } else {
            variables->words[kept++] = word;
        }
    }
    variables->count = kept;
}

static size_t naming_unnamed(const struct trace *trace)
{
    return trace->frames_unnamed + trace->variables.count;
}

size_t trace_write_known_names(struct trace *trace, struct symbolize_cache *names)
{
    size_t answers = symbolize_cache_size(names), frames = trace->modules.frame_count;
    size_t words = trace->variables.count;
    if (!trace->writer)
        return 0;
    if (answers == trace->answers_looked_at && frames == trace->frames_looked_at &&
        words == trace->words_looked_at)
        return naming_unnamed(trace);
    size_t *images = calloc(trace->modules.count + 1, sizeof *images); /* of all modules */
    if (!images)
        return frames + words;
    for (size_t i = 0; i < trace->modules.count; i++)
        images[i] = naming_image_of(names, &trace->modules.items[i], false);
    naming_write_known(trace, names, images);
    free(images);
    naming_write_known_variables(trace, names);
    trace->answers_looked_at = answers;
    trace->frames_looked_at = frames;
    trace->words_looked_at = trace->variables.count;
    return naming_unnamed(trace);
}

bool trace_prepare(struct trace *trace, struct symbolize_cache *names)
{
    struct name_request request;
    bool is_requested = false;
    if (naming_load_request(&request, trace)) {
        size_t count = 0;
        for (size_t i = 0; i < request.module_count; i++) {
            if (request.modules[i].build_id_size == 0) /* the cache would not store the answers */
                request.modules[i].offset_count = 0;
            count += request.modules[i].offset_count;
        }
        is_requested = count > 0 && symbolize_prepare(names, request.modules, request.module_count);
    }
    naming_free_request(&request);
    return is_requested;
}

bool trace_finish(struct trace *trace, const struct ttd_end *end, struct symbolize_cache *names)
{
    if (!trace->writer)
        return false;
    if (trace_write_known_names(trace, names) > 0) {
        trace_flush(trace); /* in case this process is killed during the lookup */
        naming_name_addresses(trace, names);
    }
    if (!trace->writer)
        return false;
    nameless_note(trace);
    enum ttd_status status = ttd_writer_close(trace->writer, end, &trace->error);
    trace->writer = NULL;
    return status == TTD_OK;
}
