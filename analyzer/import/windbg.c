/* SPDX-License-Identifier: MIT */
/*
 * Heap objects of a TTD trace, as WinDbg's dx prints them:
 *
 *     dx -g @$cursession.TTD.Data.Heap()       a grid: "= [0x0] : [object Object] - Alloc - ..."
 *     dx -r2 @$cursession.TTD.Data.Heap()      a list: "    [0x0] : ...", "        Action : Alloc"
 *     dx -r3 ...                               a list of calls, of older versions: Function,
 *                                              ReturnValue and Parameters
 *
 * Objects come in any order, and are sorted by effect. The address of a Free is in Address or in
 * BaseAddress.
 */
#include <stdio.h>
#include <string.h>

#include "import/import.h"
#include "import/windbg_calls.h"

/* Properties of an object that are numbers, by their place in windbg_names. */
enum windbg_property {
    WINDBG_HEAP,
    WINDBG_ADDRESS,
    WINDBG_PREVIOUS,
    WINDBG_BASE,
    WINDBG_SIZE,
    WINDBG_FLAGS,
    WINDBG_RESULT,
    WINDBG_RESERVE,
    WINDBG_COMMIT,
    WINDBG_READ_ONLY,
    WINDBG_RETURN,
    WINDBG_THREAD,
    WINDBG_UNIQUE_THREAD,
    WINDBG_NUMBERS,
    WINDBG_ACTION = WINDBG_NUMBERS,
    WINDBG_FUNCTION,
    WINDBG_START,
    WINDBG_END,
    WINDBG_PARAMETERS,
    WINDBG_NAMES
};

static const char *const windbg_names[WINDBG_NAMES] = {
    "Heap",        "Address",  "PreviousAddress", "BaseAddress", "Size",
    "Flags",       "Result",   "ReserveSize",     "CommitSize",  "MakeReadOnly",
    "ReturnValue", "ThreadId", "UniqueThreadId",  "Action",      "Function",
    "TimeStart",   "TimeEnd",  "Parameters"};

/* Largest number of columns of a grid, and of parameters of a call. */
#define WINDBG_COLUMNS        64
#define WINDBG_PARAMETERS_MAX 8

/* A function of the layout of calls: its action and its parameters in order. */
static const struct windbg_function {
    const char *name;
    uint8_t action;
    uint8_t parameters[4];
} windbg_functions[] = {
#define NONE WINDBG_NAMES
    {"RtlAllocateHeap", TTD_ACTION_ALLOC, {WINDBG_HEAP, WINDBG_FLAGS, WINDBG_SIZE, NONE}},
    {"HeapAlloc", TTD_ACTION_ALLOC, {WINDBG_HEAP, WINDBG_FLAGS, WINDBG_SIZE, NONE}},
    {"RtlReAllocateHeap",
     TTD_ACTION_REALLOC,
     {WINDBG_HEAP, WINDBG_FLAGS, WINDBG_BASE, WINDBG_SIZE}},
    {"HeapReAlloc", TTD_ACTION_REALLOC, {WINDBG_HEAP, WINDBG_FLAGS, WINDBG_BASE, WINDBG_SIZE}},
    {"RtlFreeHeap", TTD_ACTION_FREE, {WINDBG_HEAP, WINDBG_FLAGS, WINDBG_BASE, NONE}},
    {"HeapFree", TTD_ACTION_FREE, {WINDBG_HEAP, WINDBG_FLAGS, WINDBG_BASE, NONE}},
    {"RtlCreateHeap", TTD_ACTION_CREATE, {WINDBG_FLAGS, NONE, WINDBG_RESERVE, WINDBG_COMMIT}},
    {"HeapCreate", TTD_ACTION_CREATE, {WINDBG_FLAGS, WINDBG_COMMIT, WINDBG_RESERVE, NONE}},
    {"RtlProtectHeap", TTD_ACTION_PROTECT, {WINDBG_HEAP, WINDBG_READ_ONLY, NONE, NONE}},
    {"RtlLockHeap", TTD_ACTION_LOCK, {WINDBG_HEAP, NONE, NONE, NONE}},
    {"HeapLock", TTD_ACTION_LOCK, {WINDBG_HEAP, NONE, NONE, NONE}},
    {"RtlUnlockHeap", TTD_ACTION_UNLOCK, {WINDBG_HEAP, NONE, NONE, NONE}},
    {"HeapUnlock", TTD_ACTION_UNLOCK, {WINDBG_HEAP, NONE, NONE, NONE}},
    {"RtlDestroyHeap", TTD_ACTION_DESTROY, {WINDBG_HEAP, NONE, NONE, NONE}},
    {"HeapDestroy", TTD_ACTION_DESTROY, {WINDBG_HEAP, NONE, NONE, NONE}},
#undef NONE
};

