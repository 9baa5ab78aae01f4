/* SPDX-License-Identifier: MIT */
#include "query/event_filter.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "query/tables.h"
#include "report/trace/trace_reports.h"

/* The plan is a text: two letters for each value, the column and the comparison. SQLite shows it in
 * EXPLAIN QUERY PLAN. */

#define COMPARE_IN 'i'

static bool filter_is_lower_bound(char comparison)
{
    return comparison == '=' || comparison == '>' || comparison == 'g';
}

static bool filter_is_upper_bound(char comparison)
{
    return comparison == '=' || comparison == '<' || comparison == 'l';
}

/* The letter of a column; 0 for a column whose conditions are left to SQLite. */
static char filter_letter(int column)
{
    static const char letters[] = {
        [EVENTS_NUMBER] = 'n',       [EVENTS_POSITION] = 'p',         [EVENTS_ACTION] = 'c',
        [EVENTS_API] = 'f',          [EVENTS_HEAP_ID] = 'h',          [EVENTS_ADDRESS] = 'a',
        [EVENTS_BASE_ADDRESS] = 'b', [EVENTS_PREVIOUS_ADDRESS] = 'o', [EVENTS_SIZE] = 'z',
        [EVENTS_RESULT] = 'r',       [EVENTS_TIME_START] = 's',       [EVENTS_TIME_END] = 'e',
        [EVENTS_WALL_TIME] = 'w',    [EVENTS_THREAD] = 't',           [EVENTS_STACK_ID] = 'k'};
    if (column < 0)
        return letters[EVENTS_NUMBER];
    return (size_t)column < sizeof letters ? letters[column] : 0;
}

static enum event_column filter_column(char letter)
{
    int column = EVENTS_STACK_ID;
    while (column > 0 && filter_letter(column) != letter)
        column--;
    return (enum event_column)column;
}

static char filter_comparison(unsigned op)
{
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return '=';
    case SQLITE_INDEX_CONSTRAINT_GT:
        return '>';
    case SQLITE_INDEX_CONSTRAINT_GE:
        return 'g';
    case SQLITE_INDEX_CONSTRAINT_LT:
        return '<';
    case SQLITE_INDEX_CONSTRAINT_LE:
        return 'l';
    default:
        return 0;
    }
}

static bool filter_is_name(char letter)
{
    return letter == 'c' || letter == 'f';
}

/* Whether a condition bounds the part of the trace that is read. A call takes effect between its
 * start and its end, so that they bound the position from one side. */
static bool filter_is_range(char letter, char comparison)
{
    return letter == 'n' || letter == 'p' || (letter == 's' && filter_is_lower_bound(comparison)) ||
           (letter == 'e' && filter_is_upper_bound(comparison));
}

/* Takes a condition into the plan, and lowers the estimates of the work. */
static bool filter_take(sqlite3_index_info *info, int i, char letter, char *comparison)
{
    bool is_range = filter_is_range(letter, *comparison);
    if (filter_is_name(letter) &&
        (*comparison != '=' || strcmp(sqlite3_vtab_collation(info, i), "BINARY") != 0))
        return false;
    bool is_exact = *comparison == '=' && (letter == 'n' || letter == 'p');
    bool is_list = *comparison == '=' && !is_exact && sqlite3_vtab_in(info, i, -1);
    if ((letter == 's' || letter == 'e') && (!is_range || is_list))
        return false;
    /* All values of an IN are looked for in one pass. */
    if (is_list) {
        sqlite3_vtab_in(info, i, 1);
        *comparison = COMPARE_IN;
    }
    sqlite3_int64 share = is_exact ? 1000000 : 4;
    if (is_range)
        info->estimatedCost /= (double)share;
    info->estimatedRows = info->estimatedRows > share ? info->estimatedRows / share : 1;
    return true;
}

int event_filter_plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    int count = 0;
    sqlite3_str *plan = sqlite3_str_new(NULL);
    info->estimatedCost = 1e9;
    info->estimatedRows = 1000000000;
    for (int i = 0; i < info->nConstraint; i++) {
        char letter = filter_letter(info->aConstraint[i].iColumn);
        char comparison = filter_comparison(info->aConstraint[i].op);
        if (!info->aConstraint[i].usable || !letter || !comparison ||
            !filter_take(info, i, letter, &comparison))
            continue;
        info->aConstraintUsage[i].argvIndex = ++count;
        sqlite3_str_appendf(plan, "%c%c", letter, comparison);
    }
    /* No bit is for the row's number. */
    info->idxNum = !count && !info->colUsed ? EVENT_PLAN_COUNTS : EVENT_PLAN_READS;
    info->idxStr = sqlite3_str_finish(plan);
    info->needToFreeIdxStr = 1;
    /* Events come in the order of their numbers, and so of their positions. */
    int order = info->nOrderBy == 1 && !info->aOrderBy[0].desc ? info->aOrderBy[0].iColumn : -2;
    info->orderByConsumed = order == EVENTS_NUMBER || order == -1 || order == EVENTS_POSITION;
    return count && !info->idxStr ? SQLITE_NOMEM : SQLITE_OK;
}

