/* SPDX-License-Identifier: MIT */
#include "query/query_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "cli/process/message.h"
#include "cli/session/sidecar.h"
#include "report/sections/sections.h"

/* The session of the names. */

static enum ttd_status names_see_losses(void *context, const struct ttd_batch *batch)
{
    struct heap_outcome *outcome = context;
    if (batch->kind == TTD_KIND_LOSSES)
        heap_losses_add(&outcome->losses, batch);
    return TTD_OK;
}

/* Finds the last position of a trace that was not closed: nothing is known behind it. */
static void names_find_end(struct source *source, struct heap_outcome *outcome)
{
    struct ttd_chunk chunk;
    if (source->is_closed)
        return;
    enum ttd_status status = ttd_reader_rewind(source->reader, TTD_KIND_BIT(TTD_KIND_EVENTS));
    while (status == TTD_OK) {
        status = ttd_reader_next_chunk(source->reader, &chunk, &outcome->error);
        if (status == TTD_OK && chunk.kind == TTD_KIND_EVENTS)
            outcome->position = chunk.last_position;
    }
    outcome->truncated = heap_is_over(status) && status != TTD_END;
}

/* Judges an answer that rests on the trace, but replays none of its events. */
static int names_judge(struct query *query, struct session *session)
{
    struct heap_outcome outcome = {.reached_end = true};
    struct heap_batch_hook losses = {.context = &outcome, .batch = names_see_losses};
    int status = source_read(&session->source, 0, &losses);
    if (status != STATUS_OK)
        return status;
    names_find_end(&session->source, &outcome);
    session_outcome(session, &outcome, ttd_position_max());
    query_add_reasons(query, &session->report.certainty);
    source_take_intact(&query->session->source, &session->source);
    return STATUS_OK;
}

int query_judge(struct query *query)
{
    struct session *session = query->is_judged ? NULL : malloc(sizeof *session);
    if (!session)
        return query->is_judged ? STATUS_OK : message_status("query", TTD_ERROR_NO_MEMORY);
    int status = query_open_session(query, session, &command_state);
    if (status == STATUS_OK) {
        struct source *source = &session->source;
        source->is_partly_read = !source->is_known_intact && sidecar_pays(session);
        status = session_close(session, names_judge(query, session), false);
    }
    query->is_judged = status == STATUS_OK;
    free(session);
    return status;
}

static int names_read(struct query *query, struct session *session)
{
    int status = session_names(session, true);
    return status == STATUS_OK ? names_judge(query, session) : status;
}

struct query_names *query_names(struct query *query)
{
    if (query->names || query->status != STATUS_OK)
        return query->names;
    struct query_names *names = calloc(1, sizeof *names);
    if (!names) {
        query_failed(query, message_status("query", TTD_ERROR_NO_MEMORY));
        return NULL;
    }
    int status = query_open_session(query, &names->session, &command_state);
    if (status == STATUS_OK) {
        status = names_read(query, &names->session);
        out_init(&names->session.output.text, -1, false);
        names->session.output.text.room = UINT64_MAX;
        if (status != STATUS_OK)
            session_close(&names->session, status, false);
    }
    if (status == STATUS_OK) {
        query->names = names;
        return names;
    }
    query_failed(query, status);
    free(names);
    return NULL;
}

static void names_free_pattern(struct query_pattern *pattern)
{
    view_free(&pattern->view);
    free(pattern->text);
}

void query_names_free(struct query *query)
{
    struct query_names *names = query->names;
    if (!names)
        return;
    for (size_t i = 0; i < names->pattern_count; i++)
        names_free_pattern(&names->patterns[i]);
    session_close(&names->session, STATUS_OK, false);
    free(names);
    query->names = NULL;
}

int query_names_check(struct query *query, enum ttd_status status)
{
    int exit_status = session_check(&query->names->session, status);
    return exit_status == STATUS_OK ? SQLITE_OK : query_failed(query, exit_status);
}

/* Answers. */

static void names_answer_failure(struct query *query, sqlite3_context *answer,
                                 enum ttd_status status)
{
    query_names_check(query, status);
    sqlite3_result_error(answer, "the stacks cannot be read", -1);
}

