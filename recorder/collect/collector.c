/* SPDX-License-Identifier: MIT */
#include "collect/collector.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channel_pool.h"
#include "collect/process/heaps.h"
#include "collect/process/origin.h"
#include "collect/trace/live_sizes.h"
#include "messages.h"

/* The processes that the collector waits for once the launched program has ended. */

#define PATIENCE_NS UINT64_C(1000000000)

enum { NAMED_MAX = 4 };

/* Appends the id and the name of a process. Returns the new size of the text. */
static size_t collector_waiting_name(uint32_t pid, char *text, size_t size, size_t room)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    FILE *file = fopen(path, "re");
    if (file) {
        if (fgets(name, sizeof name, file))
            name[strcspn(name, "\n")] = '\0';
        fclose(file);
    }
    int length = snprintf(text + size, room - size, "%s%u%s%s", size > 0 ? ", " : "", pid,
                          name[0] != '\0' ? " " : "", name);
    return size + (size_t)length;
}

/* Prints, once, the processes that are waited for, if the launched program has ended a second
 * ago. */
static void collector_waiting_tell(struct collector *collector, uint64_t now)
{
    char names[NAMED_MAX * 64] = "";
    size_t size = 0, count = collector->processes.count;
    if (!collector->launched_has_ended || collector->has_told_waiting || collector->is_quiet)
        return;
    if (collector->launched_end == 0)
        collector->launched_end = now;
    if (now - collector->launched_end < PATIENCE_NS)
        return;
    collector->has_told_waiting = true;
    for (size_t i = 0; i < count && i < NAMED_MAX; i++)
        size =
            collector_waiting_name(collector->processes.items[i]->pid, names, size, sizeof names);
    if (count == 0)
        message("waiting for a process that the program has started; an interrupt ends its "
                "recording");
    else
        message("waiting for %zu process%s (%s%s); an interrupt ends %s recording", count,
                count == 1 ? "" : "es", names, count > NAMED_MAX ? ", …" : "",
                count == 1 ? "its" : "their");
}

enum { SLEEP_BUSY_MS = 1, SLEEP_LIGHT_MS = 4, SLEEP_IDLE_MS = 10 };
enum { LIGHT_RECORDS = 8192, IDLE_ROUNDS = 20, UNHELD_LOOKS = 10, LEFT_LOOKS = 300 };

/* Whether a trace has the recent past only. */
static bool collector_keeps_recent(const struct collector *collector)
{
    return collector->recording.keep.bytes != 0 || collector->recording.keep.time != 0;
}

bool collector_open(struct collector *collector, const char *output, struct ttd_error *error)
{
    collector->host.channel->exit_contents = collector->snapshots.at_exit;
    atomic_store(&collector->host.channel->stackless, collector->recording.stackless);
    atomic_store(&collector->host.channel->stack_depth, collector->recording.stack_depth);
    collector->host.channel->only_above = collector->recording.only_above;
    collector->host.channel->sample = collector->recording.sample;
    group_init(&collector->group, output, &collector->wanted_group);
    trace_closers_init(&collector->closers);
    control_open(&collector->control, collector->host.channel);
    messages_share(); /* after the fork of the helper: it reads untrusted files */
    collector->group.had_run = collector->had_run;
    collector->group.parent =
        collector->is_attached ? origin_parent((uint32_t)collector->launched) : (uint32_t)getpid();
    collector->first = group_open(&collector->group, &collector->host, collector->launched, error);
    if (!collector->first || !collector_keeps_recent(collector) || collector->group.is_file)
        return collector->first != NULL;
    *error = (struct ttd_error){TTD_ERROR_ARGUMENT, 0, TTD_NOWHERE, TTD_NOWHERE,
                                "--keep needs a regular file, which can be shortened"};
    trace_discard(collector->first);
    collector->first = NULL;
    return false;
}

