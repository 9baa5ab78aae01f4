/* SPDX-License-Identifier: MIT */
#include "query/tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/process/message.h"
#include "query/query_names.h"

/* Running the command of a table. */

/* Sets an option of a command; an invalid value is the user's. */
static int tables_set_option(const struct command *command, void *own_values, const char *name,
                             const char *value)
{
    const struct own_option *option = command->own.table;
    while (strcmp(option->name, name) != 0)
        option++;
    return own_option_parse(option, value, own_values)
               ? STATUS_OK
               : message_usage("query", "invalid argument '%s' of a table of '%s'", value,
                               command->name);
}

static int tables_set_options(const struct query_result *result, void *own_values)
{
    const struct query_table *table = result->table;
    int status = STATUS_OK;
    for (size_t i = 0; i < QUERY_OPTIONS_MAX && table->options[i].name && status == STATUS_OK; i++)
        status = tables_set_option(table->command, own_values, table->options[i].name,
                                   table->options[i].value);
    for (size_t i = 0; i < QUERY_PARAMETERS_MAX && status == STATUS_OK; i++) {
        if (result->parameters[i])
            status = tables_set_option(table->command, own_values, table->parameters[i].option,
                                       result->parameters[i]);
    }
    return status;
}

void query_add_reasons(struct query *query, const struct certainty *certainty)
{
    struct certainty *all = query->certainty;
    for (size_t i = 0; i < certainty->count; i++) {
        char reason[CERTAINTY_REASON_SIZE];
        size_t known = 0;
        sqlite3_snprintf(sizeof reason, reason, "%s%s%s", query->name ? query->name : "",
                         query->name ? ": " : "", certainty->reasons[i]);
        while (known < all->count && strcmp(all->reasons[known], reason) != 0)
            known++;
        if (known == all->count)
            certainty_add_reason(all, reason);
    }
}

/* Reports records that are not complete. Returns an exit status. */
static int tables_check(const struct query_result *result, const struct session *session)
{
    const struct query_records *records = &result->records;
    if (records->status != TTD_OK)
        return message_status(session->source.path, records->status);
    if (!records->unknown && !session->output.text.error)
        return STATUS_OK;
    message("%s: table %s: %s", session->source.path, result->table->name,
            records->unknown ? records->unknown : "a value is longer than 65,536 bytes");
    return STATUS_INTERNAL;
}

/* An answer from a part of the records is not certain. */
static void tables_add_omission(const struct query_result *result, struct session *session)
{
    char reason[CERTAINTY_REASON_SIZE];
    if (!session->report.left_out)
        return;
    uint64_t total = result->records.count + session->report.left_out;
    snprintf(reason, sizeof reason, "the table %s has only %zu of %" PRIu64 " records",
             result->table->name, result->records.count, total);
    certainty_add_reason(&session->report.certainty, reason);
    session->report.left_out = 0;
}

int query_open_session(const struct query *query, struct session *session,
                       const struct command *command)
{
    const struct common_options *asked = &query->session->options;
    struct common_options options = {.command = command,
                                     .form = REPORT_JSON,
                                     .has_index = asked->has_index,
                                     .has_full_stacks = asked->has_full_stacks,
                                     .max_memory = asked->max_memory,
                                     .trace = asked->trace};
    view_options_init(&options.view);
    options.view.limit = SIZE_MAX;
    int status = session_open(session, &options);
    session->has_reasons = true;
    if (status == STATUS_OK)
        source_take_intact(&session->source, &query->session->source);
    return status;
}

/* Runs the command with its options; its session is a large object. */
static int tables_execute(struct query *query, struct query_result *result, struct session *session,
                          const void *own_values)
{
    int status = query_open_session(query, session, result->table->command);
    if (status != STATUS_OK)
        return status;
    session->report.sink = &result->records.sink;
    /* For a command that needs no output of its own until it prints. */
    out_init(&session->output.text, -1, false);
    status = result->table->command->execute(session, own_values);
    if (status == STATUS_OK)
        status = tables_check(result, session);
    tables_add_omission(result, session);
    query_add_reasons(query, &session->report.certainty);
    source_take_intact(&query->session->source, &session->source);
    return session_close(session, status, false);
}

static int tables_fill(struct query *query, struct query_result *result)
{
    const struct own_options *own = &result->table->command->own;
    struct session *session = malloc(sizeof *session);
    void *own_values = malloc(own->size + 1);
    int status = session && own_values ? STATUS_OK : message_status("query", TTD_ERROR_NO_MEMORY);
    if (status == STATUS_OK && own->size)
        memcpy(own_values, own->defaults, own->size);
    if (status == STATUS_OK)
        status = tables_set_options(result, own_values);
    if (status == STATUS_OK)
        status = tables_execute(query, result, session, own_values);
    free(own_values);
    free(session);
    return status;
}

