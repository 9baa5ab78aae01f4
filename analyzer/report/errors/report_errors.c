/* SPDX-License-Identifier: MIT */
/* The report of `errors`: findings with all the calls that explain them. */
#include "report/errors/error_reports.h"

static size_t errors_shown(const struct report_errors *data)
{
    return report_shown(data->errors->count, data->limit);
}

/* Writes the call of a finding: function, argument, position, and how often it occurred. */
static void text_call(struct report *report, const struct heap_finding *finding)
{
    struct text_output *output = report->output;
    out_text(output, ttd_api_name(finding->call.api));
    out_char(output, '(');
    if (finding->address && finding->kind != HEAP_ERROR_HEAP_DAMAGE)
        out_hex(output, finding->address);
    else if (finding->size)
        report_count(output, finding->size, "byte");
    out_text(output, ") at ");
    report_position_text(report, finding->call.position);
    out_format(output, " in thread %u", finding->call.thread);
    if (finding->count > 1) {
        out_text(output, ", ");
        report_count(output, finding->count, "time");
        out_text(output, ", last at ");
        report_position_text(report, finding->last);
    }
    out_char(output, '\n');
}

/* Writes the block that the call met. Its size is compared with the call's for mismatched sizes. */
static void text_error_block(struct text_output *output, const struct heap_finding *finding)
{
    out_text(output, "  the block at ");
    out_hex(output, finding->block_address);
    out_text(output, " has ");
    report_count(output, finding->block_size, "byte");
    if (finding->address != finding->block_address) {
        out_text(output, "; the address lies ");
        report_count(output, finding->address - finding->block_address, "byte");
        out_text(output, " inside it");
    }
    if (finding->kind == HEAP_ERROR_MISMATCHED_SIZE) {
        out_text(output, "; the call says ");
        out_grouped(output, finding->size);
    }
    out_char(output, '\n');
}

/* The earlier call that makes this one an error. */
static const char *conflict_text(const struct heap_finding *finding)
{
    switch (finding->kind) {
    case HEAP_ERROR_USE_OF_DESTROYED_HEAP:
        return "heap destroyed";
    case HEAP_ERROR_USE_OF_READ_ONLY_HEAP:
        return "heap made read-only";
    default:
        return "heap locked";
    }
}

/* Writes the place of the address of an invalid release. */
static void text_error_address(struct report *report, const struct report_errors *data,
                               const struct heap_finding *finding)
{
    struct text_output *output = report->output;
    if (finding->kind != HEAP_ERROR_INVALID_FREE || finding->block_address)
        return;
    if (report_address_text(report, "  the address is ", data->places, finding->address))
        out_char(output, '\n');
}

static const char *uncertain_text(const struct heap_finding *finding)
{
    if (finding->kind == HEAP_ERROR_HEAP_DAMAGE && finding->block_address &&
        !finding->damage.is_adjacent)
        return ": memory between the two may be damaged, or not everything is known\n";
    if (finding->kind == HEAP_ERROR_HEAP_DAMAGE)
        return ": another thread may have been changing it, or not everything is known\n";
    if (finding->may_be_inlined)
        return ": an operator of the program may be inlined there, where no line is known\n";
    return finding->kind == HEAP_ERROR_DIED_IN_CALL
               ? ": another thread may have died, or a return may be missing\n"
               : ": not everything before it is known\n";
}

/* Writes the call itself, behind the earlier ones that explain it. */
static void text_error_call(struct report *report, const struct heap_finding *finding,
                            bool is_damage)
{
    struct text_output *output = report->output;
    bool has_earlier = (!is_damage && heap_call_is_known(&finding->allocated)) ||
                       heap_call_is_known(&finding->released) ||
                       heap_call_is_known(&finding->conflict);
    if (has_earlier)
        report_call_text(
            report, finding->kind == HEAP_ERROR_DOUBLE_FREE ? "released again" : "this call, made",
            &finding->call);
    else
        report_stack_text(report, finding->call.stack);
    if (finding->signal) {
        out_text(output, "  the process died of ");
        report_signal_number_text(output, finding->signal);
        out_text(output, " before the call returned\n");
    }
}

static void text_finding(struct report *report, const struct report_errors *data,
                         const struct heap_finding *finding)
{
    struct text_output *output = report->output;
    out_bold(output);
    out_text(output, heap_error_name(finding->kind));
    out_plain(output);
    out_text(output, ": ");
    text_call(report, finding);
    /* An Unlock too many is the call itself; a Lock too many shows only at the end. */
    if (finding->kind == HEAP_ERROR_UNBALANCED_LOCK && finding->call.action == TTD_ACTION_LOCK)
        out_text(output, "  the heap was still locked when the program exited\n");
    bool is_damage = finding->kind == HEAP_ERROR_HEAP_DAMAGE;
    if (is_damage)
        report_damage_text(report, finding);
    else if (finding->block_address && heap_call_is_known(&finding->allocated))
        text_error_block(output, finding);
    text_error_address(report, data, finding);
    if (!is_damage)
        report_call_text(report, "allocated", &finding->allocated);
    report_call_text(report, "released before", &finding->released);
    report_call_text(report, conflict_text(finding), &finding->conflict);
    text_error_call(report, finding, is_damage);
    if (!is_damage)
        report_neighbours_text(report, &finding->neighbours, finding->address);
    if (!finding->is_certain) {
        out_alarm(output);
        out_text(output, "  uncertain");
        out_plain(output);
        out_text(output, uncertain_text(finding));
    }
}