/* The API by action. */
static const uint8_t windbg_apis[] = {
    [TTD_ACTION_ALLOC] = TTD_API_HEAP_ALLOC,     [TTD_ACTION_REALLOC] = TTD_API_HEAP_REALLOC,
    [TTD_ACTION_FREE] = TTD_API_HEAP_FREE,       [TTD_ACTION_CREATE] = TTD_API_HEAP_CREATE,
    [TTD_ACTION_PROTECT] = TTD_API_HEAP_PROTECT, [TTD_ACTION_LOCK] = TTD_API_HEAP_LOCK,
    [TTD_ACTION_UNLOCK] = TTD_API_HEAP_UNLOCK,   [TTD_ACTION_DESTROY] = TTD_API_HEAP_DESTROY};

/* An object while its properties are read. */
struct windbg_object {
    bool is_open;
    bool has[WINDBG_NAMES];
    uint64_t numbers[WINDBG_NUMBERS];
    uint8_t action;
    const struct windbg_function *function;
    uint64_t parameters[WINDBG_PARAMETERS_MAX];
    size_t parameter_count;
    struct ttd_position start;
    struct ttd_position end;
};

struct windbg {
    struct import_text *text;
    struct import_builder *builder;
    /* Properties of the columns of the grid, WINDBG_NAMES for one that is not used. */
    uint8_t columns[WINDBG_COLUMNS];
    size_t column_count;
    struct windbg_object object;
    /* Indentation of the objects of a list; of properties it is larger. */
    size_t indentation;
    struct windbg_calls calls;
    /* One more than the largest index of an object. */
    uint64_t index_end;
    bool is_cut;
};

static enum ttd_status windbg_fail(const struct windbg *source, const char *reason)
{
    return import_text_fail(source->text, TTD_ERROR_CORRUPT, "%s", reason);
}

/* Properties. */

static uint8_t windbg_find_name(struct ttd_string name)
{
    import_take(&name, "(+)");
    name = import_trim(name);
    uint8_t i = 0;
    while (i < WINDBG_NAMES && !import_is(name, windbg_names[i]))
        i++;
    return i;
}

static bool windbg_position(struct ttd_string *rest, struct ttd_position *position)
{
    struct ttd_position read = {0, 0};
    struct ttd_string digits = *rest;
    if (!import_take_hex(&digits, &read.sequence) || !import_take(&digits, ":") ||
        !import_take_hex(&digits, &read.steps) || !ttd_position_is_valid(read))
        return false;
    *rest = digits;
    *position = read;
    return true;
}

static bool windbg_action(struct ttd_string *rest, uint8_t *action)
{
    for (unsigned i = TTD_ACTION_ALLOC; i <= TTD_ACTION_DESTROY; i++) {
        struct ttd_string name = *rest;
        if (import_take(&name, ttd_action_name((enum ttd_action)i)) &&
            (!name.size || *name.data == ' ')) {
            *rest = name;
            *action = (uint8_t)i;
            return true;
        }
    }
    return false;
}

/* Finds a function, with or without its module: "ntdll!RtlFreeHeap". */
static const struct windbg_function *windbg_find_function(struct ttd_string name)
{
    struct ttd_string module;
    import_take_until(&name, "!", &module);
    name = import_trim(name);
    for (size_t i = 0; i < sizeof windbg_functions / sizeof windbg_functions[0]; i++) {
        if (import_is(name, windbg_functions[i].name))
            return &windbg_functions[i];
    }
    return NULL;
}