/* Results. */

static void tables_free_result(struct query_result *result)
{
    for (size_t i = 0; i < QUERY_PARAMETERS_MAX; i++)
        free(result->parameters[i]);
    query_records_free(&result->records);
    free(result);
}

void query_results_free(struct query *query)
{
    while (query->results) {
        struct query_result *result = query->results;
        query->results = result->next;
        tables_free_result(result);
    }
}

static bool tables_is_same(const struct query_result *result, char *const *parameters)
{
    for (size_t i = 0; i < QUERY_PARAMETERS_MAX; i++) {
        const char *one = result->parameters[i], *other = parameters[i];
        if (!one != !other || (one && strcmp(one, other) != 0))
            return false;
    }
    return true;
}

/* Returns the result for some parameters, or NULL if it failed. Takes over the parameters. */
static struct query_result *tables_result(struct query *query, const struct query_table *table,
                                          char **parameters)
{
    struct query_result *result = query->results;
    while (result && (result->table != table || !tables_is_same(result, parameters)))
        result = result->next;
    struct query_result *added = result ? NULL : calloc(1, sizeof *added);
    for (size_t i = 0; i < QUERY_PARAMETERS_MAX; i++) {
        if (added)
            added->parameters[i] = parameters[i];
        else
            free(parameters[i]);
    }
    if (!added)
        return result;
    added->table = table;
    query_records_init(&added->records, table->columns, table->list);
    query->status = tables_fill(query, added);
    if (query->status != STATUS_OK) {
        tables_free_result(added);
        return NULL;
    }
    added->next = query->results;
    query->results = added;
    return added;
}

/* The module of SQLite. */

struct tables_module {
    struct query *query;
    const struct query_table *table;
};

struct tables_table {
    sqlite3_vtab base;
    struct query *query;
    const struct query_table *table;
    size_t column_count;
};

struct tables_cursor {
    sqlite3_vtab_cursor base;
    const struct query_records *records;
    size_t row;
};

static const char hex_digits[] = "0123456789ABCDEF";

static const char *const type_names[] = {"INTEGER", "REAL", "ADDRESS", "POSITION", "TEXT"};

char *query_table_schema(const struct query_table *table, const char *name)
{
    sqlite3_str *text = sqlite3_str_new(NULL);
    sqlite3_str_appendf(text, "CREATE TABLE %s(", name);
    for (size_t i = 0; table->columns[i].name; i++)
        sqlite3_str_appendf(text, "%s\"%w\" %s", i ? ", " : "", table->columns[i].name,
                            type_names[table->columns[i].type]);
    for (size_t i = 0; i < QUERY_PARAMETERS_MAX && table->parameters[i].name; i++)
        sqlite3_str_appendf(text, ", \"%w\" TEXT HIDDEN", table->parameters[i].name);
    sqlite3_str_appendall(text, ")");
    return sqlite3_str_finish(text);
}

int query_table_connect(sqlite3 *database, void *context, int count, const char *const *arguments,
                        sqlite3_vtab **result, char **error)
{
    (void)count;
    (void)arguments;
    (void)error;
    const struct tables_module *module = context;
    char *schema = query_table_schema(module->table, "x");
    int status = schema ? sqlite3_declare_vtab(database, schema) : SQLITE_NOMEM;
    sqlite3_free(schema);
    struct tables_table *table = status == SQLITE_OK ? sqlite3_malloc(sizeof *table) : NULL;
    if (!table)
        return status == SQLITE_OK ? SQLITE_NOMEM : status;
    *table = (struct tables_table){.query = module->query,
                                   .table = module->table,
                                   .column_count = query_columns_count(module->table->columns)};
    *result = &table->base;
    return SQLITE_OK;
}

int query_table_disconnect(sqlite3_vtab *table)
{
    sqlite3_free(table);
    return SQLITE_OK;
}

