/* SPDX-License-Identifier: MIT */
#include "query/query_records.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

size_t query_columns_count(const struct query_column *columns)
{
    size_t count = 0;
    while (columns[count].name)
        count++;
    return count;
}

/* Finds a column by its name. Mostly it is the one behind the last. */
static size_t records_find(struct query_records *records, const char *key)
{
    for (size_t i = 0; i < records->column_count; i++) {
        size_t column = (records->next + i) % records->column_count;
        if (strcmp(records->columns[column].name, key) == 0) {
            records->next = column + 1;
            return column;
        }
    }
    records->unknown = key;
    return SIZE_MAX;
}

static uint64_t records_keep_text(struct query_records *records, struct ttd_string text)
{
    size_t offset = records->pool_size;
    records->status = grow_array((void **)&records->pool, &records->pool_capacity,
                                 offset + text.size, sizeof *records->pool);
    if (records->status != TTD_OK)
        return 0;
    if (text.size)
        memcpy(records->pool + offset, text.data, text.size);
    records->pool_size += text.size;
    return offset;
}

/* Makes room for a record, all of whose cells are null. */
static bool records_begin(struct query_records *records)
{
    size_t begin = records->count * records->column_count;
    enum ttd_status status = grow_array((void **)&records->cells, &records->cell_capacity,
                                        begin + records->column_count, sizeof *records->cells);
    if (status != TTD_OK)
        records->status = status;
    else
        memset(&records->cells[begin], 0, records->column_count * sizeof *records->cells);
    records->next = 0;
    return status == TTD_OK;
}

static void records_value(struct row_sink *sink, const char *key, const struct row_value *value)
{
    struct query_records *records = (struct query_records *)sink;
    size_t column = records->status == TTD_OK ? records_find(records, key) : SIZE_MAX;
    if (column == SIZE_MAX)
        return;
    struct query_cell *cell = &records->cells[records->count * records->column_count + column];
    *cell = (struct query_cell){.type = value->type, .number = value->number};
    if (value->type == ROW_POSITION) {
        cell->number = value->position.sequence;
        cell->low = value->position.steps;
    } else if (value->type == ROW_REAL) {
        cell->real = value->real;
    } else if (value->type == ROW_TEXT) {
        cell->size = (uint32_t)value->text.size;
        cell->number = records_keep_text(records, value->text);
    }
}

static void records_end(struct row_sink *sink)
{
    struct query_records *records = (struct query_records *)sink;
    if (records->status != TTD_OK)
        return;
    records->count++;
    records_begin(records);
}

void query_records_init(struct query_records *records, const struct query_column *columns,
                        const char *list)
{
    *records = (struct query_records){
        .sink = {.list = list, .value = records_value, .end_record = records_end},
        .columns = columns,
        .column_count = query_columns_count(columns)};
    records_begin(records);
}

void query_records_free(struct query_records *records)
{
    free(records->cells);
    free(records->pool);
}