static enum ttd_status windbg_set(struct windbg *source, uint8_t property, struct ttd_string value)
{
    struct windbg_object *object = &source->object;
    value = import_trim(value);
    if (property == WINDBG_NAMES || !value.size || property == WINDBG_PARAMETERS)
        return TTD_OK;
    bool is_read = true;
    if (property == WINDBG_ACTION) {
        is_read = windbg_action(&value, &object->action);
    } else if (property == WINDBG_FUNCTION) {
        object->function = windbg_find_function(value);
        if (!object->function)
            return import_text_fail(source->text, TTD_ERROR_UNSUPPORTED,
                                    "the function is no known heap function: WinDbg needs the "
                                    "symbols of ntdll");
        value.size = 0;
    } else if (property == WINDBG_START) {
        is_read = windbg_position(&value, &object->start);
    } else if (property == WINDBG_END) {
        /* The text of a call that never returned names no position. */
        if (!windbg_position(&value, &object->end))
            return TTD_OK;
    } else {
        is_read = import_take_number(&value, &object->numbers[property]);
    }
    /* Some versions add the type in brackets. */
    if (!is_read || (value.size && *value.data != ' '))
        return import_text_fail(source->text, TTD_ERROR_CORRUPT, "the value of %s is not valid",
                                windbg_names[property]);
    object->has[property] = true;
    return TTD_OK;
}

/* Turns the parameters of a call into properties. */
static enum ttd_status windbg_apply_parameters(struct windbg *source)
{
    struct windbg_object *object = &source->object;
    const struct windbg_function *function = object->function;
    object->action = function->action;
    object->has[WINDBG_ACTION] = true;
    for (size_t i = 0; i < sizeof function->parameters; i++) {
        uint8_t property = function->parameters[i];
        if (property == WINDBG_NAMES)
            continue;
        if (i >= object->parameter_count)
            return import_text_fail(source->text, TTD_ERROR_UNSUPPORTED,
                                    "the call before has no parameters: print them with dx -r3");
        object->numbers[property] = object->parameters[i];
        object->has[property] = true;
    }
    uint64_t returned = object->numbers[WINDBG_RETURN];
    if (function->action == TTD_ACTION_ALLOC || function->action == TTD_ACTION_REALLOC)
        object->numbers[WINDBG_ADDRESS] = returned;
    if (function->action == TTD_ACTION_CREATE)
        object->numbers[WINDBG_HEAP] = returned;
    object->numbers[WINDBG_RESULT] = returned;
    object->has[WINDBG_RESULT] = true;
    return TTD_OK;
}

/* Makes a call of an object with all of its properties. */
static void windbg_convert(const struct windbg_object *object, struct windbg_call *call)
{
    const uint64_t *numbers = object->numbers;
    bool acquires = object->action == TTD_ACTION_ALLOC || object->action == TTD_ACTION_REALLOC;
    *call =
        (struct windbg_call){.start = object->start,
                             .end = object->has[WINDBG_END] ? object->end : ttd_position_invalid(),
                             .heap = numbers[WINDBG_HEAP],
                             .flags = numbers[WINDBG_FLAGS],
                             .action = object->action};
    call->has_thread = object->has[WINDBG_UNIQUE_THREAD] || object->has[WINDBG_THREAD];
    call->thread = numbers[object->has[WINDBG_THREAD] ? WINDBG_THREAD : WINDBG_UNIQUE_THREAD];
    call->result = object->has[WINDBG_RESULT] ? numbers[WINDBG_RESULT] : 1;
    if (acquires) {
        call->address = numbers[WINDBG_ADDRESS];
        call->size = numbers[WINDBG_SIZE];
        call->result = call->address != 0;
    }
    if (object->action == TTD_ACTION_FREE)
        call->base = numbers[object->has[WINDBG_BASE] ? WINDBG_BASE : WINDBG_ADDRESS];
    if (object->action == TTD_ACTION_REALLOC)
        call->base = numbers[object->has[WINDBG_PREVIOUS] ? WINDBG_PREVIOUS : WINDBG_BASE];
    if (object->action == TTD_ACTION_CREATE) {
        call->reserve = numbers[WINDBG_RESERVE];
        call->size = numbers[WINDBG_COMMIT];
        call->result = numbers[WINDBG_HEAP] != 0;
    }
    if (object->action == TTD_ACTION_PROTECT)
        call->size = numbers[WINDBG_READ_ONLY];
    if (!object->has[WINDBG_END])
        call->result = call->address = 0;
}

