/* SPDX-License-Identifier: MIT */
/* The report of `errors`, and damaged memory in it. */
#include "report/errors/error_reports.h"

/* The report of `errors`: findings with all the calls that explain them. */

static size_t errors_shown(const struct report *report, const struct report_errors *data)
{
    return report_shown(data->errors->count, report->limit);
}

/* Writes the call of a finding: function, argument, position, and how often it occurred. */
static void errors_text_call(struct report *report, const struct heap_finding *finding)
{
    struct text_output *output = report->output;
    say(output, ttd_api_name(finding->call.api), "(");
    if (finding->address && finding->kind != HEAP_ERROR_HEAP_DAMAGE)
        out_hex(output, finding->address);
    else if (finding->size)
        report_count(output, finding->size, "byte");
    say(output, ") at ", moment(report, finding->call.position), " in thread ",
        number(finding->call.thread));
    if (finding->count > 1)
        say(output, ", ", counted(finding->count, "time"), ", last at ",
            moment(report, finding->last));
    out_char(output, '\n');
}

/* Writes the block that the call met. Its size is compared with the call's for mismatched sizes. */
static void text_error_block(struct text_output *output, const struct heap_finding *finding)
{
    say(output, "  the block at ", hex(finding->block_address), " has ",
        bytes(finding->block_size));
    if (finding->address != finding->block_address)
        say(output, "; the address lies ", bytes(finding->address - finding->block_address),
            " inside it");
    if (finding->kind == HEAP_ERROR_MISMATCHED_SIZE)
        say(output, "; the call says ", grouped(finding->size));
    out_char(output, '\n');
}

/* The earlier call that makes this one an error. */
static const char *errors_conflict_text(const struct heap_finding *finding)
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

/* Returns how many calls inward from the stack of a call another stack is; SIZE_MAX if it has not
 * begun in that call. */
static size_t errors_calls_within(const struct report *report, ttd_id stack, ttd_id call)
{
    struct ttd_stack inner;
    for (size_t count = 0; stack; count++, stack = inner.parent) {
        if (stack == call)
            return count;
        if (definitions_stack(report->definitions, stack, &inner) != TTD_OK)
            break;
    }
    return SIZE_MAX;
}

/* Returns the place of the address of an invalid release. The frames are those of the snapshot: of
 * the call's if the process died in it. */
static struct heap_place errors_place(const struct report *report, const struct report_errors *data,
                                      const struct heap_finding *finding)
{
    bool has_place = finding->kind == HEAP_ERROR_INVALID_FREE && !finding->block_address;
    struct heap_place place = heap_place_at(has_place ? data->places : NULL, finding->address);
    if (!place.stack)
        return place;
    size_t within = SIZE_MAX;
    if (finding->signal && place.region->thread == finding->call.thread)
        within = errors_calls_within(report, place.stack, finding->call.stack);
    place.has_returned = within != SIZE_MAX && place.frame < within;
    if (within == SIZE_MAX || place.has_returned)
        place.stack = TTD_NONE;
    return place;
}

/* Writes the place of the address of an invalid release. */
static void text_error_address(struct report *report, const struct report_errors *data,
                               const struct heap_finding *finding)
{
    struct text_output *output = report->output;
    if (finding->kind != HEAP_ERROR_INVALID_FREE || finding->block_address)
        return;
    struct heap_place place = errors_place(report, data, finding);
    if (report_address_text(report, "  the address is ", &place, finding->address))
        out_char(output, '\n');
}