/* Returns NULL if memory ran out. */
static struct trace *collector_open_child(struct collector *collector,
                                          const struct process_slot *slot)
{
    const struct process *parent = processes_parent(&collector->processes, slot);
    return group_open_child(&collector->group, &collector->host, slot,
                            parent ? parent->trace : NULL);
}

/* Refuses to record a process. Its slot is not freed, since the process may still write to it. */
static void collector_refuse(struct collector *collector, struct process_slot *slot,
                             struct trace *trace)
{
    if (trace)
        trace_discard(trace);
    atomic_fetch_add(&collector->host.channel->refused, 1);
    atomic_store_explicit(&slot->state, SLOT_REFUSED, memory_order_release);
}

/* Adds new threads. Returns false if one is just attaching: its records are not read yet. */
static bool collector_find_threads(struct collector *collector)
{
    bool complete = true;
    uint32_t slot_count = channel_used(&collector->host.channel->free_threads, CHANNEL_THREADS);
    for (uint32_t index = 1; index <= slot_count; index++) {
        const struct thread_slot *slot = channel_thread(&collector->host.view, index);
        if (!slot)
            continue;
        uint32_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
        if ((state & SLOT_STATE) != SLOT_CLAIMED && (state & SLOT_STATE) != SLOT_READY)
            continue;
        struct process *process = processes_by_slot(&collector->processes, state >> SLOT_PROCESS);
        if (!process)
            continue;
        if ((state & SLOT_STATE) == SLOT_CLAIMED ||
            !process_add_thread(process, &collector->host, index))
            complete = false;
    }
    return complete;
}

/* Takes the records that a process has published up to a sequence. Waits briefly for its threads:
 * they may be about to publish. Returns whether all was taken. */
static bool collector_catch_up(struct collector *collector, struct process *process,
                               uint64_t sequence)
{
    enum { LOOKS = 200 };
    struct host *host = &collector->host;
    for (int i = 0; i < LOOKS && process->reached < sequence; i++) {
        uint64_t bound = atomic_load(&host->channel->sequence);
        if (bound < sequence) /* the program has made it up */
            break;
        if (i > 0)
            host_sleep(host, atomic_load(&host->channel->attention), SLEEP_BUSY_MS);
        host_tick(host);
        host_barrier(host);
        if (!collector_find_threads(collector))
            continue;
        uint64_t pending = process_pending(process);
        process_merge(process, host, pending < bound ? pending : bound);
    }
    return process->reached >= sequence;
}

/* The child of a fork has its parent's blocks and heaps. */
static void collector_inherit(struct collector *collector, struct process *process,
                              const struct process_slot *claim)
{
    struct process *parent = processes_parent(&collector->processes, claim);
    bool lacks_heaps = claim->heaps_sequence != 0;
    if (parent && lacks_heaps) {
        struct ttd_position begin = {claim->sequence, 0};
        lacks_heaps = !collector_catch_up(collector, parent, claim->heaps_sequence) ||
                      !heaps_inherit(process, parent, claim->heaps_sequence, begin);
    }
    if (lacks_heaps) {
        /* Blocks of the parent's heaps may be counted twice, or be of a heap that was destroyed. */
        trace_metadata(process->trace, "unrecorded",
                       "custom heaps of the process that forked, as they were then");
        trace_loss(process->trace, TTD_LOSS_NOT_RECORDING, TTD_NONE, TTD_UNKNOWN,
                   (struct ttd_position){claim->sequence, 0}, ttd_position_max());
    }
    if (parent)
        heap_pages_join(&process->trace->pages, &parent->trace->pages);
}

/* Copies a slot (the program may change it meanwhile) with the ids that its process has here.
 * Returns false if these are not known. */
static bool collector_read_claim(struct collector *collector, uint32_t index,
                                 struct process_slot *claim)
{
    struct process_slot *slot = channel_process(&collector->host.view, index);
    *claim = *slot;
    if ((claim->flags & PROCESS_ELSEWHERE) == 0)
        return true;
    claim->pid = namespace_process(claim->pid, claim->mark, claim->sequence);
    claim->parent_pid = origin_parent(claim->pid);
    atomic_store(&slot->seen_pid, claim->pid);
    host_wake(&slot->seen_pid);
    return claim->pid != 0;
}

