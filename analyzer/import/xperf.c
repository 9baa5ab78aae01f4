/* SPDX-License-Identifier: MIT */
/*
 * Text of xperf's dumper (xperf -i TRACE.etl -a dumper), with heap events of Windows:
 *
 *     BeginHeader
 *            HeapAlloc, TimeStamp, Process Name ( PID), ThreadID, HeapHandle, AllocSize, ...
 *     EndHeader
 *            HeapAlloc, 1234, notepad.exe (4711), 815, 0x1f0000, 64, ...
 *
 * Experimental: no such text is published, so columns are found by the names in the header.
 * Positions are made up: a sequence for each call.
 */
#include <string.h>
#include <strings.h>

#include "import/import.h"

/* Properties of a call that columns have. */
enum xperf_property {
    XPERF_TIME,
    XPERF_PROCESS,
    XPERF_THREAD,
    XPERF_HEAP,
    XPERF_ADDRESS,
    XPERF_OLD_ADDRESS,
    XPERF_SIZE,
    XPERF_PROPERTIES
};

static const struct xperf_name {
    const char *name;
    uint8_t property;
} xperf_names[] = {{"TimeStamp", XPERF_TIME},
                   {"Process Name ( PID)", XPERF_PROCESS},
                   {"Process Name (PID)", XPERF_PROCESS},
                   {"ThreadID", XPERF_THREAD},
                   {"HeapHandle", XPERF_HEAP},
                   {"Address", XPERF_ADDRESS},
                   {"AllocAddress", XPERF_ADDRESS},
                   {"FreeAddress", XPERF_ADDRESS},
                   {"NewAllocAddress", XPERF_ADDRESS},
                   {"OldAllocAddress", XPERF_OLD_ADDRESS},
                   {"Size", XPERF_SIZE},
                   {"AllocSize", XPERF_SIZE},
                   {"NewAllocSize", XPERF_SIZE}};

#define XPERF_COLUMNS     32
#define XPERF_MICROSECOND UINT64_C(1000)

/* A heap event: its action, the properties that it must have, and its columns from the header. */
static const struct xperf_event {
    const char *name;
    uint8_t action;
    uint8_t api;
    unsigned needed;
} xperf_events[] = {
    {"HeapAlloc", TTD_ACTION_ALLOC, TTD_API_HEAP_ALLOC, 1u << XPERF_ADDRESS | 1u << XPERF_SIZE},
    {"HeapRealloc", TTD_ACTION_REALLOC, TTD_API_HEAP_REALLOC,
     1u << XPERF_ADDRESS | 1u << XPERF_OLD_ADDRESS | 1u << XPERF_SIZE},
    {"HeapFree", TTD_ACTION_FREE, TTD_API_HEAP_FREE, 1u << XPERF_ADDRESS},
    {"HeapCreate", TTD_ACTION_CREATE, TTD_API_HEAP_CREATE, 1u << XPERF_HEAP},
    {"HeapDestroy", TTD_ACTION_DESTROY, TTD_API_HEAP_DESTROY, 1u << XPERF_HEAP}};

#define XPERF_EVENTS (sizeof xperf_events / sizeof xperf_events[0])

struct xperf {
    struct import_text *text;
    struct import_builder *builder;
    bool is_in_header;
    /* Properties of the columns of each event, XPERF_PROPERTIES for one that is not used. */
    uint8_t columns[XPERF_EVENTS][XPERF_COLUMNS];
    size_t column_count[XPERF_EVENTS];
    bool has_process;
    uint64_t process;
    bool has_start;
    uint64_t start;
};

/* Takes the next column. */
static struct ttd_string xperf_take(struct ttd_string *rest)
{
    struct ttd_string cell;
    if (!import_take_until(rest, ",", &cell)) {
        cell = import_trim(*rest);
        rest->size = 0;
    }
    return cell;
}

static size_t xperf_find_event(struct ttd_string name)
{
    size_t i = 0;
    while (i < XPERF_EVENTS && (name.size != strlen(xperf_events[i].name) ||
                                strncasecmp(name.data, xperf_events[i].name, name.size) != 0))
        i++;
    return i;
}

/* Keeps the columns of a heap event. */
static enum ttd_status xperf_header(struct xperf *source, size_t event, struct ttd_string rest)
{
    size_t count = 0;
    unsigned has = 0;
    while (rest.size && count < XPERF_COLUMNS) {
        struct ttd_string name = xperf_take(&rest);
        uint8_t property = XPERF_PROPERTIES;
        for (size_t i = 0; i < sizeof xperf_names / sizeof xperf_names[0]; i++)
            property = import_is(name, xperf_names[i].name) ? xperf_names[i].property : property;
        has |= 1u << property;
        source->columns[event][count++] = property;
    }
    if (rest.size || xperf_events[event].needed & ~has)
        return import_text_fail(source->text, TTD_ERROR_UNSUPPORTED,
                                "the columns of %s are not the known ones",
                                xperf_events[event].name);
    source->column_count[event] = count;
    return TTD_OK;
}

