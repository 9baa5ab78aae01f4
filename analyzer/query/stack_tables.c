/* SPDX-License-Identifier: MIT */
/* The tables of stacks and of their frames. A condition on stack_id looks the stack up. */
#include <stdlib.h>

#include "query/query_names.h"

enum stacks_column { STACKS_ID, STACKS_CALLER, STACKS_SITE, STACKS_STACK };

const struct query_column query_stacks_columns[] = {{"stack_id", QUERY_INTEGER},
                                                    {"caller_stack_id", QUERY_INTEGER},
                                                    {"site", QUERY_TEXT},
                                                    {"stack", QUERY_TEXT},
                                                    {NULL, QUERY_INTEGER}};

enum frames_column {
    FRAMES_ID,
    FRAMES_DEPTH,
    FRAMES_FUNCTION,
    FRAMES_FILE,
    FRAMES_LINE,
    FRAMES_MODULE,
    FRAMES_OFFSET,
    FRAMES_ADDRESS,
    FRAMES_INLINED
};

const struct query_column query_frames_columns[] = {
    {"stack_id", QUERY_INTEGER}, {"depth", QUERY_INTEGER},   {"function", QUERY_TEXT},
    {"file", QUERY_TEXT},        {"line", QUERY_INTEGER},    {"module", QUERY_TEXT},
    {"offset", QUERY_ADDRESS},   {"address", QUERY_ADDRESS}, {"inlined", QUERY_INTEGER},
    {NULL, QUERY_INTEGER}};

struct stack_cursor {
    sqlite3_vtab_cursor base;
    struct query *query;
    bool has_frames;
    /** The chunk of the definitions, and the stack in it. */
    size_t chunk;
    uint32_t index;
    /** One stack is asked for. */
    bool is_single;
    bool is_over;
    struct ttd_stack stack;
    struct frame_list frames;
    size_t depth;
};

static int stack_table_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    info->estimatedCost = 1e6;
    info->estimatedRows = 1000000;
    for (int i = 0; i < info->nConstraint; i++) {
        if (info->aConstraint[i].iColumn != STACKS_ID || !info->aConstraint[i].usable ||
            info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
            continue;
        info->aConstraintUsage[i].argvIndex = 1;
        info->idxNum = 1;
        info->estimatedCost = 10;
        info->estimatedRows = 10;
        return SQLITE_OK;
    }
    return SQLITE_OK;
}

static int stack_table_open_cursor(struct query *query, bool has_frames,
                                   sqlite3_vtab_cursor **result)
{
    struct stack_cursor *cursor = calloc(1, sizeof *cursor);
    if (!cursor)
        return SQLITE_NOMEM;
    cursor->query = query;
    cursor->has_frames = has_frames;
    *result = &cursor->base;
    return SQLITE_OK;
}

static int stack_table_open(sqlite3_vtab *table, sqlite3_vtab_cursor **result)
{
    return stack_table_open_cursor(query_of_table(table), false, result);
}

static int stack_table_open_frames(sqlite3_vtab *table, sqlite3_vtab_cursor **result)
{
    return stack_table_open_cursor(query_of_table(table), true, result);
}

static int stack_table_close(sqlite3_vtab_cursor *base)
{
    struct stack_cursor *cursor = (struct stack_cursor *)base;
    frame_list_free(&cursor->frames);
    free(cursor);
    return SQLITE_OK;
}

/* Looks up a stack, and its frames for their table. TTD_END if it is not defined, or has none. */
static enum ttd_status stack_table_enter(struct stack_cursor *cursor, ttd_id stack)
{
    struct definitions *definitions = &cursor->query->names->session.definitions;
    cursor->depth = 0;
    enum ttd_status status = definitions_stack(definitions, stack, &cursor->stack);
    if (status != TTD_OK || !cursor->has_frames)
        return status;
    status = frame_list_expand(&cursor->frames, definitions, stack);
    return status == TTD_OK && !cursor->frames.count ? TTD_END : status;
}

/* Goes on to the next stack that is defined, from the present one inclusive. */
static int stack_table_settle(struct stack_cursor *cursor)
{
    const struct stack_table *table = &cursor->query->names->session.definitions.stacks;
    while (cursor->chunk < table->count) {
        const struct stack_chunk *chunk = &table->chunks[cursor->chunk];
        if (cursor->index == chunk->count) {
            cursor->chunk++;
            cursor->index = 0;
            continue;
        }
        enum ttd_status status = stack_table_enter(cursor, chunk->first + cursor->index);
        if (status != TTD_END)
            return query_names_check(cursor->query, status);
        cursor->index++;
    }
    cursor->is_over = true;
    return SQLITE_OK;
}

