/* SPDX-License-Identifier: MIT */
/* The end of a trace: names for all addresses that occur in its stacks. */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../symbolize/cache.h"
#include "messages.h"
#include "trace.h"

/* That many are named in some milliseconds, once it is known how. */
enum { QUICK_FRAMES = 10000 };

/* Files and functions repeat from name to name; each is defined once. */
struct interned {
    ttd_id id;
    size_t size;
    char text[];
};

struct naming {
    struct trace *trace;
    void *strings; /* tree of struct interned */
};

static int compare_interned(const void *left, const void *right)
{
    const struct interned *a = left, *b = right;
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    return memcmp(a->text, b->text, a->size);
}

static ttd_id intern(struct naming *naming, const char *text, size_t size)
{
    if (text == NULL || size == 0)
        return TTD_NONE;
    struct interned *wanted = malloc(sizeof *wanted + size);
    if (wanted == NULL)
        return TTD_NONE;
    wanted->size = size;
    memcpy(wanted->text, text, size);
    struct interned **found = tsearch(wanted, &naming->strings, compare_interned);
    if (found == NULL || *found != wanted) {
        free(wanted);
        return found != NULL ? (*found)->id : TTD_NONE;
    }
    return wanted->id = trace_string(naming->trace, text, size);
}

static void add_names(void *context, size_t module, uint64_t offset,
                      const struct symbolize_frame *frames, size_t count)
{
    struct naming *naming = context;
    if (count == 0)
        return;
    ttd_symbol_frame named[SYMBOLIZE_FRAMES_MAX];
    for (size_t i = 0; i < count; i++)
        named[i] = (ttd_symbol_frame){
            .function = intern(naming, frames[i].function, frames[i].function_size),
            .file = intern(naming, frames[i].file, frames[i].file_size),
            .line = frames[i].line,
        };
    ttd_symbol symbol = {.module = (ttd_id)(module + 1),
                         .offset = offset,
                         .frames = named,
                         .frame_count = (uint32_t)count};
    if (naming->trace->writer != NULL)
        ttd_writer_symbol(naming->trace->writer, &symbol);
}

static int compare_frames(const void *left, const void *right)
{
    const struct frame *a = left, *b = right;
    if (a->module != b->module)
        return a->module < b->module ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* All modules of a trace, with the addresses in each. */
struct question {
    struct symbolize_module *modules;
    uint64_t *offsets;
};

static void free_question(struct question *question)
{
    free(question->modules);
    free(question->offsets);
}

/* Sorts the frames: nothing is added to them any more. False without memory. */
static bool load_question(struct question *question, struct modules *known)
{
    question->modules = calloc(known->count + 1, sizeof *question->modules);
    question->offsets = calloc(known->frame_count + 1, sizeof *question->offsets);
    if (question->modules == NULL || question->offsets == NULL)
        return false;
    for (size_t i = 0; i < known->count; i++) {
        question->modules[i].path = known->items[i].path;
        question->modules[i].build_id = known->items[i].build_id;
        question->modules[i].build_id_size = known->items[i].build_id_size;
    }
    if (known->frame_count > 0)
        qsort(known->frames, known->frame_count, sizeof *known->frames, compare_frames);
    for (size_t i = 0; i < known->frame_count; i++) {
        question->offsets[i] = known->frames[i].offset;
        if (known->frames[i].module == TTD_NONE)
            continue;
        struct symbolize_module *module = &question->modules[known->frames[i].module - 1];
        if (module->offset_count++ == 0)
            module->offsets = &question->offsets[i];
    }
    return true;
}

static void name_addresses(struct trace *trace, struct symbolize_cache *names)
{
    struct naming naming = {trace, NULL};
    struct question question;
    int error = ENOMEM;
    if (load_question(&question, &trace->modules))
        error = symbolize_cached(names, question.modules, trace->modules.count, add_names, &naming);
    if (error != 0)
        message("%s: not all addresses have names: %s", trace->path, strerror(error));
    tdestroy(naming.strings, free);
    free_question(&question);
}

void trace_prepare(struct trace *trace, struct symbolize_cache *names)
{
    struct question question;
    if (load_question(&question, &trace->modules))
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
    bool known = load_question(&question, &trace->modules) &&
                 symbolize_is_known(names, question.modules, trace->modules.count);
    free_question(&question);
    return known;
}

bool trace_finish(struct trace *trace, const ttd_end *end, struct symbolize_cache *names)
{
    if (trace->writer == NULL)
        return false;
    trace_flush(trace); /* whatever happens to us while we look names up */
    name_addresses(trace, names);
    if (trace->writer == NULL)
        return false;
    ttd_status status = ttd_writer_close(trace->writer, end, &trace->error);
    trace->writer = NULL;
    return status == TTD_OK;
}
