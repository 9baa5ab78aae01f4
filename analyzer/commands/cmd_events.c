/* SPDX-License-Identifier: MIT */
/* ttdanalyze events */
#include "cli/options/command.h"
#include "cli/options/filter.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "report/trace/trace_reports.h"

#define READ_KINDS (TTD_KIND_BIT(TTD_KIND_EVENTS) | TTD_KIND_BIT(TTD_KIND_LOSSES))

static const char help[] =
    "Usage: ttdanalyze events [OPTIONS] [TRACE]\n"
    "\n"
    "Lists heap calls in the order in which they took effect. Only those that pass\n"
    "every filter given:\n"
    "\n"
    "      --from POSITION    not before this position\n"
    "      --to POSITION      before this position\n"
    "      --action LIST      such as Alloc,ReAlloc\n"
    "      --thread N         the thread's number in the trace, or os:N, its number\n"
    "                         in the operating system\n"
    "      --client GUID      only in islands of recording of this client\n"
    "      --activity N       only in islands of this activity; 0 for none\n"
    "      --heap HANDLE      a heap by its handle or name; or '#3', by its number\n"
    "      --address RANGE    calls that were given or returned such an address;\n"
    "                         may be repeated\n"
    "      --size RANGE       by requested bytes\n"
    "      --stack PATTERN    by a function or module in the stack: a part of the\n"
    "                         name, or a pattern with * and ?; or 12, a stack by its\n"
    "                         number\n"
    "      --include PATTERN  only stacks with a function, file or module that has\n"
    "                         PATTERN in its name, or matches it as a whole if it has\n"
    "                         '*' or '?'; may be repeated\n"
    "      --exclude PATTERN  no stacks with such a one; may be repeated\n"
    "      --limit N          stop after N calls (0 for all, the default)\n"
    "\n"
    "      --parameters       show the raw arguments of each call\n"
    "      --stacks           show the stack of each call\n" COMMAND_COMMON_HELP "\n"
    "A RANGE is N, N-M (both included), N- or N+LENGTH, in decimal or 0x; sizes may\n"
    "have a suffix K, M, G or T. With --format json each call is a line of its own.\n"
    "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

struct events_options {
    struct position_spec from;
    struct position_spec to;
    struct filter filter;
    struct heap_island_filter island;
    struct report_events details;
    uint64_t limit;
};

static const struct own_option own_options[] = {
    OWN_OPTION("from", option_position, struct events_options, from),
    OWN_OPTION("to", option_position, struct events_options, to),
    OWN_OPTION("action", filter_add_actions, struct events_options, filter),
    OWN_OPTION("thread", filter_set_thread, struct events_options, filter),
    ISLAND_OPTIONS(struct events_options, island),
    OWN_OPTION("heap", filter_set_heap, struct events_options, filter),
    OWN_OPTION("address", filter_add_address, struct events_options, filter),
    OWN_OPTION("size", filter_set_size, struct events_options, filter),
    OWN_OPTION("stack", filter_set_stack, struct events_options, filter),
    OWN_OPTION("stacks", option_flag, struct events_options, details.shows_stacks),
    OWN_OPTION("parameters", option_flag, struct events_options, details.shows_parameters),
    OWN_OPTION("limit", option_number, struct events_options, limit),
    OWN_OPTIONS_END};

/* A bound of the events that are wanted: by number if that is how it was given. */
struct bound {
    bool is_number;
    uint64_t number;
    struct ttd_position position;
};

static bool events_is_before(const struct ttd_event *event, const struct bound *bound)
{
    if (bound->is_number)
        return event->number < bound->number;
    return ttd_position_compare(ttd_event_position(event), bound->position) < 0;
}

struct lister {
    struct session *session;
    const struct events_options *options;
    /** A copy of the options', since it remembers facts about stacks. */
    struct filter filter;
    const struct heap_islands *islands;
    /** --include or --exclude is given. */
    bool has_patterns;
    struct report_events details;
    struct bound from;
    struct bound to;
    uint64_t count;
    bool has_end;
    /** Kinds of definitions that were read. */
    uint32_t defined;
    /** The losses known so far; those by damage are known only once it is reached. Its position is
     * the last visited event's. */
    struct heap_outcome outcome;
    /** There may be more events that are wanted. */
    bool is_cut;
    /** Any call may be missing before the first one that is listed. */
    bool is_doubtful;
};

/* An event is certain if no loss is known before it: otherwise the missing calls may have changed
 * its effect. */