/* Takes the parameters, and nothing else, from the conditions of a query. */
static int tables_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    const struct tables_table *table = (const struct tables_table *)base;
    int next = 1;
    for (size_t parameter = 0; parameter < QUERY_PARAMETERS_MAX; parameter++) {
        for (int i = 0; i < info->nConstraint; i++) {
            if ((size_t)info->aConstraint[i].iColumn != table->column_count + parameter ||
                info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
                continue;
            if (!info->aConstraint[i].usable)
                return SQLITE_CONSTRAINT;
            if (info->idxNum & 1 << parameter)
                continue;
            info->idxNum |= 1 << parameter;
            info->aConstraintUsage[i].argvIndex = next++;
            info->aConstraintUsage[i].omit = 1;
        }
    }
    info->estimatedCost = 1e6;
    info->estimatedRows = 1000000;
    return SQLITE_OK;
}

static int tables_open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **result)
{
    (void)table;
    struct tables_cursor *cursor = sqlite3_malloc(sizeof *cursor);
    if (!cursor)
        return SQLITE_NOMEM;
    *cursor = (struct tables_cursor){.records = NULL};
    *result = &cursor->base;
    return SQLITE_OK;
}

static int tables_close_cursor(sqlite3_vtab_cursor *cursor)
{
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int tables_filter(sqlite3_vtab_cursor *base, int number, const char *text, int count,
                         sqlite3_value **values)
{
    (void)text;
    struct tables_cursor *cursor = (struct tables_cursor *)base;
    const struct tables_table *table = (const struct tables_table *)base->pVtab;
    char *parameters[QUERY_PARAMETERS_MAX] = {NULL};
    int next = 0;
    for (size_t i = 0; i < QUERY_PARAMETERS_MAX && next < count; i++) {
        const char *value =
            number & 1 << i ? (const char *)sqlite3_value_text(values[next++]) : NULL;
        parameters[i] = value ? strdup(value) : NULL;
    }
    const struct query_result *result = tables_result(table->query, table->table, parameters);
    if (!result)
        return table->query->status == STATUS_OK ? SQLITE_NOMEM : SQLITE_ABORT;
    cursor->records = &result->records;
    cursor->row = 0;
    return SQLITE_OK;
}

static int tables_next(sqlite3_vtab_cursor *cursor)
{
    ((struct tables_cursor *)cursor)->row++;
    return SQLITE_OK;
}

static int tables_eof(sqlite3_vtab_cursor *base)
{
    const struct tables_cursor *cursor = (const struct tables_cursor *)base;
    return cursor->row >= cursor->records->count;
}

void query_position_text(char text[QUERY_POSITION_SIZE], struct ttd_position position)
{
    memset(text, '0', QUERY_POSITION_SIZE - 1);
    for (char *digit = text + 15; position.sequence; position.sequence >>= 4)
        *digit-- = hex_digits[position.sequence & 15];
    text[16] = ':';
    for (char *digit = text + 32; position.steps; position.steps >>= 4)
        *digit-- = hex_digits[position.steps & 15];
    text[QUERY_POSITION_SIZE - 1] = '\0';
}

/* Reads the digits of one of the numbers of a position. */
static bool tables_parse_digits(const char *text, uint64_t *number)
{
    *number = 0;
    /* Most are small. */
    for (size_t i = memcmp(text, "00000000", 8) == 0 ? 8 : 0; i < 16; i++) {
        unsigned decimal = (unsigned char)text[i] - (unsigned)'0';
        unsigned letter = (unsigned char)text[i] - (unsigned)'A';
        if (decimal > 9 && letter > 5)
            return false;
        *number = *number << 4 | (decimal <= 9 ? decimal : letter + 10);
    }
    return true;
}

bool query_position_parse(const char *text, struct ttd_position *position)
{
    return strlen(text) == QUERY_POSITION_SIZE - 1 && text[16] == ':' &&
           tables_parse_digits(text, &position->sequence) &&
           tables_parse_digits(text + 17, &position->steps);
}

static void tables_answer(sqlite3_context *answer, const struct query_records *records,
                          const struct query_cell *cell)
{
    char text[QUERY_POSITION_SIZE];
    switch (cell->type) {
    case ROW_NULL:
        break;
    case ROW_UNSIGNED:
        /* Larger numbers than SQLite's stay numbers, so that sums are not of texts. */
        if (cell->number > INT64_MAX)
            sqlite3_result_double(answer, (double)cell->number);
        else
            sqlite3_result_int64(answer, (sqlite3_int64)cell->number);
        break;
    case ROW_NEGATIVE:
        if (cell->number > INT64_MAX)
            sqlite3_result_double(answer, -(double)cell->number);
        else
            sqlite3_result_int64(answer, -(sqlite3_int64)cell->number);
        break;
    case ROW_REAL:
        sqlite3_result_double(answer, cell->real);
        break;
    case ROW_BOOL:
    case ROW_ADDRESS:
        sqlite3_result_int64(answer, (sqlite3_int64)cell->number);
        break;
    case ROW_POSITION:
        query_position_text(text, (struct ttd_position){cell->number, cell->low});
        sqlite3_result_text(answer, text, -1, SQLITE_TRANSIENT);
        break;
    case ROW_TEXT:
        sqlite3_result_text(answer, records->pool + cell->number, (int)cell->size, SQLITE_STATIC);
        break;
    }
}

static int tables_column(sqlite3_vtab_cursor *base, sqlite3_context *answer, int column)
{
    const struct tables_cursor *cursor = (const struct tables_cursor *)base;
    const struct query_records *records = cursor->records;
    if ((size_t)column < records->column_count)
        tables_answer(answer, records,
                      &records->cells[cursor->row * records->column_count + (size_t)column]);
    return SQLITE_OK;
}

static int tables_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *row)
{
    *row = (sqlite3_int64)((const struct tables_cursor *)cursor)->row;
    return SQLITE_OK;
}

