/* SPDX-License-Identifier: MIT */
#include "travel/certainty.h"

#include <stdarg.h>
#include <stdio.h>

#include "heap/site_table.h"

/* Reasons for uncertainty, from the facts about a trace and its replay. */

__attribute__((format(printf, 2, 3))) static void certainty_add(struct certainty *certainty,
                                                                const char *format, ...)
{
    if (certainty->count == CERTAINTY_REASONS_MAX)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(certainty->reasons[certainty->count++], CERTAINTY_REASON_SIZE, format, arguments);
    va_end(arguments);
}

void certainty_add_reason(struct certainty *certainty, const char *reason)
{
    certainty_add(certainty, "%s", reason);
}

/* Adds one reason for all losses of a kind, so that many losses stay readable. */
static void certainty_add_losses(struct certainty *certainty, const struct certainty_facts *facts,
                                 enum ttd_loss_reason reason)
{
    uint64_t events = 0;
    uint64_t gaps = 0;
    bool is_unknown = false;
    struct ttd_position first = ttd_position_max();
    for (size_t i = 0; i < facts->outcome->losses.kept_count; i++) {
        const struct ttd_loss *loss = &facts->outcome->losses.kept[i];
        if (loss->reason != reason || !loss->count ||
            ttd_position_compare(loss->last_good, facts->at) >= 0 ||
            heap_loss_is_past(loss, facts->outcome->since))
            continue;
        gaps++;
        if (loss->count == TTD_UNKNOWN)
            is_unknown = true;
        else
            events = heap_add(events, loss->count);
        if (ttd_position_compare(loss->last_good, first) < 0)
            first = loss->last_good;
    }
    if (!gaps)
        return;
    char position[TTD_POSITION_TEXT];
    ttd_position_format(first, position);
    if (is_unknown && !events)
        certainty_add(certainty, "an unknown number of events is missing after %s: %s", position,
                      heap_loss_text(reason));
    else
        certainty_add(certainty, "%s%llu event%s missing after %s: %s",
                      is_unknown ? "at least " : "", (unsigned long long)events,
                      events == 1 ? " is" : "s are", position, heap_loss_text(reason));
}

/* Adds doubts that come from the reading: a part was left out, or the file is not as it was. */
static void certainty_add_reading(struct certainty *certainty, const struct certainty_facts *facts)
{
    if (facts->rests_on_part)
        certainty_add(certainty, "only a part of the trace was read, and the rest was not checked: "
                                 "'--no-index' reads the whole trace");
    if (facts->rests_on_index)
        certainty_add(certainty,
                      "the index was used, and not compared with the trace: '--no-index' reads "
                      "the whole trace");
    /* A loss may be recorded long after it happened, so an unread part of the trace may have
     * one. */
    if (facts->is_patched && !certainty->count)
        certainty_add(certainty,
                      "the trace was recovered, and its missing parts may have had more");
    if (!facts->is_intact && !certainty->count)
        certainty_add(certainty, "%s",
                      facts->is_closed ? "the file is not intact, or was changed meanwhile: see "
                                         "'ttdanalyze verify'"
                                       : "the trace was not closed cleanly: events may be missing");
}