static bool events_is_certain(const struct lister *lister, const struct ttd_event *event)
{
    return !lister->is_doubtful &&
           (!lister->outcome.losses.records ||
            !heap_losses_before(&lister->outcome.losses, ttd_event_position(event)));
}

static bool events_is_wanted(struct lister *lister, const struct ttd_event *event)
{
    struct session *session = lister->session;
    bool is_included = true;
    if (!filter_passes(&lister->filter, &session->definitions, event) ||
        (lister->islands &&
         !heap_islands_want(lister->islands, event->thread, ttd_event_position(event))))
        return false;
    if (lister->has_patterns && lister->filter.status == TTD_OK)
        lister->filter.status = view_wants(&session->view, event->stack, &is_included);
    return is_included;
}

/* Adds recorded losses. A loss may be recorded long after it happened, so these are read in a pass
 * before the events that they make uncertain. */
static enum ttd_status cmd_events_see_losses(void *context, const struct ttd_batch *batch)
{
    struct lister *lister = context;
    if (batch->kind == TTD_KIND_LOSSES && !batch->synthetic)
        heap_losses_add(&lister->outcome.losses, batch);
    return TTD_OK;
}

static enum ttd_status events_see_batch(void *context, const struct ttd_batch *batch)
{
    struct lister *lister = context;
    struct session *session = lister->session;
    if (batch->kind == TTD_KIND_LOSSES && batch->synthetic)
        heap_losses_add(&lister->outcome.losses, batch);
    if (batch->kind != TTD_KIND_EVENTS)
        return TTD_OK;
    uint64_t limit = lister->options->limit;
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_event *event = &batch->u.events[i];
        if (events_is_before(event, &lister->from))
            continue;
        /* Without --to no event is beyond the range. A comparison with the largest position would
         * leave out an event at that very position. */
        lister->is_cut = (lister->has_end && !events_is_before(event, &lister->to)) ||
                         (limit && lister->count >= limit);
        if (lister->is_cut)
            return TTD_END;
        lister->outcome.position = ttd_event_position(event);
        if (!events_is_wanted(lister, event))
            continue;
        struct report_event data = {event, &lister->details, events_is_certain(lister, event)};
        lister->count++;
        report_event(&session->report, &data);
        if (session->output.text.error)
            return TTD_END;
    }
    return lister->filter.status;
}

static int events_find_bound(struct session *session, const struct position_spec *spec,
                             struct bound *result)
{
    result->is_number = spec->kind == POSITION_SPEC_EVENT;
    result->number = spec->event;
    if (result->is_number)
        return STATUS_OK;
    return position_spec_resolve(spec, POSITION_FOR_ORDER, &session->source, &result->position);
}

static bool cmd_events_is_start(const struct bound *bound)
{
    return bound->is_number ? !bound->number
                            : !ttd_position_compare(bound->position, ttd_position_min());
}

/* A range that has nothing because of how it was given is a mistake; one that begins behind the
 * last event is not. */
static int cmd_events_check_range(const struct lister *lister)
{
    const struct bound *from = &lister->from, *to = &lister->to;
    bool is_empty = from->is_number ? to->is_number && to->number <= from->number
                                    : !to->is_number &&
                                          ttd_position_compare(to->position, from->position) <= 0 &&
                                          !heap_is_end(from->position);
    return lister->has_end && !cmd_events_is_start(from) && is_empty
               ? message_usage("events", POSITION_RANGE_EMPTY)
               : STATUS_OK;
}

/* Whether a damaged part may have held a gap, or a heap: it was met when that was
 * read, or when the trace was recovered. A gap before the range is never met, so the whole trace is
 * checked first. */
static bool cmd_events_is_doubtful(const struct lister *lister)
{
    struct source *source = &lister->session->source;
    return source->reported_count != 0 || lister->outcome.losses.damaged != 0 ||
           (!cmd_events_is_start(&lister->from) && !source_is_intact(source));
}

/* Goes to the first event of the range. From the start of the trace the pass is a checked one, so
 * that no other pass is needed for a certain verdict. */
static int events_seek(struct session *session, const struct bound *bound)
{
    struct ttd_error error = {.what = NULL};
    struct ttd_reader *reader = session->source.reader;
    enum ttd_status status = cmd_events_is_start(bound)
                                 ? ttd_reader_rewind_checked(reader, READ_KINDS)
                                 : ttd_reader_rewind(reader, READ_KINDS);
    if (status == TTD_OK && !cmd_events_is_start(bound))
        status = bound->is_number ? ttd_reader_seek_event(reader, bound->number, &error)
                                  : ttd_reader_seek(reader, bound->position, &error);
    return status == TTD_OK ? STATUS_OK : source_fail(&session->source, status, &error);
}