/* Values. */

/* Narrows the range of numbers. A value that is no integer bounds nothing. */
static void filter_bound_number(struct event_filter *filter, char comparison, sqlite3_value *value)
{
    if (sqlite3_value_type(value) != SQLITE_INTEGER)
        return;
    sqlite3_int64 number = sqlite3_value_int64(value);
    uint64_t least = number < 0 ? 0 : (uint64_t)number;
    if (filter_is_lower_bound(comparison) && least > filter->first)
        filter->first = least;
    if (filter_is_upper_bound(comparison) && number < 0)
        filter->end = 0;
    else if (filter_is_upper_bound(comparison) && least + 1 < filter->end)
        filter->end = least + 1;
}

/* The same for positions, as the tables have them. */
static void filter_bound_position(struct event_filter *filter, char comparison,
                                  sqlite3_value *value)
{
    const char *text = (const char *)sqlite3_value_text(value);
    struct ttd_position position;
    if (!text || !query_position_parse(text, &position))
        return;
    if (filter_is_lower_bound(comparison) && ttd_position_compare(position, filter->from) > 0)
        filter->from = position;
    if (filter_is_upper_bound(comparison) && ttd_position_compare(position, filter->to) < 0)
        filter->to = position;
}

/* Lets the codes through that have the name, and were let through before. */
static void filter_add_names(struct event_names *names, bool are_actions, bool *has,
                             sqlite3_value *value)
{
    const char *text = (const char *)sqlite3_value_text(value);
    for (unsigned code = 0; text && code < 256; code++) {
        const char *name =
            are_actions ? ttd_action_name((enum ttd_action)code) : ttd_api_name(code);
        if (strcmp(name, text) == 0)
            has[code] = !names->is_given || names->has[code];
    }
}

static void filter_set_names(struct event_names *names, bool are_actions, char comparison,
                             sqlite3_value *value)
{
    bool has[256] = {false};
    sqlite3_value *one = value;
    int status = comparison == COMPARE_IN ? sqlite3_vtab_in_first(value, &one) : SQLITE_OK;
    while (status == SQLITE_OK && one) {
        filter_add_names(names, are_actions, has, one);
        if (comparison != COMPARE_IN)
            break;
        status = sqlite3_vtab_in_next(value, &one);
    }
    memcpy(names->has, has, sizeof has);
    names->is_given = true;
}