/* Writes the limits of the analysis that were met, each with the option that raises it. */
static void text_error_notes(struct report *report, const struct heap_errors *errors)
{
    struct text_output *output = report->output;
    if (errors->early_releases) {
        report_count(output, errors->early_releases, "release");
        out_text(output, " of blocks from before the recording, no errors as far as is known\n");
    }
    if (errors->gap_releases) {
        report_count(output, errors->gap_releases, "release");
        out_text(output, " of blocks that are unknown since recording was off, no errors as far as "
                         "is known\n");
    }
    if (errors->omitted) {
        report_count(output, errors->omitted, "call");
        out_text(output, " more with other stacks, too many to keep\n");
    }
    if (errors->forgotten) {
        report_count(output, errors->forgotten, "released block");
        out_text(output, " forgotten for lack of room (--remember N for more)\n");
    }
    if (errors->unexamined) {
        report_count(output, errors->unexamined, "unknown address");
        out_text(output, " not looked for inside blocks: too many\n");
    }
}

/* Whether a finding explains the signal that the program died of, and so comes before it. */
static bool errors_explain_signal(const struct heap_finding *finding)
{
    return finding->kind == HEAP_ERROR_HEAP_DAMAGE || finding->signal;
}

static void text_explanations(struct report *report, const struct report_errors *data)
{
    for (size_t i = 0; i < errors_shown(data); i++) {
        if (!errors_explain_signal(&data->errors->findings[i]))
            continue;
        text_finding(report, data, &data->errors->findings[i]);
        out_char(report->output, '\n');
    }
}

void text_errors(struct report *report, const struct report_errors *data)
{
    const struct heap_errors *errors = data->errors;
    struct text_output *output = report->output;
    text_explanations(report, data);
    report_fatal_text(report, data);
    out_bold(output);
    if (errors->count) {
        report_count(output, errors->count, "finding");
        out_text(output, " in ");
        report_count(output, errors->calls, "call");
    } else {
        out_text(output, data->fatal ? "No other errors" : "No errors");
    }
    out_plain(output);
    if (!errors->count)
        out_text(output, " in the calls of the heap; reads and writes are not watched");
    out_char(output, '\n');
    report_known_findings_text(report, REPORT_FINDINGS);
    text_error_notes(report, errors);
    report_certainty_text(report);
    for (size_t i = 0; i < errors_shown(data); i++) {
        if (errors_explain_signal(&errors->findings[i]))
            continue;
        out_char(output, '\n');
        text_finding(report, data, &errors->findings[i]);
    }
    if (errors_shown(data) < errors->count) {
        out_text(output, "\n… and ");
        report_count(output, errors->count - errors_shown(data), "finding");
        out_text(output, " more (--limit 0 for all)\n");
    }
    report_registers_text(report, data);
}

static void json_block(struct json *json, const struct heap_finding *finding)
{
    if (!finding->block_address) {
        json_null(json, "block");
        return;
    }
    /* A block that was live before the recording has an address, but no known size. */
    bool is_known = heap_call_is_known(&finding->allocated);
    json_begin_object(json, "block");
    json_hex(json, "address", finding->block_address);
    json_count(json, "size", is_known ? finding->block_size : TTD_UNKNOWN);
    json_unsigned(json, "offset", finding->address - finding->block_address);
    json_unsigned(json, "heap_id", finding->block_heap);
    json_end_object(json);
}

static void json_finding(struct report *report, struct json *json, const struct report_errors *data,
                         const struct heap_finding *finding)
{
    json_begin_object(json, NULL);
    json_text(json, "kind", heap_error_name(finding->kind));
    json_bool(json, "certain", finding->is_certain);
    json_unsigned(json, "count", finding->count);
    json_position(json, "position", finding->call.position);
    json_position(json, "last_position", finding->last);
    json_hex_if(json, "address", finding->address, finding->address);
    json_unsigned(json, "size", finding->size);
    json_text(json, "action", ttd_action_name((enum ttd_action)finding->call.action));
    json_text(json, "api", ttd_api_name(finding->call.api));
    json_unsigned(json, "heap_id", finding->heap);
    json_unsigned(json, "thread", finding->call.thread);
    json_unsigned(json, "stack_id", finding->call.stack);
    report_stack_json(report, json, "stack", finding->call.stack);
    json_block(json, finding);
    if (finding->kind == HEAP_ERROR_INVALID_FREE && !finding->block_address)
        report_address_json(report, json, data->places, finding->address);
    else
        json_null(json, "place");
    report_call_json(report, json, "allocated", &finding->allocated);
    report_call_json(report, json, "released", &finding->released);
    report_call_json(report, json, "conflict", &finding->conflict);
    json_count(json, "signal", finding->signal ? finding->signal : TTD_UNKNOWN);
    report_neighbours_json(report, json, &finding->neighbours);
    report_damage_json(json, finding);
    json_end_object(json);
}