/* Reads the number of a cell; of a process, "NAME (NUMBER)". */
static bool xperf_number(struct ttd_string cell, uint8_t property, uint64_t *number)
{
    struct ttd_string name;
    if (property != XPERF_PROCESS)
        return import_take_number(&cell, number) && !cell.size;
    while (import_take_until(&cell, "(", &name))
        ;
    import_take_blanks(&cell);
    return import_take_number(&cell, number);
}

static enum ttd_status xperf_write(struct xperf *source, size_t index,
                                   const uint64_t numbers[XPERF_PROPERTIES], unsigned has)
{
    struct ttd_event event = {.action = xperf_events[index].action,
                              .api = xperf_events[index].api,
                              .size = numbers[XPERF_SIZE],
                              .result = 1};
    if (event.action == TTD_ACTION_FREE)
        event.base_address = numbers[XPERF_ADDRESS];
    else if (event.action == TTD_ACTION_ALLOC || event.action == TTD_ACTION_REALLOC)
        event.address = numbers[XPERF_ADDRESS];
    if (event.action == TTD_ACTION_ALLOC || event.action == TTD_ACTION_REALLOC)
        event.result = event.address != 0;
    if (event.action == TTD_ACTION_REALLOC)
        event.previous_address = event.base_address = numbers[XPERF_OLD_ADDRESS];
    else if (event.action != TTD_ACTION_ALLOC)
        event.size = 0;
    if (!source->has_start)
        source->start = numbers[XPERF_TIME];
    source->has_start = true;
    if (numbers[XPERF_TIME] > source->start)
        event.wall_time = (numbers[XPERF_TIME] - source->start) * XPERF_MICROSECOND;
    enum ttd_status status = import_heap(source->builder, numbers[XPERF_HEAP], &event.heap);
    if (status == TTD_OK && has & 1u << XPERF_THREAD)
        status = import_thread(source->builder, numbers[XPERF_THREAD], &event.thread);
    if (status != TTD_OK)
        return status;
    import_place(source->builder, &event);
    return import_event(source->builder, &event);
}

static enum ttd_status xperf_row(struct xperf *source, size_t event, struct ttd_string rest)
{
    uint64_t numbers[XPERF_PROPERTIES] = {0};
    unsigned has = 0;
    for (size_t i = 0; i < source->column_count[event]; i++) {
        uint8_t property = source->columns[event][i];
        struct ttd_string cell = xperf_take(&rest);
        if (property == XPERF_PROPERTIES)
            continue;
        if (!xperf_number(cell, property, &numbers[property]) ||
            (property == XPERF_TIME && numbers[property] > UINT64_MAX / XPERF_MICROSECOND / 2))
            return import_text_fail(source->text, TTD_ERROR_CORRUPT,
                                    "column %zu is missing, or its number is not valid", i + 2);
        has |= 1u << property;
    }
    if (has & 1u << XPERF_PROCESS) {
        if (source->has_process && numbers[XPERF_PROCESS] != source->process)
            return import_text_fail(source->text, TTD_ERROR_UNSUPPORTED,
                                    "calls of a second process: select one, such as %llu",
                                    (unsigned long long)source->process);
        source->has_process = true;
        source->process = numbers[XPERF_PROCESS];
    }
    return xperf_write(source, event, numbers, has);
}

static enum ttd_status xperf_line(struct xperf *source, struct ttd_string line)
{
    struct ttd_string name = xperf_take(&line);
    if (import_is(name, "BeginHeader")) {
        source->is_in_header = true;
        if (source->builder->writer)
            return TTD_OK;
        source->builder->trace.time_unit = XPERF_MICROSECOND;
        return import_source(source->builder, "from the text of xperf's dumper (experimental)");
    }
    if (import_is(name, "EndHeader")) {
        source->is_in_header = false;
        return TTD_OK;
    }
    size_t event = source->builder->writer ? xperf_find_event(name) : XPERF_EVENTS;
    if (event < XPERF_EVENTS && source->is_in_header)
        return xperf_header(source, event, line);
    if (event < XPERF_EVENTS && source->column_count[event])
        return xperf_row(source, event, line);
    source->text->result->ignored++;
    return TTD_OK;
}

enum ttd_status import_xperf(struct import_text *text, struct import_builder *builder)
{
    struct xperf source = {.text = text, .builder = builder};
    struct ttd_string line;
    enum ttd_status status = import_text_line(text, &line);
    for (; status == TTD_OK; status = import_text_line(text, &line)) {
        status = xperf_line(&source, line);
        if (status != TTD_OK)
            break;
    }
    return status == TTD_END ? TTD_OK : status;
}
