/* SPDX-License-Identifier: MIT */
/*
 * Log of glibc's mtrace(): a line for each call, with its caller.
 *
 *     = Start
 *     @ FILE:(FUNCTION+0x1C)[0x11A0] + 0x5630BCC4A0 0x64       an allocation
 *     @ FILE:[0x11A0] - 0x5630BCC4A0                           a release
 *     @ FILE:[0x11A0] < 0x5630BCC4A0                           a reallocation: the old block,
 *     @ FILE:[0x11A0] > 0x5630BCC4A0 0xC8                      and the new one
 *     @ FILE:[0x11A0] ! 0x5630BCC4A0 0xC8                      one that failed
 *     = End
 *
 * Only the caller of the C library is known. Positions are made up: a sequence for each call.
 */
#include "import/import.h"

/* Files with an identity of their own: a log has tens. */
#define MTRACE_FILES_MAX 4096

struct mtrace {
    struct import_text *text;
    struct import_builder *builder;
    /* Ids of stacks by the address and the module of their one frame. */
    struct hash_map frames;
    /* The old block of a reallocation whose new one comes next; 0 for none. */
    uint64_t old_address;
};

static enum ttd_status mtrace_fail(const struct mtrace *source, const char *reason)
{
    return import_text_fail(source->text, TTD_ERROR_CORRUPT, "%s", reason);
}

/* Defines the stack of a caller, and names it if the log has its function. */
static enum ttd_status mtrace_define(struct mtrace *source, ttd_id module, uint64_t address,
                                     struct ttd_string function, ttd_id *stack)
{
    enum ttd_status status =
        ttd_writer_stack(source->builder->writer, TTD_NONE, module, address, stack);
    if (status == TTD_OK)
        status = map_set(&source->frames, address, (uint64_t)module + 1, *stack);
    if (status == TTD_OK && function.size)
        status = import_symbol(source->builder, module, address, function);
    return status;
}

/* Takes the caller, "FILE:(FUNCTION+0x1C)[0x11A0] " or a part of it, and sets its stack. */
static enum ttd_status mtrace_caller(struct mtrace *source, struct ttd_string *rest, ttd_id *stack)
{
    struct ttd_string caller;
    struct ttd_string path = {NULL, 0};
    struct ttd_string function = {NULL, 0};
    ttd_id module = TTD_NONE;
    uint64_t address = 0;
    enum ttd_status status = TTD_OK;
    if (!import_take_until(rest, "[", &caller) || !import_take_number(rest, &address) ||
        !import_take(rest, "] "))
        return mtrace_fail(source, "a caller was expected");
    if (import_take_until(&caller, ":", &path) && import_take(&caller, "(") &&
        !import_take_until(&caller, "+", &function))
        import_take_until(&caller, "-", &function);
    if (path.size && source->builder->file_count < MTRACE_FILES_MAX)
        status = import_file(source->builder, path, &module);
    if (status != TTD_OK)
        return status;
    if (module == TTD_NONE && TTD_FRAMES_LEFT_OUT_COUNT(address))
        return mtrace_fail(source, "the address of the caller is not valid");
    *stack = map_get(&source->frames, address, (uint64_t)module + 1);
    return *stack == MAP_NONE ? mtrace_define(source, module, address, function, stack) : TTD_OK;
}

/* Takes the address of a block. */
static bool mtrace_address(struct ttd_string *rest, uint64_t *address)
{
    *address = 0;
    return import_take(rest, " (nil)") ||
           (import_take(rest, " ") && import_take_number(rest, address));
}

static enum ttd_status mtrace_event(struct mtrace *source, struct ttd_event *event)
{
    import_place(source->builder, event);
    return import_event(source->builder, event);
}

/* Writes the release of a block whose reallocation is cut off. */
static enum ttd_status mtrace_end_reallocation(struct mtrace *source, ttd_id stack)
{
    struct ttd_event event = {.action = TTD_ACTION_FREE,
                              .base_address = source->old_address,
                              .stack = stack,
                              .result = 1,
                              .api = TTD_API_REALLOC};
    if (!source->old_address)
        return TTD_OK;
    source->old_address = 0;
    return mtrace_event(source, &event);
}

static enum ttd_status mtrace_call(struct mtrace *source, struct ttd_string rest)
{
    struct ttd_event event = {.result = 1};
    uint64_t address = 0;
    uint64_t size = 0;
    enum ttd_status status = mtrace_caller(source, &rest, &event.stack);
    if (status != TTD_OK)
        return status;
    char kind = rest.size ? *rest.data : 0;
    rest.data += rest.size ? 1 : 0;
    rest.size -= rest.size ? 1 : 0;
    bool has_size = kind == '+' || kind == '>' || kind == '!';
    if (!mtrace_address(&rest, &address) ||
        (has_size && (!import_take(&rest, " ") || !import_take_number(&rest, &size))) || rest.size)
        return mtrace_fail(source, "an address was expected, or an address and a size");
    if (kind != '>')
        status = mtrace_end_reallocation(source, event.stack);
    if (status != TTD_OK)
        return status;
    switch (kind) {
    case '+':
        event.action = TTD_ACTION_ALLOC;
        event.address = address;
        event.size = size;
        event.result = address != 0;
        return mtrace_event(source, &event);
    case '-':
        event.action = TTD_ACTION_FREE;
        event.api = TTD_API_FREE;
        event.base_address = address;
        return mtrace_event(source, &event);
    case '<':
        source->old_address = address;
        return TTD_OK;
    case '>':
    case '!':
        event.action = TTD_ACTION_REALLOC;
        event.api = TTD_API_REALLOC;
        event.base_address = kind == '>' ? source->old_address : address;
        event.previous_address = event.base_address;
        event.address = kind == '>' ? address : 0;
        event.size = size;
        event.result = event.address != 0;
        source->old_address = 0;
        return mtrace_event(source, &event);
    default:
        return mtrace_fail(source, "the kind of the call is none of + - < > !");
    }
}

static enum ttd_status mtrace_line(struct mtrace *source, struct ttd_string line)
{
    if (import_take(&line, "= Start"))
        return source->builder->writer ? TTD_OK
                                       : import_source(source->builder, "from a log of mtrace()");
    if (source->builder->writer && import_take(&line, "@ "))
        return mtrace_call(source, line);
    source->text->result->ignored++;
    return TTD_OK;
}

enum ttd_status import_mtrace(struct import_text *text, struct import_builder *builder)
{
    struct mtrace source = {.text = text, .builder = builder};
    struct ttd_string line;
    map_init(&source.frames);
    enum ttd_status status = import_text_line(text, &line);
    for (; status == TTD_OK; status = import_text_line(text, &line)) {
        status = mtrace_line(&source, line);
        if (status != TTD_OK)
            break;
    }
    if (status == TTD_END)
        status = mtrace_end_reallocation(&source, TTD_NONE);
    map_free(&source.frames);
    return status;
}