static const char *errors_uncertain_text(const struct heap_finding *finding)
{
    if (finding->kind == HEAP_ERROR_HEAP_DAMAGE && finding->block_address &&
        !finding->damage.is_adjacent)
        return ": memory between the two may be damaged, or not everything is known\n";
    if (finding->kind == HEAP_ERROR_HEAP_DAMAGE)
        return ": another thread may have been changing it, or not everything is known\n";
    if (finding->may_be_inlined)
        return ": an operator of the program may be inlined there, where no line is known\n";
    if (finding->may_be_hidden)
        return ": an operator of the module's own may end in the call, and have no frame\n";
    if (finding->may_be_deferred)
        return ": the function that called it may release blocks later than its own callers\n";
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

static void errors_text_finding(struct report *report, const struct report_errors *data,
                                const struct heap_finding *finding)
{
    struct text_output *output = report->output;
    say(output, BOLD, heap_error_name(finding->kind), PLAIN, ": ");
    errors_text_call(report, finding);
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
    report_call_text(report, errors_conflict_text(finding), &finding->conflict);
    text_error_call(report, finding, is_damage);
    if (!is_damage && finding->kind != HEAP_ERROR_DOUBLE_FREE)
        report_neighbours_text(report, &finding->neighbours, finding->address);
    if (!finding->is_certain)
        say(output, ALARM, "  uncertain", PLAIN, errors_uncertain_text(finding));
}

/* Writes the limits of the analysis that were met, each with the option that raises it. */
static void text_error_notes(struct report *report, const struct heap_errors *errors)
{
    struct text_output *output = report->output;
    if (errors->early_releases)
        say(output, counted(errors->early_releases, "release"),
            " of blocks from before the recording, no errors as far as is known\n");
    if (errors->gap_releases)
        say(output, counted(errors->gap_releases, "release"),
            " of blocks that are unknown since recording was off, no errors as far as is known\n");
    if (errors->omitted)
        say(output, counted(errors->omitted, "call"),
            " more with other stacks, too many to keep\n");
    if (errors->forgotten)
        say(output, counted(errors->forgotten, "released block"),
            " forgotten for lack of room (--remember N for more)\n");
    if (errors->unexamined)
        say(output, counted(errors->unexamined, "unknown address"),
            " not looked for inside blocks: too many\n");
}

/* Whether a finding explains the signal that the program died of, and so comes before it. */
static bool errors_explain_signal(const struct heap_finding *finding)
{
    return finding->kind == HEAP_ERROR_HEAP_DAMAGE || finding->signal;
}

static void errors_text_explanations(struct report *report, const struct report_errors *data)
{
    for (size_t i = 0; i < errors_shown(report, data); i++) {
        if (!errors_explain_signal(&data->errors->findings[i]))
            continue;
        errors_text_finding(report, data, &data->errors->findings[i]);
        out_char(report->output, '\n');
    }
}

static void text_errors(struct report *report, const struct report_errors *data)
{
    const struct heap_errors *errors = data->errors;
    struct text_output *output = report->output;
    errors_text_explanations(report, data);
    report_fatal_text(report, data);
    out_bold(output);
    if (errors->count) {
        say(output, counted(errors->count, "finding"), " in ", counted(errors->calls, "call"),
            data->fatal ? ", beside the signal" : "");
    } else {
        out_text(output, report->unjudged ? "No errors are known"
                         : data->fatal    ? "No other errors"
                                          : "No errors");
    }
    out_plain(output);
    if (!errors->count)
        out_text(output, " in the calls of the heap; reads and writes are not watched");
    out_char(output, '\n');
    report_known_findings_text(report, REPORT_FINDINGS);
    text_error_notes(report, errors);
    report_certainty_text(report);
    for (size_t i = 0; i < errors_shown(report, data); i++) {
        if (errors_explain_signal(&errors->findings[i]))
            continue;
        out_char(output, '\n');
        errors_text_finding(report, data, &errors->findings[i]);
    }
    if (errors_shown(report, data) < errors->count)
        say(output, "\n… and ", counted(errors->count - errors_shown(report, data), "finding"),
            " more (--limit 0 for all)\n");
    report_registers_text(report, data);
}

static void row_error_block(struct row *row, const struct heap_finding *finding)
{
    if (!finding->block_address) {
        row_null(row, "block");
        return;
    }
    /* A block that was live before the recording has an address, but no known size. */
    bool is_known = heap_call_is_known(&finding->allocated);
    row_begin_object(row, "block");
    row_hex(row, "address", finding->block_address);
    row_count(row, "size", is_known ? finding->block_size : TTD_UNKNOWN);
    row_unsigned(row, "offset", finding->address - finding->block_address);
    row_unsigned(row, "heap_id", finding->block_heap);
    row_end_object(row);
}

static void row_error_place(struct row *row, const struct report_errors *data,
                            const struct heap_finding *finding)
{
    struct heap_place place = errors_place(row->report, data, finding);
    row_address(row, &place);
}

/* Writes the members that JSON and CSV have in this order. */
static void row_error_call(struct row *row, const struct heap_finding *finding)
{
    row_unsigned(row, "size", finding->size);
    row_text(row, "action", ttd_action_name((enum ttd_action)finding->call.action));
    row_text(row, "api", ttd_api_name(finding->call.api));
}

static void errors_json_finding(struct row *row, const struct report_errors *data,
                                const struct heap_finding *finding)
{
    row_position(row, "position", finding->call.position);
    row_position(row, "last_position", finding->last);
    row_hex_if(row, "address", finding->address, finding->address);
    row_error_call(row, finding);
    row_unsigned(row, "heap_id", finding->heap);
    row_unsigned(row, "thread", finding->call.thread);
    row_unsigned(row, "stack_id", finding->call.stack);
    row_stack(row, "stack", finding->call.stack);
    row_error_block(row, finding);
    row_error_place(row, data, finding);
    row_call(row, "allocated", &finding->allocated);
    row_call(row, "released", &finding->released);
    row_call(row, "conflict", &finding->conflict);
    row_count(row, "signal", finding->signal ? finding->signal : TTD_UNKNOWN);
    row_neighbours(row, &finding->neighbours);
    row_damage(row, finding);
}

/* Writes the two columns of a call. */
static void errors_csv_call(struct row *row, const char *position, const char *stack,
                            const struct heap_call *call)
{
    row_position(row, position, call->position);
    if (row_has(row, stack, heap_call_is_known(call)))
        row_stack(row, stack, call->stack);
}

static void errors_csv_calls(struct row *row, const struct heap_call *call,
                             const struct heap_call *allocated, const struct heap_call *released,
                             const struct heap_call *conflict)
{
    errors_csv_call(row, "position", "stack", call);
    errors_csv_call(row, "allocated_position", "allocated_stack", allocated);
    errors_csv_call(row, "released_position", "released_stack", released);
    errors_csv_call(row, "conflict_position", "conflict_stack", conflict);
}

static void errors_row_finding(struct row *row, const struct report_errors *data,
                               const struct heap_finding *finding)
{
    row_text(row, "kind", heap_error_name(finding->kind));
    row_bool(row, "certain", finding->is_certain);
    row_unsigned(row, "count", finding->count);
    if (row->is_json) {
        errors_json_finding(row, data, finding);
        return;
    }
    row_hex(row, "address", finding->address);
    row_error_call(row, finding);
    row_unsigned(row, "thread", finding->call.thread);
    errors_csv_calls(row, &finding->call, &finding->allocated, &finding->released,
                     &finding->conflict);
    row_unsigned_if(row, "signal", finding->signal, finding->signal);
    row_error_place(row, data, finding);
}

static void errors_csv_signal(struct row *row, const struct report_errors *data,
                              const struct ttd_fatal_signal *signal,
                              const struct heap_fatal_pointer *pointer)
{
    struct heap_call died = {.position = signal->position, .stack = signal->stack};
    struct heap_call no_call = heap_call_none();
    row_begin_record(row);
    row_text(row, "kind", "fatal-signal");
    row_bool(row, "certain", data->fatal->is_certain);
    row_unsigned(row, "count", 1);
    row_hex_if(row, "address", heap_fatal_has_address(signal), signal->address);
    row_null(row, "size");
    row_null(row, "action");
    row_null(row, "api");
    row_unsigned(row, "thread", signal->thread);
    errors_csv_calls(row, &died, pointer ? &pointer->allocated : &no_call,
                     pointer ? &pointer->released : &no_call, &no_call);
    row_unsigned(row, "signal", signal->signal);
    bool has_place = pointer && !pointer->block_address;
    struct heap_place place = heap_place_at(has_place ? data->places : NULL, signal->address);
    row_address(row, &place);
    row_end_record(row);
}

static void errors_csv_fatal(struct row *row, const struct report_errors *data)
{
    const struct heap_fatal *fatal = data->fatal;
    if (!fatal)
        return;
    row_begin_array(row, "findings");
    for (size_t i = 0; i < fatal->earlier_count; i++)
        errors_csv_signal(row, data, &fatal->earlier[i], NULL);
    errors_csv_signal(row, data, &fatal->signal, fatal->has_address ? &fatal->pointers[0] : NULL);
    row_end_array(row);
}

/* Writes the findings from `first` to before `end`. */
static void errors_row_findings(struct row *row, const struct report_errors *data, size_t first,
                                size_t end)
{
    const struct heap_finding *findings = first < end ? data->errors->findings + first : NULL;
    ROW_EACH(row, "findings", struct heap_finding, finding, findings, end - first)
    errors_row_finding(row, data, finding);
}

/* In CSV the signal comes behind damage, its possible cause, and before all others. */
static void csv_errors(struct row *row, const struct report_errors *data, size_t count)
{
    const struct heap_finding *findings = data->errors->findings;
    size_t damaged = 0;
    while (damaged < count && findings[damaged].kind == HEAP_ERROR_HEAP_DAMAGE)
        damaged++;
    row->has_verdict = false;
    errors_row_findings(row, data, 0, damaged);
    errors_csv_fatal(row, data);
    errors_row_findings(row, data, damaged, count);
}

void report_errors(struct report *report, const struct report_errors *data)
{
    const struct heap_errors *errors = data->errors;
    struct row row;
    if (report->form == REPORT_TEXT) {
        text_errors(report, data);
        return;
    }
    row_open(&row, report);
    size_t count = section_row_listed(&row, errors->count);
    if (!row.is_json) {
        csv_errors(&row, data, count);
        return;
    }
    row_certainty(&row);
    row_bool(&row, "judged", !report->unjudged);
    row_unsigned(&row, "total_findings", errors->count);
    row_unsigned(&row, "total_calls", errors->calls);
    row_unsigned(&row, "omitted_calls", errors->omitted);
    row_unsigned(&row, "early_releases", errors->early_releases);
    row_unsigned(&row, "gap_releases", errors->gap_releases);
    row_unsigned(&row, "forgotten_releases", errors->forgotten);
    row_unsigned(&row, "unexamined_addresses", errors->unexamined);
    row_known_findings(&row, REPORT_FINDINGS);
    row_fatal(&row, data);
    errors_row_findings(&row, data, 0, count);
    row_end_object(&row);
}

/* Damage of the heap: a header of a block that was overwritten. */

/* Writes the bytes of a header as characters, in the order of their addresses, if all are printable
 * up to those that are 0. */
static void errors_text_characters(struct text_output *output, uint64_t header)
{
    char text[sizeof header + 1] = {0};
    for (size_t i = 0; i < sizeof header; i++)
        text[i] = (char)(header >> 8 * i);
    size_t size = 0;
    while (text[size] >= ' ' && text[size] <= '~')
        size++;
    if (size >= 4 && (size == sizeof header || header >> 8 * size == 0))
        out_format(output, " (\"%s\")", text);
}

/* Whether the finding is about a block that was released. */
static bool errors_is_of_released(const struct heap_finding *finding)
{
    return !finding->block_address && finding->neighbours.before.address &&
           finding->neighbours.after.address != finding->address + 8;
}

/* Writes which block the finding is about, and the known facts about its header. */
static void errors_text_damage_subject(struct text_output *output,
                                       const struct heap_finding *finding)
{
    bool is_released = errors_is_of_released(finding);
    const struct heap_neighbour *block =
        is_released ? &finding->neighbours.before : &finding->neighbours.after;
    bool has_before = finding->block_address;
    say(output, is_released ? "  released block " : "  block ",
        hex(has_before ? finding->block_address : block->address), ", ",
        bytes(has_before ? finding->block_size : block->size));
    if (!has_before && !is_released)
        out_text(output, ": its header was overwritten\n");
    else if (is_released || finding->damage.is_adjacent)
        out_text(output, ": the header behind it was overwritten\n");
    else
        out_text(output, ": memory of the allocator behind it is damaged\n");
    say(output, "  header ", hex(finding->address), " is ", hex(finding->damage.header));
    errors_text_characters(output, finding->damage.header);
    out_format(output, " in snapshot %u\n", finding->damage.snapshot);
}

/* A block may have been overrun that lay there before: no snapshot shows when. */
static void errors_text_damage_cause(struct text_output *output, const struct heap_finding *finding)
{
    bool has_header = finding->neighbours.after.address == finding->address + 8;
    if (errors_is_of_released(finding)) {
        out_text(output, "  the block, or one that lay there before, was written beyond its end\n");
    } else if (!finding->block_address) {
        out_text(output, "  by a write before its start, or beyond the end of a block that is not "
                         "live\n");
    } else if (finding->damage.is_adjacent) {
        say(output, "  the block, or one that lay there before, was written ",
            bytes(finding->damage.beyond), " or more\n  beyond its end",
            has_header ? "; or the next block was, before its start\n" : "\n");
    }
}

/* Writes the released block before the header, if the finding is about the block behind. */
static void errors_text_damage_released(struct report *report, const struct heap_finding *finding)
{
    const struct heap_neighbour *before = &finding->neighbours.before;
    if (!before->address || errors_is_of_released(finding))
        return;
    say(report->output, "  released block ", hex(before->address), ", ", bytes(before->size),
        ", lay before it\n");
    report_call_text(report, "allocated", &before->allocated);
}

void report_damage_text(struct report *report, const struct heap_finding *finding)
{
    struct text_output *output = report->output;
    const struct heap_neighbour *after = &finding->neighbours.after;
    errors_text_damage_subject(output, finding);
    errors_text_damage_cause(output, finding);
    errors_text_damage_released(report, finding);
    if (!finding->block_address || !after->address)
        return;
    say(output, "  next block ", hex(after->address), ", ", bytes(after->size), "\n");
    report_call_text(report, "allocated", &after->allocated);
}

void row_damage(struct row *row, const struct heap_finding *finding)
{
    const struct heap_damage *damage = &finding->damage;
    if (finding->kind != HEAP_ERROR_HEAP_DAMAGE) {
        row_null(row, "damage");
        return;
    }
    row_begin_object(row, "damage");
    row_unsigned(row, "snapshot", damage->snapshot);
    row_position(row, "position", damage->position);
    row_hex(row, "header", damage->header);
    row_bool(row, "adjacent", damage->is_adjacent);
    row_count(row, "bytes_beyond", damage->is_adjacent ? damage->beyond : TTD_UNKNOWN);
    row_end_object(row);
}