/* Names the recorded blocks, if not all are; spec, "Metadata", has the words. */
static void collector_state_choice(const struct recording_options *recording, struct trace *trace)
{
    char text[96];
    bool is_sample = recording->sample != 0;
    if ((recording->flags & CHANNEL_CHOOSES) == 0)
        return;
    snprintf(text, sizeof text,
             is_sample ? "a sample: one block for every %" PRIu64 " bytes, on average"
                       : "blocks of at least %" PRIu64 " bytes",
             is_sample ? recording->sample : recording->only_above);
    trace_metadata(trace, "chosen", text);
    trace_loss(trace, TTD_LOSS_NOT_RECORDING, TTD_NONE, TTD_UNKNOWN, ttd_position_min(),
               ttd_position_invalid());
}

/* Has the bytes of live blocks counted, if that was asked for. */
static void collector_count_sizes(const struct collector *collector, struct trace *trace,
                                  bool is_forked, bool had_run)
{
    enum live_doubt doubt = LIVE_EXACT;
    if (is_forked || (had_run && collector->earlier_reason))
        doubt = LIVE_BEFORE;
    if (collector->recording.only_above != 0)
        doubt = LIVE_ABOVE;
    if (collector->recording.sample != 0)
        doubt = LIVE_SAMPLE;
    if (collector->recording.counts_sizes)
        trace_count_sizes(trace, live_sizes_new(doubt));
}

/* States what the process had before it was attached to. No release of an earlier block is recorded
 * unless all blocks are. */
static void collector_add_earlier(const struct collector *collector, struct process *process,
                                  struct ttd_position begin)
{
    static const struct known_blocks none;
    bool is_chosen = (collector->recording.flags & CHANNEL_CHOOSES) != 0;
    process_begin_unreturned(process, collector->unreturned, collector->unreturned_count, begin);
    process->copies = collector->copies;
    earlier_write(process->trace, is_chosen ? &none : collector->earlier,
                  is_chosen ? "their releases are not recorded" : collector->earlier_reason, begin);
}

static void collector_add_process(struct collector *collector, uint32_t index,
                                  const struct process_slot *claim)
{
    struct process_slot *slot = channel_process(&collector->host.view, index);
    bool is_own = claim->pid == (uint32_t)collector->launched;
    bool launched = collector->first && is_own;
    if (!is_own && origin_is_impossible(claim->pid, collector->launched_start)) {
        collector_refuse(collector, slot, NULL);
        return;
    }
    struct trace *trace = launched ? collector->first : collector_open_child(collector, claim);
    struct process *process = NULL;
    if (trace && processes_reserve(&collector->processes))
        process = process_new(index, claim, trace);
    if (!process) {
        collector->first = launched ? NULL : collector->first;
        collector_refuse(collector, slot, trace);
        return;
    }
    if (claim->flags & PROCESS_FORKED)
        collector_inherit(collector, process, claim);
    process->inner_pid = claim->flags & PROCESS_ELSEWHERE ? slot->pid : 0;
    processes_add(&collector->processes, process);
    process->start = launched ? 0 : claim->clock;
    process->every = collector->snapshots.every;
    process->is_launched = launched;
    if (launched) {
        collector->first = NULL;
        collector->has_attached_first = true;
    } else {
        collector->children += trace->writer != NULL;
    }
    trace->size_limit = collector->recording.max_size;
    origin_describe(trace);
    if (collector->recording.stackless != 0 || collector->recording.stack_depth != 0)
        origin_stacks(trace, collector->recording.stackless, collector->recording.stack_depth);
    if (launched)
        origin_image(trace, claim, collector->command);
    collector_state_choice(&collector->recording, trace);
    if (collector->recording.blocks_only)
        trace_keep_blocks(trace);
    if (collector_keeps_recent(collector) && trace->created)
        ring_begin(trace, &collector->recording.keep, host_now(&collector->host));
    collector_count_sizes(collector, trace, (claim->flags & PROCESS_FORKED) != 0,
                          launched && collector->had_run);
    if (launched && collector->had_run)
        collector_add_earlier(collector, process, (struct ttd_position){claim->sequence, 1});
}