/* Answers the text that was composed in the output. */
static void names_answer_output(struct query_names *names, sqlite3_context *answer)
{
    struct text_output *output = &names->session.output.text;
    if (output->error)
        sqlite3_result_error(answer, "a stack is longer than 65,536 bytes", -1);
    else
        sqlite3_result_text(answer, output->buffer, (int)output->used, SQLITE_TRANSIENT);
    out_init(output, -1, false);
    output->room = UINT64_MAX;
}

static void names_take_value(struct row_sink *sink, const char *key, const struct row_value *value)
{
    (void)key;
    struct query_names *names =
        (struct query_names *)(void *)((char *)sink - offsetof(struct query_names, sink));
    sqlite3_result_text(names->answer, value->text.data, (int)value->text.size, SQLITE_TRANSIENT);
}

static void names_end_record(struct row_sink *sink)
{
    (void)sink;
}

void query_names_answer_stack(struct query *query, ttd_id stack, sqlite3_context *answer)
{
    struct query_names *names = query->names;
    struct report *report = &names->session.report;
    struct row row;
    names->sink = (struct row_sink){.value = names_take_value, .end_record = names_end_record};
    names->answer = answer;
    report->sink = &names->sink;
    row_open_line(&row, report, false);
    row_stack(&row, "stack", stack);
    row_close_line(&row);
    report->sink = NULL;
    if (report->status != TTD_OK)
        names_answer_failure(query, answer, report->status);
    else if (report->output->error)
        names_answer_output(names, answer);
}

void query_names_answer_site(struct query *query, ttd_id stack, sqlite3_context *answer)
{
    struct query_names *names = query->names;
    struct view *view = &names->session.functions;
    struct heap_key key = {stack, 0};
    enum ttd_status status = view_find_key(view, &key);
    if (status != TTD_OK) {
        names_answer_failure(query, answer, status);
        return;
    }
    const struct view_label *label = view_find_label(view, key);
    if (label->kind == LABEL_NONE)
        return;
    if (label->name.size) {
        sqlite3_result_text(answer, label->name.data, (int)label->name.size, SQLITE_TRANSIENT);
        return;
    }
    report_folded_label(&names->session.report, label);
    names_answer_output(names, answer);
}

/* Composes the frames of a stack from its call site outward, each before those that were there. */
static enum ttd_status names_collect(struct view *view, ttd_id stack, uint32_t **labels,
                                     size_t *capacity, size_t *count)
{
    struct ttd_stack frame;
    struct view_site site;
    enum ttd_status status = view_find_caller(view, stack, &frame, &site);
    while (status == TTD_OK) {
        status = grow_array((void **)labels, capacity, *count + site.count, sizeof **labels);
        for (size_t i = 0; status == TTD_OK && i < site.count; i++)
            (*labels)[(*count)++] = view->frames[site.first + i].label;
        if (status == TTD_OK)
            status = definitions_stack(view->definitions, frame.parent, &frame);
        if (status == TTD_OK)
            status = view_go_through(view, &frame, &site);
    }
    return status == TTD_END ? TTD_OK : status;
}

static enum ttd_status names_compose_folded(struct query_names *names, ttd_id stack)
{
    struct view *view = &names->session.functions;
    struct text_output *output = &names->session.output.text;
    uint32_t *labels = NULL;
    size_t capacity = 0, count = 0;
    bool is_cut = false;
    enum ttd_status status = names_collect(view, stack, &labels, &capacity, &count);
    if (status == TTD_OK && count)
        status = view_stack_is_cut(view, stack, &is_cut);
    if (status == TTD_OK && !count)
        out_text(output, "[no stack]");
    if (status == TTD_OK && is_cut)
        out_text(output, "(callers unknown);");
    while (status == TTD_OK && count > 0) {
        report_folded_label(&names->session.report, &view->labels.labels[labels[--count]]);
        if (count)
            out_char(output, ';');
    }
    free(labels);
    return status;
}

/* Functions. */

/* Reads the names, and takes the stack from the first argument; `*values` goes on to the next one.
 * NULL if the answer is null, or an error. */