/* Ends the object that is being read, if one is. */
static enum ttd_status windbg_end_object(struct windbg *source)
{
    struct windbg_object *object = &source->object;
    enum ttd_status status = TTD_OK;
    if (!object->is_open)
        return TTD_OK;
    if (object->function)
        status = windbg_apply_parameters(source);
    if (status != TTD_OK)
        return status;
    if (!object->has[WINDBG_ACTION] || !object->has[WINDBG_START])
        return windbg_fail(source, "the object before has no Action or no TimeStart");
    if (object->has[WINDBG_END] && ttd_position_compare(object->start, object->end) > 0)
        return windbg_fail(source, "the object before has a TimeEnd before its TimeStart");
    struct windbg_call call;
    windbg_convert(object, &call);
    object->is_open = false;
    return windbg_calls_add(&source->calls, &call);
}

static enum ttd_status windbg_begin_object(struct windbg *source, uint64_t index)
{
    enum ttd_status status = windbg_end_object(source);
    if (status != TTD_OK)
        return status;
    source->object = (struct windbg_object){.is_open = true};
    if (index >= source->index_end)
        source->index_end = index < UINT64_MAX ? index + 1 : index;
    if (source->builder->writer)
        return TTD_OK;
    return import_source(source->builder, "from heap objects that WinDbg printed of a TTD trace");
}

/* Lines. */

static enum ttd_status windbg_header(struct windbg *source, struct ttd_string rest)
{
    struct ttd_string name;
    source->column_count = 0;
    while (import_take_until(&rest, "=", &name)) {
        if (source->column_count == WINDBG_COLUMNS)
            return windbg_fail(source, "the grid has too many columns");
        source->columns[source->column_count++] = windbg_find_name(name);
    }
    return TTD_OK;
}

/* Takes "[0x1A]", the index of an object or of a parameter. */
static bool windbg_index(struct ttd_string *rest, uint64_t *index)
{
    struct ttd_string inner = *rest;
    if (!import_take(&inner, "[") || !import_take_number(&inner, index) ||
        !import_take(&inner, "]"))
        return false;
    *rest = inner;
    return true;
}

/* A row of the grid: cells between " - ". The first one is the index. */
static enum ttd_status windbg_row(struct windbg *source, struct ttd_string rest, uint64_t index)
{
    struct ttd_string cell;
    enum ttd_status status = windbg_begin_object(source, index);
    if (!source->column_count)
        return windbg_fail(source, "the header of the grid is missing");
    while (rest.size && rest.data[rest.size - 1] == ' ')
        rest.size--;
    if (!rest.size || rest.data[rest.size - 1] != '=')
        return windbg_fail(source, "the row is cut off: it has no = at its end");
    rest.size--;
    import_take_until(&rest, " - ", &cell);
    for (size_t i = 1; i < source->column_count && status == TTD_OK; i++) {
        bool is_last = !import_take_until(&rest, " - ", &cell);
        if (is_last != (i + 1 == source->column_count))
            return windbg_fail(source, "the row has not as many cells as the header");
        status = windbg_set(source, source->columns[i], is_last ? rest : cell);
    }
    if (status == TTD_OK && source->object.function)
        return import_text_fail(source->text, TTD_ERROR_UNSUPPORTED,
                                "this grid has no parameters of calls: print a list with dx -r3");
    return status == TTD_OK ? windbg_end_object(source) : status;
}

