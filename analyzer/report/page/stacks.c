/* SPDX-License-Identifier: MIT */
/* The stacks of an exact page: arrays of numbers, each written as the difference to the one before.
 */
#include "report/page/model.h"

/* Writes a property of all stacks: the number in the trace, or that in the tree. */
static enum ttd_status write_column(struct json *json, const struct stack_table *table,
                                    struct page_calls *calls)
{
    enum ttd_status status = TTD_OK;
    uint64_t last = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct stack_chunk *chunk = &table->chunks[i];
        for (uint32_t k = 0; k < chunk->count && status == TTD_OK; k++) {
            uint64_t number = chunk->first + k;
            if (calls)
                status = page_calls_number(calls, (ttd_id)number, &number);
            json_difference(json, NULL, last, number);
            last = number;
        }
    }
    return status;
}

enum ttd_status page_write_stacks(struct report *report, struct page_calls *calls)
{
    const struct stack_table *table = &report->definitions->stacks;
    struct json json;
    page_begin_part(report->output, "stacks");
    json_init(&json, report->output, false);
    json_begin_object(&json, NULL);
    json_begin_array(&json, "stack");
    (void)write_column(&json, table, NULL);
    json_end_array(&json);
    json_begin_array(&json, "number");
    enum ttd_status status = write_column(&json, table, calls);
    json_end_array(&json);
    json_end_object(&json);
    out_char(report->output, '\n');
    return status;
}