static struct query *names_argument(sqlite3_context *answer, sqlite3_value ***values, ttd_id *stack)
{
    struct query *query = query_of_arguments(answer, values);
    if (!query || sqlite3_value_type((*values)[0]) != SQLITE_INTEGER)
        return NULL;
    sqlite3_int64 number = sqlite3_value_int64((*values)[0]);
    if (number < 0 || number > UINT32_MAX)
        return NULL;
    *stack = (ttd_id)number;
    ++*values;
    if (query_names(query))
        return query;
    sqlite3_result_error(answer, "the names cannot be read", -1);
    return NULL;
}

static void names_folded(sqlite3_context *answer, int count, sqlite3_value **values)
{
    (void)count;
    ttd_id stack;
    struct query *query = names_argument(answer, &values, &stack);
    if (!query)
        return;
    enum ttd_status status = names_compose_folded(query->names, stack);
    if (status == TTD_OK)
        names_answer_output(query->names, answer);
    else
        names_answer_failure(query, answer, status);
}

static void names_site(sqlite3_context *answer, int count, sqlite3_value **values)
{
    (void)count;
    ttd_id stack;
    struct query *query = names_argument(answer, &values, &stack);
    if (query)
        query_names_answer_site(query, stack, answer);
}

/* Finds the view of a pattern; NULL without memory. */
static struct view *names_find_pattern(struct query_names *names, const char *text)
{
    for (size_t i = 0; i < names->pattern_count; i++) {
        if (strcmp(names->patterns[i].text, text) == 0)
            return &names->patterns[i].view;
    }
    char *copy = strdup(text);
    if (!copy)
        return NULL;
    struct query_pattern *pattern = &names->patterns[names->oldest];
    if (names->pattern_count == QUERY_PATTERNS_MAX) {
        names_free_pattern(pattern);
    } else {
        names->pattern_count++;
    }
    names->oldest = (names->oldest + 1) % QUERY_PATTERNS_MAX;
    struct view_options options;
    view_options_init(&options);
    options.include.patterns[options.include.count++] = (struct ttd_string){copy, strlen(copy)};
    pattern->text = copy;
    view_init(&pattern->view, &options, &names->session.definitions);
    return &pattern->view;
}

static void names_stack_has(sqlite3_context *answer, int count, sqlite3_value **values)
{
    (void)count;
    ttd_id stack;
    struct query *query = names_argument(answer, &values, &stack);
    const char *pattern = query ? (const char *)sqlite3_value_text(values[0]) : NULL;
    if (!pattern)
        return;
    struct view *view = names_find_pattern(query->names, pattern);
    bool has = false;
    enum ttd_status status = view ? view_wants(view, stack, &has) : TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK)
        sqlite3_result_int(answer, has);
    else
        names_answer_failure(query, answer, status);
}

int query_names_add_functions(sqlite3 *database, struct query *query)
{
    static const struct {
        const char *name;
        int arguments;
        void (*function)(sqlite3_context *, int, sqlite3_value **);
    } functions[] = {
        {"folded", 1, names_folded}, {"site", 1, names_site}, {"stack_has", 2, names_stack_has}};
    int status = SQLITE_OK;
    for (size_t i = 0; i < sizeof functions / sizeof *functions && status == SQLITE_OK; i++)
        status = sqlite3_create_function(database, functions[i].name,
                                         functions[i].arguments + (query->name != NULL),
                                         SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
                                         query, functions[i].function, NULL, NULL);
    return status;
}

/* The tables of stacks and of their frames. A condition on stack_id looks the stack up. */

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

static int names_table_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
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

