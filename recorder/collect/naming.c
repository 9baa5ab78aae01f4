/* SPDX-License-Identifier: MIT */
/*
 * Names for the addresses that occur in the stacks of a trace. They are written while the program
 * runs, as far as somebody has looked them up, so that a trace has them also if the recorder is
 * killed; the rest when it is closed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../symbolize/cache.h"
#include "messages.h"
#include "trace.h"

/* So many frames are named in some milliseconds if their answers are known. */
enum { QUICK_FRAMES = 10000 };

/* An address that is to be named, and its index among the frames of the modules. */
struct address {
    ttd_id module;
    uint64_t offset;
    size_t frame;
};

/* The modules of a trace, with the addresses in each that have no names in it yet. */
struct question {
    struct trace *trace;
    struct symbolize_module *modules;
    struct address *addresses; /* sorted */
    uint64_t *offsets;         /* of the same */
    size_t count;
};

static int compare_addresses(const void *left, const void *right)
{
    const struct address *a = left, *b = right;
    if (a->module != b->module)
        return a->module < b->module ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static void free_question(struct question *question)
{
    free(question->modules);
    free(question->addresses);
    free(question->offsets);
}

static void collect_addresses(struct question *question, const struct modules *modules)
{
    for (size_t i = 0; i < modules->frame_count; i++) {
        const struct frame *frame = &modules->frames[i];
        if (!frame->is_settled)
            question->addresses[question->count++] =
                (struct address){.module = frame->module, .offset = frame->offset, .frame = i};
    }
    if (question->count > 0)
        qsort(question->addresses, question->count, sizeof *question->addresses, compare_addresses);
}

/* False without memory; the question is to be freed in any case. */
static bool load_question(struct question *question, struct trace *trace)
{
    const struct modules *known = &trace->modules;
    *question = (struct question){
        .trace = trace,
        .modules = calloc(known->count + 1, sizeof *question->modules),
        .addresses = calloc(known->frame_count + 1, sizeof *question->addresses),
        .offsets = calloc(known->frame_count + 1, sizeof *question->offsets),
    };
    if (question->modules == NULL || question->addresses == NULL || question->offsets == NULL)
        return false;
    for (size_t i = 0; i < known->count; i++) {
        question->modules[i].path = known->items[i].path;
        question->modules[i].build_id = known->items[i].build_id;
        question->modules[i].build_id_size = known->items[i].build_id_size;
    }
    collect_addresses(question, known);
    for (size_t i = 0; i < question->count; i++) {
        struct symbolize_module *module = &question->modules[question->addresses[i].module - 1];
        question->offsets[i] = question->addresses[i].offset;
        if (module->offset_count++ == 0)
            module->offsets = &question->offsets[i];
    }
    return true;
}

/* The frame has its names, or is known to have none: nobody needs to ask again. */
static void settle(struct question *question, ttd_id module, uint64_t offset)
{
    struct address wanted = {.module = module, .offset = offset};
    const struct address *address =
        bsearch(&wanted, question->addresses, question->count, sizeof wanted, compare_addresses);
    if (address != NULL)
        question->trace->modules.frames[address->frame].is_settled = true;
}

static void add_names(void *context, size_t module, uint64_t offset,
                      const struct symbolize_frame *frames, size_t count)
{
    struct question *question = context;
    struct trace *trace = question->trace;
    settle(question, (ttd_id)(module + 1), offset);
    if (count == 0)
        return;
    struct ttd_name named[SYMBOLIZE_FRAMES_MAX];
    for (size_t i = 0; i < count; i++)
        named[i] = (struct ttd_name){
            .function = {frames[i].function, frames[i].function_size},
            .file = {frames[i].file, frames[i].file_size},
            .line = frames[i].line,
        };
    if (trace->writer == NULL)
        return;
    if (trace->names != NULL ||
        ttd_names_open(trace->writer, NULL, NULL, NULL, &trace->names) == TTD_OK)
        ttd_names_symbol(trace->names, (ttd_id)(module + 1), offset, named, count);
}

static void name_addresses(struct trace *trace, struct symbolize_cache *names)
{
    struct question question;
    int error = ENOMEM;
    if (load_question(&question, trace))
        error =
            symbolize_cached(names, question.modules, trace->modules.count, add_names, &question);
    if (error != 0 && message_is_first(MESSAGE_UNNAMED, error))
        message("%s: not all addresses have names: %s", trace->path, strerror(error));
    free_question(&question);
}

void trace_write_known_names(struct trace *trace, const struct symbolize_cache *names)
{
    struct question question;
    size_t answers = symbolize_cache_size(names), frames = trace->modules.frame_count;
    if (trace->writer == NULL ||
        (answers == trace->answers_looked_at && frames == trace->frames_looked_at))
        return;
    trace->answers_looked_at = answers;
    trace->frames_looked_at = frames;
    if (load_question(&question, trace))
        symbolize_known(names, question.modules, trace->modules.count, add_names, &question);
    free_question(&question);
}

void trace_prepare(struct trace *trace, struct symbolize_cache *names)
{
    struct question question;
    if (load_question(&question, trace))
        symbolize_prepare(names, question.modules, trace->modules.count);
    free_question(&question);
}

bool trace_is_quick(struct trace *trace, const struct symbolize_cache *names)
{
    struct question question;
    if (trace->writer == NULL)
        return true;
    if (trace->modules.frame_count > QUICK_FRAMES)
        return false;
    bool known = load_question(&question, trace) &&
                 symbolize_is_known(names, question.modules, trace->modules.count);
    free_question(&question);
    return known;
}

bool trace_finish(struct trace *trace, const struct ttd_end *end, struct symbolize_cache *names)
{
    if (trace->writer == NULL)
        return false;
    trace_flush(trace); /* whatever happens to us while we look names up */
    name_addresses(trace, names);
    if (trace->writer == NULL)
        return false;
    enum ttd_status status = ttd_writer_close(trace->writer, end, &trace->error);
    trace->writer = NULL;
    return status == TTD_OK;
}