int query_failed(struct query *query, int status)
{
    query->status = status;
    return SQLITE_ABORT;
}

struct query *query_of_arguments(sqlite3_context *answer, sqlite3_value ***values)
{
    struct query *query = sqlite3_user_data(answer);
    if (!query->name)
        return query;
    const char *name = (const char *)sqlite3_value_text((*values)[0]);
    while (query && (!name || sqlite3_stricmp(query->name, name) != 0))
        query = query->next;
    if (!query)
        sqlite3_result_error(answer, "the first argument names no trace", -1);
    ++*values;
    return query;
}

struct query *query_of_table(const sqlite3_vtab *table)
{
    return ((const struct tables_table *)table)->query;
}

static const sqlite3_module tables_functions = {.xCreate = query_table_connect,
                                                .xConnect = query_table_connect,
                                                .xBestIndex = tables_best_index,
                                                .xDisconnect = query_table_disconnect,
                                                .xDestroy = query_table_disconnect,
                                                .xOpen = tables_open_cursor,
                                                .xClose = tables_close_cursor,
                                                .xFilter = tables_filter,
                                                .xNext = tables_next,
                                                .xEof = tables_eof,
                                                .xColumn = tables_column,
                                                .xRowid = tables_rowid};

static const sqlite3_module *tables_functions_of(const struct query_column *columns)
{
    if (columns == query_events_columns)
        return &query_events_functions;
    if (columns == query_stacks_columns)
        return &query_stacks_functions;
    return columns == query_frames_columns ? &query_frames_functions : &tables_functions;
}

/* Connects a table, which a query may not do itself: the authorizer forbids declarations. */
static int tables_touch(sqlite3 *database, const char *name)
{
    char *sql = sqlite3_mprintf("SELECT 1 FROM \"%w\"", name);
    sqlite3_stmt *statement = NULL;
    int status = sql ? sqlite3_prepare_v2(database, sql, -1, &statement, NULL) : SQLITE_NOMEM;
    sqlite3_finalize(statement);
    sqlite3_free(sql);
    return status;
}

static int tables_create_module(sqlite3 *database, struct query *query,
                                const struct query_table *table, const char *name)
{
    struct tables_module *module = malloc(sizeof *module);
    if (!module)
        return SQLITE_NOMEM;
    *module = (struct tables_module){query, table};
    return sqlite3_create_module_v2(database, name, tables_functions_of(table->columns), module,
                                    free);
}

/* Adds a table: without a schema there is one of the name of its module. */
static int tables_add(sqlite3 *database, struct query *query, const struct query_table *table)
{
    if (!query->name) {
        int status = tables_create_module(database, query, table, table->name);
        return status == SQLITE_OK ? tables_touch(database, table->name) : status;
    }
    char *module = sqlite3_mprintf("%s.%s", query->name, table->name);
    char *sql = sqlite3_mprintf("CREATE VIRTUAL TABLE \"%w\".\"%w\" USING \"%w\"", query->name,
                                table->name, module);
    int status =
        module && sql ? tables_create_module(database, query, table, module) : SQLITE_NOMEM;
    if (status == SQLITE_OK)
        status = sqlite3_exec(database, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    sqlite3_free(module);
    return status;
}

int query_tables_add(sqlite3 *database, struct query *query, const struct query_table *tables)
{
    int status = SQLITE_OK;
    for (size_t i = 0; tables[i].name && status == SQLITE_OK; i++)
        status = tables_add(database, query, &tables[i]);
    return status;
}