/* Warns of the parts of the filter that name nothing in the trace. An empty list looks like an
 * answer, though a name may have been misspelled. Costs a pass, and only where no event was listed.
 */
static int cmd_events_check_filter(struct lister *lister)
{
    struct session *session = lister->session;
    const struct filter *filter = &lister->filter;
    uint32_t kinds = filter_known_kinds(filter);
    int status = STATUS_OK;
    if (lister->count || !kinds)
        return STATUS_OK;
    if (kinds & ~lister->defined)
        status = source_define(&session->source, kinds & ~lister->defined, &session->definitions);
    for (int part = 0; part < FILTER_NAMES && status == STATUS_OK; part++) {
        bool is_known = true;
        status = session_check(session, filter_knows(filter, &session->definitions,
                                                     (enum filter_name)part, &is_known));
        if (!is_known)
            message("warning: %s: nothing in the trace matches %s", session->source.path,
                    filter_option((enum filter_name)part));
    }
    return status;
}

/* Lists the events from the position of the reader on. */
static int cmd_events_list_all(struct lister *lister)
{
    struct session *session = lister->session;
    struct heap_batch_hook hook = {.context = lister, .batch = events_see_batch};
    report_events_begin(&session->report, &lister->details);
    int status = source_read_on(&session->source, &hook);
    lister->outcome.reached_end = !lister->is_cut;
    if (!lister->from.is_number)
        lister->outcome.since = lister->from.position;
    session_outcome(session, &lister->outcome,
                    lister->is_cut ? lister->outcome.position : ttd_position_max());
    session->has_reasons = session->options.form == REPORT_TEXT;
    if (session->has_reasons)
        report_certainty_text(&session->report);
    return status == STATUS_OK ? cmd_events_check_filter(lister) : status;
}

static int events_list(struct lister *lister)
{
    struct session *session = lister->session;
    const struct events_options *options = lister->options;
    struct heap_batch_hook losses = {.context = lister, .batch = cmd_events_see_losses};
    int status = events_find_bound(session, &options->from, &lister->from);
    if (status == STATUS_OK)
        status = events_find_bound(session, &options->to, &lister->to);
    if (status == STATUS_OK)
        status = cmd_events_check_range(lister);
    if (status == STATUS_OK)
        status = lister->has_patterns
                     ? session_names(session, true)
                     : source_define(&session->source, lister->defined, &session->definitions);
    if (status == STATUS_OK)
        status = session_islands(session, &options->island, &lister->islands);
    if (status == STATUS_OK)
        status = source_read(&session->source, 0, &losses);
    if (status == STATUS_OK) {
        lister->is_doubtful = cmd_events_is_doubtful(lister);
        status = events_seek(session, &lister->from);
    }
    if (status == STATUS_OK)
        status = session_output(session, true);
    if (status != STATUS_OK)
        return status;
    /* The user has asked for all events, however many, and each is written when it is read: the
     * size limit of other reports does not apply. */
    session->output.text.room = UINT64_MAX;
    lister->details.has_times = source_has_times(&session->source);
    return cmd_events_list_all(lister);
}

static int events_execute(struct session *session, const void *context)
{
    const struct events_options *options = context;
    struct lister lister = {.session = session,
                            .options = options,
                            .filter = options->filter,
                            .details = options->details,
                            .has_end = options->to.kind != POSITION_SPEC_END,
                            .defined =
                                TTD_KIND_BIT(TTD_KIND_HEAPS) | filter_kinds(&options->filter)};
    lister.has_patterns = view_has_filter(&session->options.view);
    if (options->details.shows_stacks || lister.has_patterns)
        lister.defined |= TTD_KINDS_DEFINITIONS;
    int status = events_list(&lister);
    filter_free(&lister.filter);
    return status;
}

static const struct events_options defaults = {.from = {.kind = POSITION_SPEC_START},
                                               .to = {.kind = POSITION_SPEC_END}};

const struct command command_events = {
    .name = "events",
    .summary = "the heap calls, filtered",
    .help = help,
    .shares = COMMAND_FILTERS,
    .own = {own_options, &defaults, sizeof defaults},
    .reads_whole_chunks = true,
    .execute = events_execute,
};