static int names_table_open_cursor(struct query *query, bool has_frames,
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

static int names_table_open(sqlite3_vtab *table, sqlite3_vtab_cursor **result)
{
    return names_table_open_cursor(query_of_table(table), false, result);
}

static int names_table_open_frames(sqlite3_vtab *table, sqlite3_vtab_cursor **result)
{
    return names_table_open_cursor(query_of_table(table), true, result);
}

static int names_table_close(sqlite3_vtab_cursor *base)
{
    struct stack_cursor *cursor = (struct stack_cursor *)base;
    frame_list_free(&cursor->frames);
    free(cursor);
    return SQLITE_OK;
}

/* Looks up a stack, and its frames for their table. TTD_END if it is not defined, or has none. */
static enum ttd_status names_table_enter(struct stack_cursor *cursor, ttd_id stack)
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
static int names_table_settle(struct stack_cursor *cursor)
{
    const struct stack_table *table = &cursor->query->names->session.definitions.stacks;
    while (cursor->chunk < table->count) {
        const struct stack_chunk *chunk = &table->chunks[cursor->chunk];
        if (cursor->index == chunk->count) {
            cursor->chunk++;
            cursor->index = 0;
            continue;
        }
        enum ttd_status status = names_table_enter(cursor, chunk->first + cursor->index);
        if (status != TTD_END)
            return query_names_check(cursor->query, status);
        cursor->index++;
    }
    cursor->is_over = true;
    return SQLITE_OK;
}

static int names_table_filter(sqlite3_vtab_cursor *base, int number, const char *text, int count,
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
        return names_table_settle(cursor);
    sqlite3_int64 stack = sqlite3_value_int64(values[0]);
    enum ttd_status status =
        stack >= 0 && stack <= UINT32_MAX ? names_table_enter(cursor, (ttd_id)stack) : TTD_END;
    cursor->is_over = status == TTD_END;
    return cursor->is_over ? SQLITE_OK : query_names_check(cursor->query, status);
}

static int names_table_next(sqlite3_vtab_cursor *base)
{
    struct stack_cursor *cursor = (struct stack_cursor *)base;
    if (cursor->has_frames && ++cursor->depth < cursor->frames.count)
        return SQLITE_OK;
    cursor->is_over = cursor->is_single;
    cursor->index++;
    return cursor->is_over ? SQLITE_OK : names_table_settle(cursor);
}

static int names_table_eof(sqlite3_vtab_cursor *base)
{
    return ((const struct stack_cursor *)base)->is_over;
}

static int names_table_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *row)
{
    const struct stack_cursor *cursor = (const struct stack_cursor *)base;
    *row = (sqlite3_int64)((uint64_t)cursor->stack.id << 16 | (cursor->depth & 0xffff));
    return SQLITE_OK;
}

static int names_table_column(sqlite3_vtab_cursor *base, sqlite3_context *answer, int column)
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

static void names_table_answer_name(sqlite3_context *answer, struct ttd_string name)
{
    if (name.size)
        sqlite3_result_text(answer, name.data, (int)name.size, SQLITE_TRANSIENT);
}

static int names_table_frame_column(sqlite3_vtab_cursor *base, sqlite3_context *answer, int column)
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
        names_table_answer_name(answer, frame->function);
        break;
    case FRAMES_FILE:
        names_table_answer_name(answer, frame->file);
        break;
    case FRAMES_LINE:
        if (frame->line)
            sqlite3_result_int64(answer, frame->line);
        break;
    case FRAMES_MODULE:
        names_table_answer_name(answer, frame->module);
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
                                               .xBestIndex = names_table_best_index,
                                               .xDisconnect = query_table_disconnect,
                                               .xDestroy = query_table_disconnect,
                                               .xOpen = names_table_open,
                                               .xClose = names_table_close,
                                               .xFilter = names_table_filter,
                                               .xNext = names_table_next,
                                               .xEof = names_table_eof,
                                               .xColumn = names_table_column,
                                               .xRowid = names_table_rowid};

const sqlite3_module query_frames_functions = {.xCreate = query_table_connect,
                                               .xConnect = query_table_connect,
                                               .xBestIndex = names_table_best_index,
                                               .xDisconnect = query_table_disconnect,
                                               .xDestroy = query_table_disconnect,
                                               .xOpen = names_table_open_frames,
                                               .xClose = names_table_close,
                                               .xFilter = names_table_filter,
                                               .xNext = names_table_next,
                                               .xEof = names_table_eof,
                                               .xColumn = names_table_frame_column,
                                               .xRowid = names_table_rowid};