/* Returns the oldest process slot that was not added yet, or CHANNEL_NONE. */
static uint32_t collector_oldest_unknown(struct collector *collector)
{
    uint32_t oldest = CHANNEL_NONE;
    uint64_t sequence = UINT64_MAX;
    uint32_t slot_count = channel_used(&collector->host.channel->free_processes, CHANNEL_PROCESSES);
    for (uint32_t index = 1; index <= slot_count; index++) {
        const struct process_slot *slot = channel_process(&collector->host.view, index);
        if (!slot || atomic_load_explicit(&slot->state, memory_order_acquire) != SLOT_READY ||
            slot->sequence >= sequence || processes_by_slot(&collector->processes, index))
            continue;
        oldest = index;
        sequence = slot->sequence;
    }
    return oldest;
}

/* Adds new processes, and new images of known processes, in their order. An image that an emulator
 * runs beside its own becomes a process of its own with the same id. */
static void collector_find_processes(struct collector *collector)
{
    uint32_t index;
    for (int i = 0; i < CHANNEL_PROCESSES; i++) {
        if ((index = collector_oldest_unknown(collector)) == CHANNEL_NONE)
            return;
        struct process_slot claim;
        host_tick(&collector->host); /* thousands may begin at once, each with a file to create */
        if (!collector_read_claim(collector, index, &claim)) {
            collector_refuse(collector, channel_process(&collector->host.view, index), NULL);
            continue;
        }
        struct process *replaced =
            processes_replaced(&collector->processes, &collector->host, &claim);
        if (replaced) {
            /* Threads of the old image that were never added may have published records. */
            collector_find_threads(collector);
            processes_exec(&collector->processes, replaced, &collector->host, index);
        } else {
            collector_add_process(collector, index, &claim);
        }
    }
}

/* Ends the processes that have exited, after adding every process and thread that they started. */
static void collector_reap_processes(struct collector *collector)
{
    bool looked = false;
    processes_poll(&collector->processes);
    for (size_t i = 0; i < collector->processes.count; i++) {
        struct process *process = collector->processes.items[i];
        if (process->has_exited || !process_end_is_due(collector, process))
            continue;
        process->has_exited = true;
        process->end = process_end_reason(collector, process);
        looked = true;
    }
    if (!looked)
        return;
    collector_find_processes(collector);
    collector_find_threads(collector);
    for (size_t i = collector->processes.count; i-- > 0;)
        if (collector->processes.items[i]->has_exited)
            process_end(collector, i, &collector->processes.items[i]->end);
}

/* Merges the published records of a process up to a sequence. Hundreds may wait for their snapshots
 * at the same time: one that does publishes nothing, and is looked at once. */
static size_t collector_merge(struct collector *collector, struct process *process, uint64_t bound)
{
    struct host *host = &collector->host;
    if (process->is_at_rest && snapshots_is_awaited(collector, process))
        return 0;
    bool is_still = process->still_since != 0 && snapshots_is_awaited(collector, process);
    uint64_t pending = process_pending(process);
    size_t merged = process_merge(process, host, pending < bound ? pending : bound);
    process->is_at_rest = is_still && process->reached == bound;
    return merged;
}

size_t collector_collect(struct collector *collector)
{
    struct host *host = &collector->host;
    size_t merged = 0;
    uint64_t bound = atomic_load(&host->channel->sequence);
    host_barrier(host);
    uint32_t attention = atomic_load(&host->channel->attention);
    if (attention != collector->attention) {
        collector_find_processes(collector);
        if (collector_find_threads(collector))
            collector->attention = attention;
        else
            return 0;
    }
    for (size_t i = 0; i < collector->processes.count; i++)
        merged += collector_merge(collector, collector->processes.items[i], bound);
    return merged;
}