void certainty_judge(struct certainty *certainty, const struct certainty_facts *facts)
{
    certainty->count = 0;
    for (int reason = TTD_LOSS_UNKNOWN; reason <= HEAP_LOSS_LAST; reason++)
        certainty_add_losses(certainty, facts, (enum ttd_loss_reason)reason);
    if (facts->outcome->losses.records > facts->outcome->losses.kept_count)
        certainty_add(
            certainty, "events are missing in %llu more place%s",
            (unsigned long long)(facts->outcome->losses.records -
                                 facts->outcome->losses.kept_count),
            facts->outcome->losses.records - facts->outcome->losses.kept_count == 1 ? "" : "s");
    char position[TTD_POSITION_TEXT];
    ttd_position_format(facts->outcome->position, position);
    if (!facts->is_closed && facts->outcome->reached_end)
        certainty_add(certainty, "the trace was not closed cleanly%s: nothing is known after %s",
                      facts->is_given_up    ? " and was not read to its end"
                      : facts->is_truncated ? " and ends within a chunk"
                                            : "",
                      position);
    if (facts->part_of)
        certainty_add(
            certainty,
            "the trace is not complete: a position in %% is a part of the %llu events that can "
            "be read",
            (unsigned long long)facts->part_of);
    if (facts->uses_times && !trace_has_times(facts->trace))
        certainty_add(certainty, "wall times are not known: %s",
                      facts->trace->time_unit ? "the trace has none"
                                              : "the trace's first chunk is lost");
    if (facts->outcome->counts.overlaps)
        certainty_add(certainty, "%llu block%s allocated where another was still live",
                      (unsigned long long)facts->outcome->counts.overlaps,
                      facts->outcome->counts.overlaps == 1 ? " was" : "s were");
    if (facts->outcome->counts.strays)
        certainty_add(
            certainty,
            "%llu live block%s in no block of the heap around %s: %s memory may have gone with it",
            (unsigned long long)facts->outcome->counts.strays,
            facts->outcome->counts.strays == 1 ? " lies" : "s lie",
            facts->outcome->counts.strays == 1 ? "its own" : "theirs",
            facts->outcome->counts.strays == 1 ? "its" : "their");
    certainty_add_reading(certainty, facts);
}

static bool certainty_is_cut(const struct certainty_facts *facts)
{
    return !facts->is_closed || (facts->trace->flags & TTD_TRACE_RECOVERED &&
                                 facts->end.reason == TTD_END_REASON_NOT_RECORDED);
}

/* A loss that no complete part follows. Of calls that are never recorded, some may be known. */
static enum certainty_ending certainty_ending_of_loss(const struct certainty_facts *facts,
                                                      const struct ttd_loss *loss)
{
    const uint64_t *actions = facts->outcome->counts.actions;
    bool has_calls =
        actions[TTD_ACTION_ALLOC] + actions[TTD_ACTION_REALLOC] > facts->outcome->left.acquisitions;
    bool is_endless = !ttd_position_is_valid(loss->first_good);
    if (!loss->count || ttd_position_compare(loss->first_good, facts->outcome->position) <= 0)
        return ENDING_KNOWN;
    if (loss->reason == TTD_LOSS_LIMIT)
        return is_endless ? ENDING_CUT : ENDING_KNOWN;
    if (loss->reason != TTD_LOSS_NOT_RECORDING || (is_endless && facts->has_choice))
        return ENDING_KNOWN;
    if (!has_calls)
        return ENDING_NO_CALLS;
    return is_endless ? ENDING_KNOWN : ENDING_UNSEEN;
}

enum certainty_ending certainty_find_ending(const struct certainty_facts *facts)
{
    const struct heap_losses *losses = &facts->outcome->losses;
    enum certainty_ending ending = ENDING_KNOWN;
    if (!facts->outcome->reached_end || !heap_is_end(facts->at))
        return ENDING_KNOWN;
    if (certainty_is_cut(facts))
        ending = ENDING_CUT;
    else if (facts->end.reason == TTD_END_REASON_DETACHED)
        ending = ENDING_DETACHED;
    else if (facts->end.reason == TTD_END_REASON_SIGNALED)
        ending = ENDING_KILLED;
    else if (facts->end.reason == TTD_END_REASON_UNKNOWN)
        ending = ENDING_UNTOLD;
    else if (facts->lacks_end_snapshot)
        ending = ENDING_UNSHOWN;
    for (size_t i = 0; i < losses->kept_count; i++) {
        enum certainty_ending other = certainty_ending_of_loss(facts, &losses->kept[i]);
        ending = other > ending ? other : ending;
    }
    return ending;
}

bool certainty_knows_calls(enum certainty_ending ending)
{
    return ending < ENDING_DETACHED;
}

void certainty_add_choice(struct certainty *certainty, const struct heap_choice *choice)
{
    if (choice->is_made && choice->sample)
        certainty_add(certainty,
                      "the trace has a sample of the blocks, one for every %llu bytes: sums are of "
                      "the sample, and a block outside of it may hold others",
                      (unsigned long long)choice->sample);
    else if (choice->is_made)
        certainty_add(certainty,
                      "the trace has blocks of at least %llu bytes only: a smaller one may hold "
                      "others",
                      (unsigned long long)choice->least);
    if (choice->is_live_only)
        certainty_add(certainty, "the trace has the blocks that were live at a snapshot or at the "
                                 "end: all other calls are left out");
}