void json_errors(struct report *report, const struct report_errors *data)
{
    const struct heap_errors *errors = data->errors;
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    report_certainty_json(report, &json);
    json_unsigned(&json, "total_findings", errors->count);
    json_unsigned(&json, "total_calls", errors->calls);
    json_unsigned(&json, "omitted_calls", errors->omitted);
    json_unsigned(&json, "early_releases", errors->early_releases);
    json_unsigned(&json, "gap_releases", errors->gap_releases);
    json_unsigned(&json, "forgotten_releases", errors->forgotten);
    json_unsigned(&json, "unexamined_addresses", errors->unexamined);
    report_known_findings_json(report, &json, REPORT_FINDINGS);
    report_fatal_json(report, &json, data);
    json_begin_array(&json, "findings");
    for (size_t i = 0; i < errors_shown(data); i++)
        json_finding(report, &json, data, &errors->findings[i]);
    json_end_array(&json);
    json_end_object(&json);
}

static void csv_call(struct report *report, struct csv *csv, const struct heap_call *call)
{
    csv_position(csv, call->position);
    if (heap_call_is_known(call))
        report_stack_csv(report, csv, call->stack);
    else
        csv_empty(csv);
}

static void csv_signal(struct report *report, struct csv *csv, const struct report_errors *data,
                       const struct ttd_fatal_signal *signal,
                       const struct heap_fatal_pointer *pointer)
{
    struct heap_call died = {.position = signal->position, .stack = signal->stack};
    struct heap_call no_call = heap_call_none();
    csv_text(csv, "fatal-signal");
    csv_bool(csv, data->fatal->is_certain);
    csv_unsigned(csv, 1);
    csv_hex_if(csv, heap_fatal_has_address(signal), signal->address);
    csv_empty(csv);
    csv_empty(csv);
    csv_empty(csv);
    csv_unsigned(csv, signal->thread);
    csv_call(report, csv, &died);
    csv_call(report, csv, pointer ? &pointer->allocated : &no_call);
    csv_call(report, csv, pointer ? &pointer->released : &no_call);
    csv_call(report, csv, &no_call);
    csv_unsigned(csv, signal->signal);
    report_address_csv(report, csv, pointer && !pointer->block_address ? data->places : NULL,
                       signal->address);
    csv_end_row(csv);
}

static void csv_fatal(struct report *report, struct csv *csv, const struct report_errors *data)
{
    const struct heap_fatal *fatal = data->fatal;
    for (size_t i = 0; i < fatal->earlier_count; i++)
        csv_signal(report, csv, data, &fatal->earlier[i], NULL);
    csv_signal(report, csv, data, &fatal->signal, fatal->has_address ? &fatal->pointers[0] : NULL);
}

static void csv_finding(struct report *report, struct csv *csv, const struct report_errors *data,
                        const struct heap_finding *finding)
{
    bool has_place = finding->kind == HEAP_ERROR_INVALID_FREE && !finding->block_address;
    csv_text(csv, heap_error_name(finding->kind));
    csv_bool(csv, finding->is_certain);
    csv_unsigned(csv, finding->count);
    csv_hex(csv, finding->address);
    csv_unsigned(csv, finding->size);
    csv_text(csv, ttd_action_name((enum ttd_action)finding->call.action));
    csv_text(csv, ttd_api_name(finding->call.api));
    csv_unsigned(csv, finding->call.thread);
    csv_call(report, csv, &finding->call);
    csv_call(report, csv, &finding->allocated);
    csv_call(report, csv, &finding->released);
    csv_call(report, csv, &finding->conflict);
    csv_unsigned_if(csv, finding->signal, finding->signal);
    report_address_csv(report, csv, has_place ? data->places : NULL, finding->address);
    csv_end_row(csv);
}

void csv_errors(struct report *report, const struct report_errors *data)
{
    struct csv csv;
    csv_init(&csv, report->output);
    csv_header(&csv, "kind,certain,count,address,size,action,api,thread,position,stack,"
                     "allocated_position,allocated_stack,released_position,released_stack,"
                     "conflict_position,conflict_stack,signal,place");
    size_t count = report_listed(report, data->errors->count, data->limit), i = 0;
    for (; i < count && data->errors->findings[i].kind == HEAP_ERROR_HEAP_DAMAGE; i++)
        csv_finding(report, &csv, data, &data->errors->findings[i]);
    if (data->fatal)
        csv_fatal(report, &csv, data);
    for (; i < count; i++)
        csv_finding(report, &csv, data, &data->errors->findings[i]);
}