/* Ends all traces that are open. A process may have begun and ended since the last look. */
static void collector_detach_all(struct collector *collector)
{
    struct ttd_end end = {.reason = TTD_END_REASON_DETACHED};
    host_stop(&collector->host);
    /* Those that have begun have published records, too. */
    collector_find_processes(collector);
    collector_find_threads(collector);
    collector_reap_processes(collector);
    end.wall_time = host_tick(&collector->host);
    while (collector->processes.count > 0)
        process_end(collector, collector->processes.count - 1, &end);
}

/*
 * Whether some process may still begin to record, such as a forked daemon that has not allocated
 * yet. A process that executes another program does not hold the channel until that program starts,
 * so a few more looks are taken before the answer is no.
 */
static bool collector_is_awaited(struct collector *collector)
{
    if (collector->host.channel->flags & CHANNEL_NO_CHILDREN)
        return false;
    bool is_held = host_is_held(&collector->host);
    collector->unheld_looks = is_held ? 0 : collector->unheld_looks + 1;
    collector->was_held |= is_held;
    return is_held || (collector->was_held && collector->unheld_looks < UNHELD_LOOKS);
}

/* Sleeps. Each look interrupts the program, so a few milliseconds of records are taken together,
 * unless it publishes much; but the clock moves on each millisecond. A program that has published
 * nothing may end soon, and somebody may wait for that. */
static void collector_rest(struct host *host, uint32_t attention, size_t merged, unsigned idle)
{
    int more = merged != 0 && merged < LIGHT_RECORDS ? SLEEP_LIGHT_MS - SLEEP_BUSY_MS : 0;
    bool has_passed =
        host_sleep(host, attention, idle < IDLE_ROUNDS ? SLEEP_BUSY_MS : SLEEP_IDLE_MS);
    for (int i = 0; i < more && has_passed; i += SLEEP_BUSY_MS) {
        host_tick(host);
        has_passed = host_sleep(host, attention, SLEEP_BUSY_MS);
    }
}

void collector_run(struct collector *collector, const volatile sig_atomic_t *detach)
{
    unsigned idle = 0;
    collector->launched_start = origin_start_time((uint32_t)collector->launched);
    while (!*detach) {
        uint64_t now = host_tick(&collector->host);
        uint32_t attention = atomic_load(&collector->host.channel->attention);
        size_t merged = collector_collect(collector);
        loans_step(&collector->host, collector->loans, now);
        dumps_step(collector);
        bool has_requests = snapshots_answer(collector);
        snapshots_step(collector, now);
        if (collector->step)
            collector->step(collector);
        upkeep(collector, now);
        for (size_t i = 0; i < collector->processes.count; i++)
            ring_step(collector->processes.items[i]->trace, now);
        launched_reap(collector); /* also when it was never attached */
        collector_reap_processes(collector);
        bool finishes = trace_closers_step(&collector->closers);
        if (collector->launched_has_ended && collector->processes.count == 0 &&
            !collector_is_awaited(collector))
            break;
        collector_waiting_tell(collector, now);
        idle = merged != 0 || finishes ? 0 : idle + 1;
        if (idle > 0)
            launched_follow_stop(collector);
        if (!has_requests)
            collector_rest(&collector->host, attention, merged, idle);
    }
    collector->is_left_alone = *detach && host_stays_held(&collector->host, LEFT_LOOKS);
    collector_detach_all(collector);
    trace_closers_wait(&collector->closers, detach);
}

void collector_close(struct collector *collector)
{
    control_close(&collector->control);
    if (collector->first)
        trace_discard(collector->first);
    trace_closers_free(&collector->closers);
    processes_free(&collector->processes);
    group_free(&collector->group);
    shared_pages_free(collector->shared_pages);
    free(collector->most_live_path);
}