void certainty_add_snapshot(struct certainty *certainty, const struct ttd_snapshot *snapshot,
                            uint64_t misplaced)
{
    if (!snapshot->number)
        return;
    if (!(snapshot->flags & TTD_SNAPSHOT_STOPPED))
        certainty_add(
            certainty,
            "threads ran on while snapshot %lu was taken: a pointer that moved may be missing",
            (unsigned long)snapshot->number);
    if (snapshot->flags & TTD_SNAPSHOT_INCOMPLETE && !snapshot->missing)
        certainty_add(
            certainty,
            "snapshot %lu is not complete: parts of it are missing, or the kernel may hold "
            "pointers (io_uring, AIO)",
            (unsigned long)snapshot->number);
    if (snapshot->missing)
        certainty_add(
            certainty,
            "snapshot %lu is not complete: %llu bytes of memory were not searched for pointers",
            (unsigned long)snapshot->number, (unsigned long long)snapshot->missing);
    if (misplaced)
        certainty_add(certainty,
                      "%llu reference%s of snapshot %lu %s in no memory that it has searched",
                      (unsigned long long)misplaced, misplaced == 1 ? "" : "s",
                      (unsigned long)snapshot->number, misplaced == 1 ? "lies" : "lie");
}

void certainty_add_torn(struct certainty *certainty, const struct ttd_snapshot *snapshot)
{
    certainty_add(
        certainty,
        "threads ran on while snapshot %lu was taken: its contents may be of different moments",
        (unsigned long)snapshot->number);
}

void certainty_add_missing(struct certainty *certainty, const struct ttd_snapshot *snapshot)
{
    certainty_add(certainty, "snapshot %lu is not complete: contents of memory are missing",
                  (unsigned long)snapshot->number);
}

void certainty_add_missing_snapshot(struct certainty *certainty,
                                    const struct ttd_snapshot *snapshot)
{
    if (!snapshot->number)
        certainty_add(certainty,
                      "the trace has no snapshot of references at this position or before");
}

void certainty_add_search(struct certainty *certainty, uint64_t searched, uint64_t unreadable)
{
    if (unreadable)
        certainty_add(certainty, "%llu bytes of memory could not be read",
                      (unsigned long long)unreadable);
    if (!searched && !unreadable)
        certainty_add(
            certainty,
            "nothing was searched: the trace has no snapshot of memory at this position or "
            "before");
}

/* The condition of a trace. */

enum ttd_status certainty_check_all(const struct heap_trace *trace, struct ttd_error *ended)
{
    struct ttd_error error = {.what = NULL};
    /* Events are decoded in any case: for them the hook is called. */
    enum ttd_status status =
        ttd_reader_rewind_checked(trace->reader, TTD_KIND_BIT(TTD_KIND_EVENTS));
    *ended = error;
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(trace->reader, &batch, &error);
        if (status == TTD_OK && trace->hook.batch)
            status = trace->hook.batch(trace->hook.context, &batch);
    }
    if (status != TTD_END && heap_is_over(status))
        *ended = error;
    return heap_is_over(status) ? TTD_OK : status;
}

static enum ttd_status certainty_see_loss(void *context, const struct ttd_batch *batch)
{
    bool *has_damage = context;
    for (size_t i = 0; i < batch->count; i++)
        *has_damage |= batch->u.losses[i].reason == TTD_LOSS_DAMAGE;
    return TTD_OK;
}

enum ttd_status certainty_find_patch(struct ttd_reader *reader, bool *is_patched)
{
    struct ttd_error error;
    bool has_damage = false;
    bool is_recovered = ttd_reader_trace(reader)->flags & TTD_TRACE_RECOVERED;
    enum ttd_status status =
        is_recovered ? heap_losses_read(reader, certainty_see_loss, &has_damage, &error) : TTD_OK;
    *is_patched = status != TTD_OK || has_damage;
    return status;
}