static int stack_table_filter(sqlite3_vtab_cursor *base, int number, const char *text, int count,
                              sqlite3_value **values)
{
    (void)text;
    (void)count;
    struct stack_cursor *cursor = (struct stack_cursor *)base;
    if (!query_names(cursor->query))
        return SQLITE_ABORT;
    cursor->is_single = number == 1 && sqlite3_value_type(values[0]) == SQLITE_INTEGER;
    cursor->is_over = false;
    cursor->chunk = 0;
    cursor->index = 0;
    if (!cursor->is_single)
        return stack_table_settle(cursor);
    sqlite3_int64 stack = sqlite3_value_int64(values[0]);
    enum ttd_status status =
        stack >= 0 && stack <= UINT32_MAX ? stack_table_enter(cursor, (ttd_id)stack) : TTD_END;
    cursor->is_over = status == TTD_END;
    return cursor->is_over ? SQLITE_OK : query_names_check(cursor->query, status);
}

static int stack_table_next(sqlite3_vtab_cursor *base)
{
    struct stack_cursor *cursor = (struct stack_cursor *)base;
    if (cursor->has_frames && ++cursor->depth < cursor->frames.count)
        return SQLITE_OK;
    cursor->is_over = cursor->is_single;
    cursor->index++;
    return cursor->is_over ? SQLITE_OK : stack_table_settle(cursor);
}

static int stack_table_eof(sqlite3_vtab_cursor *base)
{
    return ((const struct stack_cursor *)base)->is_over;
}

static int stack_table_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *row)
{
    const struct stack_cursor *cursor = (const struct stack_cursor *)base;
    *row = (sqlite3_int64)((uint64_t)cursor->stack.id << 16 | (cursor->depth & 0xffff));
    return SQLITE_OK;
}

static int stack_table_column(sqlite3_vtab_cursor *base, sqlite3_context *answer, int column)
{
    const struct stack_cursor *cursor = (const struct stack_cursor *)base;
    if (column == STACKS_ID)
        sqlite3_result_int64(answer, cursor->stack.id);
    else if (column == STACKS_CALLER && cursor->stack.parent)
        sqlite3_result_int64(answer, cursor->stack.parent);
    else if (column == STACKS_SITE)
        query_names_answer_site(cursor->query, cursor->stack.id, answer);
    else if (column == STACKS_STACK)
        query_names_answer_stack(cursor->query, cursor->stack.id, answer);
    return SQLITE_OK;
}

static void stack_table_answer_name(sqlite3_context *answer, struct ttd_string name)
{
    if (name.size)
        sqlite3_result_text(answer, name.data, (int)name.size, SQLITE_TRANSIENT);
}

static int stack_table_frame_column(sqlite3_vtab_cursor *base, sqlite3_context *answer, int column)
{
    const struct stack_cursor *cursor = (const struct stack_cursor *)base;
    const struct frame *frame = &cursor->frames.frames[cursor->depth];
    switch ((enum frames_column)column) {
    case FRAMES_ID:
        sqlite3_result_int64(answer, cursor->stack.id);
        break;
    case FRAMES_DEPTH:
        sqlite3_result_int64(answer, (sqlite3_int64)cursor->depth);
        break;
    case FRAMES_FUNCTION:
        stack_table_answer_name(answer, frame->function);
        break;
    case FRAMES_FILE:
        stack_table_answer_name(answer, frame->file);
        break;
    case FRAMES_LINE:
        if (frame->line)
            sqlite3_result_int64(answer, frame->line);
        break;
    case FRAMES_MODULE:
        stack_table_answer_name(answer, frame->module);
        break;
    case FRAMES_OFFSET:
        sqlite3_result_int64(answer, (sqlite3_int64)frame->offset);
        break;
    case FRAMES_ADDRESS:
        sqlite3_result_int64(answer, (sqlite3_int64)frame->address);
        break;
    case FRAMES_INLINED:
        sqlite3_result_int(answer, frame->is_inlined);
        break;
    }
    return SQLITE_OK;
}

const sqlite3_module query_stacks_functions = {.xCreate = query_table_connect,
                                               .xConnect = query_table_connect,
                                               .xBestIndex = stack_table_best_index,
                                               .xDisconnect = query_table_disconnect,
                                               .xDestroy = query_table_disconnect,
                                               .xOpen = stack_table_open,
                                               .xClose = stack_table_close,
                                               .xFilter = stack_table_filter,
                                               .xNext = stack_table_next,
                                               .xEof = stack_table_eof,
                                               .xColumn = stack_table_column,
                                               .xRowid = stack_table_rowid};

const sqlite3_module query_frames_functions = {.xCreate = query_table_connect,
                                               .xConnect = query_table_connect,
                                               .xBestIndex = stack_table_best_index,
                                               .xDisconnect = query_table_disconnect,
                                               .xDestroy = query_table_disconnect,
                                               .xOpen = stack_table_open_frames,
                                               .xClose = stack_table_close,
                                               .xFilter = stack_table_filter,
                                               .xNext = stack_table_next,
                                               .xEof = stack_table_eof,
                                               .xColumn = stack_table_frame_column,
                                               .xRowid = stack_table_rowid};