static int filter_compare_values(const void *one, const void *other)
{
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

/* Takes the values of an IN. Values that are no integers leave the condition to SQLite. */
static int filter_set_list(struct event_filter *filter, enum event_column column,
                           sqlite3_value *list)
{
    struct event_condition *condition = &filter->conditions[filter->count];
    *condition = (struct event_condition){.column = column};
    size_t capacity = 0;
    sqlite3_value *value = NULL;
    bool is_known = true;
    int status = sqlite3_vtab_in_first(list, &value);
    while (status == SQLITE_OK && value) {
        if (sqlite3_value_type(value) == SQLITE_INTEGER) {
            if (grow_array((void **)&condition->values, &capacity, condition->count + 1,
                           sizeof *condition->values) != TTD_OK)
                return SQLITE_NOMEM;
            condition->values[condition->count++] = sqlite3_value_int64(value);
        } else if (sqlite3_value_type(value) != SQLITE_NULL) {
            is_known = false;
        }
        status = sqlite3_vtab_in_next(list, &value);
    }
    if (!is_known || !condition->count) {
        free(condition->values);
        condition->values = NULL;
        return SQLITE_OK;
    }
    qsort(condition->values, condition->count, sizeof *condition->values, filter_compare_values);
    filter->count++;
    return SQLITE_OK;
}

static int filter_set_value(struct event_filter *filter, enum event_column column, char comparison,
                            sqlite3_value *value)
{
    if (filter->count == EVENT_CONDITIONS_MAX)
        return SQLITE_OK;
    if (comparison == COMPARE_IN)
        return filter_set_list(filter, column, value);
    if (sqlite3_value_type(value) != SQLITE_INTEGER)
        return SQLITE_OK;
    int64_t number = sqlite3_value_int64(value);
    struct event_condition condition = {.column = column, .least = INT64_MIN, .most = INT64_MAX};
    if (filter_is_lower_bound(comparison))
        condition.least = number + (comparison == '>' && number < INT64_MAX);
    if (filter_is_upper_bound(comparison))
        condition.most = number - (comparison == '<' && number > INT64_MIN);
    filter->conditions[filter->count++] = condition;
    return SQLITE_OK;
}

int event_filter_set(struct event_filter *filter, const char *plan, int count,
                     sqlite3_value **values)
{
    event_filter_free(filter);
    *filter = (struct event_filter){
        .end = UINT64_MAX, .from = ttd_position_min(), .to = ttd_position_max()};
    int status = SQLITE_OK;
    for (int i = 0; i < count && status == SQLITE_OK; i++) {
        char letter = plan[2 * i], comparison = plan[2 * i + 1];
        if (letter == 'n')
            filter_bound_number(filter, comparison, values[i]);
        else if (letter == 'p')
            filter_bound_position(filter, comparison, values[i]);
        else if (letter == 's')
            filter_bound_position(filter, '>', values[i]);
        else if (letter == 'e')
            filter_bound_position(filter, '<', values[i]);
        else if (filter_is_name(letter))
            filter_set_names(letter == 'c' ? &filter->actions : &filter->apis, letter == 'c',
                             comparison, values[i]);
        else
            status = filter_set_value(filter, filter_column(letter), comparison, values[i]);
    }
    return status;
}

void event_filter_free(struct event_filter *filter)
{
    for (size_t i = 0; i < filter->count; i++)
        free(filter->conditions[i].values);
    filter->count = 0;
}

/* Events. */

/* Sets the value of a column as the table has it. False for null. */
static bool filter_value(const struct ttd_event *event, enum event_column column, uint64_t *value)
{
    switch (column) {
    case EVENTS_HEAP_ID:
        *value = event->heap;
        return true;
    case EVENTS_ADDRESS:
        *value = event->address;
        return event_has_address(event);
    case EVENTS_PREVIOUS_ADDRESS:
        *value = event->previous_address;
        return event_has_previous_address(event);
    case EVENTS_BASE_ADDRESS:
        *value = event->base_address;
        return event_has_base_address(event);
    case EVENTS_SIZE:
        *value = event->size;
        return event_has_size(event);
    case EVENTS_RESULT:
        *value = event->result;
        return true;
    case EVENTS_WALL_TIME:
        *value = event->wall_time;
        return event->wall_time != TTD_UNKNOWN;
    case EVENTS_THREAD:
        *value = event->thread;
        return true;
    case EVENTS_STACK_ID:
        *value = event->stack;
        return true;
    default:
        return true;
    }
}

static bool filter_meets(const struct event_condition *condition, const struct ttd_event *event)
{
    uint64_t value = 0;
    if (!filter_value(event, condition->column, &value))
        return false;
    int64_t number = (int64_t)value;
    /* Numbers from 2^63 on are floating-point ones for SQLite, which compares them; addresses are
     * not. */
    if (number < 0 &&
        (condition->column < EVENTS_ADDRESS || condition->column > EVENTS_BASE_ADDRESS))
        return true;
    if (!condition->values)
        return number >= condition->least && number <= condition->most;
    return bsearch(&number, condition->values, condition->count, sizeof number,
                   filter_compare_values) != NULL;
}

bool event_filter_is_range(const struct event_filter *filter)
{
    return filter->first || filter->end != UINT64_MAX ||
           ttd_position_compare(filter->from, ttd_position_min()) != 0 || !heap_is_end(filter->to);
}

bool event_filter_has_values(const struct event_filter *filter)
{
    return filter->count || filter->actions.is_given || filter->apis.is_given;
}

bool event_filter_passes(const struct event_filter *filter, const struct ttd_event *event)
{
    if ((filter->actions.is_given && !filter->actions.has[event->action]) ||
        (filter->apis.is_given && !filter->apis.has[event->api]))
        return false;
    for (size_t i = 0; i < filter->count; i++) {
        if (!filter_meets(&filter->conditions[i], event))
            return false;
    }
    return true;
}