/* A property of the object, or a parameter of its call. */
static enum ttd_status windbg_member(struct windbg *source, struct ttd_string rest)
{
    struct ttd_string name;
    uint64_t index = 0;
    bool is_parameter = windbg_index(&rest, &index);
    if (!import_take_until(&rest, ":", &name)) {
        source->text->result->ignored++;
        return TTD_OK;
    }
    if (!is_parameter)
        return windbg_set(source, windbg_find_name(name), rest);
    if (index >= WINDBG_PARAMETERS_MAX)
        return TTD_OK;
    rest = import_trim(rest);
    if (index != source->object.parameter_count ||
        !import_take_number(&rest, &source->object.parameters[index]))
        return windbg_fail(source, "the parameter is not valid");
    source->object.parameter_count++;
    return TTD_OK;
}

static enum ttd_status windbg_line(struct windbg *source, struct ttd_string line)
{
    uint64_t index = 0;
    struct ttd_string rest = line;
    import_take_blanks(&rest);
    size_t indentation = line.size - rest.size;
    if (import_take(&rest, "=")) {
        struct ttd_string first = rest;
        import_take_blanks(&first);
        if (windbg_index(&first, &index))
            return windbg_row(source, first, index);
        return import_take(&first, "=") && first.size && *first.data == '='
                   ? TTD_OK
                   : windbg_header(source, rest);
    }
    if (import_is(import_trim(rest), "[...]") || import_is(import_trim(rest), "...")) {
        source->is_cut = true;
        return TTD_OK;
    }
    if (source->object.is_open && indentation > source->indentation)
        return windbg_member(source, rest);
    if (windbg_index(&rest, &index)) {
        source->indentation = indentation;
        return windbg_begin_object(source, index);
    }
    source->text->result->ignored += rest.size != 0;
    return TTD_OK;
}

/* Writing. */

static enum ttd_status windbg_write_call(struct windbg *source, const struct windbg_call *call)
{
    struct ttd_event event = {.time_start = call->start,
                              .time_end = call->end,
                              .address = call->address,
                              .base_address = call->base,
                              .flags = call->flags,
                              .result = call->result,
                              .action = call->action,
                              .api = windbg_apis[call->action]};
    if (call->action == TTD_ACTION_REALLOC)
        event.previous_address = call->base;
    if (call->action == TTD_ACTION_CREATE) {
        event.reserve_size = call->reserve;
        event.commit_size = call->size;
    } else if (call->action == TTD_ACTION_PROTECT) {
        event.make_read_only = call->size;
    } else {
        event.size = call->size;
    }
    enum ttd_status status = import_heap(source->builder, call->heap, &event.heap);
    if (status == TTD_OK && call->has_thread)
        status = import_thread(source->builder, call->thread, &event.thread);
    return status == TTD_OK ? import_event(source->builder, &event) : status;
}

/* Says which objects the text does not have. */
static enum ttd_status windbg_write_missing(struct windbg *source)
{
    char text[96];
    if (source->is_cut)
        snprintf(text, sizeof text, "objects behind the first %zu: dx has left them out",
                 source->calls.count);
    else if (source->index_end > source->calls.count)
        snprintf(text, sizeof text, "%llu of %llu heap objects: the text does not have them",
                 (unsigned long long)(source->index_end - source->calls.count),
                 (unsigned long long)source->index_end);
    else
        return TTD_OK;
    return import_fact(source->builder, "unrecorded", (struct ttd_string){text, strlen(text)});
}

static enum ttd_status windbg_write(struct windbg *source)
{
    struct windbg_call call;
    enum ttd_status status = source->builder->writer ? windbg_write_missing(source) : TTD_OK;
    if (status == TTD_OK)
        status = windbg_calls_sort(&source->calls);
    while (status == TTD_OK && windbg_calls_next(&source->calls, &call))
        status = windbg_write_call(source, &call);
    return status;
}

enum ttd_status import_windbg(struct import_text *text, struct import_builder *builder)
{
    struct windbg source = {.text = text, .builder = builder};
    struct ttd_string line;
    enum ttd_status status = import_text_line(text, &line);
    for (; status == TTD_OK; status = import_text_line(text, &line)) {
        status = windbg_line(&source, line);
        if (status != TTD_OK)
            break;
    }
    if (status == TTD_END)
        status = windbg_end_object(&source);
    if (status == TTD_OK)
        status = windbg_write(&source);
    windbg_calls_free(&source.calls);
    return status;
}
